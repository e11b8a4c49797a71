//! Finding a RocksDB library: the path that the caller gives, then `TERRANE_ROCKSDB`, then the names that the
//! system's loader knows.
//!
//! A path that was given is the only one tried: a run must not measure another library than the one named.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::rocksdb::api::{self, Api};
use crate::error::{Error, Result};

/// The variable that names a library.
pub(super) const VARIABLE: &str = "TERRANE_ROCKSDB";

/// How to get one without compiling; part of the message if none is found.
const WAYS: &str = "\
Get one without compiling:
  * Debian, Ubuntu: apt install librocksdb-dev
  * the jar org.rocksdb:rocksdbjni of Maven Central holds it: version 10.10.1 with the classifier linux64, later versions \
in the jar without classifier; take the library out with
      unzip -p rocksdbjni-VERSION.jar librocksdbjni-linux64.so > librocksdb.so
Then name it: the option `library` of the engine in the plan of a bench, `--library` of an import, or \
TERRANE_ROCKSDB=/path/to/librocksdb.so";

/// Names that the loader is asked for, newest first; distributions ship the numbered ones without the
/// development package.
fn loader_names() -> Vec<PathBuf> {
    let numbered = (7..=12).rev().map(|major| PathBuf::from(format!("librocksdb.so.{major}")));
    // Debian's soname has the minor number.
    let debian = ["librocksdb.so.9.10", "librocksdb.so.8.9", "librocksdb.so.7.8"].map(PathBuf::from);
    std::iter::once(PathBuf::from("librocksdb.so")).chain(numbered).chain(debian).collect()
}

/// Finds and loads a library; `by`: the setting that names it, if there is one.
///
/// # Errors
/// `Unsupported` if none was named and none found, with the ways to get one; `Plan` if the one that was named
/// cannot be loaded, or a symbol is missing.
pub(super) fn find(named: Option<&Path>, by: &str) -> Result<Arc<Api>> {
    let variable = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    match (named, variable) {
        (Some(path), _) => load_named(path, &format!("{by} names")),
        (None, Some(path)) => load_named(&path, "TERRANE_ROCKSDB names"),
        (None, None) => load_any(),
    }
}

fn load_named(path: &Path, asked_by: &str) -> Result<Arc<Api>> {
    // The loader looks for a bare name in its own directories only, and people mean the one that lies here.
    let here = || std::path::absolute(path).ok().and_then(|path| Api::load(&path).ok());
    match Api::load(path).or_else(|why| here().ok_or(why)) {
        Ok(api) => api.map(Arc::new),
        Err(why) => Err(Error::plan(format!(
            "{asked_by} the RocksDB library {}, which cannot be loaded: {why}\n{WAYS}",
            path.display()
        ))),
    }
}

fn load_any() -> Result<Arc<Api>> {
    let mut incomplete = None;
    // A comparison with RocksDB must not be one of Terrane with itself.
    for name in loader_names().into_iter().filter(|name| !api::is_terranes_own(name)) {
        match Api::load(&name) {
            Ok(Ok(api)) => return Ok(Arc::new(api)),
            Ok(Err(error)) => incomplete = incomplete.or(Some(error)),
            Err(_) => {}
        }
    }
    Err(incomplete
        .unwrap_or_else(|| Error::unsupported("rocksdb", format!("library that could be found.\n{WAYS}"))))
}
