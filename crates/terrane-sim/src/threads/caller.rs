//! One caller of a history: does its operations on the open database and compares every answer with what it
//! knows.
//!
//! A caller writes only keys that begin with its own number, so it knows what they must be. A wrong answer is
//! a panic, which ends the exploration. Each operation lists the errors that other callers may cause.

use std::collections::BTreeMap;
use std::ops::Bound;

use terrane::{Batch, Db, Durability, Error, Kind, Result, Snapshot, Table, TableOptions};
use terrane_base::Rng;

use super::history::{At, KEYS, Op, TABLES};
use super::other_ops::{DOOMED, own_options};

/// The place of the caller's own table among the tables.
pub(super) const OWN: usize = TABLES.len();

/// Batches of a fill, and bytes of each of their values.
const FILL_ROUNDS: u64 = 3;
const FILL_BYTES: u64 = 2_500;
/// From here on writers may wait for memory soon.
const PRESSURE_MAX: f64 = 0.4;

/// Rows by table and key.
pub(super) type Rows = BTreeMap<(usize, Vec<u8>), Vec<u8>>;

/// All rows of a table, as one scan saw them.
type Seen = Vec<(Vec<u8>, Vec<u8>)>;

/// See the [module](self).
pub(super) struct Caller {
    pub(super) db: Db,
    pub(super) world: super::Doors,
    pub(super) number: usize,
    /// Operations so far: makes values and names unlike all others.
    pub(super) turn: u64,
    pub(super) rows: Rows,
    has_own: bool,
    /// With the journal off nothing is durable at once.
    pub(super) has_journal: bool,
    snapshots: Vec<Held>,
}

/// The final state of a caller.
#[derive(Clone, Debug, Default)]
pub(super) struct Left {
    pub(super) number: usize,
    pub(super) rows: Rows,
    pub(super) has_own: bool,
    /// The operation, and its number, that was refused because another caller has closed the database.
    pub(super) refused: Option<(Op, u64)>,
}

struct Held {
    snapshot: Snapshot,
    rows: Rows,
    seen: Vec<Seen>,
}

/// A key of a caller.
pub(super) fn key(caller: usize, number: u64) -> Vec<u8> {
    format!("c{caller}/{number:02}").into_bytes()
}

impl Caller {
    /// Goes on where `left` says, behind operation `turn`.
    pub(super) fn new(db: Db, world: super::Doors, turn: u64, left: Left) -> Caller {
        let has_journal = db.options().journal == terrane::JournalMode::File;
        let Left { number, rows, has_own, .. } = left;
        Caller { db, world, number, turn, rows, has_own, has_journal, snapshots: Vec::new() }
    }

    /// Does all of `operations`, up to the first one that is refused because another caller has closed the
    /// database.
    ///
    /// # Panics
    /// At the first wrong answer.
    pub(super) fn run(mut self, operations: &[Op]) -> Left {
        let mut refused = None;
        for op in operations {
            self.turn += 1;
            self.world.note(self.number, op);
            let (rows, has_own) = (self.rows.clone(), self.has_own);
            if *op == Op::Close {
                self.world.begin_close();
            }
            match self.one(op) {
                Ok(is_done) => self.world.count(op, !is_done),
                Err(error) if error.kind() == Kind::Cancelled && self.world.is_closing() => {
                    self.world.count(op, true);
                    (self.rows, self.has_own, refused) = (rows, has_own, Some((op.clone(), self.turn)));
                    break;
                }
                Err(error) => panic!("caller {} at operation {} {op}: {error}", self.number, self.turn),
            }
        }
        Left { number: self.number, rows: self.rows, has_own: self.has_own, refused }
    }

