//! The tests of the parts that are elsewhere.

mod buckets;
mod probes;
mod retries;
mod support;
