//! Modules that `cargo xtask abi --write` makes from `abi.toml`.

pub(crate) mod backup_engine_options;
pub(crate) mod compact_files_options;
pub(crate) mod compact_range_options;
pub(crate) mod create_backup_options;
pub(crate) mod ignored;
pub(crate) mod names;
pub(crate) mod objects;
pub(crate) mod options;
pub(crate) mod read_options;
pub(crate) mod stubs_1;
pub(crate) mod table_options;
pub(crate) mod values;
pub(crate) mod write_options;