    /// Returns false if it was refused because of what another caller does.
    fn one(&mut self, op: &Op) -> Result<bool> {
        match op {
            Op::Put { at, len, sync } => self.put(*at, *len, *sync)?,
            Op::Delete { at } => self.delete(*at)?,
            Op::DeleteRange { table, from, to } => self.delete_range(*table, *from, *to)?,
            Op::Merge { at, len } => self.merge(*at, *len)?,
            Op::Batch { seed, sync } => self.batch(*seed, *sync)?,
            Op::Fill { table } => self.fill(*table)?,
            Op::Transact { seed } => return self.transact(*seed),
            Op::Prepare { seed } => return self.prepare(*seed),
            Op::PutUntil { at, has_expired } => self.put_until(*at, *has_expired)?,
            Op::Single { at } => self.single(*at)?,
            Op::PutDoomed { at } => self.put_doomed(*at)?,
            Op::ReadChanges { at } => return self.read_changes(*at),
            Op::Follow { at } => return self.follow(*at),
            Op::Get { at } => self.get(*at)?,
            Op::MultiGet { table } => self.multi_get(*table)?,
            Op::Scan { table, backward } => self.scan(*table, *backward)?,
            Op::ScanAll { table } => self.scan_all(*table)?,
            Op::TakeSnapshot => self.take_snapshot()?,
            Op::ReadSnapshot => self.read_snapshots()?,
            Op::DropSnapshot => drop(self.snapshots.pop()),
            Op::Sync => self.db.sync()?,
            Op::CreateTable { seed } => self.change_own(Some(own_options(*seed)))?,
            Op::DropTable => self.change_own(None)?,
            Op::Close => self.db.clone().close()?,
            op => return self.maintain(op),
        }
        Ok(true)
    }

    /// The table at this place; the first one where the caller's own is not there.
    pub(super) fn table(&self, at: usize) -> Result<(usize, Table)> {
        match at {
            OWN if self.has_own => Ok((OWN, self.db.table(&own_name(self.number))?)),
            OWN => Ok((0, self.db.table(TABLES[0])?)),
            at => Ok((at, self.db.table(TABLES[at])?)),
        }
    }

    /// The sync setting of a write: without a journal no write can ask for a sync.
    pub(super) fn sync(&self, wants: bool) -> Durability {
        if wants && self.has_journal { Durability::Synced } else { Durability::Buffered }
    }

    pub(super) fn key(&self, number: u64) -> Vec<u8> {
        key(self.number, number)
    }

    /// A value unlike all others.
    pub(super) fn value(&self, len: u64) -> Vec<u8> {
        let mut value = format!("<{}.{}>", self.number, self.turn).into_bytes();
        let byte = b'a' + (self.turn % 26) as u8;
        value.resize(value.len().max(len as usize), byte);
        value
    }

    fn put(&mut self, at: At, len: u64, sync: bool) -> Result<()> {
        let ((place, table), key, value) = (self.table(at.table)?, self.key(at.key), self.value(len));
        table.put_with(&key, &value, self.sync(sync))?;
        self.rows.insert((place, key.clone()), value);
        self.compare(place, &table, &key)
    }

    fn delete(&mut self, at: At) -> Result<()> {
        let ((place, table), key) = (self.table(at.table)?, self.key(at.key));
        table.delete(&key)?;
        self.rows.remove(&(place, key.clone()));
        self.compare(place, &table, &key)
    }

    fn delete_range(&mut self, at: usize, from: u64, to: u64) -> Result<()> {
        let (place, table) = self.table(at)?;
        table.delete_range(self.key(from), self.key(to))?;
        self.forget_range(place, from, to);
        self.compare_all(place, &table, false)
    }

    /// The rows of a range are deleted.
    pub(super) fn forget_range(&mut self, place: usize, from: u64, to: u64) {
        let (start, end) = (self.key(from), self.key(to));
        self.rows.retain(|(table, key), _| *table != place || *key < start || *key >= end);
    }

    fn merge(&mut self, at: At, len: u64) -> Result<()> {
        let ((place, table), key, operand) = (self.table(at.table)?, self.key(at.key), self.value(len));
        table.merge(&key, &operand)?;
        self.rows.entry((place, key.clone())).or_default().extend_from_slice(&operand);
        self.compare(place, &table, &key)
    }

