//! Helpers of the engine's tests: choices from a seed, small limits, a device that takes images of itself.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

pub mod gate;
pub mod going_on;
pub mod oracle;
pub mod stored;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Functions, Result};
use terrane_device::Disk;
use terrane_engine::{Bounds, Engine, OpenRequest, ReadMode, Row, Table};

/// Not a figure: a condition that fails after as many looks, a millisecond and more apart, never holds.
pub const LOOKS_MAX: u32 = 200_000;

/// Where the database lies on a test's device.
pub const DIR: &str = "/db";

/// The smallest limits, so that a short history freezes, flushes, compacts and trims. A close leaves records
/// in memory to the journal, so that openings have something to replay.
pub fn small_options() -> Options {
    Options {
        memory_bytes: 16 << 20,
        write_memory_bytes: 4 << 20,
        segment_bytes: 64 << 10,
        memtable_bytes: 64 << 10,
        global_index_bytes: 96 << 10,
        level_base_bytes: 128 << 10,
        block_bytes: 1 << 10,
        level_fanout: 2,
        background_threads: 2,
        close_flush: false,
        ..Options::default()
    }
}

pub fn open(disk: impl Disk + 'static, options: &Options) -> Result<Arc<Engine>> {
    Engine::open_on(Arc::new(disk), Path::new(DIR), options, Env::real())
}

/// The request of an opening with the functions that are built in.
pub fn request(disk: Arc<dyn Disk>, options: &Options) -> OpenRequest<'_> {
    OpenRequest { disk, dir: Path::new(DIR), options, env: Env::real(), functions: Functions::default() }
}

/// Every row of a table, read forward; panics if backward differs.
pub fn rows(engine: &Arc<Engine>, table: &Table) -> Result<Vec<Row>> {
    let seq = engine.visible();
    let forward: Vec<Row> = engine.range(table, Bounds::all(), seq).collect::<Result<_>>()?;
    let mut backward: Vec<Row> = engine.range(table, Bounds::all(), seq).rev().collect::<Result<_>>()?;
    backward.reverse();
    assert!(forward == backward, "table {:?}: a backward scan differs from a forward one", table.name);
    Ok(forward)
}

/// The value of a key.
pub fn get(engine: &Engine, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut value = Vec::new();
    Ok(engine.get(table, key, ReadMode::default(), &mut value)?.then_some(value))
}

/// A number from the environment, to scale a test up, or to repeat one seed of it.
pub fn number_from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a whole number"))
}

/// Where a test begins that takes calls, cuts or bytes one by one, and its step: with `TERRANE_CUTS_PART` it
/// takes one of so many, from the one that `TERRANE_CUTS_START` chooses; without it, all.
pub fn part_of_cuts() -> (u64, u64) {
    let step = number_from_env("TERRANE_CUTS_PART", 1);
    assert!(step > 0, "TERRANE_CUTS_PART is 1 or more");
    (number_from_env("TERRANE_CUTS_START", 0) % step, step)
}

/// Those of calls, cuts or bytes that [`part_of_cuts`] says.
pub fn chosen(all: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
    let (first, step) = part_of_cuts();
    all.skip(first as usize).step_by(step as usize)
}

/// Looks until it is so; a failure says what did not come.
pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let clock = Env::real().clock;
    for _ in 0..LOOKS_MAX {
        if is_so() {
            return;
        }
        clock.sleep(Duration::from_millis(1));
    }
    panic!("{what}: it never comes to that");
}

/// The next message of the channel; `None` if none comes. It waits in many parts: if the machine stands
/// still, that is one of them.
pub fn awaited<T>(events: &Receiver<T>) -> Option<T> {
    (0..100).find_map(|_| match events.recv_timeout(Duration::from_millis(600)) {
        Err(RecvTimeoutError::Timeout) => None,
        come => Some(come.ok()),
    })?
}
