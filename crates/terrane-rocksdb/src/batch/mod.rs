//! Write batches. One is the bytes that RocksDB would hold ([`layout`]), which callers may take out and put in; when it is
//! written, it becomes a batch of the engine ([`apply`]). [`indexed`]: with an index, to be read.

mod apply;
mod handle;
mod indexed;
mod iterate;
mod layout;
mod parts;
mod timestamps;

pub(crate) use handle::WriteBatch;
pub(crate) use indexed::{Indexed, IndexedHandle, Own, SharedBatch, given_out, pinned};
pub(crate) use layout::Change;
