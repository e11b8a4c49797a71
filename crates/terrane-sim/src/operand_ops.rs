//! Writes that are more than a put or a delete: merges, single deletes, values that expire. Each kind has
//! keys of its own ([`crate::op::KIND`]), so that what they make is known when they begin.

use std::time::Duration;

use terrane::{Batch, Durability};
use terrane_base::Rng;
use terrane_base::env::Clock as _;

use crate::op::{EXPIRING, KEYS_OF_KIND, MARK, MERGED, ONCE, Op, Value, key};
use crate::run::Runner;

/// The merge operator of every table: what a database is made with and keeps.
pub(crate) fn operator() -> (String, String) {
    ("merge_operator".to_owned(), "append".to_owned())
}

/// A merge, a single delete, a value that expires, or a read of such. Stamps are far from those of other
/// values.
pub(crate) fn draw(numbers: &mut Rng, tables: &[String]) -> Op {
    let table = numbers.pick(tables).clone();
    let mut key = |kind: u64| kind + numbers.below(KEYS_OF_KIND);
    let (merged, once, expiring) = (key(MERGED), key(ONCE), key(EXPIRING));
    let value = Value { len: numbers.skewed(40), stamp: numbers.next_u64() | 1 << 63 };
    let choice = numbers.below(16);
    // A random stream of its own: operations that were added later do not change the numbers that follow.
    let mut later = numbers.fork();
    if later.one_in(10) {
        return draw_range_delete(&mut later, table);
    }
    match choice {
        0..5 => Op::Merge { table, key: merged, value, sync: numbers.one_in(12) },
        5 => Op::Put { table, key: merged, value, sync: false },
        6 => Op::Delete { table, key: merged },
        7..9 => Op::Once { table, key: once, value },
        9..12 => Op::PutFor { table, key: expiring, value, millis: 1 + numbers.skewed(4_000) },
        12 => Op::Get { table, key: *numbers.pick(&[merged, expiring, once]), at: None },
        13 => Op::MultiGet { table, keys: vec![merged, expiring, once, merged], at: Some(numbers.below(4)) },
        14 => Op::MultiGet { table, keys: vec![once, expiring, merged], at: None },
        _ => Op::Wait { millis: numbers.skewed(2_000) },
    }
}

/// A range delete around keys of one kind, or from one kind to another.
fn draw_range_delete(numbers: &mut Rng, table: String) -> Op {
    // As the keys are ordered.
    const KINDS: [u64; 4] = [MERGED, MARK, ONCE, EXPIRING];
    let first = numbers.below(KINDS.len() as u64) as usize;
    let last = if numbers.one_in(2) { first } else { numbers.below(KINDS.len() as u64) as usize };
    let (from, to) = (numbers.below(KEYS_OF_KIND), numbers.below(KEYS_OF_KIND));
    let (from, to) = (KINDS[first.min(last)] + from.min(to), KINDS[first.max(last)] + from.max(to) + 1);
    Op::DeleteRange { table, from, to }
}

impl Runner {
    /// Merges an operand; the tables' operator appends.
    pub(crate) fn merge(&self, table: &str, number: u64, operand: Value, sync: bool) {
        if !self.model.borrow().has_table(table) {
            return;
        }
        let (key, operand) = (key(number), operand.bytes());
        let mut value = {
            let model = self.model.borrow();
            model.get(table, &key, model.now()).unwrap_or_default().to_vec()
        };
        value.extend_from_slice(&operand);
        let db = self.db();
        self.write(vec![(table.to_owned(), key.clone(), Some(value))], sync, |_| {
            let table = db.table(table)?;
            if !sync {
                return table.merge(&key, &operand);
            }
            let mut batch = Batch::new();
            batch.merge(&table, &key, &operand)?;
            db.write(&batch, Durability::Synced).map(drop)
        });
    }

    /// Puts a key that is not there; else removes it by a single delete.
    pub(crate) fn put_or_single_delete(&self, table: &str, number: u64, value: Value) {
        if !self.model.borrow().has_table(table) {
            return;
        }
        let key = key(number);
        let is_there = {
            let model = self.model.borrow();
            model.get(table, &key, model.now()).is_some()
        };
        let value = (!is_there).then(|| value.bytes());
        let db = self.db();
        self.write(vec![(table.to_owned(), key.clone(), value.clone())], false, |_| {
            let table = db.table(table)?;
            match &value {
                Some(value) => table.put(&key, value),
                None => table.single_delete(&key),
            }
        });
    }

    /// Puts a value that expires, and one that does not, as one.
    pub(crate) fn put_for(&self, table: &str, number: u64, value: Value, millis: u64) {
        if !self.model.borrow().has_table(table) {
            return;
        }
        let until = self.world.wall().as_millis() as u64 + millis;
        let (expiring, mark) = (key(number), key(MARK + number % EXPIRING));
        let bytes = [&until.to_le_bytes()[..], &value.bytes()].concat();
        let marked = Value { len: 8, stamp: value.stamp }.bytes();
        let changes = vec![
            (table.to_owned(), expiring.clone(), Some(bytes.clone())),
            (table.to_owned(), mark.clone(), Some(marked.clone())),
        ];
        let db = self.db();
        self.write(changes, false, |_| {
            let table = db.table(table)?;
            let mut batch = Batch::new();
            batch.put_until(&table, &expiring, &bytes, Duration::from_millis(until))?;
            batch.put(&table, &mark, &marked)?;
            db.write(&batch, Durability::Buffered).map(drop)
        });
    }
}
