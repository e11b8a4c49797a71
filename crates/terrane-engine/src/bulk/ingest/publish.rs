//! Extents in the store become part of their tables.
//!
//! Reads search the sources from the newest to the oldest and end at the first that has the key. So ingested
//! extents must lie above every older version of their keys and below every newer one:
//! 1. Memory that has keys of its ranges is flushed, while writers go on.
//! 2. A range lock (`locks/range_locks.rs`) stops writers that would write there; others go on. Records that
//!    came into memory since step 1 are flushed again.
//! 3. Places (`place.rs`): the deepest level above which, and in which, nothing overlaps, or an
//!    overflow run of its own, range deletes beneath entries. Flushes of the table are held, so that runs
//!    come in order, and the places are claimed as a job claims them.
//! 4. A commit of one record that changes nothing (`mark.rs`), synced: its number is that of every entry. In
//!    its turn, before it or any later commit is visible: one edit with all extents and the number up to
//!    which the journal is durable, then the next read views. So a reader that sees the number, or a later
//!    one, has a read view with the extents; a reader at an older number does not see them, in any read view.
//! 5. Transactions that have read the ranges find the ingest in the conflict window, like a delete of the
//!    range.
//!
//! A crash before the edit is durable leaves a record that changes nothing. The edit is durable only after
//! the journal is up to its number, so recovery always finds a prefix.

use std::sync::Arc;
use std::time::Duration;

use terrane_base::{Batch, Error, Kind, Result, SeqNo, TableId};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::EditOp;
use terrane_levels::Change;
use terrane_table::Extent;

use crate::bulk::ingest::place::Placed;
use crate::bulk::ingest::{Arrival, Incoming};
use crate::ingest_mark;
use crate::locks::ingest_guard::Span;
use crate::observe::stats::add;
use crate::read::row_cache::forget_rows_within;
use crate::table::Table;
use crate::table::ledger::Leaves;
use crate::table::read_view::ReadView;
use crate::table::stopped::Left;
use crate::write::WritePath;

/// How often writers are released for a flush of memory. After that, memory is flushed while they wait.
const TRIES: u32 = 3;

