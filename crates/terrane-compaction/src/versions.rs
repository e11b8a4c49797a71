//! Which versions of a key survive a merge.
//!
//! Live snapshots cut the sequence numbers into *stripes*: a stripe ends at a snapshot, inclusive, and the last
//! one has no end. A reader of a stripe's end sees the newest version within it. So:
//! 1. of each key the newest version in each stripe stays, and no other;
//! 2. a delete that stays by rule 1 goes nevertheless, if nothing deeper may hold the key and no older version
//!    of the key stays: it would hide nothing.
//!
//! Operands of merges need what is older of their stripe: who folds takes the versions behind one that stays from here on
//! (`merge/fold.rs`) until the stripe ends, and this filter drops what is left of it.
//!
//! Rule 2 cannot be decided before the key's older versions were seen. The filter therefore holds deletes back
//! and gives them out in front of the version that makes them necessary, or forgets them with the key. Only
//! sequence numbers are held: a delete has no value, and the key is known.

use terrane_base::{SeqKind, SeqNo};

/// What to do with a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody needs it.
    Drop,
    /// It stays, behind the deletes in [`VersionFilter::held`], which stay as well.
    Keep,
    /// It is a delete that is held back.
    Hold,
}

/// Decides over the versions of a merge in internal order.
#[derive(Clone, Debug)]
pub struct VersionFilter {
    /// Live snapshots, descending.
    snapshots: Vec<SeqNo>,
    /// Start (exclusive) of the stripe of the version before, among the current key's.
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

    /// Starts a new key: forgets the deletes that are held; returns how many.
    #[inline]
    pub fn start_key(&mut self) -> usize {
        self.stripe_start = None;
        let forgotten = self.held.len();
        self.held.clear();
        forgotten
    }

    /// Decides over the next version of the current key. `is_bottom` tells whether nothing deeper may hold the
    /// key; it is asked for deletes only.
    ///
    /// Requires: versions come newest first; a duplicate of a version is dropped.
    #[inline]
    pub fn next(&mut self, seq_kind: SeqKind, is_bottom: impl FnOnce() -> bool) -> Verdict {
        let seq = seq_kind.seq();
        if self.stripe_start.is_some_and(|start| seq > start) {
            return Verdict::Drop;
        }
        self.stripe_start = Some(self.snapshot_below(seq));
        if seq_kind.is_delete() && (terrane_base::planted!(DropTombstone) || is_bottom()) {
            self.held.push(seq_kind);
            return Verdict::Hold;
        }
        Verdict::Keep
    }

    /// Start (exclusive) of the stripe of the version that was decided last, of the current key.
    #[inline]
    #[must_use]
    pub fn stripe_start(&self) -> SeqNo {
        self.stripe_start.unwrap_or_default()
    }

    /// The deletes that are held, newest first: they go out in front of a version that is kept.
    #[inline]
    #[must_use]
    pub fn held(&self) -> &[SeqKind] {
        &self.held
    }

    /// Holds a version that was to stay back as a delete. Requires: it was decided last, and nothing deeper may hold the key.
    pub fn hold(&mut self, delete: SeqKind) {
        self.held.push(delete);
    }

    /// Forgets the held deletes after they went out.
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

/// Whether versions with numbers `seq_min` to `seq_max` lie in one stripe: then a merge in the bottom drops
/// every delete among them.
#[must_use]
pub fn in_one_stripe(snapshots: &[SeqNo], seq_min: SeqNo, seq_max: SeqNo) -> bool {
    !snapshots.iter().any(|snapshot| (seq_min..seq_max).contains(snapshot))
}
