//! A database after a crash: recovered and checked by the oracle; then sometimes written to, crashed and
//! recovered once more, because damage that a recovery leaves may show only in the next recovery.

use std::sync::Arc;

use terrane::{Batch, Db, Durability, Options};
use terrane_base::Rng;
use terrane_device::MemDisk;

use crate::disk::SimDisk;
use crate::fault::Crash;
use crate::model::{Change, Model};
use crate::op::{Value, key};
use crate::oracle::{Allowed, Found, Verdict, judge};
use crate::run::DIR;
use crate::world::World;

/// Writes on a database that was recovered.
const WRITES: u64 = 6;
/// One write in so many is durable, the last one never.
const SYNC_ONE_IN: u64 = 3;
/// Changing calls within which the second crash comes, if it does not come behind the last write.
const CALLS_MAX: u64 = 24;

/// A database that was recovered and found sound, in a world of its own.
pub(crate) struct Recovered {
    db: Db,
    disk: SimDisk,
    world: Arc<World>,
    pub(crate) found: Found,
}

/// The device after the second crash.
pub(crate) struct Left {
    pub(crate) image: MemDisk,
    pub(crate) allowed: Allowed,
}

/// Recovers an image, judges its state, and has the database check itself.
pub(crate) fn recover(
    image: MemDisk,
    options: &Options,
    seed: u64,
    model: &Model,
    allowed: &Allowed,
) -> Result<Recovered, String> {
    let world = World::new(seed);
    let disk = SimDisk::new(world.clone(), image);
    let opened = crate::order::open(Arc::new(disk.clone()), DIR, options, world.env());
    let db = opened.map_err(|error| format!("open: {error}"))?;
    let judged = judge(&db, model, allowed).map_err(|verdict| match verdict {
        Verdict::Refused(message) | Verdict::Wrong(message) => message,
        Verdict::Unread(error) => error.to_string(),
    });
    let judged = judged.and_then(|found| match db.check(&mut |_, _| ()) {
        Ok(report) if report.findings.is_empty() => Ok(found),
        Ok(report) => Err(format!("check: {:?}", report.findings)),
        Err(error) => Err(format!("check: {error}")),
    });
    match judged {
        Ok(found) => Ok(Recovered { db, disk, world, found }),
        Err(message) => {
            end(db, &disk, &world);
            Err(message)
        }
    }
}

impl Recovered {
    /// Writes a few, some of them durably, and crashes: behind them, or in the middle.
    pub(crate) fn write_on(&self, model: &mut Model, seed: u64) -> Result<Left, String> {
        let mut numbers = Rng::new(seed);
        let crash = if numbers.one_in(4) { Crash::Kill } else { Crash::Power(numbers.next_u64()) };
        if numbers.one_in(2) {
            self.disk.crash_after(numbers.below(CALLS_MAX), crash);
        }
        // A recovery makes the rows that it found durable.
        let (mut durable, mut extra) = (model.now(), None);
        for number in 1..=WRITES {
            let changes = self.draw_changes(model, &mut numbers, number);
            let is_synced = number % SYNC_ONE_IN == 1;
            let written = self.write(&changes, is_synced);
            if self.disk.has_crashed() {
                extra = Some(changes);
                break;
            }
            written.map_err(|error| format!("write {number} after the recovery: {error}"))?;
            model.write(&changes);
            if is_synced {
                durable = model.now();
            }
            if number == WRITES / 2 && numbers.one_in(2) {
                let flushed = self.db.flush();
                if self.disk.has_crashed() {
                    break;
                }
                flushed.map_err(|error| format!("flush after the recovery: {error}"))?;
                durable = model.now();
            }
        }
        self.disk.crash_now(crash);
        let acked = model.now();
        let floor = if crash == Crash::Kill { acked } else { durable };
        let allowed = Allowed { floor, durable, acked, extra, events: Vec::new() };
        Ok(Left { image: self.disk.image().expect("it has crashed"), allowed })
    }

    fn draw_changes(&self, model: &Model, numbers: &mut Rng, stamp: u64) -> Vec<Change> {
        let tables = model.tables();
        let len = if numbers.one_in(4) { 30_000 } else { numbers.below(300) };
        let value = (!numbers.one_in(5)).then(|| Value { len, stamp }.bytes());
        vec![(numbers.pick(&tables).clone(), key(numbers.below(8)), value)]
    }

    fn write(&self, changes: &[Change], is_synced: bool) -> terrane::Result<()> {
        let mut batch = Batch::new();
        for (table, key, value) in changes {
            let table = self.db.table(table)?;
            match value {
                Some(value) => batch.put(&table, key, value)?,
                None => batch.delete(&table, key)?,
            }
        }
        self.db.write(&batch, if is_synced { Durability::Synced } else { Durability::Buffered }).map(drop)
    }

    /// The process is gone.
    pub(crate) fn end(self) {
        end(self.db, &self.disk, &self.world);
    }
}

fn end(db: Db, disk: &SimDisk, world: &World) {
    disk.abandon();
    drop(db);
    world.end_loops();
}