    fn batch(&mut self, seed: u64, sync: bool) -> Result<()> {
        let mut numbers = Rng::new(seed);
        let mut batch = Batch::new();
        for part in 0..1 + numbers.below(6) {
            let (place, table) = self.table(numbers.below(OWN as u64 + 1) as usize)?;
            let key = self.key(numbers.below(KEYS));
            if numbers.one_in(4) {
                batch.delete(&table, &key)?;
                self.rows.remove(&(place, key));
            } else {
                let value = self.value(10 + part + numbers.below(200));
                batch.put(&table, &key, &value)?;
                self.rows.insert((place, key), value);
            }
        }
        self.db.write(&batch, self.sync(sync))?;
        (0..=OWN).try_for_each(|at| {
            let (place, table) = self.table(at)?;
            self.compare_all(place, &table, false)
        })
    }

    fn fill(&mut self, at: usize) -> Result<()> {
        let (place, table) = self.table(at)?;
        for round in 0..FILL_ROUNDS {
            if self.db.pressure() > PRESSURE_MAX {
                // A background that is paused would never give writers memory.
                self.db.resume_background();
            }
            let mut batch = Batch::new();
            for number in 0..KEYS {
                let (key, value) = (self.key(number), self.value(FILL_BYTES + round * KEYS + number));
                batch.put(&table, &key, &value)?;
                self.rows.insert((place, key), value);
            }
            self.db.write(&batch, Durability::Buffered)?;
        }
        self.compare_all(place, &table, false)
    }

    fn get(&self, at: At) -> Result<()> {
        let (place, table) = self.table(at.table)?;
        self.compare(place, &table, &self.key(at.key))
    }

    fn multi_get(&self, at: usize) -> Result<()> {
        let (place, table) = self.table(at)?;
        let keys: Vec<Vec<u8>> = (0..KEYS).map(|number| self.key(number)).collect();
        let slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        for (key, found) in keys.iter().zip(table.multi_get(&slices)?) {
            let expected = self.rows.get(&(place, key.clone()));
            assert_eq!(found.as_deref(), expected.map(Vec::as_slice), "multi-get of {}", shown(key));
        }
        Ok(())
    }

    fn scan(&self, at: usize, backward: bool) -> Result<()> {
        let (place, table) = self.table(at)?;
        self.compare_all(place, &table, backward)
    }

    /// A snapshot shows the same rows of a table forward and backward, the caller's own among them.
    fn scan_all(&self, at: usize) -> Result<()> {
        let (place, table) = self.table(at)?;
        let snapshot = self.db.snapshot();
        let forward = rows_of(snapshot.iter(&table))?;
        let mut backward = rows_of(snapshot.iter(&table).rev())?;
        backward.reverse();
        assert!(forward == backward, "a snapshot of {} differs forward and backward", table.name());
        self.compare_seen(place, &forward);
        Ok(())
    }

    fn take_snapshot(&mut self) -> Result<()> {
        let snapshot = self.db.snapshot();
        let tables = TABLES.iter().map(|name| self.db.table(name)).collect::<Result<Vec<_>>>()?;
        let seen = tables.iter().map(|table| rows_of(snapshot.iter(table))).collect::<Result<_>>()?;
        self.snapshots.push(Held { snapshot, rows: self.rows.clone(), seen });
        Ok(())
    }

    /// The rows of a snapshot never change.
    fn read_snapshots(&self) -> Result<()> {
        for held in &self.snapshots {
            for (place, name) in TABLES.iter().enumerate() {
                let table = self.db.table(name)?;
                let seen = rows_of(held.snapshot.iter(&table))?;
                assert!(seen == held.seen[place], "what a snapshot shows of {name} has changed");
                for number in 0..KEYS {
                    let key = self.key(number);
                    let (found, expected) =
                        (held.snapshot.get(&table, &key)?, held.rows.get(&(place, key.clone())));
                    assert_eq!(found.as_deref(), expected.map(Vec::as_slice), "snapshot: {}", shown(&key));
                }
            }
        }
        Ok(())
    }

