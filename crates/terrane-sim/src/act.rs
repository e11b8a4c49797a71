//! Operations of the simulated user: writes, tables, snapshots, maintenance.

use std::time::Duration;

use terrane::{Batch, Db, Durability, Error, Kind, TableOptions};
use terrane_base::Rng;
use terrane_base::env::Clock as _;

use crate::model::{Change, EXPIRING as EXPIRING_PREFIX, Model};
use crate::op::{Edit, MARK, MARK_PREFIX, Op, Span, Value, key};
use crate::oracle::Event;
use crate::order::Order;
use crate::run::Runner;

/// From here on writers may wait for memory: a background that is paused would never give it.
const PAUSED_PRESSURE_MAX: f64 = 0.6;

impl Runner {
    /// Does an operation on the open database.
    pub(crate) fn use_database(&self, op: &Op) {
        match op {
            Op::Put { table, key, value, sync } => self.put(table, *key, Some(*value), *sync),
            Op::Delete { table, key } => self.put(table, *key, None, false),
            Op::DeleteRange { table, from, to } => drop(self.delete_range(table, *from, *to)),
            Op::Merge { table, key, value, sync } => self.merge(table, *key, *value, *sync),
            Op::Once { table, key, value } => self.put_or_single_delete(table, *key, *value),
            Op::PutFor { table, key, value, millis } => self.put_for(table, *key, *value, *millis),
            Op::Batch { edits, sync } => self.write_batch(edits, *sync),
            Op::WriteAsync { edits, ticket } => self.write_async(edits, *ticket),
            Op::Await { which } => self.await_ticket(*which),
            Op::Ingest { tables, seed } => self.ingest(tables, *seed),
            Op::Load { table, seed } => self.load(table, *seed),
            Op::DropExtents { table, from, to } => self.drop_extents(table, *from, *to),
            Op::Estimate { table, from, to } => self.estimate(table, *from, *to),
            Op::Transact { tables, seed } => self.transact(tables, *seed),
            Op::Indexed { tables, seed } => self.index(tables, *seed),
            Op::Create { table, options } => self.create(table, *options),
            Op::Drop { table } => self.drop_table(table),
            Op::Snapshot { name } => self.take_snapshot(*name),
            Op::Release { name } => drop(self.life.borrow_mut().snapshots.remove(name)),
            Op::Flush => self.maintain("flush", |runner| runner.db().flush()),
            Op::Compact { table, span } => self.compact(table, *span),
            Op::Level { table, level } => self.level(table, *level),
            Op::Run { table } => self.flush_to_run(table),
            Op::Pause => self.set_paused(true),
            Op::Resume => self.set_paused(false),
            Op::Cancel => self.db().cancel_compactions(),
            Op::Sync => self.sync(),
            Op::Quiesce => self.maintain("quiesce", |runner| runner.db().wait_until_quiescent()),
            Op::Steps { count } => (0..*count).for_each(|_| {
                self.world.step();
            }),
            Op::Wait { millis } => {
                self.world.sleep(Duration::from_millis(*millis));
                self.world.move_wall(*millis);
            }
            Op::Check => self.check_all(),
            Op::Checkpoint { name } => self.checkpoint(*name),
            Op::Backup { keep, seed } => self.backup(*keep, *seed),
            Op::Restore { seed } => self.restore(*seed),
            Op::Through(op) => self.go_through_cores(op),
            op => self.read(op),
        }
    }

    pub(crate) fn put(&self, table: &str, number: u64, value: Option<Value>, sync: bool) {
        if !self.model.borrow().has_table(table) {
            return;
        }
        let change = (table.to_owned(), key(number), value.map(Value::bytes));
        let db = self.db();
        let write = |change: &Change| -> terrane::Result<()> {
            if self.is_through.get() {
                return self.write_through(std::slice::from_ref(change), sync);
            }
            if &*change.0 == "default" && !sync {
                // The short ways to the default table.
                return match &change.2 {
                    Some(value) => db.put(&change.1, value),
                    None => db.delete(&change.1),
                };
            }
            let table = db.table(&change.0)?;
            let mode = if sync { Durability::Synced } else { Durability::Buffered };
            match &change.2 {
                Some(value) => table.put_with(&change.1, value, mode),
                None => table.delete(&change.1),
            }
        };
        self.write(vec![change], sync, |changes| write(&changes[0]));
    }

