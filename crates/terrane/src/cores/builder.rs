//! Builds partitions, desks and owner threads from the user's settings.

use std::sync::Arc;

use terrane_base::env::Step;
use terrane_base::sync::Mutex;
use terrane_base::{Error, Result};

use super::lane::Desk;
use super::load::Load;
use super::owner::Owner;
use super::ownership::Ownership;
use super::{Cores, Shared};
use crate::{Db, Table};

const CORES_MAX: usize = 1024;
const SLOTS: usize = 256;
const SLOTS_MAX: usize = 1 << 16;

/// Which tables belong to how many cores, and how these work.
///
/// ```
/// # let db = terrane::Db::open_in_memory()?;
/// # let table = db.default_table();
/// let users = db.table_or_create("users")?;
/// let cores = terrane::cores::Cores::builder(&db)
///     .cores(2)
///     .table(table) // belongs to one core
///     .ranges(&users, &[b"m"]) // each half to one
///     .pinned(true)
///     .build()?;
/// # cores.close();
/// # Ok::<(), terrane::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CoresBuilder {
    db: Db,
    cores: Option<usize>,
    tables: Vec<(Table, Vec<Vec<u8>>)>,
    slots: usize,
    helps: bool,
    pinned: bool,
    spreads: bool,
}

impl CoresBuilder {
    pub(super) fn new(db: &Db) -> Self {
        CoresBuilder {
            db: db.clone(),
            cores: None,
            tables: Vec::new(),
            slots: SLOTS,
            helps: true,
            pinned: false,
            spreads: true,
        }
    }

    /// Number of cores, 1 to 1024. Default: the number of threads that can run at once.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let cores = terrane::cores::Cores::builder(&db).cores(2).table(table).build()?;
    /// assert_eq!(cores.len(), 2);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn cores(mut self, cores: usize) -> Self {
        self.cores = Some(cores);
        self
    }

    /// Gives a table, whole, to a core. Partitions go to cores in turn, in the order in which they are named.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let cores = terrane::cores::Cores::builder(&db).cores(2).table(table).build()?;
    /// assert_eq!(cores.core_of(table, "k")?, 0);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn table(self, table: &Table) -> Self {
        self.ranges(table, &[])
    }

    /// Divides a table at ascending `splits` into ranges that are assigned to cores in turn: the keys below
    /// the first split, those below the second, and so on.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let cores = terrane::cores::Cores::builder(&db).cores(2).ranges(table, &[b"m"]).build()?;
    /// assert_eq!((cores.core_of(table, "a")?, cores.core_of(table, "z")?), (0, 1));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn ranges(mut self, table: &Table, splits: &[&[u8]]) -> Self {
        self.tables.push((table.clone(), splits.iter().map(|split| split.to_vec()).collect()));
        self
    }

    /// Requests of a session at one core that may be unanswered or not yet collected: a power of two from 2
    /// to 65,536. Default: 256. Slots keep their buffers up to 4 KiB each; beyond that requests and answers
    /// take what their bytes take.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let cores = terrane::cores::Cores::builder(&db).cores(2).table(table).slots(64).build()?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = slots;
        self
    }

    /// Returns true if a session that waits serves the cores it waits for when their owners sleep, instead of
    /// waking them. Default: yes.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let cores = terrane::cores::Cores::builder(&db).cores(2).table(table).helping(false).build()?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn helping(mut self, helping: bool) -> Self {
        self.helps = helping;
        self
    }

    /// Returns true if the owner of core `n` is bound to the `n`-th processor that the process may use, where
    /// the system allows it. Default: no.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let cores = terrane::cores::Cores::builder(&db).cores(2).table(table).pinned(true).build()?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn pinned(mut self, pinned: bool) -> Self {
        self.pinned = pinned;
        self
    }

    /// Returns true if reads of hot partitions are served by every core. Default: yes.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let cores = terrane::cores::Cores::builder(&db).cores(2).table(table).spreading(false).build()?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn spreading(mut self, spreading: bool) -> Self {
        self.spreads = spreading;
        self
    }

    /// Starts the owners.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let cores = terrane::cores::Cores::builder(&db).table(table).build()?;
    /// assert!(terrane::cores::Cores::builder(&db).cores(0).build().is_err());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a number out of range, a table of another database or one named twice, splits that do
    /// not ascend; `Io` if a thread cannot be started.
    pub fn build(self) -> Result<Cores> {
        let spawn = self.db.engine().env().spawn.clone();
        let cores = self.cores.unwrap_or_else(|| spawn.parallelism().min(CORES_MAX));
        if !(1..=CORES_MAX).contains(&cores) {
            return Err(Error::invalid(format!("{cores} cores: it must be 1 to {CORES_MAX}")));
        }
        if !self.slots.is_power_of_two() || !(2..=SLOTS_MAX).contains(&self.slots) {
            let slots = self.slots;
            return Err(Error::invalid(format!(
                "{slots} slots: it must be a power of two, 2 to {SLOTS_MAX}"
            )));
        }
        let ownership = Arc::new(Ownership::new(&self.db, self.tables, cores)?);
        let load = Load::new(ownership.partitions(), if self.spreads { cores } else { 1 });
        let desk = |_| Arc::new(Desk::new(Owner::new(&self.db, ownership.clone())));
        let shared = Shared {
            db: self.db.clone(),
            desks: (0..cores).map(desk).collect(),
            load,
            slots: self.slots,
            // If no owner threads run, a waiting caller must do the work.
            helps: self.helps || spawn.stepper().is_some(),
            ownership,
        };
        // From here on a failure stops what was started.
        let built = Cores { shared: Arc::new(shared), owners: Mutex::new(Vec::new()) };
        for (number, desk) in built.shared.desks.iter().cloned().enumerate() {
            let thread_name = format!("terrane-core-{number}");
            if let Some(stepper) = spawn.stepper() {
                let desk = Arc::downgrade(&desk);
                let step = move || match desk.upgrade() {
                    None => Step::Ended,
                    Some(desk) if desk.help() => Step::Worked,
                    Some(_) => Step::Idle,
                };
                stepper.add(&thread_name, Box::new(step));
                continue;
            }
            let pinned = self.pinned;
            let body = move || {
                if pinned {
                    // A system that refuses changes nothing but where the thread runs.
                    terrane_device::pin_to_processor(number);
                }
                desk.run();
            };
            let owner = spawn.spawn(&thread_name, Box::new(body))?;
            built.owners.lock().push(owner);
        }
        Ok(built)
    }
}
