//! Objects that callers make before they open anything: options, caches, filter policies, environments.

mod backup;
mod cache;
mod cancelling;
mod codec;
mod compact_range;
mod environment;
mod histogram;
mod index_factory;
mod managers;
mod map;
mod more;
mod more_of_reads;
mod options;
mod presets;
mod read;
mod remote;
mod resources;
mod statistics;
mod table;
mod text;
mod told;
mod write_buffers;

pub(crate) use backup::{BackupEngineOptions, CreateBackupOptions};
pub(crate) use cache::{Cache, User, cache_bytes};
pub(crate) use codec::codec as codec_of;
pub(crate) use compact_range::CompactRangeOptions;
pub(crate) use environment::Environment;
pub(crate) use map::{AUTO_COMPACTION, database_options, extractor, order_of, table_changes, table_options};
pub(crate) use options::Options;
pub(crate) use read::{ReadOptions, WriteOptions};
pub(crate) use statistics::{Statistics, moment};
pub(crate) use table::{FilterPolicy, TableOptions};
pub(crate) use told::{For, Row, file_text, number_of_word, stored};
