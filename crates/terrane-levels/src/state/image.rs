//! A state encoded as a manifest file with a snapshot and no edit. For backups.

use terrane_base::{Error, Result};
use terrane_format::manifest::edit::decode_edits;
use terrane_format::manifest::file::{FILE_HEADER_BYTES, FileHeader};
use terrane_format::manifest::record::{Link, RECORD_HEADER_BYTES, RecordHeader, RecordTag};

use super::{Pieces, State};

/// Payload bytes of a record; the last operation may exceed it.
const PIECE_BYTES: usize = 256 << 10;

impl State {
    /// The state as the bytes of a manifest file.
    ///
    /// # Errors
    /// None for a state that was made by edits.
    pub fn to_image(&self) -> Result<Vec<u8>> {
        let header = FileHeader::new(1, self.database, 0).of_version(self.format_version);
        let seed = header.checksum();
        let mut link = Link { seed, previous: seed, number: 0 };
        let mut bytes = header.encode().to_vec();
        let op_count = Pieces::new(PIECE_BYTES, &mut |piece| {
            link.append(RecordTag::Snapshot, piece, &mut bytes);
            Ok(())
        })
        .write(self)?;
        link.append(RecordTag::SnapshotEnd, &op_count.to_le_bytes(), &mut bytes);
        Ok(bytes)
    }

    /// Decodes the bytes of [`State::to_image`].
    ///
    /// # Errors
    /// `Corrupt`, without an offset, if the bytes are invalid; `Invalid` if a later version wrote them.
    pub fn from_image(bytes: &[u8]) -> Result<State> {
        let header = FileHeader::decode(bytes)?;
        let mut state = State::empty(header.database, header.format_version);
        let seed = header.checksum();
        let mut link = Link { seed, previous: seed, number: header.base };
        let (mut at, mut op_count) = (FILE_HEADER_BYTES, 0u64);
        loop {
            let record = RecordHeader::decode(seed, bytes.get(at..).unwrap_or_default())?;
            record.check_chain(link.previous, link.number)?;
            let payload = bytes.get(at + RECORD_HEADER_BYTES..at + record.record_len() as usize);
            let payload = payload.ok_or_else(|| Error::corrupt(format!("state is cut at byte {at}")))?;
            record.check_payload(seed, payload)?;
            link.follow(&record);
            at += record.record_len() as usize;
            match record.tag {
                RecordTag::Snapshot => op_count += state.take_piece(payload)?,
                RecordTag::SnapshotEnd if payload == op_count.to_le_bytes() && at == bytes.len() => break,
                tag => return Err(Error::corrupt(format!("state with a record {tag:?} where none may be"))),
            }
        }
        state.check().map_err(|error| error.with_kind(terrane_base::Kind::Corrupt))?;
        Ok(state)
    }

    fn take_piece(&mut self, payload: &[u8]) -> Result<u64> {
        let edits = decode_edits(payload)?;
        for edit in &edits {
            self.apply_in_place(edit).map_err(|error| error.with_kind(terrane_base::Kind::Corrupt))?;
        }
        Ok(edits.iter().map(|edit| edit.ops.len() as u64).sum())
    }
}
