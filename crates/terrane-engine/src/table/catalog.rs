//! The tables of an open database, by id and by name; create, list and drop.
//!
//! The map is replaced whole, so that the write way finds a table with one pointer under an epoch. Creating
//! and dropping are rare: they hold [`Catalog::change`] across the manifest's sync, which no reader or writer
//! takes.

use std::sync::Arc;

use terrane_base::epoch::{EpochCell, Guard};
use terrane_base::sync::{Mutex, MutexGuard};
use terrane_base::{Error, Kind, Result, TableId};
use terrane_levels::State;

use crate::table::Table;
use crate::table::sums::TableSums;

/// Longest table name, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// Most tables of one database.
pub const TABLES_MAX: usize = 65_536;
/// Name of the table that exists in every database.
pub const DEFAULT_NAME: &str = "default";

/// Tables of the engine's own have names that begin so; users neither see nor make them.
pub(crate) const HIDDEN_PREFIX: &str = "terrane:";
/// Name of the table of prepared transactions; it exists from the first one on.
pub(crate) const HIDDEN_NAME: &str = "terrane:prepared";

type Slots = Vec<Option<Arc<Table>>>;

/// The tables of an open database.
pub struct Catalog {
    by_id: EpochCell<Slots>,
    /// Sums over the tables.
    sums: Arc<TableSums>,
    change: Mutex<()>,
}

impl Catalog {
    /// A catalog of these tables, which were made with `sums`.
    pub(crate) fn new(tables: Vec<Arc<Table>>, sums: Arc<TableSums>) -> Self {
        let mut slots = Slots::new();
        for table in tables {
            table.join_sums(&sums);
            put(&mut slots, table);
        }
        Catalog { by_id: EpochCell::new(slots), sums, change: Mutex::new(()) }
    }

    /// The table with this id, while `guard` lives.
    #[inline]
    pub fn get<'g>(&'g self, id: TableId, guard: &'g Guard) -> Option<&'g Arc<Table>> {
        self.by_id.load(guard).get(id.0 as usize)?.as_ref()
    }

    /// The table with this name, if it is not one of the engine's own.
    pub fn find(&self, name: &str) -> Option<Arc<Table>> {
        self.listed().into_iter().find(|table| table.name == name)
    }

    /// The table of prepared transactions.
    pub(crate) fn find_hidden(&self) -> Option<Arc<Table>> {
        self.all().into_iter().find(|table| table.name == HIDDEN_NAME)
    }

    /// The table with this name.
    ///
    /// # Errors
    /// `NotFound`, naming the tables that exist.
    pub fn require(&self, name: &str) -> Result<Arc<Table>> {
        self.find(name).ok_or_else(|| {
            let names: Vec<_> = self.listed().iter().map(|table| table.name.clone()).collect();
            Error::new(Kind::NotFound, format!("there is no table {name:?}; there are: {}", names.join(", ")))
        })
    }

    /// Every table that users may have, by id.
    pub fn listed(&self) -> Vec<Arc<Table>> {
        let mut tables = self.all();
        tables.retain(|table| !table.name.starts_with(HIDDEN_PREFIX));
        tables
    }

    /// Every table, by id.
    pub fn all(&self) -> Vec<Arc<Table>> {
        self.by_id.load(&terrane_base::epoch::pin()).iter().flatten().cloned().collect()
    }

    /// Sums over all tables.
    pub(crate) fn sums(&self) -> &Arc<TableSums> {
        &self.sums
    }

    /// Walks all tables and says what differs from the manifest: a table that only one of them has, or one
    /// whose levels have other extents. A table that has stopped may be behind the manifest.
    pub(crate) fn difference(&self, state: &State) -> Option<String> {
        let tables = self.all();
        let listed = state.tables.values().filter(|table| !table.dropped);
        if !listed.clone().map(|table| table.id).eq(tables.iter().map(|table| table.id)) {
            let listed: Vec<_> = listed.map(|table| table.id).collect();
            return Some(format!("{} tables, the manifest lists {listed:?}", tables.len()));
        }
        let differs = tables.iter().zip(listed).find(|(table, listed)| {
            let tree = &table.pinned().tree;
            let own = tree.extents().map(|(place, one)| (place, one.meta.id));
            let known = listed.extents.extents().map(|(place, meta)| (place, meta.id));
            !table.is_stopped() && !own.eq(known)
        });
        differs.map(|(table, _)| {
            format!("the extents of table {:?} differ from those in the manifest", table.name)
        })
    }

    /// Takes the right to create and drop tables.
    pub fn change(&self) -> CatalogChange<'_> {
        CatalogChange { catalog: self, _lock: self.change.lock() }
    }
}

/// The exclusive right to create and drop tables.
pub struct CatalogChange<'c> {
    catalog: &'c Catalog,
    _lock: MutexGuard<'c, ()>,
}

impl CatalogChange<'_> {
    /// Checks that a table of this name may be created.
    ///
    /// # Errors
    /// `Invalid` for a bad or used name or too many tables.
    pub fn check_new(&self, name: &str) -> Result<()> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
            return Err(Error::invalid(format!(
                "table name {name:?}: use 1 to {NAME_BYTES_MAX} bytes without control characters"
            )));
        }
        if name.starts_with(HIDDEN_PREFIX) {
            let message =
                format!("table name {name:?}: names that begin with {HIDDEN_PREFIX:?} are the engine's own");
            return Err(Error::invalid(message));
        }
        if self.catalog.find(name).is_some() {
            return Err(Error::invalid(format!("table {name:?} exists already: open it instead")));
        }
        if self.catalog.all().len() >= TABLES_MAX {
            return Err(Error::invalid(format!("the database has {TABLES_MAX} tables, which is the limit")));
        }
        Ok(())
    }

    /// Adds a table to the map.
    pub fn insert(&self, table: Arc<Table>) {
        table.join_sums(&self.catalog.sums);
        let mut slots = self.catalog.by_id.load(&terrane_base::epoch::pin()).clone();
        put(&mut slots, table);
        self.catalog.by_id.replace(slots);
    }

    /// Takes a table out of the map.
    pub fn remove(&self, id: TableId) {
        let mut slots = self.catalog.by_id.load(&terrane_base::epoch::pin()).clone();
        let removed = slots.get_mut(id.0 as usize).and_then(Option::take);
        self.catalog.by_id.replace(slots);
        if let Some(table) = removed {
            debug_assert!(table.is_dropped(), "writers put records into a table that is not listed any more");
            table.leave_sums();
        }
    }
}

fn put(slots: &mut Slots, table: Arc<Table>) {
    let index = table.id.0 as usize;
    if slots.len() <= index {
        slots.resize(index + 1, None);
    }
    assert!(slots[index].is_none(), "two tables have the number {index}: the records of one would be lost");
    slots[index] = Some(table);
}

/// Name of the table with this id.
pub(crate) fn name_of(catalog: &Catalog, id: TableId) -> Option<String> {
    catalog.get(id, &terrane_base::epoch::pin()).map(|table| table.name.clone())
}
