//! Bytes to values and back: pure, and total on hostile input.
//!
//! Layer 1: never reads a file, never allocates more than its input justifies, never panics on input. Every
//! decoder returns an `Error` of kind `Corrupt` for bytes that are not what it expects. `docs/format/` holds a
//! page for each module. Unsafe code only in `rank/simd.rs`: vector instructions.

pub mod backup;
pub mod block;
pub mod checksum;
pub mod codec;
pub mod dump;
pub mod extent;
pub mod external;
pub mod filter;
mod heads;
pub mod index;
pub mod manifest;
pub mod prepared;
pub mod range_deletes;
pub mod rank;
pub mod segment;
mod wire;
