//! Indexes over records in segments: the memtable, and the global index into which frozen memtables are
//! merged.
//!
//! The records belong to the journal and stay where they were written. This crate holds pointers to them,
//! sorted by key, and for each key its versions, newest first. See `docs/design/0002-radix-index.md`.
//!
//! * [`Memtable`]: one concurrent adaptive radix tree. Readers are wait-free, writers lock single nodes.
//! * [`MemtableCursor`]: walks every version in internal order, both ways, while writers continue.
//! * [`GlobalIndex`]: the same tree as a generation into which frozen memtables are merged by pointer.
//! * [`account`]: the memory of all indexes of a database together.
//!
//! Modules, lowest first: `account`, `arena` (memory of a tree), `record` (pointer to an
//! encoded record), `version` (the versions of a key), `node` (inner nodes), `segments` (the segments that a
//! memtable points to), `tree` (insert and find), `list` (the same for keys that a comparator orders),
//! `ahead` (prefetching for walks), `walk` (ordered iteration), `measure` (entries and bytes of a range),
//! `probe` (many lookups at once), `filter` (may a key be present?), `range_deletes` (which ranges of keys
//! are hidden). `unsafe` code is in `arena`, `record`, `version` and `node`, each with its rules at the top;
//! the other modules only call them under these rules.

pub mod account;
mod ahead;
mod arena;
mod cursor;
mod filter;
mod global;
mod list;
mod measure;
mod memtable;
mod node;
mod probe;
mod range_deletes;
mod record;
mod segments;
mod tree;
mod version;
mod walk;

pub use account::IndexMemory;
pub use cursor::MemtableCursor;
pub use global::GlobalIndex;
pub use measure::Measured;
pub use memtable::{Memtable, Version};
pub use range_deletes::{Around, RangeDeletes, RangeView, Stretch};
pub use segments::SegmentUse;

// Record pointers keep the segment's index in the 16 high bits of an address.
const _: () = assert!(usize::BITS == 64);