impl Incoming<'_> {
    /// Gives what has arrived one number and makes it part of its tables. Requires: it is durable in the
    /// store.
    pub(super) fn publish(self, lock_timeout: Duration) -> Result<SeqNo> {
        let Self { engine, arrivals } = self;
        for arrival in arrivals {
            flush_beneath(engine, arrival)?;
        }
        let spans = arrivals.iter().map(|arrival| Span::new(&arrival.table, arrival.bounds()));
        let watched = engine.txn.watch_writes();
        let mut span_lock = engine.txn.lock_spans(engine, spans.collect(), lock_timeout)?;
        let mut tries = 0;
        while let Some(arrival) = arrivals.iter().find(|arrival| arrival.is_over_memory()) {
            tries += 1;
            if tries >= TRIES {
                flush_beneath(engine, arrival)?;
                continue;
            }
            let spans = span_lock.release();
            flush_beneath(engine, arrival)?;
            span_lock = engine.txn.lock_spans(engine, spans, lock_timeout)?;
        }
        let seq = self.publish_locked()?;
        debug_assert!(seq <= engine.journal.visible(), "rows that came in are not seen on return");
        span_lock.land(seq);
        drop(watched);
        engine.readers.of_changes().wake_if_waiting();
        add(
            &engine.counters.extents_ingested,
            arrivals.iter().map(|arrival| arrival.all().count() as u64).sum(),
        );
        engine.refresh_debt();
        engine.background.scheduler.wake();
        Ok(seq)
    }

    /// Steps 3 and 4. Requires: no writer writes into the ranges, and memory has nothing there.
    fn publish_locked(self) -> Result<SeqNo> {
        let Self { engine, arrivals } = self;
        debug_assert!(
            arrivals.iter().all(|arrival| !arrival.is_over_memory()),
            "memory has no record of ranges that are locked"
        );
        let mut tables: Vec<&Arc<Table>> = arrivals.iter().map(|arrival| &arrival.table).collect();
        tables.sort_by_key(|table| table.id);
        tables.dedup_by_key(|table| table.id);
        let ids: Vec<TableId> = tables.iter().map(|table| table.id).collect();
        let control = Arc::new(engine.new_control());
        let held = engine.background.scheduler.hold_flushes(&ids, &control)?;
        let placed = self.claim_places();
        let published = placed.as_ref().map_err(Error::clone).and_then(|(places, _)| {
            // No checkpoint or backup has the commit without the edit.
            let _no_moment = engine.trims.hold();
            // A drop waits until edit and read views agree again, or the edit finds the table dropped.
            let _installing: Vec<_> = tables.iter().map(|table| table.installing.lock()).collect();
            match tables.iter().find(|table| table.is_dropped()) {
                Some(table) => {
                    let message = format!("table {:?} was dropped", table.name);
                    Err(Error::new(Kind::NotFound, message))
                }
                None => {
                    let stopped = tables.iter().try_for_each(|table| table.refuse_if_stopped());
                    stopped.and_then(|()| self.commit(places, &tables))
                }
            }
        });
        if let Ok((_, claims)) = placed {
            claims.into_iter().for_each(|claim| engine.background.scheduler.release(claim));
        }
        engine.background.scheduler.resume_flushes(&held);
        published
    }

    /// Step 4.
    fn commit(self, places: &[Placed], tables: &[&Arc<Table>]) -> Result<SeqNo> {
        let engine = self.engine;
        debug_assert!(tables.is_sorted_by(|a, b| a.id < b.id), "a mark names each table once, in order");
        let mut marker = Batch::new();
        marker.push(ingest_mark::record(&ingest_mark::value(tables.iter().map(|table| table.id))))?;
        let mut entered =
            Err(Error::new(Kind::Cancelled, "the journal ended the commit before it had a number"));
        let seq = engine.journal.commit(&marker, true, &mut |placed| {
            let seq = placed.first_seq;
            let changes = self.append(places, tables, seq);
            let changes = changes.inspect_err(|error| engine.trims.marks().note_failure(seq, error));
            entered = changes.and_then(|changes| self.show(tables, changes, seq));
        })?;
        if entered.as_ref().is_err_and(|error| error.kind() != Kind::Poisoned) {
            // For readers in other processes: lists the mark as void. If this edit fails, the next one lists
            // it.
            let _ = engine.append_edit(Vec::new());
        }
        entered.map(|()| seq)
    }

    /// The extents enter the manifest under the number `seq`, which is not visible yet. Returns what changes
    /// in the tree of each table.
    fn append(self, places: &[Placed], tables: &[&Arc<Table>], seq: SeqNo) -> Result<Vec<Vec<Change>>> {
        let Self { engine, arrivals } = self;
        debug_assert!(places.len() == arrivals.len(), "every arrival has its places");
        debug_assert!(seq > engine.journal.visible(), "the edit comes before its number is visible");
        let mut ops = vec![EditOp::Durable { seq }];
        let mut changes: Vec<Vec<Change>> = tables.iter().map(|_| Vec::new()).collect();
        let parts = arrivals.iter().zip(places).flat_map(|(arrival, placed)| {
            let extents = arrival.extents.iter().map(|meta| (placed.extents, arrival.table.id, meta));
            extents.chain(arrival.deletes.iter().map(|meta| (placed.deletes, arrival.table.id, meta)))
        });
        let mut parts: Vec<_> = parts.collect();
        // A run that is new is newer than all before it.
        parts.sort_by_key(|(place, ..)| *place);
        for (place, id, meta) in parts {
            let at = tables.iter().position(|table| table.id == id);
            let meta: ExtentMeta = meta.numbered(seq)?;
            ops.push(EditOp::add(id, place, meta.clone()));
            let extent = Extent::new(meta, engine.store.clone());
            changes[at.expect("every table of an arrival is listed")].push(Change::Add { place, extent });
        }
        engine.append_edit(ops).map(|()| changes)
    }

    /// They enter the read views.
    ///
    /// # Errors
    /// `Poisoned` for a table that cannot have them, which is stopped: the manifest has them, so they must
    /// not be given back. All other tables have them then.
    fn show(self, tables: &[&Arc<Table>], changes: Vec<Vec<Change>>, seq: SeqNo) -> Result<()> {
        let Self { engine, arrivals } = self;
        debug_assert!(tables.len() == changes.len(), "changes for each table");
        let mut shown = Ok(());
        for (table, changes) in tables.iter().zip(changes) {
            if let Err(error) = add_extents(table, changes) {
                shown = Err(table.stop(error.message(), Left::Edit));
                continue;
            }
            // The read view has them, and the number is not visible yet.
            if let Some(rows) = &engine.rows {
                rows.refuse_fills_below(seq);
            }
            let come = arrivals.iter().filter(|arrival| arrival.table.id == table.id);
            if !terrane_base::planted!(KeepIngestedRow) {
                forget_rows_within(engine, table, come.flat_map(Arrival::all));
            }
        }
        shown
    }
}

/// Flushes the table of an arrival if memory has anything of its keys.
fn flush_beneath(engine: &WritePath, arrival: &Arrival) -> Result<()> {
    if !arrival.is_over_memory() {
        return Ok(());
    }
    if engine.background.scheduler.inspect(|schedule| schedule.is_paused()) {
        return engine.flush_to_run(&arrival.table);
    }
    engine.flush_and_wait(std::slice::from_ref(&arrival.table))
}

/// Extents enter the read view of a table after their edit.
fn add_extents(table: &Table, changes: Vec<Change>) -> Result<()> {
    let mut edit = table.edit();
    let view = edit.view();
    let tree = Arc::new(view.tree.apply(changes)?);
    edit.replace_behind_edit(ReadView { tree, ..view }, &Leaves::Nothing)
}

impl Arrival {
    /// Returns true if memory has a key, or a range delete, within.
    fn is_over_memory(&self) -> bool {
        if terrane_base::planted!(IngestOverMemory) {
            return false;
        }
        let (first, last) = self.bounds();
        let view = self.table.pinned();
        let memtables = std::iter::once(&view.active).chain(&view.frozen);
        memtables
            .chain(view.generations.iter().map(|generation| generation.index()))
            .any(|memtable| memtable.touches(first, last))
    }
}
