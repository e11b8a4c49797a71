//! The pool: a file with a region of persistent memory that belongs to one database.
//!
//! Root words of the region, which stand for themselves and change at once:
//!
//! | root | meaning |
//! |---|---|
//! | 1 | the last epoch of the database that went on in the pool |
//! | 2 | bit 32 and, below it, the salt of the database's segments; 0 before the first opening |
//!
//! An opening refuses, by name, what it cannot be: no pool, another version, another length than its
//! superblock or the caller says, the pool of another database, one that is ahead of the manifest, one that
//! is open already, and a head that the device cannot read.

use std::path::{Path, PathBuf};

use terrane_base::{Error, Kind, Result};
use terrane_device::pm::{Mapped, PlainMode, PmRegion};
use terrane_device::{Disk, PosixDisk};
use terrane_format::pmem_region::Geometry;
use terrane_pmem::{Halloc, Zone};

/// Bytes of a chunk of a new pool of ordinary length: those of the shortest segment.
pub const CHUNK_BYTES: u64 = 64 << 10;
/// Chunks of a new pool above which its chunks are longer: their table is read at each opening.
const CHUNKS_MAX: u64 = 1 << 20;
const ROOT_EPOCH: u32 = 1;
const ROOT_SALT: u32 = 2;
/// Set in the root word of the salt, so that a salt of 0 is not the word of a new pool.
const HAS_SALT: u64 = 1 << 32;

/// Which pool to open, and for which database.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// The file.
    pub path: PathBuf,
    /// Its bytes; 0 if any will do. A new one gets as many.
    pub bytes: u64,
    /// The effect of a fence if the file is not on persistent memory.
    pub mode: PlainMode,
    /// Salt of the database's segments.
    pub salt: u32,
    /// The last epoch that the manifest knows.
    pub epoch: u64,
    /// Number of the region if it is made: a random one.
    pub region_id: u128,
    /// True if a missing file is made.
    pub may_create: bool,
}

/// A pool that is open.
#[derive(Debug)]
pub struct Pool {
    /// Its allocator.
    pub halloc: Halloc<Mapped>,
    /// The zones in use; their owners are numbers of segment files.
    pub zones: Vec<Zone>,
}

impl Pool {
    /// Opens the pool, or makes it.
    ///
    /// # Errors
    /// `NotFound` if it is missing and may not be made; `Busy` if it is open; `Invalid` if it is not the one
    /// that the settings describe, or no pool; `Corrupt` if its bytes are damaged, or if it is ahead of the
    /// manifest; `Full` if the device has no room; `Io`.
    pub fn open(settings: &PoolSettings) -> Result<Pool> {
        let is_there = PosixDisk::new().exists(&settings.path)?;
        let pool = match is_there {
            true => Pool::open_file(settings),
            false if settings.may_create => Pool::create(settings),
            false => Err(Error::new(Kind::NotFound, "there is no pool of persistent memory")),
        };
        pool.and_then(|pool| pool.checked(settings)).map_err(|error| named(error, &settings.path))
    }

    fn create(settings: &PoolSettings) -> Result<Pool> {
        if settings.bytes == 0 {
            return Err(Error::invalid("a new pool needs a length"));
        }
        let chunk_bytes = chunk_bytes_of(settings.bytes);
        // Before the file is made: a region without room for a chunk is refused.
        Geometry::new(settings.bytes, chunk_bytes)?;
        let region = Mapped::create(&settings.path, settings.bytes, settings.mode)?;
        let halloc = Halloc::create(region, chunk_bytes, settings.region_id)?;
        assert!(halloc.free_chunk_count() == halloc.chunk_count(), "a new pool has no zone");
        Ok(Pool { halloc, zones: Vec::new() })
    }

    fn open_file(settings: &PoolSettings) -> Result<Pool> {
        let region = Mapped::open(&settings.path, settings.mode)?;
        if settings.bytes != 0 && settings.bytes != region.len() {
            let message = format!(
                "the pool has {} bytes, expected {}: name its true length, or remove a pool that is not needed",
                region.len(),
                settings.bytes
            );
            return Err(Error::invalid(message));
        }
        // By system calls: a damaged line is an error here and not the end of the process.
        let geometry = Geometry::new(region.len(), *terrane_format::pmem_region::CHUNK_BYTES.start())?;
        region.check(0, geometry.head_bytes().min(region.len()))?;
        let opened = Halloc::open(region, |_| true);
        let (halloc, found) = opened.map_err(|error| match error.kind() {
            Kind::NotFound => {
                let message = "the file is not a pool of persistent memory, or its creation was cut short: \
                               name another file, or remove this one if it holds nothing else";
                Error::invalid(message)
            }
            _ => error,
        })?;
        Ok(Pool { halloc, zones: found.zones })
    }

    /// Checks that it is the database's, or makes it so.
    fn checked(self, settings: &PoolSettings) -> Result<Pool> {
        let own = HAS_SALT | u64::from(settings.salt);
        match self.halloc.root(ROOT_SALT)? {
            0 if self.zones.is_empty() => self.halloc.set_root(ROOT_SALT, own)?,
            found if found == own => {}
            _ if terrane_base::planted!(AcceptForeignPool) => self.halloc.set_root(ROOT_SALT, own)?,
            found => {
                let message = format!(
                    "the pool belongs to another database: expected salt {:08x}, found {:08x}",
                    settings.salt, found as u32
                );
                return Err(Error::invalid(message));
            }
        }
        debug_assert!(
            self.halloc.root(ROOT_SALT).is_ok_and(|word| word == own),
            "the pool is the database's"
        );
        let epoch = self.halloc.root(ROOT_EPOCH)?;
        if epoch > settings.epoch && !terrane_base::planted!(AcceptOldManifest) {
            let message = format!(
                "the pool was used in epoch {epoch}, the manifest ends with epoch {}: the manifest is an older copy",
                settings.epoch
            );
            return Err(Error::corrupt(message));
        }
        Ok(self)
    }
}

/// Notes, durably, that the database goes on in `epoch`. The manifest has that epoch already.
///
/// # Errors
/// Any error of the region.
pub fn begin_epoch<R: PmRegion>(halloc: &Halloc<R>, epoch: u64) -> Result<()> {
    debug_assert!(halloc.root(ROOT_EPOCH).is_ok_and(|before| before <= epoch), "epochs only grow");
    halloc.set_root(ROOT_EPOCH, epoch)
}

/// Bytes of a chunk of a pool of `bytes`.
pub(super) fn chunk_bytes_of(bytes: u64) -> u64 {
    CHUNK_BYTES.max((bytes / CHUNKS_MAX).next_power_of_two())
}

pub(super) fn named(error: Error, path: &Path) -> Error {
    error.context(format!("persistent memory {}", path.display()))
}
