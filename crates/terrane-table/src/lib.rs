//! Extent writer and reader, block search, filters, cache, iterators.

mod writer;

pub use writer::{ExtentWriter, WriterSettings};
