//! The tests of the parts that are elsewhere.

mod buckets;
mod faults;
mod garbage;
mod hostile;
mod probes;
mod retries;
mod stores;
mod support;
mod writers;
