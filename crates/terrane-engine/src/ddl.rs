//! Creating and dropping tables, and their options.

use std::sync::Arc;

use terrane_base::{Error, Kind, Result, SeqNo, TableId};
use terrane_format::manifest::EditOp;
use terrane_levels::Metasnapshot;
use terrane_memtable::Memtable;

use crate::background::maintenance::Maintenance;
use crate::observe::events::Event;
use crate::table::Table;
use crate::table::catalog::{CatalogChange, DEFAULT_NAME, HIDDEN_NAME};
use crate::table::ledger::Leaves;
use crate::table::settings::{Changed, TableSettings, changed_options, stored_options};

/// Extents that one edit removes when a table is dropped.
const REMOVE_PER_EDIT: usize = 10_000;
/// Of the write memory, the part that empty tables may take.
const TABLES_SHARE: u64 = 2;

impl Maintenance {
    /// Checks that every one of these tables exists.
    ///
    /// # Errors
    /// `NotFound` for one that was dropped.
    pub fn require_tables(&self, ids: &[TableId]) -> Result<()> {
        let guard = terrane_base::epoch::pin();
        match ids.iter().find(|id| self.catalog.get(**id, &guard).is_none()) {
            None => Ok(()),
            Some(_) => Err(Error::new(Kind::NotFound, "a table that the batch names was dropped")),
        }
    }

    /// Creates a table with options of its own; durable on return.
    ///
    /// # Errors
    /// `Invalid` for a bad or used name or a bad option, `Full`, `Poisoned`, `Io`.
    pub fn create_table(&self, name: &str, overrides: &[(String, String)]) -> Result<Arc<Table>> {
        self.refuse_if_read_only()?;
        let change = self.catalog.change();
        change.check_new(name)?;
        self.check_memory_for_tables()?;
        self.create_checked(&change, name, overrides)
    }

