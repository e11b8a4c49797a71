//! Opening a database with functions of the program that its tables name.

use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Functions, MergeOperators, Result};
use terrane_device::Disk;
use terrane_engine::Engine;

use crate::Db;

impl Db {
    /// Opens a database with functions that are not built in (merge operators, prefix extractors, key orders), by the names that its
    /// tables have them by.
    ///
    /// # Errors
    /// As [`Db::open_with`], and `Invalid` for a table that names a function that is not at hand, naming both.
    pub fn open_with_functions(
        path: impl AsRef<Path>,
        options: &Options,
        functions: impl Into<Functions>,
    ) -> Result<Db> {
        Ok(Db::from_engine(Engine::open_with(path.as_ref(), options, Env::real(), functions)?))
    }

    /// [`Db::open_with_functions`] on another device than the files of the operating system: for simulators and tests.
    ///
    /// # Errors
    /// As there.
    pub fn open_with_functions_on(
        disk: Arc<dyn Disk>,
        path: impl AsRef<Path>,
        options: &Options,
        env: Env,
        functions: impl Into<Functions>,
    ) -> Result<Db> {
        Ok(Db::from_engine(Engine::open_with_on(disk, path.as_ref(), options, env, functions)?))
    }

    /// [`Db::open_with_functions`] with merge operators.
    ///
    /// # Errors
    /// As there.
    pub fn open_with_operators(
        path: impl AsRef<Path>,
        options: &Options,
        operators: MergeOperators,
    ) -> Result<Db> {
        Db::open_with_functions(path, options, operators)
    }
}
