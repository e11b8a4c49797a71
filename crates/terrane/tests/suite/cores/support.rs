//! A session with a model, which knows the answer of each request when it is submitted.

use std::collections::{BTreeMap, HashMap};

use terrane::cores::{Answer, Cores, Session, Ticket};
use terrane::{Batch, Db, Durability, Kind, Options, Result, Table};
use terrane_base::Rng;

pub(crate) fn open() -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let options = Options { memory_bytes: 16 << 20, ..Options::default() };
    let db = Db::open_with(dir.path().join("db"), &options).unwrap();
    (dir, db)
}

/// A way to collect answers.
type Collect = fn(&mut Session, &mut dyn FnMut(Ticket, Result<Answer<'_>>)) -> usize;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The expected answer.
#[derive(Debug, PartialEq)]
enum Expected {
    Value(Option<Vec<u8>>),
    Values(Vec<Option<Vec<u8>>>),
    Rows(Vec<(Vec<u8>, Vec<u8>)>),
    Written,
}

fn found(answer: Answer<'_>) -> Expected {
    match answer {
        Answer::Value(value) => Expected::Value(value.map(<[u8]>::to_vec)),
        Answer::Values(values) => {
            Expected::Values(values.iter().map(|value| value.map(<[u8]>::to_vec)).collect())
        }
        Answer::Rows(rows) => {
            Expected::Rows(rows.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect())
        }
        Answer::Written(_) => Expected::Written,
    }
}

pub(crate) struct Script<'s> {
    cores: &'s Cores,
    tables: &'s [Table],
    models: Vec<Model>,
    session: Session,
    expected: HashMap<Ticket, Expected>,
    last: Option<Ticket>,
    rng: Rng,
    /// Requests between two collections, at most.
    window: u64,
    db: Db,
    stamp: u32,
}

impl<'s> Script<'s> {
    pub(crate) fn new(db: &Db, cores: &'s Cores, tables: &'s [Table], window: u64) -> Self {
        Script {
            cores,
            tables,
            models: vec![Model::new(); tables.len()],
            session: cores.session().unwrap(),
            expected: HashMap::new(),
            last: None,
            rng: Rng::new(window + cores.len() as u64),
            window,
            db: db.clone(),
            stamp: 0,
        }
    }

    pub(crate) fn run(&mut self, requests: u64) {
        for _ in 0..requests {
            self.request();
            if self.rng.below(self.window) == 0 {
                match self.rng.below(3) {
                    0 => self.hear(Session::collect),
                    1 => self.hear(Session::wait),
                    _ => self.collect_answers(),
                }
            }
            if self.rng.below(500) == 0 {
                self.db.flush().unwrap();
            }
        }
    }

    /// Collects all answers.
    pub(crate) fn collect_answers(&mut self) {
        self.hear(Session::finish);
        assert!(self.expected.is_empty() && self.session.outstanding() == 0);
    }

    /// The database has what the model has.
    pub(crate) fn compare(&self) {
        for (table, model) in self.tables.iter().zip(&self.models) {
            let rows: Vec<_> = table.iter().map(|row| row.unwrap()).collect();
            assert!(
                rows.iter()
                    .map(|(key, value)| (&**key, &**value))
                    .eq(model.iter().map(|(k, v)| (&**k, &**v)))
            );
        }
    }

    fn hear(&mut self, collect: Collect) {
        let expected = &mut self.expected;
        let mut heard = 0;
        let count = collect(&mut self.session, &mut |ticket, answer| {
            heard += 1;
            assert_eq!(expected.remove(&ticket), Some(found(answer.unwrap())), "{ticket:?}");
        });
        assert_eq!(count, heard);
    }

    fn key(&mut self) -> Vec<u8> {
        format!("key{:02}", self.rng.below(12)).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        self.stamp += 1;
        let len = if self.rng.below(50) == 0 { 20_000 } else { self.rng.below(12) as usize };
        [&self.stamp.to_be_bytes()[..], &vec![7; len]].concat()
    }

    /// Submits what `submit` asks for; a full ring is collected from.
    fn submit(&mut self, expected: Expected, submit: impl Fn(&mut Session) -> Result<Ticket>) {
        loop {
            match submit(&mut self.session) {
                Ok(ticket) => {
                    assert!(self.last < Some(ticket), "tickets ascend");
                    self.last = Some(ticket);
                    assert_eq!(self.expected.insert(ticket, expected), None);
                    return;
                }
                Err(error) => assert_eq!(error.kind(), Kind::Busy),
            }
            self.hear(Session::wait);
        }
    }

    fn request(&mut self) {
        let number = self.rng.below(self.tables.len() as u64) as usize;
        let table = &self.tables[number];
        let key = self.key();
        match self.rng.below(20) {
            0..8 => {
                let expected = Expected::Value(self.models[number].get(&key).cloned());
                self.submit(expected, |session| session.get(table, &key));
            }
            8..14 => {
                let value = self.value();
                self.submit(Expected::Written, |session| {
                    session.put(table, &key, &value, Durability::Buffered)
                });
                self.models[number].insert(key, value);
            }
            14..16 => {
                self.submit(Expected::Written, |session| session.delete(table, &key, Durability::Buffered));
                self.models[number].remove(&key);
            }
            16 | 17 => self.batch(),
            18 => self.multi_get(number, &key),
            _ => self.scan(number, &key),
        }
    }

    fn batch(&mut self) {
        let mut batch = Batch::new();
        let mut core = None;
        let mut is_across = false;
        for _ in 0..self.rng.below(4) {
            let number = self.rng.below(self.tables.len() as u64) as usize;
            let (key, value) = (self.key(), self.value());
            let owner = self.cores.core_of(&self.tables[number], &key).unwrap();
            is_across |= *core.get_or_insert(owner) != owner;
            batch.put(&self.tables[number], &key, &value).unwrap();
            self.models[number].insert(key, value);
        }
        if is_across {
            assert_eq!(self.session.write(&batch, Durability::Buffered).unwrap_err().kind(), Kind::Invalid);
            self.session.write_across(&batch, Durability::Buffered).unwrap();
        } else {
            self.submit(Expected::Written, |session| session.write(&batch, Durability::Buffered));
        }
    }

    fn multi_get(&mut self, number: usize, first: &[u8]) {
        // Keys that share the first one's partition: the same key, longer.
        let keys: Vec<Vec<u8>> =
            (0..self.rng.below(4)).map(|more| [first, &vec![0; more as usize]].concat()).collect();
        let expected = keys.iter().map(|key| self.models[number].get(key).cloned()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let table = &self.tables[number];
        self.submit(Expected::Values(expected), |session| session.multi_get(table, &keys));
    }

    /// A scan of one row or none, of a range that the key's partition has whole.
    fn scan(&mut self, number: usize, key: &[u8]) {
        let table = &self.tables[number];
        if self.cores.len() > 1 && number > 0 {
            // Beyond its range a scan may miss requests that are not done yet.
            return self.submit(Expected::Rows(Vec::new()), |session| session.scan(table, key, 0));
        }
        let rows = self.rng.below(5) as usize;
        let is_forward = self.rng.below(2) == 0;
        let model = &self.models[number];
        let own = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        let expected: Vec<_> = if is_forward {
            model.range(key.to_vec()..).take(rows).map(own).collect()
        } else {
            model.range(..=key.to_vec()).rev().take(rows).map(own).collect()
        };
        self.submit(Expected::Rows(expected), |session| {
            if is_forward { session.scan(table, key, rows) } else { session.scan_back(table, key, rows) }
        });
    }
}
