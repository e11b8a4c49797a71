//! Threads run random transactions over few keys; what they saw is checked.
//!
//! `TERRANE_TRANSACTIONS_EDN` names a directory for the histories as Elle reads them (`elle.rs`).
//! `TERRANE_TRANSACTIONS` sets how many each thread begins, `TERRANE_TRANSACTIONS_SEED` their choices (not
//! the schedule).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use terrane::{Concurrency, Db, Durability, Isolation, Result, Transaction, TransactionOptions};
use terrane_base::Rng;

use crate::transactions::elle::{Elle, End};
use crate::transactions::history::{Id, Key, Seen, check};
use crate::transactions::support::{MODES, open_appending};

const KEYS: u64 = 6;
const THREADS: u64 = 4;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a whole number"))
}

fn list_of(bytes: &[u8]) -> Vec<Id> {
    bytes.chunks(4).map(|id| Id::from_le_bytes(id.try_into().unwrap())).collect()
}

/// One transaction: reads of keys and ranges, then appends; gives the processor away in between.
fn body(
    db: &Db,
    transaction: &mut Transaction,
    seen: &mut Seen,
    rng: &mut Rng,
    level: Isolation,
) -> Result<()> {
    let (table, id) = (db.default_table(), seen.id);
    let scans = rng.below(3) == 0;
    if scans {
        let mut lists: BTreeMap<Key, Vec<Id>> = (0..KEYS as Key).map(|key| (key, Vec::new())).collect();
        let rows = transaction.range(table, ..)?;
        let backward = rng.below(2) == 0;
        let rows: Vec<_> =
            if backward { rows.rev().collect::<Result<_>>()? } else { rows.collect::<Result<_>>()? };
        rows.iter().for_each(|(key, list)| drop(lists.insert(key[0], list_of(list))));
        seen.reads.extend(lists);
        std::thread::yield_now();
    }
    for _ in 0..rng.below(4) {
        let key = rng.below(KEYS) as Key;
        let list = transaction.get(table, [key])?.unwrap_or_default();
        seen.reads.push((key, list_of(&list)));
        std::thread::yield_now();
    }
    for _ in 0..rng.below(3) {
        let key = rng.below(KEYS) as Key;
        if seen.appends.contains(&key) {
            continue;
        }
        if rng.below(3) == 0 {
            // Without a read: what others append beside it must not be lost.
            transaction.merge(table, [key], id.to_le_bytes())?;
            seen.appends.push(key);
            continue;
        }
        let mut list = match level {
            Isolation::ReadCommitted => transaction.get_for_update(table, [key], true)?,
            _ => transaction.get(table, [key])?,
        }
        .unwrap_or_default()
        .into_vec();
        seen.reads.push((key, list_of(&list)));
        list.extend_from_slice(&id.to_le_bytes());
        transaction.put(table, [key], &list)?;
        seen.appends.push(key);
        std::thread::yield_now();
    }
    Ok(())
}

/// Returns the fault of the history, if it has one.
fn run(mode: Concurrency, level: Isolation) -> Option<String> {
    let (_dir, db) = open_appending();
    let (ids, seed) = (AtomicU32::new(1), number("TERRANE_TRANSACTIONS_SEED", 1));
    let lock_timeout = Duration::from_secs(60);
    let options =
        TransactionOptions { concurrency: mode, isolation: level, lock_timeout, ..Default::default() };
    let elle = Elle::default();
    let worker = |thread: u64| {
        let (mut rng, mut history) = (Rng::new(seed * 100 + thread), Vec::new());
        let elle = &elle;
        for _ in 0..number("TERRANE_TRANSACTIONS", 400) {
            let id = ids.fetch_add(1, Ordering::Relaxed);
            let (mut seen, invoked) = (Seen { id, ..Seen::default() }, elle.now());
            let mut transaction = db.transaction(&options).unwrap();
            let done = body(&db, &mut transaction, &mut seen, &mut rng, level);
            let is_given_up = rng.below(10) == 0;
            let end = match done.and_then(|()| {
                if is_given_up { Ok(None) } else { transaction.commit(Durability::Buffered).map(Some) }
            }) {
                Ok(Some(_)) => End::Ok,
                Ok(None) => End::Fail,
                Err(error) => {
                    assert!(error.kind().is_worth_another_run(), "{error}");
                    End::Fail
                }
            };
            elle.note(thread, invoked, end, &seen);
            if end == End::Ok {
                history.push(seen);
            }
        }
        history
    };
    let history: Vec<Seen> = std::thread::scope(|scope| {
        let worker = &worker;
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || worker(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let last =
        (0..KEYS as Key).map(|key| (key, list_of(&db.get([key]).unwrap().unwrap_or_default()))).collect();
    assert!(history.iter().any(|seen| !seen.appends.is_empty()), "nothing was committed");
    elle.write(&format!("{mode:?}-{level:?}"));
    check(&history, &last, level).err().map(|anomaly| format!("{mode:?} {level:?}: {anomaly}"))
}

/// Both modes, also where the history of the first one is wrong: each is written for Elle.
fn run_both(level: Isolation) {
    let wrong: Vec<_> = MODES.into_iter().filter_map(|mode| run(mode, level)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn histories_are_serializable() {
    run_both(Isolation::Serializable);
}

#[test]
fn histories_of_snapshots_have_no_skewed_reads() {
    run_both(Isolation::Snapshot);
}

#[test]
fn histories_that_read_committed_rows_have_no_dirty_reads() {
    run_both(Isolation::ReadCommitted);
}
