//! Opening a database.
//!
//! 1. resolve the options 2. lock the directory 3. make or read the manifest, open the pool of persistent
//!    memory if there is one 4. tell the store what lives
//! 5. build the tables 6. replay the journal into their memtables (`lifecycle/recover.rs`) 7. close the epoch
//!    durably
//! 8. go on: journal, workers.
//!
//! The time this takes does not depend on the data in the levels: what an open needs of an extent is in the
//! manifest.

mod entries;
pub(crate) mod parts;
mod pool;
mod store;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::options::{JournalMode, Options};
use terrane_base::sync::Mutex;
use terrane_base::{Error, Functions, Kind, Result, SeqNo, TableId};
use terrane_device::{Disk, DiskLock};
use terrane_format::manifest::{Edit, EditOp};
use terrane_journal::{CommitLog, Journal};
use terrane_levels::directory::{self, Contents, JOURNAL, LOCK, Others};
use terrane_levels::{Manifest, Pins, State};
use terrane_storage::Store;
use terrane_table::{Cache, Extent, RowCache};

use crate::background::Background;
use crate::background::maintenance::{Maintenance, MaintenanceRef};
use crate::engine::Engine;
use crate::lifecycle::follower::{Following, KnownExtents};
use crate::lifecycle::recover::{Recovered, Recovery};
use crate::lifecycle::replay_filter::finish_swap;
use crate::locks::Transactions;
use crate::memory::arbiter::MemoryArbiter;
use crate::memory::budget::Budget;
use crate::memory::writers::WriterMemory;
use crate::observe::io_accounting::Flows;
use crate::observe::slow_log::SlowLog;
use crate::observe::stats::written::Written;
use crate::observe::stats::{Counters, Histograms, add};
use crate::readers::Readers;
use crate::segment_files::refuse_unfinished;
use crate::shared::{ExtentJobs, Files, Opening, Shared, Trims};
use crate::table::Table;
use crate::table::catalog::Catalog;
use crate::table::settings::{TableSettings, check_default, check_kind_of_order, stored_options};
use crate::table::sums::TableSums;
use crate::throttle::Throttle;
use crate::txn::prepared::TwoPhase;
use crate::write::WritePath;
use crate::write::tickets::AsyncWrites;

pub use entries::OpenRequest;
pub(crate) use entries::Way;
use parts::Watch;
use parts::{open_elsewhere, read_elsewhere};
use pool::Attached;
use store::{Elsewhere, open_extents};

/// Extents of dropped tables that one edit forgets.
const FORGET_PER_EDIT: usize = 10_000;
/// How often an opening tries to lock the directory.
const LOCK_ATTEMPTS_MAX: u32 = 6;
/// The time between two attempts; all together take longer than a look at the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(2);

impl Engine {
    /// [`Engine::open_with_on`], or a view of what another process has open.
    pub(crate) fn open_as(request: OpenRequest<'_>, way: Way<'_>) -> Result<Arc<Engine>> {
        let OpenRequest { disk, dir, options, env, mut functions } = request;
        functions.orders = match way.following().and_then(Following::orders) {
            // What it shares with the view before compares by the orders of that one, and says so if they
            // fail.
            Some(orders) => orders,
            None => functions.orders.renewed(),
        };
        let start = env.clock.now();
        let resolved = resolve_options(options, &env, &functions)?;
        let (engine, upkeep) = Engine::assemble(disk, dir, (options, resolved), env, functions, way)?;
        engine.begin(start)?;
        if let Some((interval, upkeep)) = upkeep {
            engine.watch_writer(interval, upkeep)?;
        }
        Ok(engine)
    }

