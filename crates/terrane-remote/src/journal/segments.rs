//! The files of the segments that a manifest lists, made of the bytes that a journal's objects have of them.

use std::path::Path;

use terrane_base::{Error, Result, SegmentId};
use terrane_device::{Disk, OpenMode};
use terrane_journal::file_name;
use terrane_levels::State;

/// Writes the files of the segments that `state` lists into the directory `dir`; `bytes_of` gives the bytes
/// of each.
///
/// # Errors
/// `Corrupt` if a segment has more bytes than `state` says; any error of the disk.
pub(super) fn write_segments<'b>(
    state: &State,
    bytes_of: impl Fn(SegmentId) -> &'b [u8],
    (disk, dir): (&dyn Disk, &Path),
) -> Result<()> {
    for segment in state.segments.values() {
        let (spec, bytes) = (segment.spec, bytes_of(segment.spec.id));
        if bytes.len() as u64 > spec.bytes {
            let message = format!(
                "{} bytes of segment {}, which has {} by the manifest",
                bytes.len(),
                spec.id,
                spec.bytes
            );
            return Err(Error::corrupt(message));
        }
        let file = disk.open(&dir.join(file_name(spec.file)), OpenMode::Create, false)?;
        file.set_len(spec.bytes)?;
        if !bytes.is_empty() {
            file.write_at(0, bytes)?;
        }
    }
    disk.sync_dir(dir)
}
