//! The tables of an open database, by id and by name; create, list and drop.
//!
//! The map is replaced, so that the write way finds a table under an epoch without a lock: two pointers, as
//! the map shares the pages that a change leaves as they are. Creating and dropping cost the same however
//! many tables there are, but for one pointer per page. They hold [`Catalog::change`] across the manifest's
//! sync, which no reader or writer takes.

use std::collections::HashMap;
use std::sync::Arc;

use terrane_base::epoch::{EpochCell, Guard};
#[cfg(test)]
use terrane_base::sync::atomic::{AtomicU64, Ordering};
use terrane_base::sync::{Mutex, MutexGuard};
use terrane_base::{Error, Kind, Result, SeqNo, TableId};
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

/// Tables of one page of the map.
const PAGE_TABLES: usize = 64;

type Page = [Option<Arc<Table>>; PAGE_TABLES];

/// Tables by number.
#[derive(Clone, Default)]
struct Slots(Vec<Arc<Page>>);

/// The tables of an open database.
pub struct Catalog {
    by_id: EpochCell<Slots>,
    /// The tables of `by_id`, by name. A leaf.
    names: Mutex<HashMap<String, TableId>>,
    /// Sums over the tables.
    sums: Arc<TableSums>,
    change: Mutex<()>,
    /// How many tables were looked up or walked over: tests compare it between few tables and many.
    #[cfg(test)]
    visited: AtomicU64,
}

impl Catalog {
    /// A catalog of these tables, which were made with `sums`.
    pub(crate) fn new(tables: Vec<Arc<Table>>, sums: Arc<TableSums>) -> Self {
        let (mut slots, mut names) = (Slots::default(), HashMap::new());
        for table in tables {
            table.join_sums(&sums);
            names.insert(table.name.clone(), table.id);
            slots.put(table);
        }
        Catalog {
            by_id: EpochCell::new(slots),
            names: Mutex::new(names),
            sums,
            change: Mutex::new(()),
            #[cfg(test)]
            visited: AtomicU64::new(0),
        }
    }

    /// The table with this id, while `guard` lives.
    #[inline]
    pub fn get<'g>(&'g self, id: TableId, guard: &'g Guard) -> Option<&'g Arc<Table>> {
        let found = self.by_id.load(guard).get(id);
        self.note_visited();
        found
    }

    /// All tables, by id, while `guard` lives.
    fn walk<'g>(&'g self, guard: &'g Guard) -> impl Iterator<Item = &'g Arc<Table>> {
        self.by_id.load(guard).tables().inspect(|_| self.note_visited())
    }

    #[inline]
    fn note_visited(&self) {
        #[cfg(test)]
        self.visited.fetch_add(1, Ordering::Relaxed);
    }

    /// How many tables were looked up or walked over since the opening.
    #[cfg(test)]
    pub(crate) fn visited(&self) -> u64 {
        self.visited.load(Ordering::Relaxed)
    }

    /// The table with this name, if it is not one of the engine's own.
    pub fn find(&self, name: &str) -> Option<Arc<Table>> {
        self.find_any(name).filter(|table| !table.name.starts_with(HIDDEN_PREFIX))
    }

    fn find_any(&self, name: &str) -> Option<Arc<Table>> {
        let id = *self.names.lock().get(name)?;
        // A table that is dropped meanwhile is not there any more.
        let found = self.get(id, &terrane_base::epoch::pin()).cloned();
        debug_assert!(
            found.as_ref().is_none_or(|table| table.name == name),
            "{name:?} leads to another table"
        );
        found
    }

    /// Number of tables.
    pub(crate) fn len(&self) -> usize {
        self.names.lock().len()
    }

    /// The table of prepared transactions.
    pub(crate) fn find_hidden(&self) -> Option<Arc<Table>> {
        self.find_any(HIDDEN_NAME)
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
        debug_assert!(tables.is_sorted_by(|a, b| a.id < b.id), "each table once, in the order of numbers");
        tables
    }

    /// The first table with this id or a greater one. It costs the same however many tables there are, but
    /// for the pages between.
    pub(crate) fn first_from(&self, id: TableId) -> Option<Arc<Table>> {
        let found = self.by_id.load(&terrane_base::epoch::pin()).first_from(id).cloned();
        debug_assert!(found.as_ref().is_none_or(|table| table.id >= id), "a table before {id:?}");
        found
    }

    /// Every table, by id.
    pub fn all(&self) -> Vec<Arc<Table>> {
        self.walk(&terrane_base::epoch::pin()).cloned().collect()
    }

    /// The first tables, by id, at most `most`, that may have records up to `seq` that are not in the levels.
    pub(crate) fn behind(&self, seq: SeqNo, most: usize) -> Vec<TableId> {
        let guard = terrane_base::epoch::pin();
        let behind = self.walk(&guard).filter(|table| table.flushed_seq() < seq);
        behind.map(|table| table.id).take(most).collect()
    }

    /// Sums over all tables.
    pub(crate) fn sums(&self) -> &Arc<TableSums> {
        &self.sums
    }

