//! Giving journal segments back once every record in them is in the levels.

use terrane_base::options::JournalMode;
use terrane_base::{Result, SegmentId, SeqNo};
use terrane_format::manifest::EditOp;
use terrane_journal::Journal;

use crate::background::journal::history::History;
use crate::background::maintenance::Maintenance;
use crate::observe::stats::add;
use crate::shared::Trimming;
use crate::table::flushed::flushed_up_to;
use crate::table::stopped::Left;

/// Complete segments may have one part in this many of the write memory, whatever is in them.
const HELD_SHARE: u64 = 8;
/// Beyond that they may have so many times the bytes of the records in memory and of the indexes over them.
const HELD_FACTOR: u64 = 4;

impl Maintenance {
    /// Returns true if there are segments that nothing needs.
    pub(crate) fn is_trim_due(&self) -> bool {
        self.trimmable().is_some()
    }

    /// The newest segment that nothing needs any more; all older ones are not needed either. None while a
    /// table is stopped.
    pub(crate) fn trimmable(&self) -> Option<SegmentId> {
        // The number is read first: a record numbered at or below it is indexed, and its table is noted with
        // its segment or an older one (`table/sums.rs`). So a segment whose last number is not above it has
        // all its records in tables that are noted so, or in the levels.
        let visible = self.journal.visible();
        let due = self.catalog.sums().due();
        if due.has_stopped() { None } else { newest_unneeded(&*self.journal, visible, due.oldest_segment()) }
    }

    /// Returns true if few records in memory keep many bytes of segments: a table that hardly any commit
    /// writes to holds back all that came after its oldest record.
    pub(crate) fn is_journal_too_long(&self) -> bool {
        let held: u64 = self.journal.complete_segments().iter().map(|segment| segment.bytes).sum();
        let filled = self.catalog.sums().now().filled_bytes;
        let most = (self.memory.budget().write_bytes() / HELD_SHARE).max(filled.saturating_mul(HELD_FACTOR));
        // Beside a table that has stopped no segment goes, whatever is flushed.
        held > most && !self.catalog.sums().due().has_stopped()
    }

    /// Gives back the space that a closed database does not need: segments whose records are all in the
    /// levels, the prepared one, spare files, unused ends of segments and free slots. Requires: the journal
    /// is closed and no worker is left.
    ///
    /// # Errors
    /// `Io`, `Poisoned`; nothing is lost by it but space.
    pub(crate) fn give_back_space(&self) -> Result<()> {
        debug_assert!(self.is_closing(), "the next commits need this space");
        if self.options.journal != JournalMode::Off {
            self.trim_segments()?;
        }
        if self.options.experiments.idle_reclaim { self.reclaim_idle() } else { Ok(()) }
    }

    /// Trims every segment that nothing needs. Durable in the manifest before a file is touched.
    pub(crate) fn trim_segments(&self) -> Result<()> {
        let held = self.trims.hold_for_trim();
        Trim { engine: self, _one_at_a_time: &held }.run()
    }

    /// As [`Self::trim_segments`], for jobs, which writers wait for: returns false, and trims nothing, while
    /// a check has the segments. It is due then as before. A copy or an ingest has them for a moment only:
    /// the job waits for it, as for another trim, because refused writers have no other.
    pub(crate) fn trim_unless_held(&self) -> Result<bool> {
        let held = if terrane_base::planted!(TrimWaitsForCheck) {
            Some(self.trims.hold_for_trim())
        } else {
            self.trims.hold_for_trim_unless_checked()
        };
        let Some(held) = held else { return Ok(false) };
        debug_assert!(self.trims.is_trimming(), "a worker would begin another trim, and wait");
        Trim { engine: self, _one_at_a_time: &held }.run().map(|()| true)
    }
}

/// A trim; there is one at a time.
#[derive(Clone, Copy)]
struct Trim<'e> {
    engine: &'e Maintenance,
    _one_at_a_time: &'e Trimming<'e>,
}

impl Trim<'_> {
    fn run(self) -> Result<()> {
        let engine = self.engine;
        // The edit speaks of every table: none may be made or dropped meanwhile.
        let _no_drop = engine.catalog.change();
        let found = engine.trimmable();
        found.map_or(Ok(()), |upto| self.refuse_unflushed(upto))?;
        let upto = found.unwrap_or_default();
        let mut trimmed = engine.journal.complete_segments();
        trimmed.retain(|segment| segment.id <= upto);
        let through = trimmed.iter().map(|segment| segment.last_seq).max().unwrap_or_default();
        assert!(through <= engine.journal.visible(), "records up to {through} may not be indexed yet");
        // The manifest knows no segment of a journal that is off, nor one whose registration failed.
        let known = engine.manifest.state();
        let listed: Vec<_> =
            trimmed.iter().filter(|segment| known.segments.contains_key(&segment.id)).cloned().collect();
        let history = History { engine, state: &known }.plan(&listed)?;
        let mut ops = history.ops();
        let gone = listed.iter().map(|segment| segment.id).filter(|id| !history.keeps(*id));
        // What a closed journal had prepared: no record lies there, whatever memory needs.
        let mut unused: Vec<_> = engine.journal.unused_segments().iter().map(|segment| segment.id).collect();
        unused.retain(|id| *id > upto);
        let listed_unused = unused.iter().copied().filter(|id| known.segments.contains_key(id));
        ops.extend(gone.chain(listed_unused).map(|id| EditOp::RemoveSegment { id }));
        if trimmed.is_empty() && unused.is_empty() && ops.is_empty() {
            return Ok(());
        }
        // Trimmed records are in the levels, of every table: recovery needs to know that the journal may
        // begin after them, also where a table has no record at all.
        ops.extend(flushed_up_to(&engine.manifest, through, |most| engine.catalog.behind(through, most)));
        engine.append_edit(ops)?;
        engine.catalog.sums().raise_flushed_all(through);
        let trimmed = engine.journal.trim_keeping(upto, &history.kept_ids())?;
        engine.journal.remove_unused(&unused)?;
        add(&engine.counters.segments_trimmed, (trimmed.len() + unused.len()) as u64);
        add(&engine.counters.segments_kept, history.kept_ids().len() as u64);
        engine.journal.take_back(&history.files())?;
        engine.refresh_debt();
        Ok(())
    }

    /// Asks the ledgers that have records, which know of every memtable whatever the read views say, whether
    /// a memtable needs a segment up to `upto`. Requires: no table is dropped meanwhile. Records that come in
    /// meanwhile lie in later segments: all numbers of these segments were visible before the check.
    fn refuse_unflushed(self, upto: SegmentId) -> Result<()> {
        if terrane_base::planted!(TrimTooEarly) {
            return Ok(());
        }
        self.engine.catalog.unflushed().iter().try_for_each(|table| {
            let checked = table.edit().ledger().check_trim(upto);
            checked.map_err(|error| table.stop(error.message(), Left::Nothing))
        })
    }
}

/// The newest segment with numbers up to `visible` before the oldest that is `needed`.
fn newest_unneeded(journal: &dyn Journal, visible: SeqNo, needed: Option<SegmentId>) -> Option<SegmentId> {
    let is_blind = terrane_base::planted!(TrimTooEarly) || terrane_base::planted!(TrimUnflushed);
    let complete = journal.complete_segments();
    debug_assert!(complete.is_sorted_by(|one, next| one.id < next.id), "the oldest segment comes first");
    complete
        .iter()
        .take_while(|segment| segment.last_seq <= visible)
        .map(|segment| segment.id)
        .take_while(|id| needed.is_none_or(|needed| *id < needed || is_blind))
        .last()
}
