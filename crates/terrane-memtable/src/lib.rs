//! Index over records in segments: the memtable, and the global index that frozen memtables merge into.
//!
//! The records are the journal's and stay where they were written; this crate holds pointers to them, sorted
//! by key, and for each key its versions, newest first. See `docs/design/0002-radix-index.md`.
//!
//! * [`Memtable`]: one concurrent adaptive radix tree. Readers are wait-free, writers lock single nodes.
//! * [`MemtableCursor`]: every version in internal order, both ways, while writers go on.
//! * [`GlobalIndex`]: the same tree as a generation that takes in frozen memtables by pointer.
//!
//! Modules, lowest first: `account` (how much memory indexes take), `arena` (memory of a tree), `record` (pointer to an encoded record), `version` (the
//! versions of a key), `node` (inner nodes), `segments` (what a memtable points into), `tree` (insert and
//! find), `list` (the same for keys that a comparator orders), `ahead` (what a walk asks for), `walk` (ordered iteration), `measure` (how much is in a range), `probe` (many lookups at once), `filter` (may a
//! key be there?), `range_deletes` (which stretches of keys are hidden). `unsafe` lives in `arena`, `record`,
//! `version` and `node`, each with its rules on top; the others only call across those rules.

mod account;
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
