//! The versions of one key: a chain of entries from the newest to the oldest.
//!
//! ```text
//! slot -> { #9 Put, record, older } -> { #7 Delete, record, older } -> { #2 Put, record, null }
//! ```
//!
//! # Which thread may touch what
//! 1. `seq_kind` and `record` are set before the entry is published and never change.
//! 2. `older` is written only under the lock of the node whose slot holds the chain; any thread may read it.
//! 3. An entry never leaves its chain: numbers along `older` strictly descend, whenever they are read.
//!
//! # Memory ordering
//! An entry is published by a Release store (into a slot or an `older`), which pairs with the Acquire load of
//! a thread that follows that pointer; it makes the entry's fields and the record's bytes visible.
#![expect(unsafe_code, reason = "follows raw pointers within the arena")]

use std::ptr::{from_ref, null_mut};

use terrane_base::sync::atomic::{AtomicPtr, Ordering};
use terrane_base::{SeqKind, SeqNo};

use crate::arena::LaneGuard;
use crate::node::{Child, Link, Slot};
use crate::record::{RecordPtr, RecordView};

/// One version of one key. Lives in the arena of its tree.
pub(crate) struct VersionEntry {
    pub(crate) seq_kind: SeqKind,
    record: RecordPtr,
    older: AtomicPtr<VersionEntry>,
}

#[cfg(not(feature = "shuttle"))]
const _: () = assert!(size_of::<VersionEntry>() == 24); // one per record: the largest part of the index

impl VersionEntry {
    /// Makes an entry for a record.
    ///
    /// # Safety
    /// A valid record lies at `record` and stays there, unchanged, for as long as the arena's memtable lives.
    #[inline]
    pub(crate) unsafe fn new<'t>(
        lane: &mut LaneGuard<'t>,
        seq: SeqNo,
        record: RecordPtr,
    ) -> &'t VersionEntry {
        // SAFETY: by the caller's promise.
        let kind = unsafe { record.kind() };
        let memory = lane.entry_memory();
        let entry =
            VersionEntry { seq_kind: SeqKind::new(seq, kind), record, older: AtomicPtr::new(null_mut()) };
        debug_assert!(memory.is_aligned(), "a version lies where a link cannot name it");
        // SAFETY: fresh memory of this size and alignment, readable for `'t` (arena rules 2 and 3).
        unsafe {
            memory.write(entry);
            memory.as_ref()
        }
    }

    #[inline]
    pub(crate) fn seq(&self) -> SeqNo {
        self.seq_kind.seq()
    }

    #[inline]
    pub(crate) fn record(&self) -> RecordPtr {
        self.record
    }

    #[inline]
    pub(crate) fn view(&self) -> RecordView<'_> {
        // SAFETY: promised in `new` for as long as the memtable lives, from which `self` borrows.
        unsafe { self.record.view() }
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.view().key
    }

    /// The next older version.
    #[inline]
    pub(crate) fn older(&self) -> Option<&VersionEntry> {
        // SAFETY: null or an entry of the same arena, which frees nothing while `self` borrows from it.
        // Acquire: pairs with the Release in `set_older`.
        let older = unsafe { self.older.load(Ordering::Acquire).as_ref() };
        debug_assert!(older.is_none_or(|older| older.seq() < self.seq()), "numbers descend: rule 3");
        older
    }

    /// The newest version with a number up to `seq`, from this one on.
    #[inline]
    pub(crate) fn visible_at(&self, seq: SeqNo) -> Option<&VersionEntry> {
        let mut entry = self;
        while entry.seq() > seq && !terrane_base::planted!(SnapshotSeesNewer) {
            entry = entry.older()?;
        }
        debug_assert!(entry.seq() <= seq, "a reader at {seq} sees a newer version");
        Some(entry)
    }

    /// Requires: the lock of the chain's node, or `self` is not published yet.
    fn set_older(&self, older: Option<&VersionEntry>) {
        debug_assert!(
            older.is_none_or(|older| older.seq() < self.seq()),
            "numbers descend along `older`: rule 3"
        );
        let older = older.map_or(null_mut(), |older| from_ref(older).cast_mut());
        self.older.store(older, Ordering::Release);
    }
}

/// The result of adding an entry to a tree.
pub(crate) enum Pushed<'t> {
    /// It is the first version of its key.
    First,
    /// It is newer than this one, which was the newest before.
    Shadows(&'t VersionEntry),
    /// A newer version was present.
    Shadowed,
    /// The same version was present; the tree is unchanged.
    Duplicate,
}

/// Inserts `entry` into the versions of its key. Requires: `slot` holds the chain that starts with `head`,
/// and the caller holds the lock of the slot's node.
#[inline]
pub(crate) fn push<'t>(
    lane: &mut LaneGuard<'t>,
    slot: &'t Slot,
    head: &'t VersionEntry,
    entry: &'t VersionEntry,
) -> Pushed<'t> {
    debug_assert!(
        matches!(slot.load().child(), Child::Leaf(found) if std::ptr::eq(found, head)),
        "versions that were put there meanwhile would be lost"
    );
    if entry.seq() > head.seq() {
        entry.set_older(Some(head));
        slot.store(Link::leaf(entry));
        return Pushed::Shadows(head);
    }
    push_older(lane, head, entry)
}

/// Inserts an entry that is not the newest.
///
/// Recovery indexes segments in parallel, so a key that was written a million times arrives as a few
/// ascending runs. Each lane therefore remembers the version after which it inserted last and starts there: a
/// run costs one walk, not one per version.
#[cold]
fn push_older<'t>(lane: &mut LaneGuard<'t>, head: &'t VersionEntry, entry: &'t VersionEntry) -> Pushed<'t> {
    // A finger for another key is useless; all versions of a key in a tree are in one chain.
    let finger = lane.finger().filter(|finger| finger.seq() >= entry.seq() && finger.key() == entry.key());
    let mut newer = finger.unwrap_or(head);
    while let Some(older) = newer.older().filter(|older| older.seq() >= entry.seq()) {
        newer = older;
    }
    debug_assert!(newer.seq() >= entry.seq(), "{} would come behind an older version", entry.seq());
    if newer.seq() == entry.seq() {
        return Pushed::Duplicate;
    }
    entry.set_older(newer.older());
    newer.set_older(Some(entry));
    lane.set_finger(newer);
    Pushed::Shadowed
}
