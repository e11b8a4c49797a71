//! Names of segment files.

use terrane_base::{SegmentId, SeqNo};

/// Name of segment file `number` within the journal's directory.
#[must_use]
pub fn file_name(number: u32) -> String {
    format!("{number:06}.seg")
}

/// Name of the file for what an opening set aside of segment `id`; `last_seq` is the last commit that the
/// opening kept.
#[must_use]
pub(crate) fn aside_name(id: SegmentId, last_seq: SeqNo) -> String {
    format!("{:06}-{}.cut", id.0, last_seq.0)
}

/// Name of that file while it is made.
#[must_use]
pub(crate) fn pending_aside_name(id: SegmentId) -> String {
    format!("{:06}.cut.new", id.0)
}

/// The segment and the last commit that the opening kept, in the name of a file with what it set aside.
#[must_use]
pub fn aside_numbers(name: &str) -> Option<(SegmentId, SeqNo)> {
    let (id, last_seq) = name.strip_suffix(".cut")?.split_once('-')?;
    let (id, last_seq) = (SegmentId(id.parse().ok()?), SeqNo(last_seq.parse().ok()?));
    (aside_name(id, last_seq) == name && last_seq <= SeqNo::MAX).then_some((id, last_seq))
}

/// The number in a segment file's name, if it is one.
#[must_use]
pub fn file_number(name: &str) -> Option<u32> {
    let number = name.strip_suffix(".seg")?.parse().ok()?;
    (file_name(number) == name).then_some(number)
}
