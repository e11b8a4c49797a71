//! How much of the device overwrites take at most, while they run and behind a close (`docs/promises.md`).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use support::{number_from_env, open};
use terrane_base::options::Options;
use terrane_base::{Batch, Rng};
use terrane_device::MemDisk;
use terrane_engine::Bounds;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Bytes of a key.
const KEY_BYTES: u64 = 11;

/// Bytes used of the device.
struct Used {
    /// The most while rows were written.
    peak: u64,
    /// Behind the close.
    closed: u64,
    write_memory: u64,
}

/// Loads `data` bytes of rows in order, then puts ten times as many in random order, as fast as it can.
fn overwrite(data: u64, value_bytes: u64, options: &Options) -> Used {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), options).unwrap();
    let table = engine.catalog().require("default").unwrap();
    let (keys, mut rng, mut peak) = (data / (value_bytes + KEY_BYTES), Rng::new(7), 0);
    let mut value = vec![0; value_bytes as usize];
    let mut batch = Batch::new();
    for number in 0..keys * 11 {
        let key = if number < keys { number } else { rng.next_u64() % keys };
        // Bytes that no compression makes fewer.
        for bytes in value.chunks_mut(8) {
            bytes.copy_from_slice(&rng.next_u64().to_le_bytes()[..bytes.len()]);
        }
        batch.put(table.id, format!("key{key:08}").as_bytes(), &value).unwrap();
        if batch.bytes().len() as u64 >= 16 * KIB {
            engine.write(&batch, false).unwrap();
            batch.clear();
            peak = peak.max(disk.used_bytes());
        }
    }
    engine.write(&batch, false).unwrap();
    // The promise of a closed database holds where hidden versions are merged away.
    engine.compact_range(&table, &Bounds::all()).unwrap();
    engine.wait_until_quiescent().unwrap();
    let write_memory = engine.options().write_memory_bytes;
    engine.close().unwrap();
    Used { peak, closed: disk.used_bytes(), write_memory }
}

/// Larger by the environment: the figures of `docs/promises.md` are those of 8, 32 and 96 MiB.
#[test]
fn overwrites_take_at_most_the_stated_space() {
    let data = number_from_env("TERRANE_SPACE_MIB", 8) * MIB;
    let memory_bytes = number_from_env("TERRANE_SPACE_MEMORY_MIB", 16) * MIB;
    for value_bytes in [100, KIB, 16 * KIB] {
        let used = overwrite(data, value_bytes, &Options { memory_bytes, ..Options::default() });
        let (peak, closed, write_memory) = (used.peak, used.closed, used.write_memory);
        let said =
            format!("values of {value_bytes}: peak {peak}, closed {closed}, write memory {write_memory}");
        println!("{said}");
        assert!(peak > data, "{said}");
        assert!(peak <= 4 * data + 10 * write_memory, "{said}");
        assert!(closed <= 2 * data + MIB, "{said}");
    }
}
