//! Databases in memory: for tests, and for data that need not survive the process.

use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Error, Result};
use terrane_device::{Disk, MemDisk};

use crate::Db;

/// Bytes that a database in memory may store, unless a [`MemoryDevice`] says otherwise: 1 GiB.
const CAPACITY_BYTES: u64 = 1 << 30;
/// Path of the database of [`Db::open_in_memory`] on its device.
const PATH: &str = "/memory";

/// A device in memory that holds any number of databases, by path; it uses no file. Clones are handles of the
/// same device; its content is freed with the last handle and the last open database.
///
/// Everything works as on files, locks between openers and the order of syncs included: databases can be
/// closed and opened again, [`Db::checkpoint`] links their files, [`crate::Backups::open_on`] keeps backups
/// in it. Refused are `io_uring = on` and `direct_io`, which ask for a device.
///
/// Memory: what databases store takes up to the capacity, and once more for what changed since the last sync
/// and for journal segments. Beside that each open database takes [`Options::memory_bytes`] at most.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// let device = terrane::MemoryDevice::new(64 << 20);
/// let options = terrane::Options::in_memory();
/// let db = device.open("/data", &options)?;
/// db.put("k", "v")?;
/// db.checkpoint("/second")?;
/// db.close()?;
/// assert!(device.open("/data", &options)?.contains("k")?);
/// assert!(device.open("/second", &options)?.contains("k")?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MemoryDevice {
    disk: MemDisk,
}

impl MemoryDevice {
    /// An empty device that stores `capacity_bytes` at most: writes beyond that are refused as `Full`.
    ///
    /// ```
    /// let device = terrane::MemoryDevice::new(64 << 20); // takes memory only for stored bytes
    /// assert_eq!(device.used_bytes(), 0);
    /// ```
    #[must_use]
    pub fn new(capacity_bytes: u64) -> MemoryDevice {
        let disk = MemDisk::new();
        disk.set_capacity(capacity_bytes);
        MemoryDevice { disk }
    }

    /// Opens the database at `path` of this device, and creates it if it is missing and the options allow
    /// that.
    ///
    /// ```
    /// let device = terrane::MemoryDevice::new(64 << 20);
    /// let db = device.open("/data", &terrane::Options::in_memory())?;
    /// db.put("k", "v")?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::open_with`]; `Invalid` for options that ask for a device of the system, naming them.
    pub fn open(&self, path: impl AsRef<Path>, options: &Options) -> Result<Db> {
        if options.direct_io {
            return Err(Error::invalid("option direct_io=true: a database in memory has no device to go to"));
        }
        Db::open_on(self.disk(), path, options, Env::real())
    }

    /// Bytes that are stored now, in pages of 4 KiB, reserved ones included.
    ///
    /// ```
    /// let device = terrane::MemoryDevice::new(64 << 20);
    /// let db = device.open("/data", &terrane::Options::in_memory())?;
    /// assert!(device.used_bytes() > 0);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.disk.used_bytes()
    }

    /// The device, for [`Db::open_on`], [`crate::DirectoryPlace`] and [`crate::Backups::open_on`].
    ///
    /// ```
    /// use terrane::{Db, Env, MemoryDevice, Options};
    /// let device = MemoryDevice::new(64 << 20);
    /// let db = Db::open_on(device.disk(), "/data", &Options::in_memory(), Env::real())?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn disk(&self) -> Arc<dyn Disk> {
        Arc::new(self.disk.clone())
    }
}

impl Db {
    /// Makes a database in memory, with [`Options::in_memory`] and room for 1 GiB: for tests. It is gone with
    /// its last handle.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// let db = terrane::Db::open_in_memory()?;
    /// db.put("k", "v")?;
    /// assert_eq!(db.get("k")?.as_deref(), Some(&b"v"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Io` if the system gives no threads.
    pub fn open_in_memory() -> Result<Db> {
        Db::open_in_memory_with(&Options::in_memory())
    }

    /// [`Db::open_in_memory`] with other options. For a limit of its own, or to open it again:
    /// [`MemoryDevice`].
    ///
    /// ```
    /// use terrane::{Db, Options};
    /// let db = Db::open_in_memory_with(&Options { memory_bytes: 64 << 20, ..Options::in_memory() })?;
    /// db.put("k", "v")?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`MemoryDevice::open`]; `Invalid` with `read_only` or without `create_if_missing`: a new device
    /// holds nothing to open.
    pub fn open_in_memory_with(options: &Options) -> Result<Db> {
        for (name, is_set) in
            [("read_only=true", options.read_only), ("create_if_missing=false", !options.create_if_missing)]
        {
            if is_set {
                return Err(Error::invalid(format!(
                    "option {name}: a new database in memory holds nothing to open; keep a MemoryDevice for that"
                )));
            }
        }
        MemoryDevice::new(CAPACITY_BYTES).open(PATH, options)
    }
}
