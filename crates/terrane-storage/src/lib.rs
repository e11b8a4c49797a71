//! The store of extents: space in data files, whole-extent writes, positional reads.
//!
//! Layer 4: knows slots and bytes, not what an extent holds. The layout of a store's directory is in
//! `docs/format/data-file.md`.
//!
//! * [`store`]: the trait [`Store`].

pub mod store;

pub use store::{EXTENT_SLOTS_MAX, SLOT_BYTES, Store, StoreUsage};
