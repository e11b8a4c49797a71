//! Repair: copies the readable part of a damaged database into a new one.

use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Functions, Result};
use terrane_device::{Disk, PosixDisk};
use terrane_engine::RepairReport;

use crate::functions::with_own;

/// Brings what can be proven readable of the database in `source` into a new one in `target`, a directory
/// that is missing or empty; `options` are those of the new database. The damaged one is only read. If its
/// journal is in persistent memory, `pmem_path` of `options` names its pool, which is only read too; the new
/// database has its journal in files. The report names the losses, by table and key range where
/// that is known, up to 16 MiB of them, and counts the rest.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let (damaged, repaired) = (dir.path().join("damaged"), dir.path().join("repaired"));
/// # terrane::Db::open(&damaged)?.put("k", "v")?;
/// let report = terrane::repair(&damaged, &repaired, &terrane::Options::default())?;
/// assert!(report.is_whole());
/// assert!(terrane::Db::open(&repaired)?.get("k")?.is_some());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `NotFound` if there is no database at `source` or no pool, `Busy` if a process has one of them open,
/// `Invalid` if there is something at `target`; those of writing the new database. Damage of the old one is
/// no error.
pub fn repair(source: impl AsRef<Path>, target: impl AsRef<Path>, options: &Options) -> Result<RepairReport> {
    repair_with_functions(source, target, options, Functions::default())
}

/// [`repair`] of a database whose tables name functions that are not built in. Without the order of its keys
/// a table is not repaired: with [`KeyOrders::with_any`](crate::KeyOrders::with_any) it is left out, as a
/// loss. A merge operator or prefix extractor that is missing is a loss of the report: the table has none in
/// the new database, and operands that are brought over cannot be read there.
///
/// ```
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// use terrane::{KeyOrders, Options};
/// let (damaged, repaired) = (dir.path().join("damaged"), dir.path().join("repaired"));
/// terrane::Db::open(&damaged)?.put("k", "v")?;
/// let orders = KeyOrders::new().with_any(); // leaves tables of unknown orders out
/// let report = terrane::repair_with_functions(&damaged, &repaired, &Options::default(), orders)?;
/// assert!(report.is_whole());
/// # Ok::<(), terrane::Error>(())
/// ```
///
/// # Errors
/// As [`repair`], and `Invalid` for a table whose key order is not registered, unless any order is accepted.
pub fn repair_with_functions(
    source: impl AsRef<Path>,
    target: impl AsRef<Path>,
    options: &Options,
    functions: impl Into<Functions>,
) -> Result<RepairReport> {
    repair_until(source, target, options, functions, |_| false)
}

/// [`repair_with_functions`], unless `is_cancelled` says so before it is done. It gets the number of versions
/// that were found so far, for a caller that shows them.
///
/// ```
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// use terrane::{Functions, Kind, Options, repair_until};
/// let (damaged, repaired) = (dir.path().join("damaged"), dir.path().join("repaired"));
/// terrane::Db::open(&damaged)?.put("k", "v")?;
/// let done = repair_until(&damaged, &repaired, &Options::default(), Functions::default(), |_| true);
/// assert_eq!(done.expect_err("it was cancelled").kind(), Kind::Cancelled);
/// std::fs::remove_dir_all(&repaired).expect("it is a part of the database, of no use");
/// # Ok::<(), terrane::Error>(())
/// ```
///
/// # Errors
/// As [`repair_with_functions`]; `Cancelled` if `is_cancelled` said so: remove `target` then, which has a
/// part.
pub fn repair_until(
    source: impl AsRef<Path>,
    target: impl AsRef<Path>,
    options: &Options,
    functions: impl Into<Functions>,
    is_cancelled: impl Fn(u64) -> bool,
) -> Result<RepairReport> {
    let disk: Arc<dyn Disk> = Arc::new(PosixDisk::new());
    let (source, target) = (source.as_ref(), target.as_ref());
    terrane_engine::repair_until_on(
        &disk,
        source,
        target,
        options,
        Env::real(),
        with_own(functions),
        &is_cancelled,
    )
}
