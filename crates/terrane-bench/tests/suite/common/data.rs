//! Data for the tests of generators and traces.

use terrane_bench::plan::{Data, ValueSize};

/// Data of `keys` keys of 16 bytes and values of 100.
pub(crate) fn data(keys: u64) -> Data {
    Data { keys, key_bytes: 16, value: ValueSize::Fixed(100), entropy: 0.5, tables: 1, hashed_keys: false }
}
