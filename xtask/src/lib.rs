//! The house rules and the test suites. Not part of the product: knows the tree, never the engine.
//!
//! * [`tree`]: the text files of the repository as one value, so that rules are pure and tests make trees up.
//! * [`source`]: Rust text with comments and literals blanked out. [`imports`]: the names that its `use`
//!   items bring in. [`tidy`]: the rules. [`suites`]: the steps of the tests. [`mod@test`]: builds and runs
//!   them, by [`runner`] beside each other, and closes with the table of [`report`]. [`sizes`]: the sizes of
//!   the tests whose cases follow from seeds.
//! * [`licences`]: of everything in `Cargo.lock`. [`tools`]: commands that need more than a stable toolchain.
//! * [`planted`]: the mutation suite. [`schedules`]: the whole engine under chosen schedules. [`stress`]:
//!   tests in loops beside each other, delayed at random. [`busy`]: all tests again and again on a busy
//!   machine. [`rng`]: the generator of tests, benchmarks and tools.
//! * [`programs`]: test programs that cargo builds. [`child`]: one of them as a process. [`outcome`]: its
//!   output.
//! * [`abi`]: files that are made of the table of RocksDB's C interface.
//! * [`install`]: that interface as an installed library. [`golden`]: stores that a version leaves for later
//!   ones to open.
#![expect(clippy::disallowed_methods, reason = "reads the tree and times the suites; no part of the engine")]

pub mod abi;
pub mod busy;
pub mod child;
pub mod golden;
pub mod imports;
pub mod install;
pub mod licences;
pub mod manifest;
pub mod outcome;
pub mod planted;
pub mod programs;
pub mod report;
#[path = "../../crates/terrane-base/src/rng.rs"]
pub mod rng;
pub mod runner;
pub mod schedules;
pub mod sizes;
pub mod source;
pub mod stress;
pub mod suites;
pub mod test;
pub mod tidy;
pub mod tools;
pub mod tree;
