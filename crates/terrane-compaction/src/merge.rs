//! The merge: sorted sources in, extents of one place out, as little as possible decoded.
//!
//! The source with the least key goes first (`order.rs`); `bound` is the least key of the others. The first
//! source is before or at
//! 1. an extent that ends before `bound`: re-linked, if [`reuse`] says so;
//! 2. a block that ends before `bound`: copied as it is stored, if [`reuse`] says so;
//! 3. an entry: all of its entries before `bound` go through the [`VersionFilter`];
//! 4. an extent or block that ends behind `bound`: opened, and the sources are compared again.
//!
//! Range deletes (`ranges.rs`) are collected first: an extent or block that they hide is skipped without
//! reading, whatever the other sources have. An extent that they touch is never re-linked, so that the
//! remaining range deletes go into new extents.
//!
//! A job in parts publishes its output before its end (`parts.rs`).
//!
//! Invariants:
//! 1. No extent or block with versions of the last filtered key is reused: the filter may have dropped a
//!    delete that hides them.
//! 2. Of sources at the same key those that are not opened yet go first, so that versions are compared only
//!    when all of them are opened.
//! 3. No allocation per entry.
//! 4. A job in parts re-links no extent of an input that stays until its end: it would have two owners
//!    meanwhile.

mod fold;
mod order;
mod output;
mod parts;
mod ranges;
mod reuse;
mod row_filter;
mod sink;
mod source;
mod values;

use std::collections::HashSet;

use terrane_base::{Cursor, Error, ExtentId, Kind, Result, verify};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest;
use terrane_format::range_deletes::Fragment;
use terrane_storage::Store;

use crate::chunks::chunk_bytes_of;
use crate::compactor::ExtentSource;
use crate::control::JobControl;
use crate::job::{JobResult, JobSpec, Removed};
use order::{Order, Rank};
use output::{Behind, Committed, Output};
pub(crate) use parts::Publish;
use ranges::Ranges;
use reuse::Reuse;
use sink::Sink;
use source::{MemorySource, RunSource, Source, SourceState};
use values::Values;
pub(crate) use values::no_numbers;

/// Entries of memory between two looks at the job's strings: about a block's worth.
const ENTRIES_PER_CHECK: usize = 256;

/// Where a merge runs.
#[derive(Clone, Copy)]
pub(crate) struct MergeEnv<'a> {
    pub(crate) extents: &'a dyn ExtentSource,
    pub(crate) store: &'a dyn Store,
    pub(crate) control: &'a JobControl,
}

/// Entries in memory that take part in a merge, newer than every extent.
pub(crate) struct Memory<'c, C> {
    pub(crate) cursor: &'c mut C,
    /// Where they begin.
    pub(crate) from: &'c [u8],
    /// Output bytes after which the merge ends at the next key where no extent is open.
    pub(crate) step_bytes: u64,
    /// Its range deletes; they may overlap.
    pub(crate) ranges: Vec<Fragment>,
}

/// Runs a job. Without `memory`, a cursor of any type does for `C`; without `publish` it is done in one part.
pub(crate) fn run<C: Cursor>(
    spec: &JobSpec,
    place: MergeEnv<'_>,
    memory: Option<Memory<'_, C>>,
    mut publish: Option<&mut Publish<'_>>,
) -> Result<JobResult> {
    let mut merge = Merge::new(spec, place, memory)?;
    while let Some((winner, runner_up)) = merge.order.first(&merge.sources) {
        debug_assert!(
            winner < merge.sources.len() && runner_up != Some(winner),
            "two of the sources, or one"
        );
        if merge.ends_step(winner) {
            break;
        }
        if let Some(publish) = &mut publish
            && merge.ends_part(winner)
        {
            publish(merge.take_part()?)?;
        }
        merge.advance(winner, runner_up)?;
        merge.order.replay(&merge.sources, spec.collation());
    }
    merge.finish()
}

struct Merge<'a, 'c, C> {
    spec: &'a JobSpec,
    place: MergeEnv<'a>,
    sources: Vec<Source<'a, 'c, C>>,
    order: Order,
    sink: Sink<'a>,
    step_bytes: u64,
    /// Entries after which memory looks at progress and grandparents.
    next_look: u64,
    /// Bytes written at which the next part may end.
    part_end: u64,
    /// Extents of each source that earlier parts have removed.
    removed: Vec<usize>,
}

