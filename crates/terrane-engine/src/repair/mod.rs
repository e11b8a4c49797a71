//! `repair`: brings what can be proven readable of a damaged database into a new one beside it.
//!
//! Steps: 1. read the manifest, as far as it is sound 2. make a new database with the same tables 3. copy
//! every sound block of the levels, deepest first (`levels.rs`) 4. copy every sound group of the journal, in
//! order (`journal.rs`) 5. flush, check, close.
//!
//! If edits of the manifest are lost, the levels are not known. Step 3 then looks for extents by their
//! footers (`origins.rs`, `found.rs`), asks what remains of the manifest about each, leaves out what newer
//! extents took the place of (`lineage.rs`), and copies the newest version of each key by its number
//! (`by_number.rs`).
//!
//! Values that were separated from their keys are read from their value tables (`values.rs`), and segments in
//! persistent memory from their pool (`pool.rs`). Blocks are found by index blocks, which are set right where
//! they are damaged (`mend.rs`). Records that an opening set aside come from files of their
//! own (`aside.rs`).
//!
//! The damaged database is only read. Unreadable data is a [`Loss`]; older rows in its range are uncertain.

mod aside;
mod by_number;
mod found;
mod journal;
mod levels;
mod lineage;
mod mend;
mod mended_store;
mod orders;
mod origins;
mod pool;
mod prepared;
mod reached;
mod report;
mod rows;
mod values;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::record::Record;
use terrane_base::{Batch, Error, ExtentId, Functions, Kind, RecordKind, Result, Stored, TableId};
use terrane_device::{Disk, PosixDisk};
use terrane_levels::directory::{DATA, JOURNAL, LOCK};
use terrane_levels::manifest::{Remains, Salvaged, salvage};

use crate::copies::refuse_if;
use crate::engine::Engine;
use crate::table::catalog::{DEFAULT_NAME, HIDDEN_NAME, name_of};
use crate::table::settings::{KEPT, KEY_ORDER, PREFIX_EXTRACTOR, TABLE_NOTE, check_registered, known_as};
use orders::{order_of, unordered_of};
use pool::{with_pool, without_pool};
use reached::Reached;
pub use report::{Loss, RepairReport};
use rows::Rows;
use values::ValueTablesFound;

/// Bytes of the batches that fill the new database.
const BATCH_BYTES: usize = 256 << 10;

/// A repair under way.
struct Repair<'a> {
    disk: &'a Arc<dyn Disk>,
    source: &'a Path,
    target: Arc<Engine>,
    /// Tables of the damaged database, by their id there, in the new one.
    tables: BTreeMap<TableId, TableId>,
    /// The table of prepared transactions in the new database.
    prepared: Option<TableId>,
    batch: Batch,
    reached: Reached,
    /// Tables of the damaged database whose key order is not registered.
    unordered: BTreeSet<TableId>,
    /// Tables that the manifest says were dropped.
    dropped: BTreeSet<TableId>,
    /// Tables below this number that are not in `tables` were dropped.
    gone_below: TableId,
    /// Extents by table, if the levels are not known.
    found: BTreeMap<TableId, Arc<Rows>>,
    /// True if edits of the manifest are lost: it does not list all extents.
    is_by_number: bool,
    /// The salt in the groups of the database's segments, if it is known.
    salt: Option<u32>,
    /// Value tables, in which values lie apart from their keys.
    values: ValueTablesFound,
    /// Of extents whose index block is damaged: rows in it that stand for blocks whose rows are lost.
    gaps: BTreeMap<ExtentId, Vec<usize>>,
    is_cancelled: &'a dyn Fn(u64) -> bool,
    report: RepairReport,
}

/// Brings what can be read of the database in `source` into a new one in `target`, a directory that is
/// missing or empty. `options` are those of the new database; `pmem_path` among them names the pool of the
/// damaged one, which is only read: the new database has its journal in files.
///
/// # Errors
/// `NotFound` if there is nothing at `source` or no pool, `Busy` if a process writes to one of them,
/// `Invalid` if there is something at `target`; those of writing the new database. Damage of the old one is
/// no error: it is in the report.
pub fn repair(source: &Path, target: &Path, options: &Options, env: Env) -> Result<RepairReport> {
    repair_with(source, target, options, env, Functions::default())
}

