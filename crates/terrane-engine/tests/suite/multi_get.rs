//! A multi-get answers as a get for each of its keys would, whichever part of the data is cached, and reads
//! missing blocks in batches.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::sync::Arc;

use support::{get, open, small_options};
use terrane_base::options::Options;
use terrane_base::{Kind, Rng};
use terrane_device::{Call, Failure, Fault, FaultyDisk, MemDisk};
use terrane_engine::{Engine, ReadMode, Table};

const KEYS: u64 = 16_000;

fn key(number: u64) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

/// Less memory than data, so that batches evict what they are about to use.
fn options() -> Options {
    Options { block_bytes: 4 << 10, ..small_options() }
}

/// A closed database with two versions of some keys and none of others, over several levels.
fn filled() -> MemDisk {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &options()).unwrap();
    let table = engine.catalog().require("default").unwrap();
    let mut numbers = Rng::new(3);
    for round in 0..2u8 {
        for _ in 0..KEYS {
            let number = numbers.below(KEYS);
            if numbers.one_in(9) {
                engine.delete(table.id, &key(number), false).unwrap();
            } else {
                engine.put(table.id, &key(number), &[round; 1200], false).unwrap();
            }
        }
        engine.flush().unwrap();
    }
    engine.wait_until_quiescent().unwrap();
    engine.close().unwrap();
    disk
}

fn ask(engine: &Engine, table: &Arc<Table>, keys: &[Vec<u8>]) -> Vec<Option<Vec<u8>>> {
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    engine.multi_get(table, &keys, ReadMode::default()).unwrap()
}

#[test]
fn a_multi_get_answers_as_single_gets_do() {
    let disk = filled();
    // The one whose cache is cold and small is tested; the other, read key by key, has the expected values.
    let expected = open(disk.kill(), &options()).unwrap();
    let engine = open(disk, &options()).unwrap();
    let table = engine.catalog().require("default").unwrap();
    let model = expected.catalog().require("default").unwrap();
    let mut numbers = Rng::new(8);
    for _ in 0..60 {
        let count = 1 + numbers.below(700);
        let keys: Vec<_> = (0..count).map(|_| key(numbers.below(KEYS + KEYS / 8))).collect();
        let found = ask(&engine, &table, &keys);
        for (key, found) in keys.iter().zip(found) {
            assert!(found == get(&expected, &model, key).unwrap(), "{:?}", key.escape_ascii());
        }
    }
    let stats = engine.stats();
    assert!(stats.device_user_batches > 0, "what was lacking came in batches");
    engine.close().unwrap();
    expected.close().unwrap();
}

#[test]
fn one_batch_reads_the_missing_blocks_of_many_keys() {
    let engine = open(filled(), &Options { memory_bytes: 64 << 20, ..options() }).unwrap();
    let table = engine.catalog().require("default").unwrap();
    // The second time all filters and index blocks are here, and of these keys only the blocks are lacking.
    let keys = |step: u64| (0..KEYS / 64).map(|number| key(number * 64 + step)).collect::<Vec<_>>();
    ask(&engine, &table, &keys(0));
    let before = engine.stats();
    ask(&engine, &table, &keys(31));
    let after = engine.stats();
    let reads = after.device_user_reads - before.device_user_reads;
    let batches = after.device_user_batches - before.device_user_batches;
    assert!(reads > 100, "{reads} reads");
    assert!(batches > 0 && batches * 16 < reads, "{reads} reads in {batches} batches");
    engine.close().unwrap();
}

#[test]
fn a_device_that_refuses_is_an_error_and_heals() {
    let disk = FaultyDisk::new(Arc::new(filled()));
    let engine = open(disk.clone(), &options()).unwrap();
    let table = engine.catalog().require("default").unwrap();
    let keys: Vec<_> = (0..400).map(|number| key(number * 40)).collect();
    let borrowed: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    disk.fail(Fault::new(Call::Read, Failure::Broken).on(".ext").lasting());
    let error = engine.multi_get(&table, &borrowed, ReadMode::default()).unwrap_err();
    assert_eq!(error.kind(), Kind::Io, "{error}");
    disk.heal();
    let found = ask(&engine, &table, &keys);
    for (key, found) in keys.iter().zip(found) {
        assert!(found == get(&engine, &table, key).unwrap(), "{:?}", key.escape_ascii());
    }
    engine.close().unwrap();
}