    fn change_own(&mut self, options: Option<TableOptions>) -> Result<()> {
        let (name, creates) = (own_name(self.number), options.is_some());
        match (options, self.has_own) {
            (Some(options), false) => drop(self.db.create_table(&name, &options)?),
            (None, true) => self.db.drop_table(&name)?,
            _ => return Ok(()),
        }
        self.has_own = creates;
        self.rows.retain(|(place, _), _| *place != OWN);
        Ok(())
    }

    pub(super) fn compare(&self, place: usize, table: &Table, key: &[u8]) -> Result<()> {
        let (found, expected) = (table.get(key)?, self.rows.get(&(place, key.to_vec())));
        assert_eq!(
            found.as_deref().map(shown),
            expected.map(|value| shown(value)),
            "get of {} from {}",
            shown(key),
            table.name()
        );
        Ok(())
    }

    /// Compares all of the caller's rows of a table.
    pub(super) fn compare_all(&self, place: usize, table: &Table, backward: bool) -> Result<()> {
        let (start, end) = (format!("c{}/", self.number), format!("c{}0", self.number));
        let iter = table.range((Bound::Included(start.as_bytes()), Bound::Excluded(end.as_bytes())));
        let mut seen = if backward { rows_of(iter.rev())? } else { rows_of(iter)? };
        if backward {
            seen.reverse();
        }
        self.compare_seen(place, &seen);
        Ok(())
    }

    fn compare_seen(&self, place: usize, seen: &Seen) {
        let prefix = format!("c{}/", self.number);
        let own = seen.iter().filter(|(key, _)| key.starts_with(prefix.as_bytes()));
        let found: Vec<(&[u8], &[u8])> = own.map(|(key, value)| (&key[..], &value[..])).collect();
        let expected = self.rows.iter().filter(|((table, _), _)| *table == place);
        let expected: Vec<(&[u8], &[u8])> =
            expected.map(|((_, key), value)| (&key[..], &value[..])).collect();
        assert!(found == expected, "scan of {place}: {}", difference(&found, &expected));
    }
}

/// The name of a caller's own table.
pub(super) fn own_name(caller: usize) -> String {
    format!("own{caller}")
}

/// Returns true if an error says that the operation met one of another caller, and did nothing.
pub(super) fn is_met(error: &Error) -> bool {
    matches!(error.kind(), Kind::Conflict | Kind::Deadlock | Kind::TimedOut | Kind::Busy | Kind::TooOld)
}

/// The rows that an iterator gives, without those that a compaction filter may remove at any time.
pub(super) fn rows_of(iter: impl Iterator<Item = Result<terrane::Row>>) -> Result<Seen> {
    let rows = iter.map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())));
    rows.filter(|row| !row.as_ref().is_ok_and(|(key, _)| key.starts_with(DOOMED))).collect()
}

pub(super) fn shown(bytes: &[u8]) -> String {
    let text: String = bytes.iter().take(24).map(|byte| char::from(*byte)).collect();
    format!("{text:?} ({} bytes)", bytes.len())
}

/// How rows differ, in a line.
pub(super) fn difference(found: &[(&[u8], &[u8])], expected: &[(&[u8], &[u8])]) -> String {
    let missing = expected.iter().filter(|row| !found.contains(row));
    let missing: Vec<String> =
        missing.map(|(key, value)| format!("{}={}", shown(key), shown(value))).collect();
    let extra = found.iter().filter(|row| !expected.contains(row));
    let extra: Vec<String> = extra.map(|(key, value)| format!("{}={}", shown(key), shown(value))).collect();
    format!("missing [{}], not expected [{}]", missing.join(", "), extra.join(", "))
}