/// [`repair`], with functions that tables name and that are not built in. A table whose merge operator or
/// prefix extractor is not registered has none in the new database, and its operands cannot be read there:
/// that is a loss.
///
/// # Errors
/// As [`repair`], and `Invalid` for a table whose key order is not registered, unless any is accepted
/// ([`KeyOrders::with_any`](terrane_base::KeyOrders::with_any)): such a table is left out, as a loss;
/// `Poisoned` if a comparator panics.
pub fn repair_with(
    source: &Path,
    target: &Path,
    options: &Options,
    env: Env,
    functions: impl Into<Functions>,
) -> Result<RepairReport> {
    let disk: Arc<dyn Disk> = Arc::new(PosixDisk::new());
    repair_with_on(&disk, source, target, options, env, functions)
}

/// [`repair`] on any device.
///
/// # Errors
/// As [`repair`].
pub fn repair_on(
    disk: &Arc<dyn Disk>,
    source: &Path,
    target: &Path,
    options: &Options,
    env: Env,
) -> Result<RepairReport> {
    repair_with_on(disk, source, target, options, env, Functions::default())
}

/// [`repair_with`] on any device.
///
/// # Errors
/// As [`repair_with`].
pub fn repair_with_on(
    disk: &Arc<dyn Disk>,
    source: &Path,
    target: &Path,
    options: &Options,
    env: Env,
    functions: impl Into<Functions>,
) -> Result<RepairReport> {
    repair_until_on(disk, source, target, options, env, functions.into(), &|_| false)
}

/// [`repair_with_on`], unless `is_cancelled` says so before a batch: it gets the number of versions so far.
///
/// # Errors
/// As [`repair_with`]; `Cancelled` if `is_cancelled` said so: what `target` has is a part then.
pub fn repair_until_on(
    disk: &Arc<dyn Disk>,
    source: &Path,
    target: &Path,
    options: &Options,
    env: Env,
    functions: Functions,
    is_cancelled: &dyn Fn(u64) -> bool,
) -> Result<RepairReport> {
    terrane_levels::journal_place::refuse(&**disk, source)?;
    let lock = disk.lock_shared(&source.join(LOCK))?;
    let (target_disk, (disk, damage_of_pool)) = (disk, with_pool(disk, source, options)?);
    let disk = &disk;
    let Salvaged { state, errors, doubt, edit_number, remains } = salvage(&**disk, source)?;
    if state.is_none() {
        check_remains(disk, source)?;
    }
    let is_behind = found::may_lack_edits(disk, source, state.as_ref(), doubt.as_ref(), edit_number)?;
    let mut remains = remains.filter(|_| is_behind);
    let found = remains.as_mut().map(|remains| origins::look(&**disk, source, remains)).transpose()?;
    let has_id = remains.as_ref().is_none_or(|remains| remains.has_id);
    let state = match &remains {
        Some(remains) => Some(remains.state.clone()),
        None => state,
    };
    let ordered = state.map(|state| state.with_orders_that_fit(&functions.orders)).transpose()?;
    let (state, misfits) = ordered.map_or((None, Vec::new()), |(state, misfits)| (Some(state), misfits));
    let options =
        Options { create_if_missing: true, error_if_exists: true, read_only: false, ..without_pool(options) };
    let unordered = state.as_ref().map_or(Ok(BTreeSet::new()), |state| unordered_of(state, &functions))?;
    let (options, missing) = with_functions_of_default(options, state.as_ref(), &functions);
    let target = Engine::open_with_on(target_disk.clone(), target, &options, env, functions)?;
    let mut repair = Repair {
        disk,
        source,
        target,
        tables: BTreeMap::from([(TableId::DEFAULT, TableId::DEFAULT)]),
        prepared: None,
        unordered,
        batch: Batch::new(),
        reached: Reached::new(),
        dropped: remains.as_ref().map_or_else(BTreeSet::new, |remains| remains.dropped.clone()),
        gone_below: match &state {
            Some(state) if remains.is_none() => state.next.table,
            _ => TableId(0),
        },
        found: BTreeMap::new(),
        is_by_number: remains.is_some(),
        salt: None,
        values: ValueTablesFound::default(),
        gaps: BTreeMap::new(),
        is_cancelled,
        report: RepairReport::default(),
    };
    errors.into_iter().for_each(|error| repair.report.lose(None, error));
    missing.into_iter().for_each(|error| repair.report.lose(Some(DEFAULT_NAME), error));
    misfits.into_iter().for_each(|misfit| repair.report.lose_misfit(misfit));
    doubt.into_iter().chain(damage_of_pool).for_each(|doubt| repair.report.doubt(doubt));
    let state = state.expect("what remains of a manifest has a state");
    repair.lose_unordered(&state);
    repair.make_tables(&state)?;
    match remains.zip(found) {
        Some((remains, found)) => repair.copy_found(&Remains { state: state.clone(), ..remains }, found)?,
        None => repair.copy_levels(&state)?,
    }
    repair.salt = has_id.then(|| state.database.segment_salt());
    repair.copy_journal(&state)?;
    drop(lock);
    repair.finish()
}

