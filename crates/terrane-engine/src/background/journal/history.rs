//! History: segments that are no longer live, but kept for readers of changes, as long as the rule has room
//! for them.
//!
//! A segment becomes history by the edit that takes it from the live ones, and leaves it by an edit of its
//! own; its file is reused or removed only then. History is one stretch of commits that ends where the live
//! segments begin: if something breaks it (a journal that is off, a segment that could not be kept), all
//! older segments are forgotten.
//!
//! It is durable before it is history: a flush makes its records durable before they are in the levels, and
//! records of dropped tables, which no flush sees, are synced here.

use terrane_base::options::{JournalMode, Options};
use terrane_base::{Error, Kind, Result, SegmentId, SeqNo};
use terrane_format::manifest::{EditOp, HistoryRule, Kept};
use terrane_journal::{SegmentInfo, segment_in_file};
use terrane_levels::State;
use terrane_levels::directory::JOURNAL;

use crate::shared::Shared;

/// The changes of one edit to history.
#[derive(Debug, Default)]
pub(crate) struct HistoryPlan {
    /// Files of the oldest segments, which go.
    forgotten: Vec<(SegmentId, (u32, u64))>,
    /// Segments that come.
    kept: Vec<(SegmentId, Kept)>,
}

impl HistoryPlan {
    /// The operations, in the order in which they hold.
    pub(crate) fn ops(&self) -> Vec<EditOp> {
        let are_in_order = || self.forgotten.is_sorted_by(|(a, _), (b, _)| a < b);
        debug_assert!(are_in_order(), "the oldest segment leaves history first, so that the rest has no gap");
        let forget = self.forgotten.iter().map(|&(id, _)| EditOp::ForgetSegment { id });
        forget.chain(self.kept.iter().map(|&(id, kept)| EditOp::KeepSegment { id, kept })).collect()
    }

    /// Returns true if the segment becomes history.
    pub(crate) fn keeps(&self, id: SegmentId) -> bool {
        self.kept.iter().any(|(kept, _)| *kept == id)
    }

    /// The segments that become history.
    pub(crate) fn kept_ids(&self) -> Vec<SegmentId> {
        self.kept.iter().map(|(id, _)| *id).collect()
    }

    /// The files that no reader needs once the edit is durable: number and bytes.
    pub(crate) fn files(&self) -> Vec<(u32, u64)> {
        self.forgotten.iter().map(|(_, file)| *file).collect()
    }

    fn forget_all(&mut self, state: &State) {
        debug_assert!(self.forgotten.is_empty(), "a segment is forgotten once");
        self.forgotten =
            state.history.values().map(|kept| (kept.spec.id, (kept.spec.file, kept.spec.bytes))).collect();
    }

    /// Forgets segments that are too old, and those for which there is no room beside `bytes` to come.
    fn forget_surplus(&mut self, state: &State, bytes: u64, now: u64) {
        let rule = state.history_rule;
        let mut left = state.history_bytes() + bytes;
        for segment in state.history.values() {
            if left <= rule.bytes && !is_over_age(rule, segment.kept.freed_at, now) {
                break;
            }
            assert!(
                left >= segment.spec.bytes,
                "history has {left} bytes, its oldest segment {:?}",
                segment.spec
            );
            left -= segment.spec.bytes;
            self.forgotten.push((segment.spec.id, (segment.spec.file, segment.spec.bytes)));
        }
    }
}

fn is_over_age(rule: HistoryRule, freed_at: u64, now: u64) -> bool {
    rule.age > 0 && freed_at.saturating_add(rule.age) <= now
}

/// The rule that holds from now on: that of the options, else the stored one.
fn rule_of(options: &Options, stored: HistoryRule) -> Result<HistoryRule> {
    let bytes = options.history_bytes.get().copied().unwrap_or(stored.bytes);
    let age = options.history_age.get().map_or(stored.age, |age| age.millis().unwrap_or(0));
    let says_age = options.history_age.get().is_some_and(|age| age.millis().is_some());
    if says_age && bytes == 0 {
        return Err(Error::invalid(
            "history_age keeps nothing while history_bytes is 0: set history_bytes as well",
        ));
    }
    Ok(HistoryRule { bytes, age })
}

/// History as one state of the manifest has it.
#[derive(Clone, Copy)]
pub(crate) struct History<'e> {
    pub(crate) engine: &'e Shared,
    pub(crate) state: &'e State,
}

impl Shared {
    /// Brings history in order when the database was opened: the rule, and that it ends where the live
    /// segments begin.
    pub(crate) fn reconcile_history(&self) -> Result<()> {
        debug_assert!(!self.options.read_only, "the process that writes decides what is kept");
        let _one_at_a_time = self.trims.hold();
        let state = self.manifest.state();
        let rule = rule_of(&self.options, state.history_rule)?;
        let mut ops = Vec::new();
        if rule != state.history_rule {
            ops.push(EditOp::SetHistory(rule));
        }
        let mut plan = HistoryPlan::default();
        let end = state.history.values().next_back().map(|newest| newest.kept.last_seq);
        let is_off = self.options.journal == JournalMode::Off;
        if let Some(end) = end
            && (is_off || History { engine: self, state: &state }.first_live()? != SeqNo(end.0 + 1))
            && !terrane_base::planted!(KeepBrokenHistory)
        {
            plan.forget_all(&state);
        } else {
            let mut ruled = State::clone(&state);
            ruled.history_rule = rule;
            plan.forget_surplus(&ruled, 0, wall_millis(self));
        }
        ops.extend(plan.ops());
        if ops.is_empty() {
            return Ok(());
        }
        self.append_edit(ops)?;
        if is_off {
            // No journal is there that would use the files again, or remove them.
            return self.remove_segment_files(plan.files().into_iter().map(|(file, _)| file));
        }
        self.journal.take_back(&plan.files())
    }

