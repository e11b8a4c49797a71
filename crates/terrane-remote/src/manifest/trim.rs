//! Deletes objects that a later snapshot replaced.
//!
//! An object goes when a snapshot behind it is older than the age of the longest reading, by the clock of the
//! object store: a reader that began before that snapshot was there has ended, and one that began later needs
//! nothing before it. Take-overs stay (`manifest/mod.rs` says why). A writer that was replaced meanwhile, and
//! deletes late, deletes only what the later writers need as little as it did itself.

use std::time::Duration;

use terrane_base::Result;
use terrane_format::manifest::object::OBJECT_HEADER_BYTES;

use super::ManifestFolder;
use crate::bucket::Listed;

/// The snapshots that this writer knows, and how old one must be.
#[derive(Debug)]
pub(super) struct Trimmer {
    age_min: Duration,
    /// Ascending; all are whole.
    snapshots: Vec<u64>,
}

impl Trimmer {
    pub(super) fn new(age_min: Duration, base: u64) -> Trimmer {
        Trimmer { age_min, snapshots: if base == 0 { Vec::new() } else { vec![base] } }
    }

    /// A snapshot that was created.
    pub(super) fn note_snapshot(&mut self, number: u64) {
        debug_assert!(self.snapshots.last().is_none_or(|last| *last < number), "numbers only rise");
        self.snapshots.push(number);
    }

    /// Deletes what may go; returns how many objects.
    pub(super) fn trim(&mut self, folder: &ManifestFolder) -> Result<usize> {
        let listed = folder.objects.list()?;
        let now = listed.values().map(|object| object.modified).max().unwrap_or_default();
        let is_old =
            |number: &u64| listed.get(number).is_some_and(|object| object.modified + self.age_min <= now);
        let Some(kept_from) = self.snapshots.iter().copied().filter(is_old).max() else { return Ok(0) };
        let is_gone = |object: &&Listed| {
            object.bytes > OBJECT_HEADER_BYTES as u64 || terrane_base::planted!(DeleteTakeOvers)
        };
        let below = listed.range(..kept_from).map(|(_, object)| object);
        let gone: Vec<String> = below.filter(is_gone).map(|object| object.name.clone()).collect();
        if !gone.is_empty() {
            folder.objects.bucket.delete(&gone)?;
        }
        self.snapshots.retain(|number| *number >= kept_from);
        assert!(!self.snapshots.is_empty(), "the snapshot that replaces the others stays");
        Ok(gone.len())
    }
}