    /// Steps 2 to 7, and the journal. Takes the options as they were given and resolved.
    fn assemble(
        disk: Arc<dyn Disk>,
        dir: &Path,
        (asked, options): (&Options, Options),
        env: Env,
        functions: Functions,
        way: Way<'_>,
    ) -> Result<(Arc<Engine>, Option<Watch>)> {
        let following = way.following();
        let flows = Flows::new(&env.clock);
        let Opened { manifest, state, lock, elsewhere, log } = match way {
            Way::Elsewhere(parts) => open_elsewhere((&disk, dir), &options, &env, &functions, parts)?,
            Way::Reading(parts) | Way::FollowingParts(parts, _) => read_elsewhere(parts, &functions, way)?,
            Way::Following(manifest, _) => Opened::read(manifest.clone(), None, &functions)?,
            _ => open_manifest(&flows.manifest(&disk), dir, &options, &env, &functions)?,
        };
        let attached = Attached::new(disk, dir, &options, &env, (&state, following.is_some()))?;
        let disk = attached.disk.clone();
        let opened = open_extents((&disk, dir), &options, &state, following, elsewhere)?;
        let store = flows.user(&opened.store);
        let known = following.map(Following::known_extents).unwrap_or_default();
        let sums = TableSums::new(options.memory_bytes);
        let tables = open_tables(&state, &options, &store, &functions, (&env, &sums), &known)?;
        let counters = Counters::default();
        let (doors, found) = ((&flows.journal(&disk), &env), (&manifest, &state));
        let recovered =
            recover_journal(doors, (dir, log), &options, found, (&tables, &sums, &counters), way)?;
        if !options.read_only {
            attached.begin_epoch(manifest.state().epoch)?;
        }
        tables.iter().try_for_each(|table| table.semantics.collation().check())?;
        let txn = Transactions::new(options.write_memory_bytes);
        let journal: Arc<dyn Journal> = Arc::from(recovered.journal);
        let window_bytes = txn.window_bytes_shared();
        let writers = WriterMemory { journal: journal.clone(), tables: Arc::clone(&sums), window_bytes };
        let memory = divide_memory(&env, (asked, &options), following.and_then(Following::cache), writers);
        let shared = Shared {
            opening: Opening::new(way.address(), way.until(), recovered.behind),
            rows: RowCache::new(memory.cache().clone(), memory.row_cache_bytes(options.row_cache)),
            cache: memory.cache().clone(),
            catalog: Catalog::new(tables, sums),
            functions,
            extent_jobs: ExtentJobs::new(&env, &options),
            pins: Pins::new(),
            readers: Readers::new(options.reader_age_max_ms),
            events: Arc::default(),
            slow_log: SlowLog::new(env.clock.clone(), &options),
            trims: Trims::new(recovered.void_marks),
            files: Files::new(disk, dir, flows, opened.requests),
            store,
            manifest,
            journal,
            counters,
            written: Written::default(),
            histograms: Histograms::default(),
            options,
            env,
        };
        let background = Background::new(
            &shared.env,
            shared.files.flows(),
            &opened.store,
            (state.next.run, opened.compactor),
        );
        let async_writes = AsyncWrites::new(&shared);
        let maintenance = Maintenance { throttle: Throttle::default(), background, memory, shared };
        let write_path = WritePath { maintenance, txn, async_writes };
        Ok((Arc::new(Engine { write_path, lock: Mutex::new(lock) }), opened.upkeep))
    }

    /// Ends the opening that began at `start`.
    fn begin(self: &Arc<Self>, start: Duration) -> Result<()> {
        debug_assert!(!self.is_closing(), "no caller has the database yet");
        // So a thread's reads of this database are sampled in the same way each time.
        terrane_base::sampling::restart();
        self.readers.tick(self.env.clock.now());
        // After an error the caller has no database: its workers must not keep the lock.
        self.go_on().and_then(|()| self.take_prepared_locks()).inspect_err(|_| drop(self.shut()))?;
        add(&self.counters.open_micros, (self.env.clock.now() - start).as_micros() as u64);
        Ok(())
    }

    /// Takes the locks of transactions that were prepared, where any ever was.
    fn take_prepared_locks(&self) -> Result<()> {
        match self.catalog.find_hidden() {
            Some(prepared) => TwoPhase::of(self).restore_prepared(&prepared),
            None => Ok(()),
        }
    }

    /// Starts the background; with the journal off, what an earlier journal left goes into the levels.
    fn go_on(self: &Arc<Self>) -> Result<()> {
        debug_assert!(!self.is_closing(), "workers would begin on a database that is closed");
        self.refresh_debt();
        if self.options.read_only {
            return Ok(());
        }
        self.reconcile_history()?;
        let workers_keep: MaintenanceRef = self.clone();
        self.start_workers(&workers_keep)?;
        drop(workers_keep);
        self.share_metrics();
        for table in self.catalog.all() {
            let view = table.pinned();
            if view.active.record_bytes() + view.active.index_bytes() >= self.memory.budget().memtable_bytes()
            {
                self.note_full(&table);
            }
        }
        if self.options.journal == JournalMode::Off && !self.manifest.state().segments.is_empty() {
            self.flush()?;
            self.forget_old_segments()?;
        }
        Ok(())
    }
}

