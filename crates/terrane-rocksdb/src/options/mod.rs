//! Options that callers set before they open a database, and their translation to the engine's
//! ([`to_engine`]).
//!
//! Number options are fields that `abi.toml` lists; [`object_options`] holds the others. [`options_file`]
//! reads and writes them as RocksDB's OPTIONS text. [`objects`] are caches, environments and the like, which
//! several options objects share.

pub(crate) mod backup;
pub(crate) mod blobs;
pub(crate) mod codec;
pub(crate) mod compact_range;
#[macro_use]
pub(crate) mod ignored;
pub(crate) mod database;
pub(crate) mod object_options;
pub(crate) mod objects;
pub(crate) mod options_file;
pub(crate) mod presets;
pub(crate) mod read_object_options;
pub(crate) mod read_write;
pub(crate) mod snapshot;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod to_engine;

pub(crate) use backup::{BackupEngineOptions, CreateBackupOptions};
pub(crate) use compact_range::{CompactFilesOptions, CompactRangeOptions};
pub(crate) use database::Options;
pub(crate) use read_write::{ReadOptions, WriteOptions};
pub(crate) use table::TableOptions;
