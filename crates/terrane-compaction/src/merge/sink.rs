//! The destination of merged entries: they go through the version filter, and survivors go into the output.
//! Operands, single deletes and expiring entries are handled by `fold.rs`.

use terrane_base::{Collation, Entry, Moment, RecordKind, Result, SeqKind, SeqNo, Stored};

use super::fold::{Folding, Waiting};
use super::output::Output;
use super::ranges::Ranges;
use super::row_filter::{RowDecision, RowFilter};
use crate::control::JobControl;
use crate::job::{JobSpec, Work};
use crate::range::KeyRange;
use crate::versions::{Verdict, VersionFilter};

/// See the [module](self).
pub(super) struct Sink<'a> {
    pub(super) output: Output<'a>,
    pub(super) work: Work,
    pub(super) ranges: Ranges,
    filter: VersionFilter,
    below: Below<'a>,
    /// The key that went through the filter last, and its head.
    key: Vec<u8>,
    head: u64,
    has_key: bool,
    /// True if a version of it stays.
    is_kept: bool,
    pub(super) folding: Folding,
    row_filter: Option<RowFilter>,
    /// A value that the compaction filter changed, with its prefix.
    changed: Vec<u8>,
    /// The stored bytes of an entry whose value is elsewhere.
    placed: Vec<u8>,
}

impl<'a> Sink<'a> {
    pub(super) fn new(spec: &'a JobSpec, output: Output<'a>, ranges: Ranges, control: &JobControl) -> Self {
        Sink {
            output,
            work: Work::default(),
            ranges,
            filter: VersionFilter::new(&spec.snapshots),
            below: Below { ranges: &spec.below, collation: spec.collation(), at: 0 },
            key: Vec::new(),
            head: 0,
            has_key: false,
            is_kept: false,
            folding: Folding::new(control, spec.below_seq_max),
            row_filter: RowFilter::of(control, spec.collation()),
            changed: Vec::new(),
            placed: Vec::new(),
        }
    }

    /// Ends the output extent before `key`, the next key, if it has passed too many grandparents.
    pub(super) fn pass_grandparents(&mut self, key: &[u8]) -> Result<()> {
        if !self.is_at(key) {
            self.emit_waiting()?;
        }
        debug_assert!(
            self.is_at(key) || !self.waits(),
            "no version of another key waits when its extent may end"
        );
        self.output.pass_grandparents(key, &mut self.work)
    }

    /// Returns true if `key` is the one that went through the filter last.
    pub(super) fn is_at(&self, key: &[u8]) -> bool {
        self.has_key && self.key == key
    }

    /// Takes the next entry in internal order; `head` is its key's.
    #[inline]
    pub(super) fn take(&mut self, entry: Entry<'_>, head: u64) -> Result<()> {
        if head != self.head || !self.is_at(entry.key) {
            self.emit_waiting()?;
            debug_assert!(!self.waits(), "versions of two keys would be folded");
            self.filter.start_key();
            self.key.clear();
            self.key.extend_from_slice(entry.key);
            (self.head, self.has_key, self.is_kept) = (head, true, false);
            if terrane_base::planted!(ForgetNewestVersion) {
                return Ok(());
            }
        }
        if !self.ranges.is_empty() && self.ranges.hides(entry.key, entry.seq_kind.seq()) {
            let folds = self.folding.waiting == Waiting::Operands;
            if !(folds && terrane_base::planted!(FoldAcrossRangeDelete)) {
                return Ok(());
            }
        }
        if entry.seq_kind.0 as u8 > RecordKind::Put as u8 || self.folding.waiting != Waiting::Nothing {
            return self.take_dependent(entry);
        }
        match self.verdict(&entry) {
            Verdict::Drop | Verdict::Hold => Ok(()),
            Verdict::Keep => self.keep(entry),
        }
    }

    /// The decision of the version filter.
    #[inline]
    pub(super) fn verdict(&mut self, entry: &Entry<'_>) -> Verdict {
        debug_assert!(self.has_key, "a version is judged after the newer ones of its key");
        let below = &mut self.below;
        self.filter.next(entry.seq_kind, || !below.may_hold(entry.key))
    }

    /// True if versions of the key wait for older ones.
    pub(super) fn waits(&self) -> bool {
        self.folding.waiting != Waiting::Nothing
    }

    /// The key that is being filtered.
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns true if no deeper level may hold the key.
    pub(super) fn is_bottom(&mut self) -> bool {
        !self.below.may_hold(&self.key)
    }

    /// Holds a delete of the key back until it is known whether an older version stays.
    pub(super) fn hold(&mut self, delete: SeqKind) {
        self.filter.hold(delete);
    }

    /// Start (exclusive) of the stripe of the last version.
    pub(super) fn stripe_start(&self) -> SeqNo {
        if terrane_base::planted!(FoldAcrossSnapshot) { SeqNo(0) } else { self.filter.stripe_start() }
    }

    #[inline]
    pub(super) fn keep(&mut self, entry: Entry<'_>) -> Result<()> {
        if self.row_filter.is_some() && !entry.seq_kind.is_delete() && !entry.seq_kind.is_merge() {
            return self.apply_filter(entry);
        }
        self.keep_unasked(entry)
    }

    /// Returns true if the compaction filter has made a value that cannot be stored: no input is wrong.
    pub(super) fn is_filter_wrong(&self) -> bool {
        self.row_filter.as_ref().is_some_and(RowFilter::is_wrong)
    }