/// A manifest that was made or read, and the lock under which that happened.
struct Opened {
    manifest: Arc<Manifest>,
    state: State,
    /// None for a view, and for a read-only open of a directory whose lock file cannot be opened.
    lock: Option<Box<dyn DiskLock>>,
    /// The store, if it does not lie in the directory, and the upkeep of it.
    elsewhere: Option<Elsewhere>,
    /// The log of the journal, if it has one.
    log: Option<Arc<dyn CommitLog>>,
}

impl Opened {
    fn read(manifest: Arc<Manifest>, lock: Option<Box<dyn DiskLock>>, by: &Functions) -> Result<Opened> {
        let state = manifest.set_orders(&by.orders)?;
        Ok(Opened { manifest, state, lock, elsewhere: None, log: None })
    }
}

/// Locks the directory and makes or reads the manifest.
fn open_manifest(
    disk: &Arc<dyn Disk>,
    dir: &Path,
    options: &Options,
    env: &Env,
    functions: &Functions,
) -> Result<Opened> {
    if options.read_only {
        // A writer reuses the files of segments and the slots of extents that a reader may be looking at.
        let is_locked = !terrane_base::planted!(ReadWithoutLock);
        let lock = if is_locked { disk.lock_shared(&dir.join(LOCK))? } else { None };
        let (manifest, _) = Manifest::open_read_only(disk.clone(), dir)?;
        return Opened::read(Arc::new(manifest), lock, functions);
    }
    let others = Others::beside(options.beside_others);
    let before = directory::inspect(&**disk, dir, others)?;
    if before != Contents::Database && !options.create_if_missing {
        let message = format!("there is no database in {}: set create_if_missing to make one", dir.display());
        return Err(Error::new(Kind::NotFound, message));
    }
    if before != Contents::Database {
        directory::refuse_within(&**disk, dir, others)?;
        directory::prepare(&**disk, dir)?;
    }
    let lock = lock_for_writing(&**disk, dir, env)?;
    // Looked at again under the lock: another process may have made the database meanwhile.
    let (manifest, _) = match directory::inspect(&**disk, dir, others)? {
        Contents::Database if options.error_if_exists => {
            let message = format!("{} holds a database already and error_if_exists is set", dir.display());
            return Err(Error::invalid(message));
        }
        Contents::Database => Manifest::open(disk.clone(), dir)?,
        Contents::Vacant | Contents::Missing => {
            Manifest::create_beside(disk.clone(), dir, env, stored_options(options, &[], functions), others)?
        }
    };
    let state = manifest.set_orders(&functions.orders)?;
    let state = forget_dropped(&manifest, state)?;
    Ok(Opened { manifest: Arc::new(manifest), state, lock: Some(lock), elsewhere: None, log: None })
}

/// Takes the lock of the database. A command that only asks whether there is a writer (`terrane top`) holds
/// it shared for a moment: that is not a reason to refuse an opening.
///
/// # Errors
/// `Busy` if another process keeps it; otherwise as [`Disk::lock`].
fn lock_for_writing(disk: &dyn Disk, dir: &Path, env: &Env) -> Result<Box<dyn DiskLock>> {
    let path = dir.join(LOCK);
    for _ in 1..LOCK_ATTEMPTS_MAX {
        match disk.lock(&path) {
            Err(error) if error.kind() == Kind::Busy => env.clock.sleep(LOCK_PAUSE),
            taken => return taken,
        }
    }
    disk.lock(&path)
}

