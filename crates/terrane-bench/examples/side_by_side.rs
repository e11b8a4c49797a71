//! A tiny comparison of the adapters themselves: does one of them cost what its engine does not? No
//! benchmark: one thread, one run, no histogram.
//!
//! `cargo run --release -p terrane-bench --example side_by_side -- [engine[:option=value,...] ...]`

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use terrane_bench::engine::{self, Control, Direction, EngineOptions, Session, Write};

const KEYS: u64 = 200_000;
const VALUE_BYTES: usize = 100;

fn options(directory: &Path, named: &str) -> EngineOptions {
    let pairs = named.split(',').filter_map(|pair| pair.split_once('='));
    EngineOptions {
        directory: directory.to_owned(),
        memory_bytes: 128 << 20,
        tables: 1,
        direct_io: false,
        background_threads: 0,
        records: KEYS,
        data_bytes: KEYS * (16 + VALUE_BYTES as u64),
        value_bytes_max: VALUE_BYTES as u64,
        level_fanout: 0,
        filter_bits_per_key: 10,
        options: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<BTreeMap<_, _>>(),
        library: None,
    }
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Numbers below `KEYS`, each once, in an order that is not that of the keys.
fn shuffled() -> impl Iterator<Item = u64> {
    (0..KEYS).map(|index| index * 77_773 % KEYS)
}

#[expect(clippy::disallowed_methods, reason = "a tool that times peers")]
fn timed(name: &str, operations: u64, run: impl FnOnce()) {
    let start = Instant::now();
    run();
    let seconds = start.elapsed().as_secs_f64();
    print!(
        "  {name} {:>7.0} k/s {:>6.0} ns",
        operations as f64 / seconds / 1000.0,
        seconds * 1e9 / operations as f64
    );
}

fn reads(session: &mut dyn Session) {
    let mut sum = 0;
    timed("get", KEYS, || {
        for number in shuffled() {
            let found = session.get(0, &key(number), &mut |_, value| sum += u64::from(value[50]));
            assert!(found.expect("get"));
        }
    });
    timed("miss", KEYS, || {
        for number in shuffled() {
            let mut absent = key(number);
            absent[15] ^= 0x80;
            absent[8] = 1;
            assert!(!session.get(0, &absent, &mut |_, _| {}).expect("get"));
        }
    });
    timed("multi32", KEYS, || {
        let numbers: Vec<u64> = shuffled().collect();
        for chunk in numbers.chunks(32) {
            let keys: Vec<_> = chunk.iter().map(|number| key(*number)).collect();
            let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            let found = session.multi_get(0, &keys, &mut |_, value| sum += u64::from(value[50]));
            assert_eq!(found.expect("multi-get"), keys.len() as u64);
        }
    });
    timed("seek8", KEYS / 4, || {
        for number in shuffled().take(KEYS as usize / 4) {
            session
                .scan(0, &key(number), 8, Direction::Forward, &mut |_, value| sum += u64::from(value[50]))
                .expect("scan");
        }
    });
    timed("row", KEYS, || {
        let rows = session.scan_all(0, Direction::Forward, &mut |_, value| {
            sum += u64::from(value[50]);
            true
        });
        assert_eq!(rows.expect("scan"), KEYS);
    });
    black_box(sum);
}

fn run(choice: &str) {
    let (name, named) = choice.split_once(':').unwrap_or((choice, ""));
    let directory = tempfile::tempdir().expect("a directory");
    let engine = match engine::open(name, &options(directory.path(), named)) {
        Ok(engine) => engine,
        Err(error) => return println!("{choice}: {error}"),
    };
    print!("{choice:<10} {:<8}", engine.opened().version.split(' ').next().unwrap_or_default());
    let mut session = engine.session().expect("session");
    let value: Vec<u8> = (0..VALUE_BYTES).map(|byte| (byte * 37 % 251) as u8).collect();
    timed("load100", KEYS, || {
        let numbers: Vec<u64> = shuffled().collect();
        for chunk in numbers.chunks(100) {
            let keys: Vec<_> = chunk.iter().map(|number| key(*number)).collect();
            let writes: Vec<_> = keys.iter().map(|key| Write::Put(key, &value)).collect();
            session.write(0, &writes, false).expect("write");
        }
    });
    timed("put", KEYS, || {
        for number in shuffled() {
            session.write(0, &[Write::Put(&key(number), &value)], false).expect("write");
        }
    });
    drop(session);
    for step in [Control::Flush, Control::WaitUntilQuiescent] {
        drop(engine.control(step));
    }
    reads(&mut *engine.session().expect("session"));
    println!();
    engine.close().expect("close");
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let default = ["rocksdb", "lmdb", "fjall", "redb", "bftree", "null"].map(str::to_owned);
    let choices = if given.is_empty() { default.to_vec() } else { given };
    choices.iter().for_each(|choice| run(choice));
}
