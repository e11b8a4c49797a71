//! Operations of a caller beside plain reads and writes: values that expire, single deletes, rows that a
//! compaction filter removes, the change feed, followers, and tables with options of their own.

use std::sync::Arc;
use std::time::Duration;

use terrane::{
    Batch, ChangeKind, CompactionFilter, Db, Durability, FilterDecision, Follower, Functions, Kind, Result,
    TableOptions,
};
use terrane_base::Rng;

use super::caller::{Caller, shown};
use super::history::At;

/// Keys that begin with it are removed by [`RemovesDoomed`], sooner or later.
pub(super) const DOOMED: &[u8] = b"doomed/";
/// Behind the end of every history: its time hardly passes.
const FAR: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The compaction filter of the tables.
#[derive(Debug)]
pub(super) struct RemovesDoomed;

impl CompactionFilter for RemovesDoomed {
    fn name(&self) -> &str {
        "removes-doomed"
    }

    fn filter(&self, key: &[u8], _value: &[u8]) -> FilterDecision {
        if key.starts_with(DOOMED) { FilterDecision::Remove } else { FilterDecision::Keep }
    }

    fn sees_all(&self) -> bool {
        true
    }
}

/// Options of a caller's own table: those of the database, or some of its own.
pub(super) fn own_options(seed: u64) -> TableOptions {
    let mut options = TableOptions::new();
    if seed.is_multiple_of(2) {
        let drawn = crate::options::random_table_options(&mut Rng::new(seed));
        // Ranges of a caller's keys are those of the plain order.
        for (name, value) in drawn.iter().filter(|(name, _)| name != "key_order") {
            options = options.set(name, value).expect("generated options are valid");
        }
    }
    options
}

impl Caller {
    pub(super) fn put_until(&mut self, at: At, has_expired: bool) -> Result<()> {
        let ((place, table), key, value) = (self.table(at.table)?, self.key(at.key), self.value(20));
        if has_expired {
            table.put_until(&key, &value, Duration::from_secs(1))?;
            self.rows.remove(&(place, key.clone()));
        } else {
            table.put_with_ttl(&key, &value, FAR)?;
            self.rows.insert((place, key.clone()), value);
        }
        self.compare(place, &table, &key)
    }

    pub(super) fn single(&mut self, at: At) -> Result<()> {
        let ((place, table), key) = (self.table(at.table)?, self.key(at.key));
        let row = (place, key.clone());
        if self.rows.contains_key(&row) {
            table.single_delete(&key)?;
            self.rows.remove(&row);
        } else {
            let value = self.value(40);
            table.put(&key, &value)?;
            self.rows.insert(row, value);
        }
        self.compare(place, &table, &key)
    }

    /// Either the newest value is there or none, never an older one.
    pub(super) fn put_doomed(&mut self, at: At) -> Result<()> {
        let (_, table) = self.table(at.table)?;
        let key = [DOOMED, &self.key(at.key % 2)].concat();
        let value = self.value(30);
        table.put(&key, &value)?;
        let found = table.get(&key)?;
        let is_right = found.as_deref().is_none_or(|found| found == value);
        assert!(is_right, "an older value of {} is back", shown(&key));
        Ok(())
    }

    /// Two commits of this caller, and what the feed tells from the first on: both, in their order, each
    /// once. Refused where the first is no longer kept.
    pub(super) fn read_changes(&mut self, at: At) -> Result<bool> {
        let ((place, table), key) = (self.table(at.table)?, self.key(at.key));
        let mut numbers = Vec::new();
        let mut written = Vec::new();
        for round in 0..2 {
            let value = self.value(50 + round);
            let mut batch = Batch::new();
            batch.put(&table, &key, &value)?;
            numbers.push(self.db.write(&batch, Durability::Buffered)?);
            self.rows.insert((place, key.clone()), value.clone());
            written.push(value);
        }
        if !self.has_journal {
            return Ok(true);
        }
        match self.fed_values(&key, &numbers) {
            Ok(fed) => assert!(fed == written, "the feed has {} values of {}", fed.len(), shown(&key)),
            Err(error) if error.kind() == Kind::Gone => return Ok(false),
            Err(error) => return Err(error),
        }
        self.compare(place, &table, &key).map(|()| true)
    }

    /// The values of a key in the feed, from the first of two numbers up to the second.
    fn fed_values(&self, key: &[u8], numbers: &[terrane::SeqNo]) -> Result<Vec<Vec<u8>>> {
        let (mut fed, mut last) = (Vec::new(), 0);
        for batch in self.db.changes(numbers[0])? {
            let batch = batch?;
            assert!(last < batch.last_seq().0, "the feed went back to {} behind {last}", batch.last_seq().0);
            last = batch.last_seq().0;
            for change in batch.changes() {
                if let ChangeKind::Put { key: of, value, .. } = change.kind
                    && of == key
                {
                    fed.push(value.to_vec());
                }
            }
            if last >= numbers[1].0 {
                return Ok(fed);
            }
        }
        panic!("the feed ends at {last}, before {}, which is committed", numbers[1].0);
    }

    /// Refused where the primary changes faster than the follower reads, or has given up what a view needs.
    pub(super) fn follow(&mut self, at: At) -> Result<bool> {
        let mut options = self.db.options().clone();
        options.create_if_missing = false;
        let (disk, env) = (self.world.disk(), self.world.env());
        let follower = match Follower::open(disk, super::campaign::PATH, &options, Functions::default(), env)
        {
            Err(error) if error.kind() == Kind::Busy => return Ok(false),
            followed => followed?,
        };
        // Rows that are only in memory are not visible.
        if !self.has_journal {
            return Ok(true);
        }
        let (view, rows) = (follower.view(), self.rows.clone());
        let ((place, table), key, value) = (self.table(at.table)?, self.key(at.key), self.value(60));
        let first = self.compare_view(&view)?;
        table.put(&key, &value)?;
        self.rows.insert((place, key), value);
        match follower.catch_up() {
            Err(error) if error.kind() == Kind::Busy => return Ok(false),
            caught_up => caught_up?,
        };
        let second = self.compare_view(&follower.view())?;
        // The view before stays what it was.
        let now = std::mem::replace(&mut self.rows, rows);
        let third = self.compare_view(&view)?;
        self.rows = now;
        Ok(first && second && third)
    }

    /// Returns false if the primary has given up what the view needs.
    fn compare_view(&self, view: &Db) -> Result<bool> {
        match self.compare_elsewhere(view) {
            Err(error) if error.kind() == Kind::Gone => Ok(false),
            compared => compared.map(|()| true),
        }
    }
}

/// Gives the tables of a new or opened database their compaction filter.
pub(super) fn set_filters(db: &Db, names: &[&str]) -> Result<()> {
    for name in names {
        db.table(name)?.set_compaction_filter(Some(Arc::new(RemovesDoomed)));
    }
    Ok(())
}
