//! Random histories: operations drawn from a seed, done on a database and on the model, every answer
//! compared. Transactions are in `transactions.rs`.

mod transactions;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use terrane::{Batch, Db, Durability, Options, Result, Snapshot, TableOptions};
use terrane_base::Rng;

use crate::model::{Change, Model, Row};

/// A value to which this was appended is put again.
const HOT_BYTES_MAX: usize = 4000;

/// How a history is drawn.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Operations to do.
    pub steps: u64,
    /// Seed of every choice.
    pub seed: u64,
    /// Keys are drawn from about this many.
    pub keys: u64,
    /// Longest value, in bytes.
    pub value_bytes_max: u64,
    /// About one reopening in this many operations.
    pub steps_per_reopen: u64,
    /// Options of the database; small limits make rare paths common.
    pub options: Options,
}

/// A history in progress.
pub struct History {
    settings: Settings,
    path: PathBuf,
    db: Option<Db>,
    model: Model,
    snapshots: Vec<(Snapshot, u64)>,
    numbers: Rng,
    step: u64,
    /// Transactions that are prepared and not ended yet, by name.
    prepared: BTreeMap<String, Vec<Change>>,
}

impl History {
    /// Opens a new database at `path`, which must not exist.
    ///
    /// # Errors
    /// The database's errors.
    pub fn new(path: &Path, settings: Settings) -> Result<Self> {
        let db = Db::open_with(path, &settings.options)?;
        Ok(History {
            numbers: Rng::new(settings.seed),
            settings,
            path: path.to_owned(),
            db: Some(db),
            model: Model::new(),
            snapshots: Vec::new(),
            step: 0,
            prepared: BTreeMap::new(),
        })
    }

    /// Does every step, then compares everything once more after a last reopening.
    ///
    /// # Errors
    /// The database's errors.
    ///
    /// # Panics
    /// If an answer differs from the model's; the message names seed and step.
    pub fn run(mut self) -> Result<()> {
        while self.step < self.settings.steps {
            self.step += 1;
            self.one_step()?;
        }
        self.compare_everything()?;
        self.reopen()?;
        self.compare_everything()?;
        let report = self.db().check(&mut |_, _| ())?;
        assert!(report.findings.is_empty(), "{}: check found {:?}", self.place(), report.findings);
        Ok(())
    }

    fn one_step(&mut self) -> Result<()> {
        if self.numbers.below(self.settings.steps_per_reopen) == 0 {
            return self.reopen();
        }
        match self.numbers.below(1000) {
            0..400 => self.write_one(),
            400..450 => self.write_batch(),
            450..750 => self.read_one(),
            750..850 => self.scan(),
            850..900 => self.read_many(),
            900..930 => self.take_or_drop_snapshot(),
            930..932 => self.db().flush(),
            932..933 => self.compact(),
            933..935 => self.create_or_drop_table(),
            935..937 => self.db().wait_until_quiescent(),
            937..957 => self.transact(),
            957..962 => self.resolve(),
            _ => self.write_hot(),
        }
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open except while reopening")
    }

    fn place(&self) -> String {
        format!("seed {} step {}", self.settings.seed, self.step)
    }

