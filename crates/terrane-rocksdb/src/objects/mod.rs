//! Objects that callers make before they open anything: options, caches, filter policies, environments.

mod cache;
mod cancelling;
mod environment;
mod managers;
mod map;
mod metadata;
mod more;
mod more_of_reads;
mod options;
mod presets;
mod read;
mod resources;
mod table;
mod text;
mod write_buffers;

pub(crate) use cache::Cache;
pub(crate) use map::{database_options, extractor, table_options};
pub(crate) use options::Options;
pub(crate) use read::{ReadOptions, WriteOptions};
pub(crate) use table::{FilterPolicy, TableOptions};
