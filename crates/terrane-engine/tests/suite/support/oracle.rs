//! The oracle of recoveries: the written batches, in order, and the last acknowledged one.
//!
//! Every batch puts its number under [`STAMP`] in one of the two lasting tables, so the greatest stamp says
//! which prefix of the batches a database holds; then every row of every table must be as that prefix makes
//! it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use terrane_base::{Batch, Result, Rng};
use terrane_engine::{Engine, Row};

use super::{get, rows};

pub const STAMP: &[u8] = b"~stamp";
/// The tables that are never dropped.
pub const LASTING: [&str; 2] = ["default", "lasting"];

/// One change: which life of a table, key, value or delete.
#[derive(Clone, Debug)]
pub struct Change {
    pub life: usize,
    pub key: Vec<u8>,
    pub value: Option<Vec<u8>>,
}

/// A table created or dropped.
#[derive(Clone, Copy, Debug)]
pub struct TableEvent {
    pub life: usize,
    pub created: bool,
}

/// How far the history had come, readable from any thread.
#[derive(Debug, Default)]
pub struct Reached {
    /// Batches begun, acknowledged, acknowledged and durable.
    pub begun: AtomicUsize,
    pub acknowledged: AtomicUsize,
    pub durable: AtomicUsize,
    /// Table events begun and done.
    pub events_begun: AtomicUsize,
    pub events_done: AtomicUsize,
}

/// Between what the state of an image must lie.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub least: usize,
    pub most: usize,
    pub events_least: usize,
    pub events_most: usize,
}

impl Reached {
    /// The number of batches that must exist at least.
    pub fn floor(&self, after_power_loss: bool) -> Span {
        let least = if after_power_loss { &self.durable } else { &self.acknowledged };
        Span {
            least: least.load(Ordering::SeqCst),
            most: 0,
            events_least: self.events_done.load(Ordering::SeqCst),
            events_most: 0,
        }
    }

    /// The span from `floor`, taken before the image, to now, after it.
    pub fn close(&self, floor: Span) -> Span {
        Span {
            most: self.begun.load(Ordering::SeqCst),
            events_most: self.events_begun.load(Ordering::SeqCst),
            ..floor
        }
    }
}

/// The whole history.
#[derive(Debug, Default)]
pub struct Oracle {
    pub batches: Vec<Vec<Change>>,
    pub events: Vec<TableEvent>,
    /// Name of each life of a table.
    pub names: Vec<String>,
    pub reached: Arc<Reached>,
}

impl Oracle {
    /// A history whose database has the default table.
    pub fn new() -> Self {
        let mut oracle = Oracle::default();
        oracle.begin_event("default");
        oracle.end_event();
        oracle
    }

    /// Lives that exist now: index and name.
    pub fn live(&self) -> Vec<(usize, String)> {
        self.live_after(self.events.len())
    }

    fn live_after(&self, events: usize) -> Vec<(usize, String)> {
        let mut live = BTreeMap::new();
        for event in &self.events[..events] {
            if event.created {
                live.insert(event.life, self.names[event.life].clone());
            } else {
                live.remove(&event.life);
            }
        }
        live.into_iter().collect()
    }

    /// Notes that the table is about to be created, or dropped if it exists.
    pub fn begin_event(&mut self, name: &str) {
        let event = match self.live().into_iter().find(|(_, live)| live == name) {
            Some((life, _)) => TableEvent { life, created: false },
            None => {
                self.names.push(name.to_owned());
                TableEvent { life: self.names.len() - 1, created: true }
            }
        };
        self.events.push(event);
        self.reached.events_begun.store(self.events.len(), Ordering::SeqCst);
    }

    /// Notes that the event is done.
    pub fn end_event(&self) {
        self.reached.events_done.store(self.events.len(), Ordering::SeqCst);
    }

    /// Notes a batch that is about to be written; returns it for the engine.
    pub fn begin(&mut self, engine: &Engine, mut changes: Vec<Change>, stamp_table: usize) -> Batch {
        let number = self.batches.len() as u64 + 1;
        let value = Some(number.to_le_bytes().to_vec());
        let stamp = self.live().into_iter().find(|(_, name)| name == LASTING[stamp_table]);
        let life = stamp.expect("lasting tables live").0;
        changes.push(Change { life, key: STAMP.to_vec(), value });
        let mut batch = Batch::new();
        for change in &changes {
            let table = engine.catalog().require(&self.names[change.life]).unwrap().id;
            match &change.value {
                Some(value) => batch.put(table, &change.key, value).unwrap(),
                None => batch.delete(table, &change.key).unwrap(),
            }
        }
        self.batches.push(changes);
        self.reached.begun.store(self.batches.len(), Ordering::SeqCst);
        batch
    }

