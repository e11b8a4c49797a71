//! Encoders and decoders of every stored structure: pure functions that accept any input.
//!
//! Layer 1. A decoder never reads a file, never allocates more than its input justifies, and never panics;
//! for bytes that it does not expect it returns an `Error` of kind `Corrupt`. `docs/format/` has a page for
//! each module. Unsafe code is in `rank/simd.rs` only: vector instructions.

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
pub mod journal_object;
pub mod manifest;
pub mod metrics_page;
pub mod object;
pub mod pmem_region;
pub mod prepared;
pub mod range_deletes;
pub mod rank;
pub mod segment;
pub mod wire;
