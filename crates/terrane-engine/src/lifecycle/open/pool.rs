//! The pool of persistent memory that holds a database's journal, if an option names one.
//!
//! With the pool, the device of the database is one whose segment files are zones; all that reads segments
//! through it works as with files. What opens the directory by itself, without the option, does not find
//! them: the error of a missing segment says so.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Error, Kind, Result, epoch};
use terrane_device::Disk;
use terrane_device::pm::{Mapped, PlainMode, PmRegion};
use terrane_journal::pm::{Pool, PoolSettings, ZoneDisk, begin_epoch};
use terrane_levels::State;
use terrane_levels::directory::JOURNAL;

/// Segments that need room beside what the write memory holds: the one that is ready, those at its borders.
const SEGMENTS_BESIDE: u64 = 4;
/// How often an opening tries to open a pool that is open already.
const ATTEMPTS_MAX: u32 = 200;
/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// The device of a database, and its pool if it has one.
pub(super) struct Attached {
    pub(super) disk: Arc<dyn Disk>,
    pool: Option<Arc<ZoneDisk<Mapped>>>,
}

impl Attached {
    /// `disk`, with the journal of the database in `dir` in the pool that the options name.
    ///
    /// # Errors
    /// As [`Pool::open`]; `Invalid` for a view of what another process has open, and for a pool with less
    /// room than the write memory takes.
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: &Options,
        env: &Env,
        (state, follows): (&State, bool),
    ) -> Result<Attached> {
        let Some(path) = options.pmem_path.get() else { return Ok(Attached { disk, pool: None }) };
        if follows {
            return Err(Error::invalid(
                "a database whose journal is in persistent memory cannot be followed: its writer has the pool to itself",
            ));
        }
        let needed = options.write_memory_bytes + SEGMENTS_BESIDE * options.segment_bytes;
        if options.pmem_bytes != 0 && options.pmem_bytes < needed && !options.pmem_full_to_file {
            return Err(too_small(options.pmem_bytes, needed));
        }
        let settings = settings(path, options, env, state)?;
        let pool = open_pool(&settings, env)?;
        let bytes = pool.halloc.region().len();
        if bytes < needed && !options.pmem_full_to_file && !options.read_only {
            return Err(too_small(bytes, needed));
        }
        let falls_back = options.pmem_full_to_file;
        let zones = ZoneDisk::new(disk, &dir.join(JOURNAL), pool.halloc, pool.zones, falls_back)?;
        let pool = Arc::new(zones);
        Ok(Attached { disk: pool.clone(), pool: Some(pool) })
    }

    /// The database goes on in `epoch`, which the manifest has.
    ///
    /// # Errors
    /// Any error of the pool.
    pub(super) fn begin_epoch(&self, epoch: u64) -> Result<()> {
        match &self.pool {
            Some(pool) => begin_epoch(pool.halloc(), epoch),
            None => Ok(()),
        }
    }
}

/// Opens the pool. A database of this process that was closed keeps it until no reader of the process is in
/// an epoch that could see its segments, so this waits for some time.
fn open_pool(settings: &PoolSettings, env: &Env) -> Result<Pool> {
    debug_assert!(!settings.path.as_os_str().is_empty(), "an option names the pool");
    for _ in 1..ATTEMPTS_MAX {
        match Pool::open(settings) {
            Err(error) if error.kind() == Kind::Busy => {
                epoch::forget_garbage();
                env.clock.sleep(PAUSE);
            }
            opened => return opened,
        }
    }
    Pool::open(settings)
}

fn settings(path: &str, options: &Options, env: &Env, state: &State) -> Result<PoolSettings> {
    let path = PathBuf::from(path);
    let is_there = terrane_device::PosixDisk::new().exists(&path)?;
    let derived = if is_there { 0 } else { options.write_memory_bytes / 2 * 3 };
    let bytes = if options.pmem_bytes == 0 { derived } else { options.pmem_bytes };
    let mode = match options.experiments.pmem_buffered {
        true => PlainMode::Buffered,
        false => PlainMode::Synced,
    };
    debug_assert!(bytes > 0 || is_there, "a new pool gets a length");
    Ok(PoolSettings {
        path,
        bytes: bytes.next_multiple_of(terrane_device::pm::LINE_BYTES),
        mode,
        salt: state.database.segment_salt(),
        epoch: state.epoch,
        region_id: u128::from(env.random.next_u64()) << 64 | u128::from(env.random.next_u64()),
        may_create: !options.read_only,
    })
}

#[cold]
fn too_small(bytes: u64, needed: u64) -> Error {
    Error::invalid(format!(
        "a pool of {bytes} bytes is too small: the journal may take {needed}; enlarge pmem_bytes, lower \
         write_memory_bytes, or set pmem_full_to_file"
    ))
}
