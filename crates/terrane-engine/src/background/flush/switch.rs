//! Switching memtables. The switch happens between commit groups, so the memtables of a table have disjoint
//! ranges of sequence numbers; readers and writers go on meanwhile.

use std::sync::Arc;
use terrane_base::sync::atomic::Ordering;

use terrane_base::{Result, SeqNo};
use terrane_memtable::GlobalIndex;

use crate::background::maintenance::Maintenance;
use crate::observe::events::{Event, MemtableFrozen};
use crate::observe::stats::add;
use crate::table::Table;
use crate::table::ledger::Leaves;
use crate::table::read_view::ReadView;

impl Maintenance {
    /// Notes that the table's active memtable is full. Cheap: the switch itself is background work.
    #[cold]
    pub(crate) fn note_full(&self, table: &Table) {
        debug_assert!(table.is_of(&self.catalog), "no worker of this database would switch the memtable");
        if !table.full.swap(true, Ordering::AcqRel) {
            table.note_part();
            self.background.scheduler.wake();
        }
    }

    /// Replaces the active memtable by an empty one unless it is empty. Returns whether it was replaced.
    ///
    /// # Errors
    /// `Poisoned` if records would be lost by it.
    pub(crate) fn freeze(&self, table: &Table) -> Result<bool> {
        let mut frozen = Ok(None);
        self.journal.between_groups(&mut |next_seq| {
            let mut edit = table.edit();
            let mut view = edit.view();
            let first = view.active.first_seq();
            debug_assert!(
                first <= next_seq || table.is_dropped(),
                "the active memtable begins at {first}, behind {next_seq}"
            );
            // Writers may still index records numbered below `next_seq` in the active memtable, so its
            // entry count says nothing yet; its range of numbers does. The first one begins with 0, which no
            // commit has.
            if view.active.first_seq().max(SeqNo(1)) < next_seq {
                let old = std::mem::replace(&mut view.active, table.new_memtable(next_seq));
                view.frozen.insert(0, old.clone());
                frozen = edit.replace(view, &Leaves::Nothing).map(|()| Some(old));
            }
        });
        let frozen = frozen?;
        table.full.store(false, Ordering::Release);
        table.note_part();
        table.passed.forget();
        if let Some(memtable) = &frozen {
            add(&self.counters.memtables_frozen, 1);
            self.events.enqueue(|| {
                Event::MemtableFrozen(MemtableFrozen {
                    table: table.name.clone(),
                    entries: memtable.entry_count(),
                    bytes: memtable.record_bytes(),
                    first_seq: memtable.first_seq(),
                })
            });
        }
        Ok(frozen.is_some())
    }

    /// Turns the oldest frozen memtable into a generation of the global index. Costs nothing: the tree is the
    /// same. Returns false if no memtable is frozen or if some records of the oldest are not indexed yet.
    ///
    /// # Errors
    /// `Poisoned` if records would be lost by it.
    pub(crate) fn promote(&self, table: &Table) -> Result<bool> {
        // Taken before the read view, it may only be too low.
        let visible = self.journal.visible();
        let mut edit = table.edit();
        let mut view = edit.view();
        if view.frozen.is_empty() || successor(&view).0 > visible.0 + 1 {
            return Ok(false);
        }
        let oldest = view.frozen.pop().expect("some are frozen");
        debug_assert!(oldest.last_seq() <= visible, "a generation holds what no read sees yet");
        if oldest.entry_count() > 0 {
            view.generations.insert(0, Arc::new(GlobalIndex::from_frozen(oldest)));
        }
        edit.replace(view, &Leaves::Settled { visible })?;
        Ok(true)
    }
}

/// First number that the memtable after the oldest frozen one takes.
pub(crate) fn successor(view: &ReadView) -> SeqNo {
    view.frozen.iter().rev().nth(1).unwrap_or(&view.active).first_seq()
}