/// Replays what the journal of the database in `dir` holds into the tables.
fn recover_journal(
    (disk, env): (&Arc<dyn Disk>, &Env),
    (dir, log): (&Path, Option<Arc<dyn CommitLog>>),
    options: &Options,
    (manifest, state): (&Arc<Manifest>, &State),
    (tables, sums, counters): (&[Arc<Table>], &Arc<TableSums>, &Counters),
    way: Way<'_>,
) -> Result<Recovered> {
    let dir = &dir.join(JOURNAL);
    // A database that no process writes is read as a whole.
    let follows = way.following().is_some_and(|following| !following.is_idle());
    if !options.read_only {
        finish_swap(disk, dir, state)?;
    } else if !state.segments.is_empty() || !way.reads_parts() {
        refuse_unfinished(&**disk, dir, state, if follows { Kind::Busy } else { Kind::Invalid })?;
    }
    let (until, is_in_bucket) = (way.until(), way.address().is_some());
    let recovery = Recovery {
        disk,
        dir,
        log,
        options,
        env,
        manifest,
        state,
        tables,
        sums,
        counters,
        follows,
        until,
        is_in_bucket,
    };
    if way.reads_parts() && state.segments.is_empty() {
        return recovery.without_journal();
    }
    let Way::Filtered(filter) = way else { return recovery.run() };
    match recovery.filter(filter)? {
        Some(changed) => Recovery { state: &changed, ..recovery }.run(),
        None => recovery.run(),
    }
}

/// The options as they hold from now on: sizes that were left to the engine are chosen.
fn resolve_options(options: &Options, env: &Env, functions: &Functions) -> Result<Options> {
    // Before a database is made with it.
    options.merge_operator.get().map(|name| functions.operators.find(name)).transpose()?;
    options.key_order.get().map(|name| functions.orders.find(name)).transpose()?;
    options.prefix_extractor.get().map(|name| functions.extractors.find(name)).transpose()?;
    terrane_format::rank::choose(options.experiments.search_kernel)?;
    options.resolve(env.spawn.parallelism())
}

/// The arbiter of memory, with a cache of its own unless one is shared.
fn divide_memory(
    env: &Env,
    (asked, options): (&Options, &Options),
    shared: Option<Arc<Cache>>,
    writers: WriterMemory,
) -> MemoryArbiter {
    let budget = Budget::new(asked.clone(), options);
    let plan = budget.plan();
    let cache = shared
        .unwrap_or_else(|| Cache::with_memory(plan.cache_bytes_max(), plan.cache_bytes, plan.chunk_bytes));
    MemoryArbiter::new(env.clock.clone(), budget, cache, writers, options.experiments.write_memory_yields)
}

/// Finishes what a drop of a table began: its extents leave the manifest.
fn forget_dropped(manifest: &Manifest, state: State) -> Result<State> {
    let dropped: Vec<_> = state.tables.values().filter(|table| table.dropped).cloned().collect();
    if dropped.is_empty() {
        return Ok(state);
    }
    for table in dropped {
        let extents =
            table.extents.places().flat_map(|(place, level)| level.iter().map(move |meta| (place, meta)));
        let ops: Vec<_> = extents.map(|(place, meta)| EditOp::remove(table.id, place, meta)).collect();
        for ops in ops.chunks(FORGET_PER_EDIT) {
            manifest.append(&Edit { ops: ops.to_vec() })?;
        }
    }
    Ok(State::clone(&manifest.state()))
}

fn open_tables(
    state: &State,
    options: &Options,
    store: &Arc<dyn Store>,
    functions: &Functions,
    (env, sums): (&Env, &Arc<TableSums>),
    known: &KnownExtents,
) -> Result<Vec<Arc<Table>>> {
    sums.raise_flushed_all(state.flushed_all);
    let live = state.tables.values().filter(|table| !table.dropped);
    live.map(|table| {
        let settings = TableSettings::new(options, &table.options)
            .map_err(|error| error.context(format!("stored options of table {:?}", table.name)))?;
        if table.id == TableId::DEFAULT {
            check_default(options, &table.options)?;
        }
        let semantics = settings.semantics(&table.name, functions, &env.clock)?;
        check_kind_of_order(table, &semantics)?;
        let tree = table.extents.try_map(|meta| {
            let same = known.get(&meta.id).filter(|extent| extent.meta == **meta);
            Ok(same.cloned().unwrap_or_else(|| Extent::new(meta.as_ref().clone(), store.clone())))
        })?;
        // The memtable takes every replayed number; those in the levels are left out by the recovery.
        let first_seq = SeqNo(0);
        let (name, tree) = (table.name.clone(), Arc::new(tree));
        Ok(Table::new((table.id, name), settings, semantics, tree, (state.flushed(table), first_seq), sums))
    })
    .collect()
}
