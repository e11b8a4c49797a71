//! Deletes most of a table by one record, goes on overwriting the rest, and shows when the space comes back,
//! and what scans over the deleted keys cost meanwhile.
//!
//! `cargo run --release --example range_delete_space -- DIRECTORY [KEYS [SECONDS [OPTION=VALUE ..]]]` (a
//! directory that is not there yet; 100000 keys, 1 second)

use std::path::Path;
use std::time::Duration;

use terrane::{Db, Env, Options, Result};
use terrane_base::Rng;

const VALUE_BYTES: usize = 200;
/// Overwrites between two looks at the database.
const STRIDE: u64 = 1_000;

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Values that no compression makes small.
fn value(number: u64) -> [u8; VALUE_BYTES] {
    let mut rng = Rng::new(number);
    std::array::from_fn(|_| rng.next_u64() as u8)
}

fn run(dir: &Path, keys: u64, seconds: u64, options: &Options) -> Result<()> {
    let db = Db::open_with(dir, options)?;
    let table = db.default_table().clone();
    for number in 0..keys {
        table.put(key(number), value(number))?;
    }
    db.flush()?;
    db.wait_until_quiescent()?;
    let live = || db.shape().store_live_bytes;
    let full = live();
    let (first, last) = (key(0), key(keys / 10 * 9));
    table.delete_range(first, last)?;
    let clock = Env::real().clock;
    let (start, end) = (clock.now(), clock.now() + Duration::from_secs(seconds));
    let (mut written, mut half) = (0, None);
    let (mut scans, mut scan_time) = (0u32, Duration::ZERO);
    while clock.now() < end {
        for _ in 0..STRIDE {
            written += 1;
            let number = keys / 10 * 9 + written * 7919 % (keys / 10);
            table.put(key(number), value(number + written))?;
        }
        let before = clock.now();
        assert_eq!(table.range(&first[..]..&last[..]).count(), 0, "all of them are deleted");
        (scans, scan_time) = (scans + 1, scan_time + (clock.now() - before));
        if half.is_none() && live() < full / 2 {
            half = Some(clock.now() - start);
        }
    }
    let megabytes = |bytes: u64| bytes / 1_000_000;
    println!("before: {} MB; afterwards: {} MB", megabytes(full), megabytes(live()));
    match half {
        Some(time) => println!("half of the space had come back after {:.2} s", time.as_secs_f64()),
        None => println!("half of the space did not come back in {seconds} s"),
    }
    let micros = scan_time.as_secs_f64() * 1e6 / f64::from(scans.max(1));
    println!("{written} overwrites, a scan over deleted rows took {micros:.1} us");
    let stats = db.stats();
    println!(
        "written by flushes {} MB, by compactions {} MB",
        megabytes(stats.flush_bytes_written),
        megabytes(stats.compaction_bytes_written)
    );
    print!("{}", db.shape());
    db.close()
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(dir) = arguments.next() else {
        eprintln!("usage: range_delete_space DIRECTORY [KEYS [SECONDS [OPTION=VALUE ..]]]");
        return Ok(());
    };
    let mut number = |default| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (keys, seconds) = (number(100_000).max(1_000), number(1));
    let mut options = Options { memory_bytes: 64 << 20, ..Options::default() };
    for argument in arguments {
        let (name, value) = argument.split_once('=').unwrap_or((&argument, "true"));
        options.set(name, value)?;
    }
    run(Path::new(&dir), keys, seconds, &options)
}
