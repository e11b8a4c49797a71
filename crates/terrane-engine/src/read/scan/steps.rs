//! Steps of a cursor over the versions of one key.

use terrane_base::counters::{add, count};
use terrane_base::{Cursor, Result, SeqNo};

/// Returns true if two keys are equal. Neighbours in key order differ near their ends, if they have the same
/// length at all.
#[inline]
pub(super) fn is_same(left: &[u8], right: &[u8]) -> bool {
    match (left.last_chunk::<8>(), right.last_chunk::<8>()) {
        (Some(left_end), Some(right_end)) if left_end != right_end => false,
        _ => left == right,
    }
}

/// The versions that a scan passed over before it came to a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Skipped {
    pub(super) versions: u64,
    /// Those of them that are deletes.
    pub(super) deletes: u64,
}

impl Skipped {
    /// Of the versions of one key that a scan met, `deletes` among them, all but the value that it shows.
    pub(super) fn of_key(met: u32, shows_value: bool, deletes: u64) -> Skipped {
        Skipped { versions: u64::from(met) - u64::from(shows_value), deletes }
    }

    /// Adds it to the counters of the calling thread.
    pub(super) fn count(self) {
        debug_assert!(self.deletes <= self.versions, "each delete that is passed is a version: {self:?}");
        if self.versions > 0 {
            count(|cells| {
                add(&cells.versions_skipped, self.versions);
                add(&cells.deletes_skipped, self.deletes);
            });
        }
    }
}

/// Goes to the first entry of the key after `key`.
pub(super) fn seek_past<C: Cursor>(cursor: &mut C, key: &[u8]) -> Result<()> {
    cursor.seek(key, SeqNo(0))?;
    // Number 0 is never given to a record, but a damaged source must not make a scan loop.
    while cursor.entry().is_some_and(|entry| entry.key == key) {
        cursor.next()?;
    }
    Ok(())
}

/// Goes to the oldest version of `key`, or else to the last entry before where it would be.
pub(super) fn seek_to_last_version<C: Cursor>(cursor: &mut C, key: &[u8]) -> Result<()> {
    seek_past(cursor, key)?;
    match cursor.entry() {
        Some(_) => cursor.prev(),
        None => cursor.seek_last(),
    }
}