/// Refuses a directory in which nothing of a database is left.
fn check_remains(disk: &Arc<dyn Disk>, source: &Path) -> Result<()> {
    if [JOURNAL, DATA].iter().any(|dir| disk.exists(&source.join(dir)).unwrap_or(true)) {
        return Ok(());
    }
    let message =
        format!("there is no database in {}: no manifest, no journal and no data", source.display());
    Err(Error::new(Kind::NotFound, message))
}

/// The options with the functions that the default table was made with, and why it lacks some.
fn with_functions_of_default(
    mut options: Options,
    state: Option<&terrane_levels::State>,
    functions: &Functions,
) -> (Options, Vec<Error>) {
    let Some(stored) = state.and_then(|state| state.tables.get(&TableId::DEFAULT)) else {
        return (options, Vec::new());
    };
    let (kept, mut missing) = kept_of(stored, functions);
    // A table whose comparator is not registered is created empty, in byte order.
    let keeps_order = functions.orders.has(order_of(stored));
    for (name, value) in kept.into_iter().filter(|(name, _)| keeps_order || name != KEY_ORDER) {
        missing.extend(options.set(&name, &value).err());
    }
    (options, missing)
}

/// The permanent options of a table of the new database; not those of the default table if it had none. A
/// function that is not registered is left out, with an error for each.
fn kept_of(stored: &terrane_levels::Table, functions: &Functions) -> (Vec<(String, String)>, Vec<Error>) {
    let mut missing = Vec::new();
    let kept = KEPT.iter().map(|(kept, otherwise)| {
        let value =
            stored.options.iter().find(|(name, _)| known_as(name) == *kept).map(|(_, value)| value.as_str());
        let value = value.filter(|value| match check_registered(kept, value, functions) {
            Ok(()) => true,
            Err(error) => {
                missing.push(error.context(format!("the table has no {kept} any more")));
                false
            }
        });
        ((*kept).to_owned(), value.unwrap_or(otherwise).to_owned())
    });
    (kept.collect(), missing)
}

/// The note with a table of the old database.
fn note_of(stored: &terrane_levels::Table) -> Option<&str> {
    stored.options.iter().find(|(name, _)| name == TABLE_NOTE).map(|(_, note)| note.as_str())
}

