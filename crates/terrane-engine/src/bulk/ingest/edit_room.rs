//! The size of the one edit of an ingest: a record of the manifest is bounded, and an ingest beyond the bound
//! must be refused before anything is written or committed.

use terrane_base::{Error, Result, SeqNo, TableId};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::record::PAYLOAD_BYTES_MAX;
use terrane_format::manifest::{EditOp, Place};

/// Bytes that are reserved for the other parts of the edit.
const RESERVE_BYTES: usize = 64 << 10;
/// Most bytes by which a meta may grow when its extent has its place in the store.
const SLACK_BYTES: usize = 8;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct EditRoom {
    bytes: usize,
    extents: u64,
    encoded: Vec<u8>,
}

impl EditRoom {
    /// Adds an extent to the edit.
    ///
    /// # Errors
    /// `Invalid`, with `remedy`, if there is no room.
    pub(super) fn take(&mut self, table: TableId, meta: &ExtentMeta, remedy: &str) -> Result<()> {
        self.encoded.clear();
        EditOp::add(table, Place::Run(u64::MAX), meta.numbered(SeqNo::MAX)?).encode(&mut self.encoded);
        debug_assert!(!self.encoded.is_empty(), "an extent would come in without a record in the manifest");
        self.bytes += self.encoded.len() + SLACK_BYTES;
        self.extents += 1;
        let limit = PAYLOAD_BYTES_MAX - RESERVE_BYTES;
        if self.bytes <= limit {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{} extents take {} bytes of the manifest, most of them first and last keys, and one commit has {limit}: {remedy}",
            self.extents, self.bytes
        )))
    }
}

#[cfg(test)]
mod tests {

    use terrane_base::{ExtentId, Kind};
    use terrane_format::extent::UNNUMBERED_SEQ;
    use terrane_format::manifest::Edit;

    use super::*;

    /// The last accepted edit can be written, and one that is a little larger could not.
    #[test]
    fn accepted_extents_fit_one_edit() {
        let table = TableId(70_000);
        let bound = |number: u32, end: u8| [&number.to_be_bytes()[..], &vec![end; 60_000]].concat();
        let meta = |number: u32| ExtentMeta {
            id: ExtentId { file: 0, slot: number },
            smallest: bound(number, 0),
            largest: bound(number, 1),
            seq_min: UNNUMBERED_SEQ,
            seq_max: UNNUMBERED_SEQ,
            bytes: 4096,
            raw_bytes: 4096,
            entries: 2,
            blocks: 1,
            ..ExtentMeta::default()
        };
        let mut room = EditRoom::default();
        let mut ops = vec![EditOp::Durable { seq: SeqNo::MAX }];
        let refused = loop {
            let meta = meta(ops.len() as u32);
            match room.take(table, &meta, "split them") {
                Ok(()) => {
                    let mut meta = meta.numbered(SeqNo::MAX).expect("it has none");
                    meta.id.file = u32::MAX;
                    ops.push(EditOp::add(table, Place::Run(u64::MAX), meta));
                }
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), Kind::Invalid);
        assert!(refused.message().contains("split them"), "{refused}");
        let mut encoded = Vec::new();
        Edit { ops }.encode(&mut encoded);
        assert!(encoded.len() <= PAYLOAD_BYTES_MAX && encoded.len() > PAYLOAD_BYTES_MAX - (1 << 20));
    }
}
