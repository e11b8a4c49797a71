//! Which versions of a key survive a merge.
//!
//! Live snapshots divide the sequence numbers into *stripes*: a stripe ends at a snapshot, inclusive, and the
//! last one has no end. A reader at a stripe's end sees the newest version within it. So:
//! 1. of each key the newest version in each stripe stays, and no other;
//! 2. a delete that stays by rule 1 is dropped nevertheless, if no deeper level may hold the key and no older
//!    version of the key stays: it would hide nothing.
//!
//! Operands of merges need the older versions of their stripe: `merge/fold.rs` takes the versions after one
//! that stays until the stripe ends, and this filter drops the rest.
//!
//! Rule 2 cannot be decided before the key's older versions were seen. The filter therefore holds deletes
//! back and emits them before the version that makes them necessary, or drops them with the key. Only
//! sequence numbers are held: a delete has no value, and the key is known.

use terrane_base::{SeqKind, SeqNo};

/// The decision about a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No reader needs it.
    Drop,
    /// It stays, after the deletes in [`VersionFilter::held`], which stay as well.
    Keep,
    /// It is a delete that is held back.
    Hold,
}

/// Decides about the versions of a merge in internal order.
#[derive(Clone, Debug)]
pub struct VersionFilter {
    /// Live snapshots, descending.
    snapshots: Vec<SeqNo>,
    /// Start (exclusive) of the stripe of the current key's previous version.
    stripe_start: Option<SeqNo>,
    held: Vec<SeqKind>,
}

impl VersionFilter {
    /// A filter under live `snapshots`, in any order.
    #[must_use]
    pub fn new(snapshots: &[SeqNo]) -> Self {
        let mut snapshots = snapshots.to_vec();
        snapshots.sort_unstable_by(|a, b| b.cmp(a));
        snapshots.dedup();
        VersionFilter { snapshots, stripe_start: None, held: Vec::new() }
    }

    /// Starts a new key: drops the held deletes; returns their number.
    #[inline]
    pub fn start_key(&mut self) -> usize {
        self.stripe_start = None;
        let forgotten = self.held.len();
        self.held.clear();
        forgotten
    }

    /// Decides about the next version of the current key. `is_bottom` returns true if no deeper level may
    /// hold the key; it is called for deletes only.
    ///
    /// Requires: versions come newest first; a duplicate of a version is dropped.
    #[inline]
    pub fn next(&mut self, seq_kind: SeqKind, is_bottom: impl FnOnce() -> bool) -> Verdict {
        let seq = seq_kind.seq();
        if self.stripe_start.is_some_and(|start| seq > start) {
            return Verdict::Drop;
        }
        let below = self.snapshot_below(seq);
        debug_assert!(below < seq || below == SeqNo(0), "the stripe of {seq} begins at {below}");
        self.stripe_start = Some(below);
        if seq_kind.is_delete() && (terrane_base::planted!(DropTombstone) || is_bottom()) {
            self.held.push(seq_kind);
            return Verdict::Hold;
        }
        Verdict::Keep
    }

    /// Start (exclusive) of the stripe of the current key's last version.
    #[inline]
    #[must_use]
    pub fn stripe_start(&self) -> SeqNo {
        self.stripe_start.unwrap_or_default()
    }

    /// The held deletes, newest first: they are emitted before a version that is kept.
    #[inline]
    #[must_use]
    pub fn held(&self) -> &[SeqKind] {
        &self.held
    }

    /// Holds a version back as a delete although it would stay. Requires: it was decided last, and no deeper
    /// level may hold the key.
    pub fn hold(&mut self, delete: SeqKind) {
        debug_assert!(delete.is_delete(), "only a delete may be held back");
        self.held.push(delete);
    }

    /// Removes the held deletes after they were emitted.
    #[inline]
    pub fn clear_held(&mut self) {
        self.held.clear();
    }

    /// The largest snapshot less than `seq`, or 0.
    #[inline]
    fn snapshot_below(&self, seq: SeqNo) -> SeqNo {
        if terrane_base::planted!(ForgetSnapshots) {
            return SeqNo(0);
        }
        let index = self.snapshots.partition_point(|snapshot| *snapshot >= seq);
        self.snapshots.get(index).copied().unwrap_or_default()
    }
}

/// Returns true if versions with numbers `seq_min` to `seq_max` lie in one stripe: then a merge in the bottom
/// drops every delete among them.
#[must_use]
pub fn in_one_stripe(snapshots: &[SeqNo], seq_min: SeqNo, seq_max: SeqNo) -> bool {
    !snapshots.iter().any(|snapshot| (seq_min..seq_max).contains(snapshot))
}