impl<'a, C: Cursor> Merge<'a, '_, C> {
    fn new<'c>(
        spec: &'a JobSpec,
        place: MergeEnv<'a>,
        memory: Option<Memory<'c, C>>,
    ) -> Result<Merge<'a, 'c, C>>
    where
        'a: 'c,
    {
        let mut sources = Vec::with_capacity(spec.inputs.len() + 1);
        let (mut step_bytes, mut ranges) = (u64::MAX, Vec::new());
        if let Some(memory) = memory {
            (step_bytes, ranges) = (memory.step_bytes, memory.ranges);
            sources.push(Source::Memory(MemorySource::new(memory.cursor, memory.from, &spec.range)?));
        }
        let chunk_bytes = chunk_bytes_of(spec.inputs.len());
        sources.extend(spec.inputs.iter().map(|input| Source::Run(RunSource::new(input, chunk_bytes))));
        let ranges = Ranges::gather(spec, place.extents, ranges)?;
        let values = Values::new(spec, place.extents, place.store, place.control);
        let output = Output::new(spec, (place.store, values), place.control, ranges.surviving(spec))?;
        let sink = Sink::new(spec, output, ranges, place.control);
        let order = Order::new(&sources, spec.collation());
        verify!(spec.check());
        let (part_end, removed) = (spec.part_bytes, vec![0; sources.len()]);
        Ok(Merge { spec, place, sources, order, sink, step_bytes, next_look: 0, part_end, removed })
    }

    /// Returns true if a step of a flush ends here: every begun extent of L1 is done, and either enough was
    /// written, or memory has no further entry and the open output does not need a neighbour to fill an
    /// extent.
    fn ends_step(&self, winner: usize) -> bool {
        let Some(Source::Memory(memory)) = self.sources.first() else { return false };
        if !self.sink.ranges.is_empty() {
            // The rest of the range deletes must all be in the output.
            return false;
        }
        debug_assert!(self.sources[winner].key().is_some(), "a source at its end does not go first");
        let open_bytes = self.sink.output.open_bytes();
        let is_enough = match memory.is_within() {
            true => self.sink.work.bytes_written + open_bytes as u64 >= self.step_bytes,
            false => open_bytes == 0 || reuse::is_worth_a_slot(self.spec, open_bytes as u64),
        };
        is_enough
            && !self.sources.iter().any(Source::is_inside_extent)
            && self.sources[winner].key().is_some_and(|key| !self.sink.is_at(key))
    }

    fn advance(&mut self, winner: usize, runner_up: Option<usize>) -> Result<()> {
        debug_assert!(runner_up != Some(winner), "a source would be merged with itself");
        self.place.control.check()?;
        let source = &self.sources[winner];
        let (state, input) = (source.state(), source.as_run().and_then(RunSource::present));
        let input = input.or_else(|| self.first_input());
        let done = match state {
            SourceState::Extent => self.pass_extent(winner, runner_up),
            SourceState::Block => self.pass_block(winner, runner_up),
            SourceState::Entry => self.pass_entries(winner, runner_up),
            SourceState::End => unreachable!("a source without a key takes no part"),
        };
        if state != SourceState::Entry {
            self.place.control.show(&self.sink.work);
        }
        let is_of_filter = self.sink.is_filter_wrong();
        done.map_err(|error| match (input, error.kind()) {
            _ if is_of_filter => error,
            // Otherwise an entry can be refused only because it breaks the key order of the output.
            (Some(meta), Kind::Invalid) if state == SourceState::Entry => self.blame(meta, error),
            (Some(meta), Kind::Corrupt) if error.place().is_none() => self.blame(meta, error),
            _ => error,
        })
    }

    /// The extent that an error names if the source of a misplaced entry is not known.
    fn first_input(&self) -> Option<&'a ExtentMeta> {
        self.spec.inputs.iter().flat_map(|input| &input.extents).next()
    }

    /// An input out of order is damaged, whatever its checksums say.
    #[cold]
    fn blame(&self, meta: &ExtentMeta, error: Error) -> Error {
        let (file, offset) = self.place.store.place(meta.id, 0);
        error.with_kind(Kind::Corrupt).at(file, offset).context(format!("extent {}", meta.id))
    }

    /// Re-links the extent before which a source stands, or opens it.
    fn pass_extent(&mut self, winner: usize, runner_up: Option<usize>) -> Result<()> {
        debug_assert!(self.sources[winner].state() == SourceState::Extent, "a part of it is in the output");
        let (run, bound) = run_and_bound(&mut self.sources, winner, runner_up);
        let meta = run.meta();
        if self.sink.ranges.hide_all(&meta.smallest, &meta.largest, meta.seq_min, meta.seq_max) {
            self.sink.work.entries_in += meta.entries;
            run.skip_extent();
            return Ok(());
        }
        self.sink.pass_grandparents(&meta.smallest)?;
        let is_touched = self.sink.ranges.touch(&meta.smallest, &meta.largest);
        let stays = self.spec.is_in_parts() && run.input().place != self.spec.target;
        let is_before = |bound: &[u8]| self.spec.collation().lt(&meta.largest, bound);
        let is_alone = !stays && !is_touched && bound.is_none_or(is_before);
        if is_alone && !self.sink.is_at(&meta.smallest) {
            match reuse::of_extent(self.spec, meta, self.sink.output.open_bytes()) {
                Reuse::Relink => {
                    self.sink.output.relink(meta, &mut self.sink.work)?;
                    run.skip_extent();
                    return Ok(());
                }
                Reuse::Blocks => self.sink.output.balance(meta.bytes as usize),
                Reuse::None => {}
            }
        }
        let is_wanted = self.sink.output.tells_replaced();
        if let Some(replaced) = run.open_extent(self.place.extents, is_wanted, &mut self.sink.work)? {
            self.sink.output.know_replaced(meta.id, replaced);
        }
        Ok(())
    }

    /// Copies the block before which a source stands, or decodes it.
    fn pass_block(&mut self, winner: usize, runner_up: Option<usize>) -> Result<()> {
        debug_assert!(self.sources[winner].state() == SourceState::Block, "a part of it is in the output");
        let (run, bound) = run_and_bound(&mut self.sources, winner, runner_up);
        let row = run.row();
        let (first, last) = (row.first_key, row.last_key);
        if self.sink.ranges.hide_all(first, last, row.seq_min, row.seq_max) {
            self.sink.work.entries_in += u64::from(row.entries);
            run.skip_block();
            return Ok(());
        }
        self.sink.pass_grandparents(row.first_key)?;
        let is_alone = bound.is_none_or(|bound| self.spec.collation().lt(row.last_key, bound))
            && !self.sink.ranges.forbid_copy(first, last, row.seq_min)
            && !self.sink.is_at(row.first_key)
            && !run.goes_on();
        if !is_alone || !reuse::copies_block(self.spec, run.meta(), &row) {
            return run.open_block(&mut self.sink.work);
        }
        let is_wrapped = run.meta().expiry.is_some() || run.meta().references.is_some();
        let (row, stored) = run.stored()?;
        self.sink.work.bytes_read += u64::from(row.stored_len);
        self.sink.work.entries_in += u64::from(row.entries);
        self.sink.output.add_block(&row, stored, is_wrapped, &mut self.sink.work)?;
        run.skip_block();
        Ok(())
    }

    /// Merges the entries of a source as long as they come before all others.
    fn pass_entries(&mut self, winner: usize, runner_up: Option<usize>) -> Result<()> {
        debug_assert!(self.sources[winner].state() == SourceState::Entry, "only a decoded block has entries");
        let (prefix_len, collation) = (self.order.prefix_len(), self.spec.collation());
        let (source, other) = two(&mut self.sources, winner, runner_up);
        let bound = other.zip(runner_up).and_then(|(other, index)| self.order.rank(other, index));
        let is_memory = matches!(source, Source::Memory(_));
        if is_memory && self.sink.work.entries_in >= self.next_look {
            // Blocks do this where they begin; memory has none.
            self.next_look = self.sink.work.entries_in + ENTRIES_PER_CHECK as u64;
            self.sink.pass_grandparents(source.key().unwrap_or_default())?;
            self.place.control.show(&self.sink.work);
        }
        for _ in 0..ENTRIES_PER_CHECK {
            let Some(entry) = source.entry() else { break };
            let head = collation.head_behind(entry.key, prefix_len.min(entry.key.len()));
            let rank = Rank { head, key: entry.key, seq: Some(entry.seq_kind.seq()), index: winner };
            if bound.as_ref().is_some_and(|bound| !rank.is_before(bound, collation)) {
                break;
            }
            self.sink.take(entry, head)?;
            self.sink.work.entries_in += u64::from(is_memory);
            source.next()?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<JobResult> {
        self.sink.emit_waiting()?;
        debug_assert!(!self.sink.waits(), "versions of the last key were not emitted");
        let next = self.sources.iter().find_map(|source| match source {
            Source::Memory(memory) => memory.next_key().map(<[u8]>::to_vec),
            Source::Run(_) => None,
        });
        let unmerged = self.next_key();
        let target = self.spec.target;
        let runs = self.sources.iter().zip(&self.removed).filter_map(|(source, from)| {
            let run = source.as_run()?;
            Some((run.input().place, &run.input().extents[*from..run.consumed()]))
        });
        let used: Vec<(manifest::Place, &[ExtentMeta])> = runs.collect();
        let mut work = self.sink.work;
        let behind = unmerged.as_deref().map_or(Behind::Nothing, Behind::Key);
        let blamed = self.first_input();
        let (file, offset) = blamed.map_or_else(Default::default, |meta| self.place.store.place(meta.id, 0));
        let Committed { mut added, mut relinked, values } =
            self.sink.output.commit(behind, &mut work).map_err(|error| {
                let is_placed = error.kind() != Kind::Corrupt || error.place().is_some();
                if is_placed { error } else { error.at(file, offset) }
            })?;
        work.entries_dropped = work.entries_in - work.entries_out;
        self.place.control.show(&work);

        // An extent that was re-linked into its own place changes nothing.
        let unchanged = used.iter().filter(|(place, _)| *place == target).flat_map(|(_, metas)| *metas);
        let stays: HashSet<ExtentId> =
            unchanged.map(|meta| meta.id).filter(|id| relinked.remove(id)).collect();
        added.retain(|meta| !stays.contains(&meta.id));
        let removed: Vec<Removed> = used
            .iter()
            .flat_map(|(place, metas)| metas.iter().map(|meta| (*place, meta)))
            .filter(|(_, meta)| !stays.contains(&meta.id))
            .map(|(place, meta)| Removed::of(place, meta))
            .collect();
        let mut relinked: Vec<ExtentId> = relinked.into_iter().collect();
        relinked.sort_unstable();
        let result =
            JobResult { table: self.spec.table, target, removed, added, values, relinked, work, next };
        verify!(result.check());
        Ok(result)
    }
}

/// Two sources at once, the second only to look at.
fn two<'s, 'a, 'c, C>(
    sources: &'s mut [Source<'a, 'c, C>],
    winner: usize,
    runner_up: Option<usize>,
) -> (&'s mut Source<'a, 'c, C>, Option<&'s Source<'a, 'c, C>>) {
    debug_assert!(runner_up != Some(winner), "a source does not play against itself");
    let Some(runner_up) = runner_up else { return (&mut sources[winner], None) };
    let [source, other] =
        sources.get_disjoint_mut([winner, runner_up]).expect("the winner and the runner-up are two sources");
    (source, Some(other))
}

/// A source that is a run, and the least key of the others.
fn run_and_bound<'s, 'a, 'c, C: Cursor>(
    sources: &'s mut [Source<'a, 'c, C>],
    winner: usize,
    runner_up: Option<usize>,
) -> (&'s mut RunSource<'a>, Option<&'s [u8]>) {
    let (source, other) = two(sources, winner, runner_up);
    let Source::Run(run) = source else { unreachable!("memory has neither extents nor blocks") };
    (run, other.and_then(Source::key))
}
