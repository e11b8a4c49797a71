//! What `cargo xtask abi --write` makes of `abi.toml`.

pub(crate) mod names;
pub(crate) mod objects;
pub(crate) mod options;
pub(crate) mod read_options;
pub(crate) mod stubs_1;
pub(crate) mod stubs_2;
pub(crate) mod table_options;
pub(crate) mod write_options;
