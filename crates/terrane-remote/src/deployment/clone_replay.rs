//! Commits that only the journal of an original has become extents of the clone.
//!
//! The state of the moment is opened as a database whose manifest is in memory only and whose store is that
//! of the clone; it replays the segments and flushes, as any database does whose journal is turned off. It
//! compacts nothing: extents that were flushed before stay.

use std::path::Path;
use std::sync::Arc;

use terrane::Db;
use terrane_base::env::Env;
use terrane_base::options::{JournalMode, Options};
use terrane_base::{Functions, Result, SeqNo};
use terrane_engine::{OpenedParts, Parts, PartsRequest};
use terrane_format::manifest::{Edit, EditOp, JournalMark, TableOptions};
use terrane_levels::{Manifest, ManifestLog, ManifestSettings, ManifestSize, State, journal_place};
use terrane_storage::Store;

use super::clone_moment::Moment;

/// The option of a table that says whether the background compacts it.
const AUTO_COMPACTION: &str = "auto_compaction";

/// Records in memory: whatever happens, the clone gets a snapshot of the last state.
#[derive(Debug)]
struct InMemory {
    number: u64,
    size: ManifestSize,
}

impl ManifestLog for InMemory {
    fn number(&self) -> u64 {
        self.number
    }

    fn size(&self) -> ManifestSize {
        self.size
    }

    fn append(&mut self, payload: &[u8]) -> Result<()> {
        assert!(self.number < u64::MAX, "numbers of a manifest never end");
        self.number += 1;
        self.size.edit_bytes += payload.len() as u64;
        self.size.edits += 1;
        Ok(())
    }

    fn roll(&mut self, _: &State) -> Result<()> {
        self.number += 1;
        self.size = ManifestSize { file: self.number, edit_bytes: 0, edits: 0, ..self.size };
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Manifest and store of the replay.
#[derive(Debug)]
struct ReplayParts {
    address: String,
    manifest: Arc<Manifest>,
    store: Arc<dyn Store>,
    until: Option<SeqNo>,
}

impl Parts for ReplayParts {
    fn address(&self) -> &str {
        &self.address
    }

    fn open(&self, _: &PartsRequest<'_>) -> Result<OpenedParts> {
        let (manifest, store) = (self.manifest.clone(), self.store.clone());
        Ok(OpenedParts { manifest, store, log: None, upkeep: None, compactor: None, requests: None })
    }

    fn until(&self) -> Option<SeqNo> {
        self.until
    }
}

/// The state of the moment with all that its segments have in extents of `store`, and no segment.
///
/// # Errors
/// As an opening: `Invalid` for functions that are missing; `Corrupt`, `Io`, `Full`.
pub(super) fn replay(
    moment: &Moment,
    (address, dir): (&str, &Path),
    store: Arc<dyn Store>,
    (options, functions): (&Options, Functions),
    env: &Env,
) -> Result<State> {
    let state = moment.state.apply(&with_options(&moment.state, |options| {
        let others = options.iter().filter(|(name, _)| name != AUTO_COMPACTION).cloned();
        others.chain([(AUTO_COMPACTION.to_owned(), "false".to_owned())]).collect()
    }))?;
    let log = Box::new(InMemory { number: moment.found.last.number, size: moment.found.size() });
    let manifest = Arc::new(Manifest::on(log, &state, ManifestSettings::default()));
    let journal = moment.found.last.journal;
    let mark = JournalMark { journal, before: journal, address: address.to_owned() };
    journal_place::write(&*moment.disk, dir, &mark)?;
    let mut options = options.clone();
    options.journal = JournalMode::Off;
    (options.create_if_missing, options.error_if_exists, options.read_only) = (false, false, false);
    options.experiments.always_overflow = true;
    options.experiments.expiry_compaction = false;
    options.experiments.value_collect_jobs = false;
    let parts =
        ReplayParts { address: address.to_owned(), manifest: manifest.clone(), store, until: moment.until };
    let db = Db::open_elsewhere_on((moment.disk.clone(), dir), &options, env.clone(), functions, &parts)?;
    db.close()?;
    let flushed = State::clone(&manifest.state());
    assert!(flushed.segments.is_empty(), "with the journal off an opening flushes what an earlier one left");
    let own = |id| moment.state.tables.get(id).map(|table| table.options.clone()).unwrap_or_default();
    let live = flushed.tables.values().filter(|table| !table.dropped);
    let ops = live.map(|table| EditOp::SetOptions { id: table.id, options: own(&table.id) }).collect();
    flushed.apply(&Edit { ops })
}

/// The edit that changes the options of every table.
fn with_options(state: &State, change: impl Fn(&TableOptions) -> TableOptions) -> Edit {
    let live = state.tables.values().filter(|table| !table.dropped);
    let ops = live.map(|table| EditOp::SetOptions { id: table.id, options: change(&table.options) });
    Edit { ops: ops.collect() }
}
