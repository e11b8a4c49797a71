//! The pool of persistent memory with the journal of a damaged database.
//!
//! The option `pmem_path` names it. It is only read, as the database is; the new database has its journal in
//! files.

use std::path::Path;
use std::sync::Arc;

use terrane_base::options::{Options, PoolPath};
use terrane_base::{Error, Result};
use terrane_device::Disk;
use terrane_journal::pm::SalvagedPool;
use terrane_levels::directory::JOURNAL;

/// The device of the damaged database, with the segments that can be read of its pool if it has one, and what
/// is damaged in the pool.
///
/// # Errors
/// As [`SalvagedPool::open`].
pub(super) fn with_pool(
    disk: &Arc<dyn Disk>,
    source: &Path,
    options: &Options,
) -> Result<(Arc<dyn Disk>, Vec<Error>)> {
    let Some(path) = options.pmem_path.get() else { return Ok((disk.clone(), Vec::new())) };
    let pool = SalvagedPool::open(Path::new(path), disk.clone(), &source.join(JOURNAL))?;
    Ok((pool.disk, pool.damage))
}

/// The options of the new database: without the pool.
pub(super) fn without_pool(options: &Options) -> Options {
    let (pmem_path, pmem_bytes, pmem_full_to_file) = (PoolPath::none(), 0, false);
    Options { pmem_path, pmem_bytes, pmem_full_to_file, ..options.clone() }
}