    /// For the model a delete of every key that a run may have, because keys that are written meanwhile count
    /// as well. Where keys that expire, or their marks, are among them, a mark is put with it: a print does
    /// not show them. Returns true if it is committed.
    pub(crate) fn delete_range(&self, table: &str, from: u64, to: u64) -> bool {
        if !self.model.borrow().has_table(table) {
            return false;
        }
        let db = self.db();
        let (first, behind) = (key(from), key(to));
        let order = self.model.borrow().order(table);
        let Some(keys) = order.keys_between(&first, &behind) else { return false };
        let mut changes: Vec<Change> = keys.into_iter().map(|key| (table.to_owned(), key, None)).collect();
        let needs_mark =
            |key: &Vec<u8>| key.starts_with(EXPIRING_PREFIX) || key.starts_with(MARK_PREFIX.as_bytes());
        let mark = changes.iter().any(|(_, key, _)| needs_mark(key)).then(|| {
            let stamp = self.model.borrow().now() | 1 << 62;
            (key(MARK), Value { len: 8, stamp }.bytes())
        });
        changes.extend(mark.iter().map(|(key, value)| (table.to_owned(), key.clone(), Some(value.clone()))));
        self.write(changes, false, |_| {
            let table = db.table(table)?;
            if mark.is_none() && !self.is_through.get() {
                return table.delete_range(&first, &behind);
            }
            let mut batch = Batch::new();
            batch.delete_range(&table, &first, &behind)?;
            if let Some((key, value)) = &mark {
                batch.put(&table, key, value)?;
            }
            if self.is_through.get() {
                return self.write_batch_through(&batch);
            }
            db.write(&batch, Durability::Buffered).map(drop)
        })
    }

    fn write_batch(&self, edits: &[Edit], sync: bool) {
        let changes = changes_of(edits, &self.model.borrow());
        if changes.is_empty() {
            return;
        }
        self.make_room_for(&changes);
        let db = self.db();
        self.write(changes, sync, |changes| {
            if self.is_through.get() {
                return self.write_through(changes, sync);
            }
            let mode = if sync { Durability::Synced } else { Durability::Buffered };
            db.write(&batch_of(&db, changes)?, mode).map(drop)
        });
    }

    /// Has the background go on if a writer would wait for it.
    pub(crate) fn make_room(&self) {
        if self.life.borrow().is_paused && self.db().pressure() > PAUSED_PRESSURE_MAX {
            self.set_paused(false);
        }
    }

    /// Commits changes through `commit`, and notes how far they came. Returns whether they are committed.
    pub(crate) fn write(
        &self,
        changes: Vec<Change>,
        sync: bool,
        commit: impl FnOnce(&[Change]) -> terrane::Result<()>,
    ) -> bool {
        self.make_room();
        self.life.borrow_mut().inflight.push(changes.clone());
        let written = commit(&changes);
        let is_dead = self.disk().has_crashed();
        self.life.borrow_mut().inflight.pop();
        if is_dead {
            return false;
        }
        self.world.note(u64::from(written.is_ok()));
        let is_written = written.is_ok();
        match written {
            Ok(()) if self.life.borrow().is_poisoned => self.fail("a commit succeeded after a failed sync"),
            Ok(()) => {
                self.model.borrow_mut().write(&changes);
                let mut life = self.life.borrow_mut();
                let durable = life.durable;
                life.marks.push(durable);
                drop(life);
                if sync {
                    let now = self.model.borrow().now();
                    self.note_durable(now);
                }
            }
            Err(error) => self.note_failed_write(changes, &error),
        }
        is_written
    }

    /// A batch that failed is not there, or may be found after the next open if the journal was poisoned by
    /// it.
    fn note_failed_write(&self, changes: Vec<Change>, error: &Error) {
        self.met("write", error);
        let now = self.model.borrow().now();
        let was_poisoned = self.life.borrow().is_poisoned;
        let synced = self.db().sync();
        if self.disk().has_crashed() {
            if !was_poisoned {
                // The image was taken in this sync: the batch may be in it.
                self.add_to_captured(changes);
            }
            return;
        }
        match synced {
            Ok(()) => self.note_durable(now),
            Err(_) => {
                let mut life = self.life.borrow_mut();
                life.is_poisoned = true;
                if !was_poisoned {
                    life.doubt.get_or_insert(changes);
                }
            }
        }
    }

    fn sync(&self) {
        let now = self.model.borrow().now();
        match self.db().sync() {
            Ok(()) if self.life.borrow().is_poisoned => self.fail("a sync succeeded after a failed one"),
            Ok(()) => self.note_durable(now),
            Err(error) => {
                self.met("sync", &error);
                if error.kind() != Kind::Full {
                    self.life.borrow_mut().is_poisoned = true;
                }
            }
        }
    }

    fn create(&self, name: &str, options: u64) {
        if self.model.borrow().has_table(name) {
            return;
        }
        let drawn = drawn_options(options);
        let order = Order::of(&drawn).unwrap_or(self.order);
        self.change_table(Event::new(name, true, order), || {
            let synced = self.model.borrow().now();
            let created = self.db().create_table(name, &table_options(&drawn)).map(drop);
            if created.is_ok() {
                self.note_durable(synced);
            }
            created
        });
    }

