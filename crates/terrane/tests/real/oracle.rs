//! The oracle: the rows that must exist, given the last acknowledged operation of each writer.
//!
//! A writer does its operations one after the other, so a prefix of them exists, at most one operation longer
//! than the acknowledged ones. The rows must equal the model replayed to that point: no row is lost, no batch
//! exists partly. Each batch stores which operations of the other writers it saw: those precede it in the
//! order of commits and must exist as well.

use std::collections::BTreeMap;
use std::path::Path;

use terrane::{Db, Kind, Options};

use crate::workload::{Rows, TABLES, changes, number, take_saw, tiny_options};

/// The contents that a database must have.
#[derive(Clone)]
pub(crate) struct Model {
    /// How far the rows are, by writer.
    done: Vec<u64>,
    /// How far each writer was acknowledged.
    pub(crate) acknowledged: Vec<u64>,
    rows: Rows,
}

impl Model {
    pub(crate) fn new(writers: usize) -> Model {
        Model { done: vec![0; writers], acknowledged: vec![0; writers], rows: Rows::default() }
    }

    /// Notes an acknowledgement.
    pub(crate) fn acknowledge(&mut self, writer: usize, op: u64) {
        assert!(op >= self.acknowledged[writer], "writer {writer} acknowledged {op} late");
        self.acknowledged[writer] = op;
    }

    fn advance(&mut self, writer: usize, to: u64) {
        for op in self.done[writer] + 1..=to {
            for change in changes(writer as u64, op) {
                match change.value {
                    Some(value) => drop(self.rows[change.table].insert(change.key, value)),
                    None => drop(self.rows[change.table].remove(&change.key)),
                }
            }
        }
        self.done[writer] = to;
    }

    /// Opens the database at `dir` (for reading only, which leaves it as it is, or as its next writer would),
    /// compares everything, and checks it.
    pub(crate) fn verify(&mut self, dir: &Path, read_only: bool, place: &str) {
        let options = Options { read_only, ..tiny_options() };
        let db = match Db::open_with(dir, &options) {
            Ok(db) => db,
            Err(error) => {
                // Killed while it was made: there is no database yet, and nothing was acknowledged.
                let is_none = read_only && [Kind::NotFound, Kind::Invalid].contains(&error.kind());
                assert!(is_none && self.acknowledged.iter().all(|op| *op == 0), "{place}: {error}");
                return;
            }
        };
        let (mut rows, saw) = read_all(&db, place);
        for writer in 0..self.done.len() {
            let key = format!("counter/{writer}").into_bytes();
            let found: Vec<u64> =
                rows.iter().map(|table| table.get(&key).map_or(0, |value| number(value))).collect();
            assert!(found.iter().all(|op| *op == found[0]), "{place}: half a batch of {writer}: {found:?}");
            let acknowledged = self.acknowledged[writer];
            assert!(
                found[0] == acknowledged || found[0] == acknowledged + 1,
                "{place}: writer {writer} was acknowledged {acknowledged}, found {}",
                found[0]
            );
            self.acknowledge(writer, found[0]);
            self.advance(writer, found[0]);
        }
        for (writer, saw) in saw {
            for (other, op) in saw.iter().enumerate() {
                assert!(
                    self.done[other] >= *op,
                    "{place}: writer {writer} saw operation {op} of {other}, which is gone: not a prefix"
                );
            }
        }
        for (index, name) in TABLES.iter().enumerate() {
            let (found, expected) = (std::mem::take(&mut rows[index]), &self.rows[index]);
            if &found != expected {
                let wrong = expected.iter().find(|(key, value)| found.get(*key) != Some(value));
                let extra = found.keys().find(|key| !expected.contains_key(*key));
                panic!(
                    "{place}: table {name} differs: expected {} rows, found {}; first wrong {:?}, first extra {:?}",
                    expected.len(),
                    found.len(),
                    wrong.map(|(key, _)| String::from_utf8_lossy(key).into_owned()),
                    extra.map(|key| String::from_utf8_lossy(key).into_owned()),
                );
            }
        }
        let report = db.check(&mut |_, _| ()).unwrap_or_else(|error| panic!("{place}: check: {error}"));
        assert!(report.findings.is_empty(), "{place}: {:?}", report.findings);
        db.close().unwrap_or_else(|error| panic!("{place}: close: {error}"));
    }
}

type Saw = Vec<(u64, Vec<u64>)>;

fn read_all(db: &Db, place: &str) -> (Rows, Saw) {
    let mut rows = Rows::default();
    for (index, name) in TABLES.iter().enumerate() {
        // A table that was never made is empty.
        let Ok(table) = db.table(name) else { continue };
        rows[index] = table
            .iter()
            .map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())))
            .collect::<Result<BTreeMap<_, _>, _>>()
            .unwrap_or_else(|error| panic!("{place}: scan of {name}: {error}"));
    }
    let saw = take_saw(&mut rows[0]);
    (rows, saw)
}