    /// Keys that are prefixes of each other, hold zero bytes, or are empty come up often.
    fn key(&mut self) -> Vec<u8> {
        let number = self.numbers.below(self.settings.keys);
        match self.numbers.below(16) {
            0 => vec![0; (number % 8) as usize],
            1 => vec![0xff; (number % 5) as usize],
            2 => format!("k{number}").into_bytes(),
            3 => [b"prefix/".repeat((number % 4) as usize).as_slice(), &number.to_be_bytes()].concat(),
            _ => format!("key{number:08}").into_bytes(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        let len = match self.numbers.below(64) {
            0 => self.numbers.below(self.settings.value_bytes_max * 20),
            _ => self.numbers.below(self.settings.value_bytes_max),
        };
        let byte = self.numbers.below(256) as u8;
        let mut value = vec![byte; len as usize];
        let stamp = self.step.to_le_bytes();
        let stamped = value.len().min(stamp.len());
        value[..stamped].copy_from_slice(&stamp[..stamped]);
        value
    }

    fn table(&mut self) -> String {
        let names = self.model.tables();
        let index = self.numbers.below(names.len() as u64) as usize;
        names[index].clone()
    }

    fn change(&mut self) -> Change {
        let (table, key) = (self.table(), self.key());
        let value = (self.numbers.below(4) > 0).then(|| self.value());
        (table, key, value)
    }

    fn apply(&mut self, changes: &[Change]) -> Result<()> {
        let mut batch = Batch::new();
        for (table, key, value) in changes {
            let table = self.db().table(table)?;
            match value {
                Some(value) => batch.put(&table, key, value)?,
                None => batch.delete(&table, key)?,
            }
        }
        let sync = if self.numbers.below(200) == 0 { Durability::Synced } else { Durability::Buffered };
        self.db().write(&batch, sync)?;
        self.model.write(changes);
        Ok(())
    }

    fn write_one(&mut self) -> Result<()> {
        let change = self.change();
        self.apply(&[change])
    }

    fn write_batch(&mut self) -> Result<()> {
        let count = 1 + self.numbers.below(20);
        let changes: Vec<_> = (0..count).map(|_| self.change()).collect();
        self.apply(&changes)
    }

    /// Many versions of few keys.
    fn write_hot(&mut self) -> Result<()> {
        let key = format!("hot{}", self.numbers.below(3)).into_bytes();
        let value = self.value();
        let old = self.model.get("default", &key, self.model.now()).unwrap_or_default();
        let merges = self.settings.options.merge_operator.get() == Some("append");
        if merges && old.len() < HOT_BYTES_MAX && self.numbers.below(4) > 0 {
            let whole = [old, &value].concat();
            self.db().default_table().merge(&key, &value)?;
            self.model.write(&[("default".to_owned(), key, Some(whole))]);
            return Ok(());
        }
        self.apply(&[("default".to_owned(), key, Some(value))])
    }

    /// The present, or one of the live snapshots.
    fn moment(&mut self) -> (Option<usize>, u64) {
        if self.snapshots.is_empty() || self.numbers.below(3) > 0 {
            return (None, self.model.now());
        }
        let index = self.numbers.below(self.snapshots.len() as u64) as usize;
        (Some(index), self.snapshots[index].1)
    }

    fn read_one(&mut self) -> Result<()> {
        let (name, key) = (self.table(), self.key());
        let (snapshot, at) = self.moment();
        let table = self.db().table(&name)?;
        let answer = match snapshot {
            Some(index) => self.snapshots[index].0.get(&table, &key)?,
            None => table.get(&key)?,
        };
        let expected = self.model.get(&name, &key, at);
        assert_eq!(answer.as_deref(), expected, "{}: get {name} {key:?} at {at}", self.place());
        Ok(())
    }

    fn read_many(&mut self) -> Result<()> {
        let name = self.table();
        let keys: Vec<_> = (0..self.numbers.below(12)).map(|_| self.key()).collect();
        let refs: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let (snapshot, at) = self.moment();
        let table = self.db().table(&name)?;
        let answers = match snapshot {
            Some(index) => self.snapshots[index].0.multi_get(&table, &refs)?,
            None => table.multi_get(&refs)?,
        };
        for (key, answer) in keys.iter().zip(answers) {
            let expected = self.model.get(&name, key, at);
            assert_eq!(answer.as_deref(), expected, "{}: multi_get {name} {key:?}", self.place());
        }
        Ok(())
    }

    fn scan(&mut self) -> Result<()> {
        let name = self.table();
        let (from, to) = (self.key(), self.key());
        let (snapshot, at) = self.moment();
        let table = self.db().table(&name)?;
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = match self.numbers.below(4) {
            0 => (Bound::Unbounded, Bound::Excluded(&to)),
            1 => (Bound::Excluded(&from), Bound::Unbounded),
            2 => (Bound::Included(&from), Bound::Included(&to)),
            _ => (Bound::Included(&from), Bound::Excluded(&to)),
        };
        let limit = 1 + self.numbers.below(50) as usize;
        let iter = match snapshot {
            Some(index) => self.snapshots[index].0.range(&table, bounds),
            None => table.range(bounds),
        };
        let mut expected = self.model.range(&name, bounds, at);
        let answer: Vec<Row> = match self.numbers.below(3) {
            0 => {
                expected.reverse();
                iter.rev().take(limit).collect::<Result<_>>()?
            }
            1 => return self.scan_from_both_ends(iter, &expected),
            _ => iter.take(limit).collect::<Result<_>>()?,
        };
        expected.truncate(limit);
        assert_eq!(answer, expected, "{}: scan {name} {bounds:?} at {at}", self.place());
        Ok(())
    }

    /// Takes rows from the front and from the back by turns until the two ends meet.
    fn scan_from_both_ends(&mut self, mut iter: terrane::Iter, expected: &[Row]) -> Result<()> {
        let (mut front, mut back) = (Vec::new(), Vec::new());
        loop {
            let from_front = self.numbers.below(2) == 0;
            let row = if from_front { iter.next() } else { iter.next_back() };
            match row.transpose()? {
                Some(row) if from_front => front.push(row),
                Some(row) => back.push(row),
                None => break,
            }
        }
        front.extend(back.into_iter().rev());
        assert!(front == expected, "{}: scan from both ends", self.place());
        Ok(())
    }

    fn take_or_drop_snapshot(&mut self) -> Result<()> {
        if self.snapshots.len() < 4 && self.numbers.below(2) == 0 {
            let snapshot = self.db().snapshot();
            self.snapshots.push((snapshot, self.model.now()));
        } else if !self.snapshots.is_empty() {
            let index = self.numbers.below(self.snapshots.len() as u64) as usize;
            self.snapshots.swap_remove(index);
            let moments: Vec<_> = self.snapshots.iter().map(|(_, moment)| *moment).collect();
            self.model.forget_before(&moments);
        }
        Ok(())
    }

    fn compact(&mut self) -> Result<()> {
        let name = self.table();
        let (from, to) = (self.key(), self.key());
        let table = self.db().table(&name)?;
        if self.numbers.below(2) == 0 {
            return self.db().compact_range(&table, ..);
        }
        self.db().compact_range(&table, from.min(to.clone()).as_slice()..=to.as_slice())
    }

    fn create_or_drop_table(&mut self) -> Result<()> {
        let name = format!("table{}", self.numbers.below(3));
        if self.model.tables().contains(&name) {
            self.db().drop_table(&name)?;
            self.model.drop_table(&name);
            // Earlier snapshots would still contain the table's rows; reads of a dropped table fail.
            self.snapshots.clear();
        } else {
            self.db().create_table(&name, &TableOptions::new())?;
            self.model.create_table(&name);
        }
        Ok(())
    }

    fn reopen(&mut self) -> Result<()> {
        self.snapshots.clear();
        self.model.forget_before(&[]);
        let db = self.db.take().expect("open except while reopening");
        if self.numbers.below(2) == 0 {
            db.close()?;
        } else {
            drop(db);
        }
        self.db = Some(Db::open_with(&self.path, &self.settings.options)?);
        let names: Vec<_> = self.prepared.keys().cloned().collect();
        assert_eq!(self.db().prepared(), names, "{}: prepared transactions", self.place());
        Ok(())
    }

    fn compare_everything(&mut self) -> Result<()> {
        for name in self.model.tables() {
            let table = self.db().table(&name)?;
            let all = (Bound::Unbounded, Bound::Unbounded);
            let expected = self.model.range(&name, all, self.model.now());
            let answer: Vec<Row> = table.iter().collect::<Result<_>>()?;
            assert!(answer == expected, "{}: full scan of {name} differs", self.place());
            let mut backward: Vec<Row> = table.iter().rev().collect::<Result<_>>()?;
            backward.reverse();
            assert!(backward == expected, "{}: full backward scan of {name} differs", self.place());
        }
        let mut names = self.db().tables();
        names.sort();
        assert_eq!(names, self.model.tables(), "{}: tables", self.place());
        Ok(())
    }
}
