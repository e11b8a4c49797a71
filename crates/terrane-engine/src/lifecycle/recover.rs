//! Recovery: replay the live segments into the memtables, then close the epoch durably, so that what was
//! found is what every later recovery finds.
//!
//! 1. replay (the journal checks segments in parallel, finds the durable prefix, and hands over every record
//!    of it)
//! 2. make the replayed segments durable: what a process left in the page cache is kept from now on; a log
//!    elsewhere gets what it lacks
//! 3. one edit: how each segment ended, the next epoch 4. the journal goes on in fresh segments.
//!
//! A crash inside this is harmless: until the edit of step 3 is durable the next recovery starts over, after
//! it the next one finds the same ends.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::options::{JournalMode, Options};
use terrane_base::record::Record;
use terrane_base::sync::Mutex;
use terrane_base::{Error, RecordKind, Result, SegmentId, SeqNo, TableId};
use terrane_device::{Disk, SegmentMemory};
use terrane_format::manifest::{self, Edit, EditOp, Seal};
use terrane_journal::pm::PmJournal;
use terrane_journal::{
    CommitLog, FileJournal, Journal, JournalSettings, JournalStart, LoggedJournal, NullJournal,
    ReplaySettings, Replayed, SegmentRegistrar, SegmentSpec, complete_log, file_name, file_number, replay,
    segment_in_file,
};
use terrane_levels::{Manifest, State};

use crate::ingest_mark;
use crate::observe::stats::{Counters, add};
use crate::segment_files::listed;
use crate::shared::Shared;
use crate::table::Table;
use crate::table::flushed::flushed_up_to;
use crate::table::settings::long_segment_bytes;
use crate::table::sums::TableSums;
use crate::write::index;

/// Most trimmed segments in persistent memory that are kept for reuse.
const PM_SPARES_MAX: usize = 2;

/// The inputs of a recovery.
pub(crate) struct Recovery<'a> {
    pub(crate) disk: &'a Arc<dyn Disk>,
    /// Directory of the segments.
    pub(crate) dir: &'a Path,
    /// The log of the journal, if it has one.
    pub(crate) log: Option<Arc<dyn CommitLog>>,
    pub(crate) options: &'a Options,
    pub(crate) env: &'a Env,
    pub(crate) manifest: &'a Arc<Manifest>,
    pub(crate) state: &'a State,
    /// Tables with empty memtables; replayed records go there.
    pub(crate) tables: &'a [Arc<Table>],
    /// The sums over them.
    pub(crate) sums: &'a Arc<TableSums>,
    pub(crate) counters: &'a Counters,
    /// True if another process writes meanwhile: if the journal names edits that the manifest does not have
    /// yet, they are not lost.
    pub(crate) follows: bool,
    /// The last commit that is shown, for a reader of an earlier moment: the journal has later ones, and
    /// names edits that this manifest does not have.
    pub(crate) until: Option<SeqNo>,
    /// True if manifest and extents lie in a bucket.
    pub(crate) is_in_bucket: bool,
}

/// The result of a recovery.
pub(crate) struct Recovered {
    /// The journal that goes on.
    pub(crate) journal: Box<dyn Journal>,
    /// Ingest marks without extents that no edit lists as void.
    pub(crate) void_marks: Vec<SeqNo>,
    /// Sound records behind a break of the journal that do not count: damage that a reader found.
    pub(crate) behind: Vec<Error>,
}

