//! Transactions of a caller: committed, rolled back, or prepared and ended by their name.

use terrane::{Concurrency, Result, Transaction, TransactionOptions};
use terrane_base::Rng;

use super::caller::{Caller, Rows, is_met, shown};
use super::history::{KEYS, TABLES};

impl Caller {
    /// Refused, and without effect, where it met what came in around its keys.
    pub(super) fn transact(&mut self, seed: u64) -> Result<bool> {
        let mut numbers = Rng::new(seed);
        let mut rows = self.rows.clone();
        let done = self.commit_or_roll_back(&mut numbers, &mut rows);
        self.end_transaction(done, rows)
    }

    /// As [`Caller::transact`], in two phases.
    pub(super) fn prepare(&mut self, seed: u64) -> Result<bool> {
        if !self.has_journal {
            return self.transact(seed);
        }
        let mut numbers = Rng::new(seed);
        let mut rows = self.rows.clone();
        let done = self.prepare_and_resolve(&mut numbers, &mut rows);
        self.end_transaction(done, rows)
    }

    /// `done`: whether it was committed.
    fn end_transaction(&mut self, done: Result<bool>, rows: Rows) -> Result<bool> {
        let is_refused = match done {
            Ok(is_committed) => {
                if is_committed {
                    self.rows = rows;
                }
                false
            }
            Err(error) if is_met(&error) => true,
            Err(error) => return Err(error),
        };
        let (place, table) = self.table(0)?;
        self.compare_all(place, &table, false).map(|()| !is_refused)
    }

    fn begin(&self, numbers: &mut Rng) -> Result<Transaction> {
        let concurrency = if numbers.one_in(2) { Concurrency::Optimistic } else { Concurrency::Pessimistic };
        self.db.transaction(&TransactionOptions { concurrency, ..TransactionOptions::default() })
    }

    /// Reads some own keys and writes them.
    fn change(&self, transaction: &mut Transaction, numbers: &mut Rng, rows: &mut Rows) -> Result<()> {
        for part in 0..1 + numbers.below(4) {
            let place = numbers.below(TABLES.len() as u64) as usize;
            let (table, key) = (self.table(place)?.1, self.key(numbers.below(KEYS)));
            let found = transaction.get_for_update(&table, &key, true)?;
            let expected = rows.get(&(place, key.clone()));
            assert_eq!(found.as_deref(), expected.map(Vec::as_slice), "in a transaction: {}", shown(&key));
            if numbers.one_in(4) {
                transaction.delete(&table, &key)?;
                rows.remove(&(place, key));
            } else {
                let value = self.value(12 + part);
                transaction.put(&table, &key, &value)?;
                rows.insert((place, key), value);
            }
        }
        Ok(())
    }

    /// Returns whether it was committed.
    fn commit_or_roll_back(&self, numbers: &mut Rng, rows: &mut Rows) -> Result<bool> {
        let mut transaction = self.begin(numbers)?;
        self.change(&mut transaction, numbers, rows)?;
        if numbers.one_in(5) {
            transaction.rollback();
            return Ok(false);
        }
        transaction.commit(self.sync(numbers.one_in(5))).map(|_| true)
    }

    /// Returns whether it was committed. Once prepared it must be possible to end it: no other caller knows
    /// its name.
    fn prepare_and_resolve(&self, numbers: &mut Rng, rows: &mut Rows) -> Result<bool> {
        let name = format!("prepared-{}-{}", self.number, self.turn);
        let mut transaction = self.begin(numbers)?;
        self.change(&mut transaction, numbers, rows)?;
        transaction.prepare(&name)?;
        assert!(self.db.prepared().contains(&name), "{name} is prepared, but not listed");
        // Its changes are not seen yet.
        let (place, table) = self.table(0)?;
        self.compare_all(place, &table, false)?;
        if numbers.one_in(3) {
            self.db.rollback_prepared(&name)?;
            return Ok(false);
        }
        self.db.commit_prepared(&name, self.sync(numbers.one_in(5)))?;
        Ok(true)
    }
}
