//! Settings and opening of a tier.

use std::path::PathBuf;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::sync::{Condvar, Mutex};
use terrane_base::{Error, Kind, Result};
use terrane_device::Disk;

use super::files::{self, Files, Held};
use super::index::Index;
use super::queue::Queue;
use super::{Shared, State, Tier, TierCounts};

/// Least bytes of a tier: fewer frames are not a cache.
const BYTES_MIN: u64 = 8 << 20;
/// Most bytes: slots are counted in 32 bits.
const BYTES_MAX: u64 = 64 << 40;

/// Where a tier lies and how much it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierSettings {
    /// The directory, which has nothing else. Made if it does not exist.
    pub directory: PathBuf,
    /// Most bytes of its files, all of which are allocated at opening. 8 MiB to 64 TiB.
    pub bytes: u64,
}

impl TierSettings {
    /// Refuses impossible settings.
    ///
    /// # Errors
    /// `Invalid`.
    pub(crate) fn check(&self) -> Result<()> {
        if (BYTES_MIN..=BYTES_MAX).contains(&self.bytes) {
            return Ok(());
        }
        let bytes = self.bytes;
        Err(Error::invalid(format!("a cache of bytes={bytes}: 0 for none, or 8 MiB to 64 TiB are possible")))
    }
}

impl Tier {
    /// Opens the tier of a directory. A device that fails, or has no room, gives a tier that is off, and a
    /// warning: it answers nothing, and its bucket goes on without it.
    ///
    /// # Errors
    /// `Busy` if another process has the directory; `Invalid` if it has files of something else, or a setting
    /// is impossible.
    pub fn open(disk: Arc<dyn Disk>, settings: &TierSettings, env: &Env) -> Result<Tier> {
        settings.check()?;
        let slots = files::slots(settings.bytes);
        let opened = Held::take(disk, &settings.directory).and_then(|held| Files::open(held, slots));
        let (files, found, off) = match opened {
            Ok((files, found)) => (Some(files), found, None),
            Err(error) if matches!(error.kind(), Kind::Busy | Kind::Invalid) => return Err(error),
            Err(error) => (None, Vec::new(), Some(error)),
        };
        let is_off = off.is_some();
        if let Some(error) = &off {
            warn_off(error);
        }
        let state = State {
            index: Index::new(if is_off { 0 } else { slots }, found),
            queue: Queue::default(),
            counts: TierCounts { slots: slots.into(), ..TierCounts::default() },
            off,
            is_closing: false,
        };
        let (work, idle) = (Condvar::new(), Condvar::new());
        let shared = Arc::new(Shared { files, state: Mutex::new(state), work, idle });
        let own = shared.clone();
        let writer = if is_off {
            None
        } else {
            Some(env.spawn.spawn("terrane-cache", Box::new(move || own.write_all()))?)
        };
        Ok(Tier { shared, writer: Mutex::new(writer) })
    }
}

/// Tells the program that a tier is off.
#[cold]
pub(super) fn warn_off(error: &Error) {
    tracing::warn!(
        target: "terrane::cache",
        %error,
        "the cache on disk is off until the database is opened again: reads go to the bucket; free space or \
         replace the device, or remove [cache] from the deployment"
    );
}

/// Logs the counts of a tier when it is closed.
pub(super) fn log_counts(counts: &TierCounts) {
    tracing::info!(target: "terrane::cache", ?counts, "the cache on disk is closed");
}

/// Tries the directory of a tier without changing it, and says what was found.
///
/// # Errors
/// `Invalid` if it has files of something else; `Io`.
pub(crate) fn try_directory(disk: &dyn Disk, settings: &TierSettings) -> Result<String> {
    settings.check()?;
    let (dir, mib) = (&settings.directory, settings.bytes >> 20);
    if !disk.exists(dir)? {
        return Ok(format!("{} does not exist yet: the first opening makes it, of {mib} MiB", dir.display()));
    }
    files::try_directory(disk, dir, settings.bytes)
}