    /// Walks all tables and says what differs from the manifest: a table that only one of them has, or one
    /// whose levels have other extents. A table that has stopped may be behind the manifest.
    pub(crate) fn difference(&self, state: &State) -> Option<String> {
        let tables = self.all();
        debug_assert!(
            tables.is_sorted_by(|a, b| a.id < b.id),
            "tables are compared in the order of their numbers"
        );
        let listed: Vec<_> = state.tables.values().filter(|table| !table.dropped).collect();
        if !listed.iter().map(|table| table.id).eq(tables.iter().map(|table| table.id)) {
            let listed: Vec<_> = listed.into_iter().map(|table| table.id).collect();
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
        if self.catalog.len() >= TABLES_MAX {
            return Err(Error::invalid(format!("the database has {TABLES_MAX} tables, which is the limit")));
        }
        Ok(())
    }

    /// Adds a table to the map.
    pub fn insert(&self, table: Arc<Table>) {
        table.join_sums(&self.catalog.sums);
        let (name, id) = (table.name.clone(), table.id);
        let mut slots = self.catalog.by_id.load(&terrane_base::epoch::pin()).clone();
        slots.put(table);
        self.catalog.by_id.replace(slots);
        let before = self.catalog.names.lock().insert(name, id);
        assert!(before.is_none(), "two tables have one name: {before:?} and {id:?}");
    }

    /// Takes a table out of the map.
    pub fn remove(&self, id: TableId) {
        let mut slots = self.catalog.by_id.load(&terrane_base::epoch::pin()).clone();
        let removed = slots.take(id);
        if let Some(table) = &removed {
            let named = self.catalog.names.lock().remove(&table.name);
            assert!(named == Some(id), "the name of {id:?} is that of {named:?}");
        }
        self.catalog.by_id.replace(slots);
        if let Some(table) = removed {
            debug_assert!(table.is_dropped(), "writers put records into a table that is not listed any more");
            table.leave_sums();
        }
    }
}

impl Slots {
    #[inline]
    fn get(&self, id: TableId) -> Option<&Arc<Table>> {
        let index = id.0 as usize;
        let found = self.0.get(index / PAGE_TABLES)?[index % PAGE_TABLES].as_ref();
        debug_assert!(found.is_none_or(|table| table.id == id), "a table lies at its number");
        found
    }

    fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.0.iter().flat_map(|page| page.iter().flatten())
    }

    fn first_from(&self, id: TableId) -> Option<&Arc<Table>> {
        let index = id.0 as usize;
        let behind = self.0.get(index / PAGE_TABLES..)?.iter().enumerate();
        behind
            .flat_map(|(page, tables)| &tables[if page == 0 { index % PAGE_TABLES } else { 0 }..])
            .flatten()
            .next()
    }

    fn put(&mut self, table: Arc<Table>) {
        let index = table.id.0 as usize;
        while self.0.len() <= index / PAGE_TABLES {
            self.0.push(Arc::new([const { None }; PAGE_TABLES]));
        }
        let slot = &mut Arc::make_mut(&mut self.0[index / PAGE_TABLES])[index % PAGE_TABLES];
        assert!(slot.is_none(), "two tables have the number {index}: the records of one would be lost");
        *slot = Some(table);
    }

    fn take(&mut self, id: TableId) -> Option<Arc<Table>> {
        let index = id.0 as usize;
        let taken = Arc::make_mut(self.0.get_mut(index / PAGE_TABLES)?)[index % PAGE_TABLES].take();
        debug_assert!(taken.as_ref().is_none_or(|table| table.id == id), "a table lies at its number");
        taken
    }
}

/// Name of the table with this id.
pub(crate) fn name_of(catalog: &Catalog, id: TableId) -> Option<String> {
    catalog.get(id, &terrane_base::epoch::pin()).map(|table| table.name.clone())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use terrane_base::env::{Env, SteppedSpawn};
    use terrane_base::options::Options;
    use terrane_device::MemDisk;

    use super::*;
    use crate::engine::Engine;

    #[test]
    fn the_first_table_from_a_number_is_found_over_gaps_and_pages() {
        let env = Env { spawn: Arc::new(SteppedSpawn::default()), ..Env::real() };
        let options = Options { memory_bytes: 16 << 20, ..Options::default() };
        let engine =
            Engine::open_on(Arc::new(MemDisk::new()), Path::new("/db"), &options, env).expect("opens");
        let last = 3 * PAGE_TABLES as u32 + 5;
        (1..=last).for_each(|number| drop(engine.create_table(&number.to_string(), &[]).expect("a table")));
        // A hole within a page, one over the end of a page, a page without tables.
        for hole in [3..5, 60..70, 2 * 64..3 * 64] {
            hole.for_each(|number| engine.drop_table(&number.to_string()).expect("it exists"));
        }
        let ids: Vec<_> = engine.catalog().all().iter().map(|table| table.id).collect();
        for number in 0..last + 2 * PAGE_TABLES as u32 {
            let expected = ids.iter().copied().find(|id| id.0 >= number);
            let found = engine.catalog().first_from(TableId(number)).map(|table| table.id);
            assert_eq!(found, expected, "from {number}");
        }
        assert!(engine.catalog().first_from(TableId(u32::MAX)).is_none());
        engine.close().expect("closes");
    }
}
