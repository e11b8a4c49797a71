//! Files of journal segments, and what the manifest says of them.

use std::path::Path;

use terrane_base::{Error, Kind, Result};
use terrane_device::Disk;
use terrane_format::manifest;
use terrane_journal::{ListedSegment, SegmentSeal, SegmentSpec, file_name, pending_name, pending_number};
use terrane_levels::State;

/// A segment of the manifest as replay wants it.
pub(crate) fn listed(segment: &terrane_levels::Segment) -> ListedSegment {
    let manifest::SegmentSpec { id, file, bytes } = segment.spec;
    let seal = segment.seal.map(|seal| SegmentSeal { end: seal.end_offset, last_seq: seal.last_seq });
    ListedSegment { spec: SegmentSpec { id, file, bytes }, seal }
}

/// Refuses to read a database of which a swap is not at its end: only a writer can end it.
///
/// # Errors
/// `kind`: `Invalid` if the reader has locked the database, so that no writer is about to; `Busy` if one may
/// be. `Io`.
pub(crate) fn refuse_unfinished(disk: &dyn Disk, dir: &Path, state: &State, kind: Kind) -> Result<()> {
    let names = disk.list(dir).map_err(|error| lost(error, dir))?;
    for file in names.iter().filter_map(|name| pending_number(name)) {
        let is_listed = state.segments.values().any(|segment| segment.spec.file == file);
        if is_listed && !disk.exists(&dir.join(file_name(file)))? {
            let message = "an opening with a replay filter is not complete: if its process died, open the database for writing once";
            return Err(Error::new(kind, message).at(dir.join(pending_name(file)).display().to_string(), 0));
        }
    }
    Ok(())
}

/// A directory of a database that is not there was lost: it is made before the database is one.
pub(crate) fn lost(error: Error, dir: &Path) -> Error {
    match error.kind() {
        Kind::NotFound => {
            let error = error.with_kind(Kind::Corrupt).at(dir.display().to_string(), 0);
            error.context("a directory of the database is missing: restore it from a backup, or repair it")
        }
        _ => error,
    }
}
