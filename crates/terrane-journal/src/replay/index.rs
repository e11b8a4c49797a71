//! Handing the records of a piece to the sink.

use terrane_base::{Error, Result};
use terrane_format::segment::{Batches, Groups};

use super::RecordSink;
use super::scan::{Piece, Scan};

/// Step 4 of replay, for one piece. Checks the groups again: it costs little beside indexing, and the bytes
/// were read from the device a second time if memory was short.
pub(super) fn index(scan: &Scan, piece: &Piece, sink: &RecordSink<'_>) -> Result<()> {
    let bytes = scan.bytes();
    let corrupt = |error: Error, offset: usize| error.at(&*scan.path, offset as u64);
    let mut groups = Groups::resume(bytes, scan.listed.spec.id, piece.from);
    while groups.walk().offset < piece.to {
        let offset = groups.walk().offset;
        let Some(group) = groups.next() else {
            return Err(corrupt(Error::corrupt(groups.stop_reason()), offset));
        };
        for batch in Batches::new(bytes, &group) {
            let mut refused = None;
            let walked = batch.records(bytes, |offset, seq, record| {
                sink(&scan.memory, offset, record, seq).inspect_err(|error| refused = Some(error.clone()))
            });
            if let Some(error) = refused {
                return Err(error);
            }
            walked.map_err(|error| corrupt(error, batch.offset))?;
        }
    }
    Ok(())
}