    /// Checks that the empty memtables of one more table leave writers enough of their memory.
    fn check_memory_for_tables(&self) -> Result<()> {
        let write_bytes = self.memory.budget().write_bytes();
        let most = write_bytes / TABLES_SHARE / Memtable::EMPTY_BYTES;
        let count = self.catalog.len() as u64;
        if count < most {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the database has {count} tables, and with memory_bytes={} it can have {most}: each takes {} bytes of \
             write_memory_bytes={write_bytes} while it is empty; raise memory_bytes",
            self.memory.budget().memory_bytes(),
            Memtable::EMPTY_BYTES,
        )))
    }

    /// Makes the table of prepared transactions, unless it is there.
    pub(crate) fn create_hidden_table(&self) -> Result<Arc<Table>> {
        self.refuse_if_read_only()?;
        let change = self.catalog.change();
        match self.catalog.find_hidden() {
            Some(table) => Ok(table),
            // Its records are read once and then deleted: value tables would only have dead values.
            None => {
                self.create_checked(&change, HIDDEN_NAME, &[("value_separation_bytes".into(), "0".into())])
            }
        }
    }

    fn create_checked(
        &self,
        change: &CatalogChange<'_>,
        name: &str,
        overrides: &[(String, String)],
    ) -> Result<Arc<Table>> {
        let options = stored_options(&self.options, overrides, &self.functions);
        let settings = TableSettings::new(&self.options, &options)?;
        let semantics = settings.semantics(name, &self.functions, &self.env.clock)?;
        let id = self.manifest.state().next.table;
        let create = EditOp::CreateTable { id, name: name.to_owned(), options };
        // No record of the table has a lower number than the next one now.
        let mut first_seq = SeqNo(0);
        self.journal.between_groups(&mut |next_seq| first_seq = next_seq);
        debug_assert!(first_seq > SeqNo(0), "the journal says the number of its next record");
        let flushed = SeqNo(first_seq.0 - 1);
        // The edit names a number. Were it durable and the journal behind it, recovery would miss records.
        self.sync_journal()?;
        self.append_edit(vec![create, EditOp::Flushed { table: id, seq: flushed }])?;
        let tree = Arc::new(Metasnapshot::new());
        let numbers = (flushed, first_seq);
        let table =
            Table::new((id, name.to_owned()), settings, semantics, tree, numbers, self.catalog.sums());
        change.insert(table.clone());
        if name != HIDDEN_NAME {
            self.events.enqueue(|| Event::TableCreated(name.to_owned()));
        }
        Ok(table)
    }

    /// Changes an option of a table while it is open, for records that are written, flushed or merged from
    /// now on. Durable on return.
    ///
    /// # Errors
    /// `Invalid` for an option that a table keeps as it was made, or a bad value, `NotFound` if the table was
    /// dropped, `Poisoned`, `Io`.
    pub fn set_table_option(&self, table: &Table, name: &str, value: &str) -> Result<()> {
        self.refuse_if_read_only()?;
        let _change = self.catalog.change();
        let state = self.manifest.state();
        let stored = state.tables.get(&table.id).filter(|stored| !stored.dropped);
        let stored = stored
            .ok_or_else(|| Error::new(Kind::NotFound, format!("table {:?} was dropped", table.name)))?;
        debug_assert!(!table.is_dropped(), "tables are dropped under the right that is held here");
        let Changed { options, settings, extractor } =
            changed_options(&self.options, &stored.options, (name, value), &self.functions)?;
        // The option that was set is the last one.
        if options.last().is_some_and(|set| stored.options.contains(set)) {
            return Ok(());
        }
        self.append_edit(vec![EditOp::SetOptions { id: table.id, options }])?;
        table.semantics.set_time_to_live(settings.time_to_live);
        table.semantics.set_extractor(extractor);
        *table.settings.write() = Arc::new(settings);
        // Jobs that were within the old limits may be due now.
        table.note_changed();
        self.refresh_debt();
        self.background.scheduler.wake();
        Ok(())
    }

    /// Drops a table; durable on return. Its space comes back when its last reader has left, or if background
    /// work on it had stopped, with the next opening.
    ///
    /// # Errors
    /// `NotFound`, `Invalid` for the default table, `Poisoned`, `Io`.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.refuse_if_read_only()?;
        if name == DEFAULT_NAME {
            return Err(Error::invalid("the default table cannot be dropped: delete its keys instead"));
        }
        let change = self.catalog.change();
        let table = self.catalog.require(name)?;
        let tree = {
            // A job that is about to install its result comes before the drop, or finds the table dropped.
            let _no_install = table.installing.lock();
            self.append_edit(vec![EditOp::DropTable { id: table.id }])?;
            table.mark_dropped();
            take_sources(&table)?
        };
        debug_assert!(table.pinned().memory_is_empty(), "a flush would bring rows into a table that is gone");
        change.remove(table.id);
        self.background.scheduler.cancel_table(table.id);
        if !table.is_stopped() {
            // The next opening forgets the extents of a table that has stopped.
            self.forget_extents(&table, &tree)?;
        }
        drop(tree);
        self.background.idle_watch.reclaim_again();
        self.background.scheduler.wake();
        self.events.enqueue(|| Event::TableDropped(name.to_owned()));
        Ok(())
    }

    /// Takes the extents of a dropped table out of the manifest; they go when their last reader has left.
    fn forget_extents(&self, table: &Table, tree: &Metasnapshot) -> Result<()> {
        debug_assert!(table.is_dropped(), "readers still begin on table {:?}", table.name);
        let extents: Vec<_> = tree
            .places()
            .flat_map(|(place, level)| level.iter().map(move |extent| (place, extent)))
            .collect();
        for extents in extents.chunks(REMOVE_PER_EDIT) {
            let ops = extents.iter().map(|(place, extent)| EditOp::remove(table.id, *place, &extent.meta));
            self.append_edit(ops.collect())?;
            extents.iter().for_each(|(_, extent)| extent.mark_obsolete());
        }
        // The last pointer into each has gone.
        tree.values.iter().for_each(|values| values.extent.mark_obsolete());
        Ok(())
    }
}

/// Takes what a dropped table has in memory and in its levels out of its read view; returns the levels.
/// Writers that still find the table in the catalog find no memtable in it.
fn take_sources(table: &Table) -> Result<Arc<Metasnapshot>> {
    debug_assert!(table.is_dropped(), "table {:?} would lose its rows", table.name);
    let mut edit = table.edit();
    let mut view = edit.view();
    let tree = std::mem::take(&mut view.tree);
    view.active = Memtable::new(SeqNo::MAX);
    view.frozen.clear();
    view.generations.clear();
    edit.replace(view, &Leaves::Dropped)?;
    Ok(tree)
}
