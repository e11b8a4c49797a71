//! The list of live readers, of the threads that share a part of it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use terrane_base::TableId;
use terrane_levels::Pin;

use crate::readers::{Origin, ReaderKind, SHARDS, Since};
use crate::table::read_view::ReadView;

/// Notes of scans for which an entry keeps memory while no reader uses it.
const NOTES_KEPT: usize = 16;

/// Entries that are used again, so that a reader allocates nothing as a rule.
pub(crate) struct Shard {
    entries: Vec<Entry>,
    free: Vec<usize>,
    /// The next reader gets the number after this.
    id: u64,
}

/// One live reader, or none.
pub(crate) struct Entry {
    /// 0 without a table.
    pub(crate) id: u64,
    pub(crate) origin: Origin,
    pub(crate) since: Since,
    /// Its pin. Goes when it has expired.
    pub(crate) pin: Option<Pin>,
    pub(crate) is_expired: bool,
    pub(crate) held: Vec<Held>,
    next_hold: u64,
}

/// The objects that a scan holds.
pub(crate) struct Held {
    pub(crate) number: u64,
    pub(crate) table: TableId,
    pub(crate) view: Weak<ReadView>,
    release: Option<Weak<dyn Release>>,
}

/// Something that the background can take away from its owner.
pub(crate) trait Release: Send + Sync {
    /// Takes it away, unless its owner uses it now.
    fn release(&self);
}

/// The objects to take from a reader: the first time its pin, and each time those that its scans hold.
pub(crate) struct Expired {
    pub(crate) pin: Option<Pin>,
    scans: Vec<Arc<dyn Release>>,
}

impl Expired {
    /// Gives it up.
    pub(crate) fn release(self) {
        drop(self.pin);
        self.scans.iter().for_each(|scan| scan.release());
    }
}

impl Held {
    /// A scan of a table that reads from `view`.
    pub(crate) fn new(table: TableId, view: &Arc<ReadView>, release: Option<Weak<dyn Release>>) -> Held {
        Held { number: 0, table, view: Arc::downgrade(view), release }
    }
}

impl Entry {
    fn unused() -> Entry {
        Entry {
            id: 0,
            origin: Origin::here(ReaderKind::Scan),
            since: Since { seq: terrane_base::SeqNo(0), time: Duration::ZERO },
            pin: None,
            is_expired: false,
            held: Vec::new(),
            next_hold: 0,
        }
    }

    /// Notes what a scan holds; returns the number of the note.
    pub(crate) fn hold(&mut self, held: Held) -> u64 {
        let number = self.next_hold;
        self.next_hold += 1;
        debug_assert!(self.held.iter().all(|other| other.number < number), "two notes have number {number}");
        self.held.push(Held { number, ..held });
        number
    }

    /// Forgets what a scan held.
    pub(crate) fn let_go(&mut self, number: u64) {
        debug_assert!(number < self.next_hold, "note {number} was not given out to this reader");
        if let Some(at) = self.held.iter().position(|held| held.number == number) {
            self.held.swap_remove(at);
        }
    }

    pub(crate) fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.since.time)
    }

    /// Takes away what it pins, if there is anything and it is too old. A scan that was in use at the last
    /// look, or that began since, has its turn at this one.
    pub(crate) fn expire(&mut self, now: Duration, age_max: Duration) -> Option<Expired> {
        if self.age(now) <= age_max {
            return None;
        }
        let pin = self.pin.take();
        debug_assert!(self.id != 0, "no reader has the entry");
        self.is_expired = true;
        let scans: Vec<_> = self.held.iter().filter_map(|held| held.release.as_ref()?.upgrade()).collect();
        (pin.is_some() || !scans.is_empty()).then_some(Expired { pin, scans })
    }
}

impl Shard {
    pub(crate) fn new(shard: usize) -> Shard {
        Shard { entries: Vec::new(), free: Vec::new(), id: shard as u64 + 1 }
    }

    pub(crate) fn enter(&mut self, since: Since, pin: Pin, origin: Origin, held: Option<Held>) -> usize {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry::unused());
            self.entries.len() - 1
        });
        let entry = &mut self.entries[index];
        assert!(
            entry.id == 0 && entry.pin.is_none(),
            "two readers have one entry: one would lose its versions"
        );
        entry.id = self.id;
        // Those of other shards lie in between.
        self.id += SHARDS as u64;
        (entry.since, entry.pin, entry.origin) = (since, Some(pin), origin);
        (entry.is_expired, entry.next_hold) = (false, 0);
        if let Some(held) = held {
            entry.hold(held);
        }
        index
    }

    /// Empties an entry; returns what it pinned.
    pub(crate) fn leave(&mut self, index: usize) -> Option<Pin> {
        let entry = self.entry(index);
        entry.id = 0;
        entry.origin.label = None;
        entry.held.clear();
        entry.held.shrink_to(NOTES_KEPT);
        let pin = entry.pin.take();
        debug_assert!(!self.free.contains(&index), "a reader leaves once");
        self.free.push(index);
        pin
    }

    pub(crate) fn entry(&mut self, index: usize) -> &mut Entry {
        let entry = &mut self.entries[index];
        debug_assert_ne!(entry.id, 0, "a reader has its entry until it leaves");
        entry
    }

    pub(crate) fn live(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.id != 0)
    }

    pub(crate) fn live_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut().filter(|entry| entry.id != 0)
    }
}
