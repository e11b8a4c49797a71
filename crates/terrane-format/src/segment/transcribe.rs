//! Rewrites the groups of a segment for another database: the same records, sequence numbers and offsets,
//! with checksums for the other database's salt.

use terrane_base::{Error, Result, SeqNo};

use super::{
    BATCH_HEADER_BYTES, Batches, GROUP_HEADER_BYTES, GroupHeader, Groups, SEGMENT_HEADER_BYTES,
    SegmentHeader, batch_checksum, chain, encode_batch_header, segment_seed,
};

/// Bytes that are passed on at once; only the last piece may be shorter.
const PIECE_BYTES: usize = 1 << 20;

/// The end of a rewritten segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transcribed {
    /// Number of its last record, or of the record before it if it holds none.
    pub last_seq: SeqNo,
    /// Running checksum over everything in it.
    pub checksum: u32,
}

/// Writes the groups of `source`, the valid part of a segment, as a segment with `header`, which holds the
/// new salt and predecessor. `emit` gets the bytes, front to back, `source.len()` in all.
///
/// Marks are kept, but without edit numbers, which refer to the other manifest.
///
/// # Errors
/// `Corrupt`, without a place, if `source` is not valid to its end; any error that `emit` returns.
pub fn transcribe(
    source: &[u8],
    header: &SegmentHeader,
    emit: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<Transcribed> {
    let (_, mut groups) = Groups::new(source)?;
    let encoded = header.encode();
    let seed = segment_seed(header.id, header.salt);
    let mut running = SegmentHeader::decode(&encoded)?.1;
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    piece.extend_from_slice(&encoded);
    for group in groups.by_ref() {
        let (start, front) = (group.offset, piece.len());
        piece.extend_from_slice(&source[start..start + group.header.len as usize]);
        let (head, group_checksum) = GroupHeader { edits: 0, ..group.header }.encode(seed, start as u64);
        piece[front..front + GROUP_HEADER_BYTES].copy_from_slice(&head);
        running = chain(running, group_checksum);
        for batch in Batches::new(source, &group) {
            let at = batch.offset - BATCH_HEADER_BYTES;
            let records = &source[batch.offset..batch.offset + batch.len];
            let checksum = batch_checksum(group_checksum, at as u64, batch.record_count, records);
            let head = encode_batch_header(batch.len as u32, batch.record_count, checksum);
            piece[front + at - start..][..BATCH_HEADER_BYTES].copy_from_slice(&head);
            running = chain(running, checksum);
        }
        if piece.len() >= PIECE_BYTES {
            emit(&piece)?;
            piece.clear();
        }
    }
    let end = groups.walk();
    if end.offset != source.len() {
        let (found, expected) = (end.offset, source.len().max(SEGMENT_HEADER_BYTES));
        return Err(Error::corrupt(format!(
            "segment {} is valid up to offset {found}, expected {expected}: {}",
            header.id,
            groups.stop_reason()
        )));
    }
    emit(&piece)?;
    Ok(Transcribed { last_seq: end.last_seq, checksum: running })
}
