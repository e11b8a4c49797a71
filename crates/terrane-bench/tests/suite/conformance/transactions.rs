//! Transactions of the engines that have them: one that meets another commits, or is refused and leaves
//! nothing.

use terrane_bench::Error;
use terrane_bench::engine::{self, Change, Engine, Session};

use crate::conformance::suite::{FULL, get, options};

fn open(name: &str, mode: &[(&str, &str)]) -> Option<(tempfile::TempDir, Box<dyn Engine>)> {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = options(directory.path(), FULL);
    options.options = mode.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    match engine::open(name, &options) {
        Ok(engine) => Some((directory, engine)),
        Err(error @ (Error::Unsupported { .. } | Error::Plan(_))) if name == "rocksdb" => {
            println!("NOT RUN: {error}");
            None
        }
        Err(error) => panic!("{name}: {error}"),
    }
}

fn set(session: &mut dyn Session, value: &[u8], mut seen: impl FnMut(&[u8])) -> bool {
    let change = |table, key| Change { table, key, value };
    let changes = [change(1, b"a"), change(2, b"b")];
    session.transact(&changes, false, &mut |_, value| seen(value)).expect("no error but a refusal")
}

/// A second transaction begins and ends inside the first one, and changes the same keys.
fn meet(name: &str, mode: &[(&str, &str)], is_first_refused: bool) {
    let Some((_directory, engine)) = open(name, mode) else { return };
    let (mut first, mut second) = (engine.session().expect("session"), engine.session().expect("session"));
    assert!(set(&mut *first, b"old", |_| panic!("nothing is there yet")));
    let mut is_second_done = None;
    let is_first_done = set(&mut *first, b"first", |_| {
        is_second_done.get_or_insert_with(|| set(&mut *second, b"second", |value| assert_eq!(value, b"old")));
    });
    assert_eq!(
        (is_first_done, is_second_done),
        (!is_first_refused, Some(is_first_refused)),
        "{name} {mode:?}"
    );
    let winner: &[u8] = if is_first_refused { b"second" } else { b"first" };
    for (table, key) in [(1, b"a"), (2, b"b")] {
        assert_eq!(get(&mut *first, table, key).as_deref(), Some(winner), "{name} {mode:?}");
    }
    drop((first, second));
    engine.close().expect("close");
}

#[test]
fn terrane_transactions() {
    for isolation in ["serializable", "snapshot", "read_committed"] {
        meet("terrane", &[("transactions", "optimistic"), ("isolation", isolation)], true);
        meet("terrane", &[("transactions", "pessimistic"), ("isolation", isolation)], false);
    }
}

#[cfg(feature = "rocksdb")]
#[test]
fn rocksdb_transactions() {
    for isolation in ["snapshot", "read_committed"] {
        meet("rocksdb", &[("transactions", "optimistic"), ("isolation", isolation)], true);
        meet("rocksdb", &[("transactions", "pessimistic"), ("isolation", isolation)], false);
    }
}

#[cfg(feature = "lmdb")]
#[test]
fn an_engine_without_transactions_says_so() {
    let Some((_directory, engine)) = open("lmdb", &[]) else { return };
    let mut session = engine.session().expect("session");
    let change = Change { table: 0, key: b"k", value: b"v" };
    let refused = session.transact(&[change], false, &mut |_, _| {});
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
}