impl Recovery<'_> {
    /// Replays, closes the epoch and returns the journal that goes on.
    ///
    /// # Errors
    /// `Corrupt` if something durable is damaged, naming file and offset; `Io`, `Full`.
    pub(crate) fn run(&self) -> Result<Recovered> {
        let is_whole = !self.follows && self.until.is_none();
        if is_whole {
            self.check_registered()?;
        }
        let (replayed, open_marks) = self.replay()?;
        let at_dir = |error: Error| error.at(self.dir.display().to_string(), 0);
        if is_whole {
            self.manifest.check_reached(replayed.edit).map_err(at_dir)?;
        }
        add(&self.counters.segment_bytes_recovered, replayed.bytes);
        // Records in the levels may be newer than what the journal still holds; all it holds is in the levels
        // then.
        let is_overtaken = self.state.last_seq() > replayed.last_seq;
        let last_seq = replayed.last_seq.max(self.state.last_seq());
        self.check_numbers_left(last_seq)?;
        if is_overtaken {
            self.check_overtaken(&replayed)?;
        }
        let settings = JournalSettings {
            segment_bytes: self.options.segment_bytes,
            long_segment_bytes: long_segment_bytes(self.options),
            ..JournalSettings::default()
        };
        let behind = if is_whole { self.keep_behind(&replayed.behind, last_seq)? } else { Vec::new() };
        if self.options.read_only {
            // Behind a mark that is not decided lies what its extents may belong under.
            let end = open_marks.first().map_or(last_seq, |mark| SeqNo(mark.0 - 1));
            let ends_there = !is_whole && !terrane_base::planted!(FollowPastMark);
            let last = if ends_there { end } else { last_seq };
            let next_seq = SeqNo(last.min(self.shown_until()).0 + 1);
            // For copies of the journal; of an overtaken one all is in the levels.
            let kept = if is_overtaken { Vec::new() } else { replayed.segments };
            let start = JournalStart { next_seq, replayed: kept, ..JournalStart::default() };
            let journal = Box::new(NullJournal::of_reader(&settings, &start)?);
            return Ok(Recovered { journal, void_marks: open_marks, behind });
        }
        if let Some(log) = self.log.as_deref().filter(|_| !is_overtaken) {
            // Before an edit records ends that count elsewhere as well.
            complete_log(log, &replayed.segments)?;
        }
        self.close_epoch(&replayed, last_seq, is_overtaken, &open_marks)?;
        let start = self.start(replayed, last_seq, is_overtaken)?;
        debug_assert!(start.next_seq > last_seq, "a number that was given would be given again");
        if self.options.journal == JournalMode::Off {
            let unlisted = start.unlisted_files.iter();
            let gone = unlisted.map(|file| self.disk.remove(&self.dir.join(file_name(*file))));
            gone.collect::<Result<()>>()?;
            let journal = Box::new(NullJournal::new(&settings, &start)?);
            return Ok(Recovered { journal, void_marks: Vec::new(), behind: Vec::new() });
        }
        let registrar = Arc::new(Registrar(self.manifest.clone(), self.sums.clone()));
        let (disk, dir, env) = (self.disk.clone(), self.dir, self.env);
        let journal: Box<dyn Journal> = if let Some(log) = self.log.clone() {
            Box::new(LoggedJournal::open((disk, log), dir, &settings, env, registrar, &start)?)
        } else if self.options.pmem_path.get().is_some() || self.disk.has_lines() {
            // Zones are handed out without a device's work: few are kept, and none is longer than it must
            // be.
            let settings =
                JournalSettings { spare_files_max: PM_SPARES_MAX, long_segment_bytes: 0, ..settings };
            Box::new(PmJournal::open(disk, dir, &settings, env, registrar, &start)?)
        } else {
            // The journal and the extents share one device, unless these lie in a bucket.
            let settings = JournalSettings { leaves_room: !self.is_in_bucket, ..settings };
            Box::new(FileJournal::open(disk, dir, &settings, env, registrar, &start)?)
        };
        Ok(Recovered { journal, void_marks: Vec::new(), behind: Vec::new() })
    }

    /// The recovered state where the journal is missing: that of the extents.
    ///
    /// # Errors
    /// `Corrupt` if the manifest has impossible numbers.
    pub(crate) fn without_journal(&self) -> Result<Recovered> {
        debug_assert!(self.options.read_only, "a writer replays its journal");
        let last_seq = self.state.last_seq();
        self.check_numbers_left(last_seq)?;
        let settings =
            JournalSettings { segment_bytes: self.options.segment_bytes, ..JournalSettings::default() };
        let start = JournalStart { next_seq: SeqNo(last_seq.0 + 1), ..JournalStart::default() };
        let journal = Box::new(NullJournal::of_reader(&settings, &start)?);
        Ok(Recovered { journal, void_marks: Vec::new(), behind: Vec::new() })
    }

    /// No segment is used before the manifest lists it, durably: one that was used and that the manifest has
    /// never heard of shows that the manifest lost its last edits, or is an older copy.
    pub(crate) fn check_registered(&self) -> Result<()> {
        let names = self.disk.list(self.dir).map_err(|error| crate::segment_files::lost(error, self.dir))?;
        let history: HashSet<u32> = self.state.history.values().map(|kept| kept.spec.file).collect();
        for name in names {
            // History was registered when it was live: an opening reads none of it, however long it is.
            if file_number(&name).is_none_or(|number| history.contains(&number)) {
                continue;
            }
            let path = self.dir.join(&name);
            let Some(used) = segment_in_file(&**self.disk, &path)? else { continue };
            let at = |error: Error| error.at(path.display().to_string(), 0);
            self.manifest.check_reached(used.edit).map_err(at)?;
            if used.id >= self.state.next.segment {
                let message = format!(
                    "the file holds segment {}, expected one below {}: the manifest lost its last edits or is an \
                     older copy; restore the database from a backup",
                    used.id, self.state.next.segment
                );
                return Err(at(Error::corrupt(message)));
            }
        }
        Ok(())
    }

    /// Numbers that a process can use up while it runs must be left, so that no commit has to look for the
    /// end.
    fn check_numbers_left(&self, last_seq: SeqNo) -> Result<()> {
        if last_seq.0 <= SeqNo::MAX.0 / 2 {
            return Ok(());
        }
        let message = format!("the database says that it holds commit {last_seq}: no database gets so far");
        Err(Error::corrupt(message).at(self.dir.display().to_string(), 0))
    }

    /// No record with a higher number is shown.
    fn shown_until(&self) -> SeqNo {
        self.until.filter(|_| !terrane_base::planted!(ShowLaterCommits)).unwrap_or(SeqNo::MAX)
    }

    pub(crate) fn replay_settings(&self) -> ReplaySettings {
        ReplaySettings {
            threads: self.options.experiments.replay_threads.max(1) as usize,
            durable_floor: self.state.durable.max(self.state.clean_close.unwrap_or_default()),
            flushed: self.tables.iter().map(|table| table.flushed_seq()).min().unwrap_or_default(),
            make_durable: !self.options.read_only,
            salt: self.state.database.segment_salt(),
        }
    }

    /// Also returns the marks of extents that are not decided, ascending.
    fn replay(&self) -> Result<(Replayed, Vec<SeqNo>)> {
        debug_assert!(self.tables.is_sorted_by_key(|table| table.id), "tables are looked up by number");
        let listed: Vec<_> = self.state.segments.values().map(listed).collect();
        let settings = self.replay_settings();
        let (ranges, marks) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let until = self.shown_until();
        let sink = |segment: &Arc<SegmentMemory>, offset: usize, record: &Record<'_>, seq: SeqNo| {
            if seq > until {
                return Ok(());
            }
            if self.until.is_some() && record.table != TableId::NONE && record.table >= self.state.next.table
            {
                let message =
                    format!("commit {seq} has a record of a table that this manifest does not have yet");
                return Err(Error::corrupt(message));
            }
            if record.table == TableId::NONE && ingest_mark::tables_of(record).next().is_some() {
                marks.lock().push(seq);
            }
            if record.kind == RecordKind::RangeDelete {
                ranges.lock().push((seq, record.table, segment.clone(), offset));
            } else {
                self.index(segment, offset, record.table, seq);
            }
            Ok(())
        };
        let replayed = replay(&**self.disk, self.dir, &listed, &settings, &*self.env.spawn, &sink)?;
        // Segments are read side by side, but range deletes are indexed cheaply in order only.
        let mut ranges = ranges.into_inner();
        ranges.sort_unstable_by_key(|(seq, ..)| *seq);
        for (seq, table, segment, offset) in ranges {
            self.index(&segment, offset, table, seq);
        }
        let (mut marks, decided) = (marks.into_inner(), self.state.last_seq());
        marks.retain(|seq| *seq > decided && !self.state.void_marks.contains(seq));
        marks.sort_unstable();
        debug_assert!(marks.iter().all(|mark| *mark <= replayed.last_seq), "a mark is a replayed record");
        Ok((replayed, marks))
    }

    /// Indexes a replayed record, unless its table was dropped or has it in the levels.
    fn index(&self, segment: &Arc<SegmentMemory>, offset: usize, table: TableId, seq: SeqNo) {
        let Ok(at) = self.tables.binary_search_by_key(&table, |table| table.id) else { return };
        let table = &self.tables[at];
        if seq <= table.flushed_seq() {
            return;
        }
        let guard = terrane_base::epoch::pin();
        debug_assert!(table.view(&guard).frozen.is_empty(), "recovery fills one memtable of each table");
        index::insert(&table.view(&guard).active, segment, offset, seq);
        add(&self.counters.records_recovered, 1);
    }

    /// A journal that ends before what the levels hold must hold nothing that is not in them: a flush sees to
    /// it.
    fn check_overtaken(&self, replayed: &Replayed) -> Result<()> {
        debug_assert!(self.state.last_seq() > replayed.last_seq, "the levels hold more than the journal");
        let behind = self.tables.iter().find(|table| table.pinned().active.entry_count() > 0);
        let Some(table) = behind else { return Ok(()) };
        Err(Error::corrupt(format!(
            "the journal ends at {} but the levels hold {}, and table {:?} has records in the journal only: \
             segments were lost or cut after they were durable; restore the database from a backup",
            replayed.last_seq,
            self.state.last_seq(),
            table.name
        ))
        .at(self.dir.display().to_string(), 0))
    }

    /// Makes durable where each segment ends, so that bytes behind that never count again. Segments that were
    /// overtaken by the levels go, and so do those that were never used.
    /// The ingests of `open_marks` are void.
    fn close_epoch(
        &self,
        replayed: &Replayed,
        last_seq: SeqNo,
        is_overtaken: bool,
        open_marks: &[SeqNo],
    ) -> Result<()> {
        debug_assert!(!self.options.read_only, "the process that writes closes the epoch");
        debug_assert!(last_seq >= replayed.last_seq, "what was replayed lies below the durable end");
        debug_assert!(open_marks.is_sorted(), "marks are void in the order of their numbers");
        let unsealed = replayed.segments.iter().filter(|segment| {
            self.state.segments.get(&segment.spec.id).is_some_and(|known| known.seal.is_none())
        });
        let seals = unsealed.map(|segment| EditOp::SealSegment {
            id: segment.spec.id,
            seal: Seal { end_offset: segment.end, last_seq: segment.last_seq, checksum: segment.checksum },
        });
        let has_no_end = is_overtaken || terrane_base::planted!(ForgetSeals);
        let mut ops = if has_no_end { Vec::new() } else { seals.collect::<Vec<_>>() };
        let overtaken = replayed.segments.iter().filter(|_| is_overtaken).map(|segment| &segment.spec);
        ops.extend(replayed.unused.iter().chain(overtaken).map(|spec| EditOp::RemoveSegment { id: spec.id }));
        if is_overtaken || replayed.segments.is_empty() {
            // The journal holds nothing: it begins after `last_seq`, for every table.
            let behind = || self.tables.iter().filter(|table| table.flushed_seq() < last_seq);
            let behind = |most| behind().map(|table| table.id).take(most).collect();
            ops.extend(flushed_up_to(self.manifest, last_seq, behind));
        }
        ops.extend(open_marks.iter().map(|seq| EditOp::VoidMark { seq: *seq }));
        ops.push(EditOp::Epoch { epoch: self.state.epoch + 1 });
        ops.push(EditOp::Durable { seq: last_seq });
        self.manifest.append(&Edit { ops })
    }

    /// The number after that of a file in the directory: a foreign file may have the last number.
    pub(crate) fn file_after(&self, file: u32, name: &str) -> Result<u32> {
        file.checked_add(1).filter(|next| *next <= i32::MAX as u32).ok_or_else(|| {
            let path = self.dir.join(name).display().to_string();
            Error::corrupt("the number of the segment file is out of range: no writer makes such a file; move it away and open again")
                .at(path, 0)
        })
    }

    /// Where the journal goes on. Segment files that neither a live segment nor history uses are unlisted.
    fn start(&self, mut replayed: Replayed, last_seq: SeqNo, is_overtaken: bool) -> Result<JournalStart> {
        let state = self.manifest.state();
        let history: HashSet<u32> = state.history.values().map(|kept| kept.spec.file).collect();
        let used = |file: u32| {
            history.contains(&file) || state.segments.values().any(|segment| segment.spec.file == file)
        };
        let mut unlisted_files = Vec::new();
        let mut next_file = state.next.segment_file.max(1);
        for name in self.disk.list(self.dir)? {
            let Some(file) = file_number(&name) else { continue };
            next_file = next_file.max(self.file_after(file, &name)?);
            if !used(file) {
                unlisted_files.push(file);
            }
        }
        if is_overtaken {
            replayed.segments.clear();
        }
        let is_empty = replayed.segments.is_empty();
        let mut start = replayed.start(state.next.segment.max(SegmentId(1)), next_file, unlisted_files);
        if is_empty {
            // Nothing to chain to; the levels may hold higher numbers than a journal that was off.
            start.next_seq = SeqNo(last_seq.0 + 1);
            start.previous.last_seq = last_seq;
        }
        debug_assert!(start.next_seq > self.state.last_seq(), "the levels have a number that comes again");
        Ok(start)
    }
}

