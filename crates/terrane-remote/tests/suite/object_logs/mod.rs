//! Buckets in a log: what was acknowledged is there after any fault, damage is an error, and files go.

mod cleaning;
mod damage;
mod faults;
mod journals;
mod power;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use terrane_base::Result;
use terrane_base::env::Env;
use terrane_device::{Disk, MemDisk};
use terrane_remote::bucket::{Bucket, Create, LogBucket, LogSettings};

use crate::support::pattern;

/// Settings with which tests fill several files fast.
const SMALL: LogSettings = LogSettings { file_bytes: 8192, objects_max: 4000 };

fn dir() -> &'static Path {
    Path::new("/log")
}

fn open(disk: &Arc<dyn Disk>) -> Result<LogBucket> {
    LogBucket::open(Arc::clone(disk), dir(), SMALL, Env::real())
}

fn on(disk: MemDisk) -> Arc<dyn Disk> {
    Arc::new(disk)
}

fn name(number: u64) -> String {
    format!("db/journal/{number:020}")
}

/// The bytes of an object: of another length for each number.
fn bytes(number: u64) -> Vec<u8> {
    pattern(100 + (number * 37 % 900) as usize, number)
}

fn create(log: &LogBucket, number: u64) -> Result<Create> {
    log.create(&name(number), &bytes(number))
}

fn delete(log: &LogBucket, numbers: std::ops::Range<u64>) -> Result<()> {
    log.delete(&numbers.map(name).collect::<Vec<_>>())
}

/// The objects that there are, each with its bytes.
fn found(log: &LogBucket) -> BTreeMap<String, Bytes> {
    let listed = log.list("db/journal", None).expect("lists");
    let read = |name: String| {
        let bytes = log.get(&name, 1 << 20).expect("it is listed");
        (name, bytes)
    };
    listed.into_iter().map(|object| read(object.name)).collect()
}

/// Checks that there is an object for each of these numbers, with its bytes.
#[track_caller]
fn check(log: &LogBucket, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        let read = log.get(&name(number), 1 << 20).expect("it was acknowledged");
        assert!(read == bytes(number), "the bytes of object {number}");
    }
}

/// Outcomes that callers of a log got.
#[derive(Debug, Default)]
struct Outcomes {
    /// Acknowledged, and no deletion was tried.
    there: Vec<u64>,
    /// The deletion was acknowledged.
    gone: Vec<u64>,
}

/// Creates objects, alone and several at once, and deletes some, until a call fails.
fn history(log: &LogBucket) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for round in 0..12 {
        let first = round * 10;
        let begun: Vec<_> = (first..first + 4)
            .map(|number| (number, log.begin_create(&name(number), vec![bytes(number).into()])))
            .collect();
        let alone = (first + 4..first + 7).map(|number| (number, create(log, number)));
        let pairs: Vec<_> =
            begun.into_iter().map(|(number, pending)| (number, pending.wait())).chain(alone).collect();
        for (number, outcome) in pairs {
            let Ok(created) = outcome else { return outcomes };
            assert_eq!(created, Create::Created);
            outcomes.there.push(number);
        }
        if round % 3 == 2 {
            // All but one of the rounds before, so that files go and one is copied.
            let going: Vec<u64> = outcomes.there.iter().copied().filter(|number| *number % 50 != 3).collect();
            outcomes.there.retain(|number| !going.contains(number));
            let names: Vec<String> = going.iter().copied().map(name).collect();
            match log.delete(&names) {
                Ok(()) => outcomes.gone.extend(going),
                Err(_) => return outcomes,
            }
        }
    }
    outcomes
}

/// Checks the objects of a log against the outcomes that callers got, and that it goes on.
#[track_caller]
fn check_outcomes(log: &LogBucket, outcomes: &Outcomes) {
    check(log, outcomes.there.iter().copied());
    let found = found(log);
    for gone in &outcomes.gone {
        assert!(!found.contains_key(&name(*gone)), "object {gone} was deleted");
    }
    for (found, read) in &found {
        let number: u64 = found["db/journal/".len()..].parse().expect("a number");
        assert!(*read == bytes(number), "the bytes of object {number}");
    }
    assert_eq!(create(log, 5000).expect("it goes on"), Create::Created);
}