    /// Returns true if something of history is too old.
    pub(crate) fn is_history_due(&self) -> bool {
        let state = self.manifest.state();
        let oldest = state.history.values().next();
        oldest.is_some_and(|oldest| is_over_age(state.history_rule, oldest.kept.freed_at, wall_millis(self)))
    }

    /// Removes files of segments that the manifest does not list any more.
    pub(crate) fn remove_segment_files(&self, files: impl Iterator<Item = u32>) -> Result<()> {
        let dir = self.dir().join(terrane_levels::directory::JOURNAL);
        for file in files {
            match self.disk().remove(&dir.join(terrane_journal::file_name(file))) {
                Err(error) if error.kind() != Kind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.disk().sync_dir(&dir)
    }
}

impl History<'_> {
    /// Number of the first record of the live segments, or of the next record to come if they hold none.
    fn first_live(self) -> Result<SeqNo> {
        for segment in self.state.segments.values() {
            if let Some(first) = self.first_of(segment.spec.id, segment.spec.file)? {
                return Ok(first);
            }
        }
        Ok(SeqNo(self.engine.journal.visible().0 + 1))
    }

    /// Number of the first record of a segment, as its header says; `None` if its file has none.
    fn first_of(self, id: SegmentId, file: u32) -> Result<Option<SeqNo>> {
        let path = self.engine.dir().join(JOURNAL).join(terrane_journal::file_name(file));
        let header = segment_in_file(&**self.engine.disk(), &path)?.filter(|header| header.id == id);
        Ok(header.map(|header| SeqNo(header.previous.last_seq.0 + 1)))
    }

    /// Decides which segments stay history when the live segments `freed`, oldest first, are given up.
    /// Segments that are to be kept are durable on return.
    ///
    /// # Errors
    /// As [`Journal::sync_through`](terrane_journal::Journal::sync_through); `Io`.
    pub(crate) fn plan(self, freed: &[SegmentInfo]) -> Result<HistoryPlan> {
        let Self { engine, state } = self;
        debug_assert!(freed.is_sorted_by(|a, b| a.id < b.id), "the oldest segment comes first");
        let mut plan = HistoryPlan::default();
        let (rule, now) = (state.history_rule, wall_millis(engine));
        let is_kept = rule.bytes > 0 && engine.options.journal == JournalMode::File;
        let has_all = is_kept && self.choose_kept(&mut plan, rule, freed, now)?;
        let end = state.history.values().next_back().map(|newest| newest.kept.last_seq.0);
        let begin = plan.kept.first().map(|(_, kept)| kept.first_seq.0 - 1);
        let is_apart = begin.zip(end).is_some_and(|(begin, end)| begin != end);
        if !freed.is_empty() && (!has_all || is_apart) {
            // Older history does not end where the kept segments begin.
            plan.forget_all(state);
        } else {
            let bytes = freed.iter().filter(|segment| plan.keeps(segment.id)).map(|segment| segment.bytes);
            plan.forget_surplus(state, bytes.sum(), now);
        }
        Ok(plan)
    }

    /// The newest of `freed` that there is room for, without a gap; says whether these are all that have
    /// records.
    fn choose_kept(
        self,
        plan: &mut HistoryPlan,
        rule: HistoryRule,
        freed: &[SegmentInfo],
        now: u64,
    ) -> Result<bool> {
        let (mut bytes, mut next_first, mut has_all) = (0, None, true);
        for segment in freed.iter().rev() {
            let Some(first_seq) = self.first_of(segment.id, segment.file)? else { continue };
            let (last_seq, end_offset) = (segment.last_seq, segment.used);
            if first_seq > last_seq {
                continue;
            }
            bytes += segment.bytes;
            if bytes > rule.bytes || next_first.is_some_and(|next: SeqNo| next.0 != last_seq.0 + 1) {
                has_all = false;
                break;
            }
            next_first = Some(first_seq);
            plan.kept.push((segment.id, Kept { first_seq, last_seq, end_offset, freed_at: now }));
        }
        plan.kept.reverse();
        assert!(
            plan.kept.is_sorted_by(|a, b| a.1.last_seq < b.1.first_seq),
            "kept segments follow each other"
        );
        if let Some((_, newest)) = plan.kept.last() {
            self.engine.sync_journal_through(newest.last_seq)?;
        }
        Ok(has_all)
    }
}

/// Milliseconds since 1970.
fn wall_millis(engine: &Shared) -> u64 {
    engine.env.clock.wall().as_millis() as u64
}
