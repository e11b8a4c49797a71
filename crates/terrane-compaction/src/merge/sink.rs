//! Where merged entries go: through the version filter, and what stays into the output. Operands, single deletes and
//! what expires take the longer way of `fold.rs`.

use terrane_base::{Collation, Entry, RecordKind, Result, SeqKind, SeqNo, Stored};

use super::fold::{Folding, Waiting};
use super::judge::{Judge, Sentence};
use super::output::Output;
use super::ranges::Ranges;
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
    /// Whether a version of it stays.
    is_kept: bool,
    pub(super) folding: Folding,
    judge: Option<Judge>,
    /// A value that the judge changed, with what stands in front of it.
    changed: Vec<u8>,
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
            judge: Judge::of(control, spec.collation()),
            changed: Vec::new(),
        }
    }

    /// Looks whether the output should end before `key`, the least of what comes next.
    pub(super) fn pass_grandparents(&mut self, key: &[u8]) -> Result<()> {
        if !self.is_at(key) {
            self.settle()?;
        }
        self.output.pass_grandparents(key, &mut self.work)
    }

    /// Whether `key` is the one that went through the filter last.
    pub(super) fn is_at(&self, key: &[u8]) -> bool {
        self.has_key && self.key == key
    }

    /// Takes the next entry in internal order; `head` is its key's.
    #[inline]
    pub(super) fn take(&mut self, entry: Entry<'_>, head: u64) -> Result<()> {
        if head != self.head || !self.is_at(entry.key) {
            self.settle()?;
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
            return self.take_special(entry);
        }
        match self.verdict(&entry) {
            Verdict::Drop | Verdict::Hold => Ok(()),
            Verdict::Keep => self.keep(entry),
        }
    }

    /// What the version filter says.
    #[inline]
    pub(super) fn verdict(&mut self, entry: &Entry<'_>) -> Verdict {
        let below = &mut self.below;
        self.filter.next(entry.seq_kind, || !below.may_hold(entry.key))
    }

    /// The key that goes through the filter.
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Whether nothing deeper may hold the key.
    pub(super) fn is_bottom(&mut self) -> bool {
        !self.below.may_hold(&self.key)
    }

    /// Keeps a delete of the key back, until it is known whether an older version stays.
    pub(super) fn hold(&mut self, delete: SeqKind) {
        self.filter.hold(delete);
    }

    /// Start (exclusive) of the stripe of the version that was decided last.
    pub(super) fn stripe_start(&self) -> SeqNo {
        if terrane_base::planted!(FoldAcrossSnapshot) { SeqNo(0) } else { self.filter.stripe_start() }
    }

    #[inline]
    pub(super) fn keep(&mut self, entry: Entry<'_>) -> Result<()> {
        if self.judge.is_some() && !entry.seq_kind.is_delete() && !entry.seq_kind.is_merge() {
            return self.judge(entry);
        }
        self.keep_unasked(entry)
    }

    /// Shows a value that is to stay to the compaction filter, and does what that says.
    #[cold]
    fn judge(&mut self, entry: Entry<'_>) -> Result<()> {
        let value = Stored::of_entry(entry.seq_kind, entry.value)?.value;
        let prefix = &entry.value[..entry.value.len() - value.len()];
        let Some(judge) = &mut self.judge else { return self.keep_unasked(entry) };
        match judge.ask(entry.key, entry.seq_kind.seq(), value)? {
            Sentence::Keep => self.keep_unasked(entry),
            Sentence::Change(value) => {
                self.work.entries_filtered += 1;
                let mut changed = std::mem::take(&mut self.changed);
                changed.clear();
                changed.extend_from_slice(prefix);
                changed.extend_from_slice(&value);
                let kept = self.keep_unasked(Entry { value: &changed, ..entry });
                self.changed = changed;
                kept
            }
            Sentence::Remove => {
                self.work.entries_filtered += 1;
                let delete = entry.seq_kind.with_kind(RecordKind::Delete);
                if self.is_bottom() {
                    // It goes out only in front of an older version that stays for a snapshot.
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
        self.add(entry)
    }

    /// Gives the held deletes out.
    pub(super) fn keep_held(&mut self) -> Result<()> {
        for index in 0..self.filter.held().len() {
            let seq_kind = self.filter.held()[index];
            self.add_of_key(seq_kind, &[])?;
        }
        self.filter.clear_held();
        Ok(())
    }

    /// [`Sink::keep`] for what the operands of the key that goes through the filter make.
    pub(super) fn keep_of_key(&mut self, seq_kind: SeqKind, value: &[u8]) -> Result<()> {
        let key = std::mem::take(&mut self.key);
        // Whoever is asked looks at the key.
        self.key.extend_from_slice(&key);
        let kept = self.keep(Entry { key: &key, seq_kind, value });
        self.key = key;
        kept
    }

    /// Adds a version of the key that goes through the filter.
    pub(super) fn add_of_key(&mut self, seq_kind: SeqKind, value: &[u8]) -> Result<()> {
        let key = std::mem::take(&mut self.key);
        let added = self.add(Entry { key: &key, seq_kind, value });
        self.key = key;
        added
    }

    #[inline]
    fn add(&mut self, entry: Entry<'_>) -> Result<()> {
        if self.is_kept {
            return self.output.add_next(entry, &mut self.work);
        }
        self.is_kept = true;
        self.output.add_first(entry, &mut self.work)
    }
}

/// Ranges of keys that deeper levels may hold, asked for ascending keys.
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