    fn drop_table(&self, name: &str) {
        if name != "default" && self.model.borrow().has_table(name) {
            self.replica.borrow_mut().dropped.insert(name.to_owned());
            let order = self.model.borrow().order(name);
            self.change_table(Event::new(name, false, order), || self.db().drop_table(name));
        }
    }

    fn change_table(&self, event: Event, change: impl FnOnce() -> terrane::Result<()>) {
        let Event { table, is_created, order, .. } = &event;
        let (name, is_created) = (&**table, *is_created);
        self.life.borrow_mut().events.push(event.clone());
        let changed = change();
        if self.disk().has_crashed() {
            return;
        }
        if let Err(error) = &changed {
            self.met(if is_created { "create" } else { "drop" }, error);
        }
        let is_there = self.db().tables().iter().any(|table| table == name);
        if is_there != is_created {
            // Not done here, but perhaps in the manifest: it stays in doubt until the next open.
            if changed.is_ok() {
                self.fail(format!("table {name:?}: changed, and still as it was"));
            }
            return;
        }
        self.note_losses();
        let mut life = self.life.borrow_mut();
        let done = life.events.pop();
        life.changed.extend(done);
        drop(life);
        let mut model = self.model.borrow_mut();
        if is_created { model.create_table_in(name, *order) } else { model.drop_table(name) }
    }

    fn take_snapshot(&self, name: u64) {
        let snapshot = self.db().snapshot();
        let moment = self.model.borrow().now();
        let before = self.life.borrow_mut().snapshots.insert(name, (snapshot, moment));
        drop(before);
        let life = self.life.borrow();
        let mut kept: Vec<u64> = life.snapshots.values().map(|(_, moment)| *moment).collect();
        kept.extend([life.durable, life.marked, life.found]);
        // Reads under way may be of a moment that is over.
        if self.is_outermost() {
            self.model.borrow_mut().forget_before(&kept);
        }
    }

    pub(crate) fn set_paused(&self, is_paused: bool) {
        let db = self.db();
        if is_paused {
            db.pause_background()
        } else {
            db.resume_background()
        }
        self.life.borrow_mut().is_paused = is_paused;
    }

    fn compact(&self, table: &str, span: Span) {
        if self.model.borrow().has_table(table) {
            self.maintain("compact", |runner| {
                let db = runner.db();
                let table = db.table(table)?;
                let bounds = crate::read::bounds(span);
                db.compact_range(&table, crate::read::borrow(&bounds))
            });
        }
    }

    fn level(&self, table: &str, level: u64) {
        if self.model.borrow().has_table(table) {
            self.maintain("level", |runner| {
                let db = runner.db();
                db.compact_level(&db.table(table)?, level as u8)
            });
        }
    }

    fn flush_to_run(&self, table: &str) {
        if self.model.borrow().has_table(table) {
            self.maintain("run", |runner| {
                let db = runner.db();
                db.flush_to_run(&db.table(table)?)
            });
        }
    }

    /// Work that is waited for; what it moves is not less durable after it.
    fn maintain(&self, what: &str, work: impl FnOnce(&Runner) -> terrane::Result<()>) {
        let now = self.model.borrow().now();
        match work(self) {
            Ok(()) if what == "flush" => {
                self.note_durable(now);
                if !self.disk().has_crashed() {
                    self.life.borrow_mut().marked = now;
                }
            }
            Ok(()) => {}
            Err(error) => self.met_in_background(what, &error),
        }
    }
}

/// The changes of a batch, without those of tables that are not there.
pub(crate) fn changes_of(edits: &[Edit], model: &Model) -> Vec<Change> {
    let known = edits.iter().filter(|edit| model.has_table(&edit.table));
    known.map(|edit| (edit.table.clone(), key(edit.key), edit.value.map(Value::bytes))).collect()
}

pub(crate) fn batch_of(db: &Db, changes: &[Change]) -> terrane::Result<Batch> {
    let mut batch = Batch::new();
    for (name, key, value) in changes {
        let table = db.table(name)?;
        match value {
            Some(value) => batch.put(&table, key, value)?,
            None => batch.delete(&table, key)?,
        }
    }
    Ok(batch)
}

/// Options of a table's own, drawn from a seed; none for 0.
fn drawn_options(seed: u64) -> Vec<(String, String)> {
    if seed == 0 { Vec::new() } else { crate::options::random_table_options(&mut Rng::new(seed)) }
}

fn table_options(drawn: &[(String, String)]) -> TableOptions {
    drawn.iter().fold(TableOptions::new(), |options, (name, value)| {
        options.set(name, value).expect("generated options are valid")
    })
}
