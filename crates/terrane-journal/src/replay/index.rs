//! Passes the records of a piece to the sink.

use terrane_base::{Error, Result};
use terrane_format::segment::{Batches, Group, GroupHeader};

use super::RecordSink;
use super::scan::{Piece, Scan};

/// Step 4 of replay, for one piece. The scan has verified the checksums; neither this step nor later readers
/// of the segment's memory verify them again.
pub(super) fn index(scan: &Scan, piece: &Piece, sink: &RecordSink<'_>) -> Result<()> {
    let bytes = scan.bytes();
    let corrupt = |error: Error, offset: usize| error.at(&*scan.path, offset as u64);
    let mut offset = piece.from;
    while offset < piece.to {
        let header = GroupHeader::decode_known(bytes, offset);
        let header =
            header.ok_or_else(|| corrupt(Error::corrupt("the segment changed during replay"), offset))?;
        for batch in Batches::new(bytes, &Group { offset, header }) {
            let mut refused = None;
            let walked = batch.records(bytes, |offset, seq, record| {
                if terrane_base::planted!(ApplyHalfBatch)
                    && (seq.0 - batch.first_seq.0) * 2 >= u64::from(batch.record_count.max(2))
                {
                    return Ok(());
                }
                sink(&scan.memory, offset, record, seq).inspect_err(|error| refused = Some(error.clone()))
            });
            if let Some(error) = refused {
                return Err(error);
            }
            walked.map_err(|error| corrupt(error, batch.offset))?;
        }
        offset += header.len as usize;
    }
    Ok(())
}
