//! Switching memtables. The switch happens between commit groups, so the memtables of a table have disjoint
//! ranges of sequence numbers; readers and writers go on meanwhile.

use std::sync::Arc;
use terrane_base::sync::atomic::Ordering;

use terrane_base::SeqNo;
use terrane_memtable::GlobalIndex;

use crate::engine::Engine;
use crate::events::{Event, MemtableFrozen};
use crate::stats::add;
use crate::table::Table;

impl Engine {
    /// Notes that the table's active memtable is full. Cheap: the switch itself is background work.
    #[cold]
    pub(crate) fn note_full(&self, table: &Table) {
        if !table.full.swap(true, Ordering::AcqRel) {
            self.scheduler.wake();
        }
    }

    /// Replaces the active memtable by an empty one unless it is empty. Returns whether it was replaced.
    pub(crate) fn freeze(&self, table: &Table) -> bool {
        let mut frozen = None;
        self.journal.between_groups(&mut |next_seq| {
            let edit = table.edit();
            let mut picture = edit.picture();
            // Records numbered below `next_seq` may still be on their way into the active memtable, so its
            // entry count says nothing yet; its range of numbers does.
            if picture.active.first_seq() < next_seq {
                let old = std::mem::replace(&mut picture.active, table.new_memtable(next_seq));
                picture.frozen.insert(0, old.clone());
                edit.replace(picture);
                frozen = Some(old);
            }
        });
        table.full.store(false, Ordering::Release);
        table.passed.forget();
        if let Some(memtable) = &frozen {
            add(&self.counters.memtables_frozen, 1);
            self.events.tell(|| {
                Event::MemtableFrozen(MemtableFrozen {
                    table: table.name.clone(),
                    entries: memtable.entry_count(),
                    bytes: memtable.record_bytes(),
                    first_seq: memtable.first_seq(),
                })
            });
        }
        frozen.is_some()
    }

    /// Whether every record of a frozen memtable has been indexed: `next` is the memtable that replaced it.
    fn is_complete(&self, next: SeqNo) -> bool {
        self.journal.visible().0 + 1 >= next.0
    }

    /// Turns the oldest frozen memtable into a generation of the global index. Costs nothing: the tree is the
    /// same. Returns false if there is none or some of its records are still on their way.
    pub(crate) fn promote(&self, table: &Table) -> bool {
        let edit = table.edit();
        let mut picture = edit.picture();
        let Some(oldest) = picture.frozen.last().cloned() else { return false };
        let next = picture.frozen.iter().rev().nth(1).unwrap_or(&picture.active).first_seq();
        if !self.is_complete(next) {
            return false;
        }
        picture.frozen.pop();
        if oldest.entry_count() > 0 {
            picture.generations.insert(0, Arc::new(GlobalIndex::from_frozen(oldest)));
        }
        edit.replace(picture);
        true
    }
}