/// Makes new segments durable in the manifest before the journal uses them, and gives the bytes that a flush
/// of them takes.
struct Registrar(Arc<Manifest>, Arc<TableSums>);

impl SegmentRegistrar for Registrar {
    fn register(&self, segment: &SegmentSpec) -> Result<()> {
        let spec = manifest::SegmentSpec { id: segment.id, file: segment.file, bytes: segment.bytes };
        self.0.append(&Edit { ops: vec![EditOp::AddSegment(spec)] })
    }

    fn edit_number(&self) -> u64 {
        self.0.edit_number()
    }

    fn flush_overhead(&self, bytes: u64) -> u64 {
        self.1.flush_overhead(bytes)
    }

    fn merge_room(&self) -> u64 {
        self.1.merge_room()
    }
}

impl Shared {
    /// With the journal off: what an earlier journal held is in the levels now; its segments go.
    pub(crate) fn forget_old_segments(&self) -> Result<()> {
        debug_assert!(self.options.journal == JournalMode::Off, "a journal's segments are its own");
        let state = self.manifest.state();
        let ops: Vec<_> = state.segments.keys().map(|id| EditOp::RemoveSegment { id: *id }).collect();
        self.append_edit(ops)?;
        self.remove_segment_files(state.segments.values().map(|segment| segment.spec.file))
    }
}
