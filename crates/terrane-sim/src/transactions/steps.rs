//! Steps of a transaction: its reads and changes, and plain writes beside it.

use std::ops::Bound;

use terrane::{Durability, Kind, Table, Transaction};
use terrane_base::Rng;
use terrane_base::env::Clock as _;

use super::{EXPIRES_AFTER, RunningTransaction, Step, random_options};
use crate::draft::{draw_edit, draw_key, draw_value};
use crate::op::{KEYS_MAX, MERGED, Op, key};
use crate::overlay::{Edit, Edits as _, RowKey, What};

impl RunningTransaction<'_> {
    fn table(&mut self) -> Table {
        self.numbers.pick(&self.tables).clone()
    }

    /// Which moment a read sees.
    fn at(&self) -> u64 {
        if self.has_moment() { self.moment } else { self.runner.model.borrow().now() }
    }

    /// Which moment a read would see that begins with a lock.
    fn at_with_lock(&self) -> u64 {
        let moves_on = self.is_pessimistic() && !self.has_begun && !self.options.keeps_snapshot;
        if moves_on { self.runner.model.borrow().now() } else { self.at() }
    }

    /// Notes that a key was claimed, and tells why that must be refused.
    fn claim(&mut self, place: &RowKey) -> Option<Kind> {
        let refusal = self.lock(place);
        if !self.is_pessimistic() {
            let since = self.at();
            self.reads.entry(place.clone()).or_insert(since);
        }
        refusal
    }

    pub(super) fn read_in(&mut self, running: &Transaction) -> Step {
        let (table, number) = (self.table(), draw_key(&mut self.numbers));
        let place = (table.name().to_owned(), key(number));
        let is_open = self.overlay.is_open(&place);
        let for_update = self.numbers.one_in(4);
        self.has_claims |= for_update;
        let refusal = if for_update || self.is_serializable() && is_open {
            self.claim(&place)
        } else {
            self.begin();
            None
        };
        let read = match for_update {
            true => running.get_for_update(&table, &place.1, self.numbers.one_in(2)),
            false => running.get(&table, &place.1),
        };
        self.runner.did(if for_update { "transaction: read for update" } else { "transaction: read" });
        let found = self.judge("a read", read, refusal)?.map(terrane::Value::into_vec);
        let expected = self.overlay.get(&self.runner.model.borrow(), &place, self.at());
        self.runner.note_answer(found.as_deref());
        if found != expected && !self.runner.disk().has_crashed() {
            self.wrong(format!("read of \"{}\" is not what it sees", place.1.escape_ascii()));
        }
        Ok(())
    }

    pub(super) fn write_in(&mut self, running: &mut Transaction) -> Step {
        let table = self.table();
        let edit = {
            let model = self.runner.model.borrow();
            let clock = self.runner.wall_millis();
            let at = self.at_with_lock();
            draw_edit(&mut self.numbers, &table, &self.overlay, &model, at, clock)
        };
        self.edit(running, &table, &edit)
    }

    /// Makes a change.
    pub(super) fn edit(&mut self, running: &mut Transaction, table: &Table, edit: &Edit) -> Step {
        let refusal = match (&edit.what, edit.what.key()) {
            (_, Some(key)) => self.lock(&(edit.table.clone(), key.clone())),
            (What::DeleteRange { keys, .. }, _) if self.is_pessimistic() => {
                self.begin_with_lock();
                let places: Vec<RowKey> = keys.iter().map(|key| (edit.table.clone(), key.clone())).collect();
                // With the range lock the engine checks whether any key of the range was changed; keys that
                // were locked before cannot have changed.
                let is_stale =
                    self.has_moment() && places.iter().any(|place| self.changed_since(place, self.moment));
                self.range_locked.extend(places);
                is_stale.then_some(Kind::Conflict)
            }
            _ => {
                self.begin();
                None
            }
        };
        let made = running.edit(table, &edit.what);
        self.runner.did(&format!("transaction: {}", edit.what.name()));
        self.judge("a write", made, refusal)?;
        self.overlay.make(edit);
        Ok(())
    }

    /// Scans a range that begins and ends at keys of the run. A serializable one to its end: then the whole
    /// range was seen.
    pub(super) fn scan_in(&mut self, running: &Transaction) -> Step {
        self.begin();
        let table = self.table();
        let (one, other) = (key(draw_key(&mut self.numbers)), key(draw_key(&mut self.numbers)));
        let order = self.runner.model.borrow().order(table.name());
        let (lower, upper) = if order.cmp(&one, &other).is_lt() { (one, other) } else { (other, one) };
        let mut bound =
            |key: Vec<u8>| if self.numbers.one_in(3) { Bound::Unbounded } else { Bound::Included(key) };
        let (lower, upper) = (bound(lower), bound(upper));
        let bounds = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
        if self.is_serializable() {
            self.scans.push((table.name().to_owned(), lower.clone(), upper.clone()));
        }
        let mut expected = self.overlay.rows(&self.runner.model.borrow(), table.name(), bounds, self.at());
        let is_limited = !self.is_serializable() && self.numbers.one_in(2);
        let limit = if is_limited { 1 + self.numbers.below(20) as usize } else { usize::MAX };
        let way = self.numbers.below(3);
        let mut turns = Rng::new(self.numbers.next_u64());
        self.runner.did("transaction: scan");
        let rows = running.range(&table, bounds).and_then(|rows| match way {
            0 => rows.take(limit).collect(),
            1 => rows.rev().take(limit).collect::<terrane::Result<Vec<_>>>(),
            _ => crate::read::both_ends(rows, &mut turns),
        });
        let rows = self.judge("a scan", rows, None)?;
        if way == 1 {
            expected.reverse();
        }
        if way < 2 {
            expected.truncate(limit);
        }
        rows.iter().for_each(|(key, value)| self.runner.note_row(key, value));
        if rows != expected && !self.runner.disk().has_crashed() {
            self.wrong(format!(
                "scan from {lower:?} to {upper:?} of {:?} ({order:?}), way {way}: {} rows, expected {}{}",
                table.name(),
                rows.len(),
                expected.len(),
                crate::read::first_difference(&rows, &expected)
            ));
        }
        Ok(())
    }

    pub(super) fn savepoint_in(&mut self, running: &mut Transaction) -> Step {
        self.runner.did("transaction: savepoint");
        if self.numbers.one_in(2) {
            running.mark();
            self.saved.push(self.overlay.clone());
        } else if let Some(overlay) = self.saved.pop() {
            self.judge("a savepoint", running.go_back(), None)?;
            self.overlay = overlay;
        }
        Ok(())
    }

    pub(super) fn background(&mut self) {
        let count = 1 + self.numbers.below(6);
        let flushes = self.numbers.one_in(3);
        self.runner.use_database(&if flushes { Op::Flush } else { Op::Steps { count } });
    }

    /// A write by another writer, of keys that the transaction has not locked.
    pub(super) fn write_beside(&mut self) {
        let table = self.table().name().to_owned();
        let number = match self.numbers.below(3) {
            0 => MERGED + self.numbers.below(crate::op::KEYS_OF_KIND),
            _ => draw_key(&mut self.numbers) % KEYS_MAX,
        };
        let value = draw_value(&mut self.numbers);
        let sync = self.numbers.one_in(12) && self.runner.has_journal;
        let place = (table.clone(), key(number));
        let op = match self.numbers.below(8) {
            0 if self.locked.is_empty() && self.range_locked.is_empty() => {
                Op::DeleteRange { table, from: number, to: draw_key(&mut self.numbers) }
            }
            _ if self.range_locked.contains(&place) => return,
            // A transaction that expired loses the lock to another one that wants it.
            _ if self.locked.contains(&place) && !self.is_late => return,
            0 | 1 => Op::Delete { table, key: number },
            _ if number >= MERGED => Op::Merge { table, key: number, value, sync },
            _ => Op::Put { table, key: number, value, sync },
        };
        self.runner.did("transaction: write of another beside it");
        if self.locked.contains(&place) {
            self.runner.did("transaction: lock taken away");
            self.is_lost = true;
        }
        self.runner.use_database(&op);
    }

    /// Events between any two steps: its time ends, or another transaction wants its locks.
    pub(super) fn between_steps(&mut self) {
        if self.options.expires_after.is_some() && !self.is_late && self.later.one_in(6) {
            self.runner.world.sleep(2 * EXPIRES_AFTER);
            self.is_late = true;
        }
        if self.later.one_in(4) && !self.is_late {
            self.want();
        }
    }

    /// Another transaction wants a key that this one has locked, or that lies in a range that it deletes.
    fn want(&mut self) {
        let from = if self.later.one_in(2) { &self.range_locked } else { &self.locked };
        let count = from.len() as u64;
        let Some((table, key)) =
            (count > 0).then(|| self.later.below(count)).and_then(|at| from.iter().nth(at as usize))
        else {
            return;
        };
        let (db, options) = (self.runner.db(), random_options(&mut self.later));
        let wanted = db.transaction(&options).and_then(|mut other| {
            other.put(&db.table(table)?, key, b"other")?;
            other.commit(Durability::Buffered)
        });
        self.runner.did("transaction: wanted by another one");
        match wanted {
            _ if self.runner.disk().has_crashed() => {}
            Err(error) if error.kind() == Kind::TimedOut => {}
            Ok(_) => self.wrong(format!("another one got \"{}\" of {table:?}", key.escape_ascii())),
            Err(error) => self.runner.met("a transaction that wants what another one has", &error),
        }
    }
}
