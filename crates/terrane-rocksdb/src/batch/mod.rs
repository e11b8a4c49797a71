//! Write batches. One is the bytes that RocksDB would hold ([`layout`]), which callers may take out and put in; when it is
//! written, it becomes a batch of the engine ([`apply`]).

mod apply;
mod handle;
mod iterate;
mod layout;
mod parts;

pub(crate) use handle::WriteBatch;
pub(crate) use layout::Change;