impl Repair<'_> {
    fn make_tables(&mut self, state: &terrane_levels::State) -> Result<()> {
        let unordered = self.unordered.clone();
        let known = state.tables.values().filter(|table| !table.dropped && table.name != DEFAULT_NAME);
        for table in known.filter(|table| !unordered.contains(&table.id)) {
            if table.name == HIDDEN_NAME {
                let made = self.target.create_hidden_table()?.id;
                self.tables.insert(table.id, made);
                self.prepared = Some(made);
                continue;
            }
            debug_assert!(!self.tables.contains_key(&table.id), "the rows of one table would go to two");
            let (kept, missing) = kept_of(table, &self.target.functions);
            missing.into_iter().for_each(|error| self.report.lose(Some(&table.name), error));
            let mut options = table.options.clone();
            options.retain(|(name, _)| {
                name != TABLE_NOTE && !kept.iter().any(|(kept, _)| known_as(name) == kept)
            });
            if let Some(at) = options.iter().position(|(name, _)| name == PREFIX_EXTRACTOR)
                && let Err(error) = check_registered(PREFIX_EXTRACTOR, &options[at].1, &self.target.functions)
            {
                options.remove(at);
                let error = error.context("the table has no prefix_extractor any more");
                self.report.lose(Some(&table.name), error);
            }
            options.extend_from_slice(&kept);
            let made = match self.target.create_table(&table.name, &options) {
                Err(error) if error.kind() == Kind::Invalid => {
                    let error = error.context("the table's own options are left out");
                    self.report.lose(Some(&table.name), error);
                    self.target.create_table(&table.name, &kept)?
                }
                made => made?,
            };
            // Apart from the options: it stays where one of them does not.
            if let Some(note) = note_of(table) {
                self.target.set_table_note(&made, note)?;
            }
            self.tables.insert(table.id, made.id);
        }
        self.note_default(state)
    }

    /// Gives the default table, which is there already, the note of the old one; not if the old one is left
    /// out: the note is about its rows.
    fn note_default(&self, state: &terrane_levels::State) -> Result<()> {
        let mut tables = state.tables.values().filter(|table| !table.dropped);
        let default = tables.find(|table| table.name == DEFAULT_NAME && !self.unordered.contains(&table.id));
        let Some(note) = default.and_then(|table| note_of(table)) else { return Ok(()) };
        self.target.set_table_note(&*self.target.catalog.require(DEFAULT_NAME)?, note)
    }

    /// Returns true if a table of the old database was dropped there, or is left out.
    fn is_gone(&self, old: TableId) -> bool {
        self.unordered.contains(&old)
            || self.dropped.contains(&old)
            || old < self.gone_below && !self.tables.contains_key(&old)
    }

    /// The name of a table of the new database.
    fn name_of(&self, table: TableId) -> Option<String> {
        name_of(&self.target.catalog, table)
    }

    /// The table of the new database for one of the old; made if nothing is known of it but its id.
    fn table(&mut self, old: TableId) -> Result<TableId> {
        if let Some(known) = self.tables.get(&old) {
            return Ok(*known);
        }
        let name = format!("recovered.{}", old.0);
        let made = self.target.create_table(&name, &[])?.id;
        let error = Error::corrupt("the manifest has no such table: its name and options are lost");
        self.report.lose(Some(&name), error.at(self.source.display().to_string(), 0));
        let before = self.tables.insert(old, made);
        debug_assert!(before.is_none(), "the rows of one table go to one table");
        Ok(made)
    }

    /// Writes a version of a key; `bytes` are as stored. The new database gives it a number of its own.
    fn write(&mut self, table: TableId, key: &[u8], kind: RecordKind, bytes: &[u8]) -> Result<()> {
        debug_assert!(self.batch.bytes().len() < BATCH_BYTES, "a batch that is long enough is written");
        let Stored { expires_at, value, .. } = Stored::decode(kind, bytes)?;
        match kind {
            // A single delete is a promise about the old database.
            RecordKind::Delete | RecordKind::SingleDelete => self.batch.delete(table, key)?,
            RecordKind::Merge | RecordKind::MergeUntil => self.batch.merge(table, key, value, expires_at)?,
            _ => self.push(Record { kind, table, key, value: bytes })?,
        }
        if self.batch.bytes().len() >= BATCH_BYTES { self.write_batch() } else { Ok(()) }
    }

    fn delete_range(&mut self, table: TableId, start: &[u8], end: &[u8]) -> Result<()> {
        debug_assert!(self.batch.bytes().len() < BATCH_BYTES, "a batch that is long enough is written");
        self.batch.delete_range_ordered(table, start, end, &self.target.collation_of(table))?;
        if self.batch.bytes().len() >= BATCH_BYTES { self.write_batch() } else { Ok(()) }
    }

    fn write_batch(&mut self) -> Result<()> {
        refuse_if(&|| (self.is_cancelled)(self.report.entries + self.report.records))?;
        self.target.write(&self.batch, false)?;
        self.batch.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<RepairReport> {
        self.write_batch()?;
        debug_assert!(self.batch.is_empty(), "records that were found are not written");
        self.target.flush()?;
        let found = self.target.check(&mut |_, _| ())?;
        if let Some(finding) = found.findings.first() {
            return Err(finding.error.clone().context("the new database is damaged as well"));
        }
        self.report.tables = self.target.catalog().listed().len() as u64;
        self.target.close()?;
        Ok(self.report)
    }
}
