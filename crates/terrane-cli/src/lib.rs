//! The `terrane` command.
pub mod import;