    /// Notes that everything begun is acknowledged.
    pub fn end(&self, durable: bool) {
        self.reached.acknowledged.store(self.batches.len(), Ordering::SeqCst);
        if durable {
            self.all_durable();
        }
    }

    /// Notes that everything acknowledged is durable.
    pub fn all_durable(&self) {
        let acknowledged = self.reached.acknowledged.load(Ordering::SeqCst);
        self.reached.durable.fetch_max(acknowledged, Ordering::SeqCst);
    }

    /// Takes back the newest batch, which was refused.
    pub fn refused(&mut self) {
        self.batches.pop();
        self.reached.begun.store(self.batches.len(), Ordering::SeqCst);
    }

    /// The rows of one life after a prefix of the batches.
    pub fn rows_of(&self, life: usize, prefix: usize) -> Vec<Row> {
        let mut rows = BTreeMap::new();
        for change in self.batches[..prefix].iter().flatten().filter(|change| change.life == life) {
            match &change.value {
                Some(value) => rows.insert(change.key.clone(), value.clone()),
                None => rows.remove(&change.key),
            };
        }
        rows.into_iter().collect()
    }

    /// Checks that the database holds one prefix within `span`; returns its length.
    pub fn judge(&self, engine: &Arc<Engine>, span: Span, context: &str) -> Result<usize> {
        let mut names: Vec<_> = engine.catalog().all().iter().map(|table| table.name.clone()).collect();
        names.sort();
        let lives = (span.events_least..=span.events_most).map(|events| self.live_after(events));
        let live = lives.into_iter().find(|live| {
            let mut expected: Vec<_> = live.iter().map(|(_, name)| name.clone()).collect();
            expected.sort();
            expected == names
        });
        let live = live.unwrap_or_else(|| panic!("{context}: tables {names:?} never were together"));
        let prefix = stamp(engine)?;
        assert!(
            (span.least..=span.most).contains(&prefix),
            "{context}: found {prefix} batches, expected {} to {}",
            span.least,
            span.most
        );
        for (life, name) in live {
            let table = engine.catalog().require(&name)?;
            let found = rows(engine, &table)?;
            let expected = self.rows_of(life, prefix);
            if found != expected {
                let differs = first_difference(&found, &expected);
                panic!("{context}: table {name} is not as {prefix} batches make it: {differs}");
            }
            for (key, value) in expected.iter().step_by(7) {
                let found = get(engine, &table, key)?;
                assert_eq!(found.as_ref(), Some(value), "{context}: get of {name} {key:?}");
            }
        }
        Ok(prefix)
    }
}

/// The number of the newest batch that the database holds.
pub fn stamp(engine: &Arc<Engine>) -> Result<usize> {
    let mut newest = 0;
    for table in LASTING.iter().filter_map(|name| engine.catalog().find(name)) {
        if let Some(value) = get(engine, &table, STAMP)? {
            newest = newest.max(u64::from_le_bytes(value.try_into().expect("a stamp is a number")));
        }
    }
    Ok(newest as usize)
}

fn first_difference(found: &[Row], expected: &[Row]) -> String {
    let show = |row: Option<&Row>| {
        row.map(|(key, value)| {
            format!("{:?} = {} bytes {:?}", String::from_utf8_lossy(key), value.len(), value.get(..8))
        })
    };
    let at = found.iter().zip(expected).position(|(a, b)| a != b);
    let at = at.unwrap_or(found.len().min(expected.len()));
    format!(
        "{} rows, expected {}; at {at} found {:?}, expected {:?}",
        found.len(),
        expected.len(),
        show(found.get(at)),
        show(expected.get(at))
    )
}

/// Changes of random keys of random tables.
pub fn random_changes(numbers: &mut Rng, live: &[(usize, String)], number: usize) -> Vec<Change> {
    let count = if numbers.one_in(3) { 1 + numbers.below(8) } else { 1 };
    (0..count)
        .map(|index| {
            let life = live[numbers.below(live.len() as u64) as usize].0;
            let key = format!("k{:04}", numbers.below(300)).into_bytes();
            let len = if numbers.one_in(40) { 6000 } else { 24 + numbers.below(1200) };
            let value = (!numbers.one_in(5)).then(|| {
                let mut value = vec![number as u8; len as usize];
                value[..8].copy_from_slice(&(number as u64).to_le_bytes());
                value[8] = index as u8;
                value
            });
            Change { life, key, value }
        })
        .collect()
}