    /// Shows a surviving value to the compaction filter, and does what the filter decides.
    #[cold]
    fn apply_filter(&mut self, entry: Entry<'_>) -> Result<()> {
        debug_assert!(
            !entry.seq_kind.is_delete() && !entry.seq_kind.is_merge(),
            "a compaction filter sees values only"
        );
        let mut followed = Vec::new();
        let shown = match entry.seq_kind.is_pointer() {
            true if !terrane_base::planted!(FilterSeesPointer) => {
                Entry { seq_kind: self.resolved(entry, &mut followed)?, value: &followed, ..entry }
            }
            _ => entry,
        };
        let value = Stored::of_entry(shown.seq_kind, shown.value)?.value;
        let prefix = &shown.value[..shown.value.len() - value.len()];
        let Some(row_filter) = &mut self.row_filter else { return self.keep_unasked(entry) };
        match row_filter.ask(entry.key, entry.seq_kind.seq(), value)? {
            RowDecision::Keep => self.keep_unasked(entry),
            RowDecision::Change(value) => {
                self.work.entries_filtered += 1;
                let mut changed = std::mem::take(&mut self.changed);
                changed.clear();
                changed.extend_from_slice(prefix);
                changed.extend_from_slice(&value);
                let kept = self.keep_unasked(Entry { value: &changed, ..shown });
                self.changed = changed;
                kept
            }
            RowDecision::Remove => {
                self.work.entries_filtered += 1;
                let delete = entry.seq_kind.with_kind(RecordKind::Delete);
                if self.is_bottom() {
                    // It is emitted only before an older version that stays for a snapshot.
                    self.hold(delete);
                    return Ok(());
                }
                self.keep_unasked(Entry { seq_kind: delete, value: &[], ..entry })
            }
        }
    }

    #[inline]
    fn keep_unasked(&mut self, entry: Entry<'_>) -> Result<()> {
        if !self.filter.held().is_empty() {
            self.keep_held()?;
        }
        debug_assert!(self.filter.held().is_empty(), "a delete would come behind the version that it hides");
        self.add(entry)
    }

    /// Emits the held deletes.
    pub(super) fn keep_held(&mut self) -> Result<()> {
        let count = self.filter.held().len();
        for index in 0..count {
            let seq_kind = self.filter.held()[index];
            self.add_of_key(seq_kind, &[])?;
        }
        debug_assert!(self.filter.held().len() == count, "a delete that was not emitted would be forgotten");
        self.filter.clear_held();
        Ok(())
    }

    /// [`Sink::keep`] for the result of folding operands of the current key.
    pub(super) fn keep_of_key(&mut self, seq_kind: SeqKind, value: &[u8]) -> Result<()> {
        debug_assert!(self.has_key, "a version that stays has a key");
        let key = std::mem::take(&mut self.key);
        // The compaction filter reads the key.
        self.key.extend_from_slice(&key);
        let kept = self.keep(Entry { key: &key, seq_kind, value });
        self.key = key;
        kept
    }

    /// Adds a version of the current key.
    pub(super) fn add_of_key(&mut self, seq_kind: SeqKind, value: &[u8]) -> Result<()> {
        debug_assert!(self.has_key, "a version that is added has a key");
        let key = std::mem::take(&mut self.key);
        let added = self.add(Entry { key: &key, seq_kind, value });
        self.key = key;
        added
    }

    #[inline]
    fn add(&mut self, entry: Entry<'_>) -> Result<()> {
        if self.output.values.concerns(&entry) {
            return self.add_placed(entry);
        }
        self.add_as_it_is(entry)
    }

    /// Adds a version whose value is a pointer, or goes into a value table.
    fn add_placed(&mut self, entry: Entry<'_>) -> Result<()> {
        let mut bytes = std::mem::take(&mut self.placed);
        let stored = Stored::of_entry(entry.seq_kind, entry.value)?;
        let given = match stored.expires_at != Moment::NEVER && terrane_base::planted!(SeparateForgetsExpiry)
        {
            true => {
                Entry { seq_kind: entry.seq_kind.with_kind(RecordKind::Put), value: stored.value, ..entry }
            }
            false => entry,
        };
        let placed = self.output.values.place(given, &mut self.work)?;
        debug_assert!(
            placed.seq_kind.seq() == entry.seq_kind.seq(),
            "a version keeps its number when its value moves"
        );
        let keeps_old = entry.seq_kind.is_pointer() && terrane_base::planted!(KeepOldPointer);
        let placed = if keeps_old { entry } else { placed };
        let seq_kind = placed.seq_kind;
        bytes.clear();
        bytes.extend_from_slice(placed.value);
        let added = self.add_as_it_is(Entry { key: entry.key, seq_kind, value: &bytes });
        self.placed = bytes;
        added
    }

    /// The entry with its separated value read, for compaction filters and merge operators.
    pub(super) fn resolved(&mut self, entry: Entry<'_>, out: &mut Vec<u8>) -> Result<SeqKind> {
        let entry = self.output.values.resolve(entry, &mut self.work)?;
        debug_assert!(!entry.seq_kind.is_pointer(), "a pointer that was followed becomes a value");
        out.clear();
        out.extend_from_slice(entry.value);
        Ok(entry.seq_kind)
    }

    #[inline]
    fn add_as_it_is(&mut self, entry: Entry<'_>) -> Result<()> {
        debug_assert!(self.has_key, "the first version that stays decides where the extent ends");
        if self.is_kept {
            return self.output.add_next(entry, &mut self.work);
        }
        self.is_kept = true;
        self.output.add_first(entry, &mut self.work)
    }
}

/// Ranges of keys that deeper levels may hold, for queries with ascending keys.
struct Below<'a> {
    ranges: &'a [KeyRange],
    collation: &'a Collation,
    at: usize,
}

impl Below<'_> {
    fn may_hold(&mut self, key: &[u8]) -> bool {
        while self.ranges.get(self.at).is_some_and(|range| range.ends_before(key)) {
            self.at += 1;
        }
        self.ranges.get(self.at).is_some_and(|range| self.collation.le(&range.start, key))
    }
}
