//! Opening a database.

use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Functions, Result};
use terrane_device::{Disk, PosixDisk};
use terrane_engine::{Engine, OpenRequest};

use crate::Db;
use crate::functions::with_own;

impl Db {
    /// Opens the database in directory `path`, and creates it if the directory is missing or empty.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let path = dir.path().join("data");
    /// let db = terrane::Db::open(&path)?; // creates it
    /// db.put("k", "v")?;
    /// assert_eq!(terrane::Db::open(&path).unwrap_err().kind(), terrane::Kind::Busy); // it is open here
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Busy` if another process has it open, `Invalid` if the directory belongs to another program,
    /// `Corrupt`, `Io`.
    pub fn open(path: impl AsRef<Path>) -> Result<Db> {
        Db::open_with(path, &Options::default())
    }

    /// Opens a database with options.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let path = dir.path().join("data");
    /// let options = terrane::Options { memory_bytes: 256 << 20, ..Default::default() };
    /// let db = terrane::Db::open_with(&path, &options)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Db::open`], and `Invalid` for options that are out of range or contradict each other.
    pub fn open_with(path: impl AsRef<Path>, options: &Options) -> Result<Db> {
        Db::open_in(path, options, Env::real())
    }

    /// Opens a database with other doors to clock, randomness and threads.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let (path, options) = (dir.path().join("data"), terrane::Options::default());
    /// let db = terrane::Db::open_in(&path, &options, terrane::Env::real())?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::open_with`].
    pub fn open_in(path: impl AsRef<Path>, options: &Options, env: Env) -> Result<Db> {
        let functions = with_own(Functions::default());
        Ok(Db::from_engine(Engine::open_with(path.as_ref(), options, env, functions)?))
    }

    /// Opens a database on another device than the files of the operating system: for simulators and tests.
    ///
    /// ```
    /// use terrane::{Db, Env, MemoryDevice, Options};
    /// let device = MemoryDevice::new(64 << 20);
    /// let db = Db::open_on(device.disk(), "/data", &Options::in_memory(), Env::real())?;
    /// db.put("k", "v")?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::open_with`].
    pub fn open_on(disk: Arc<dyn Disk>, path: impl AsRef<Path>, options: &Options, env: Env) -> Result<Db> {
        Db::open_with_functions_on(disk, path, options, env, Functions::default())
    }
    /// Opens a database whose manifest and extents `parts` opens, with its journal in the directory `dir`.
    /// `terrane-remote` calls this, for databases on buckets: open these there.
    ///
    /// # Errors
    /// As [`Db::open_with`], and those of the parts.
    #[doc(hidden)]
    pub fn open_elsewhere(
        dir: impl AsRef<Path>,
        options: &Options,
        env: Env,
        functions: impl Into<Functions>,
        parts: &dyn terrane_engine::Parts,
    ) -> Result<Db> {
        Db::open_elsewhere_on((Arc::new(PosixDisk::new()), dir.as_ref()), options, env, functions, parts)
    }

    /// [`Db::open_elsewhere`], with its journal in a directory of a device. `terrane-remote` calls this.
    ///
    /// # Errors
    /// As there.
    #[doc(hidden)]
    pub fn open_elsewhere_on(
        (disk, dir): (Arc<dyn Disk>, &Path),
        options: &Options,
        env: Env,
        functions: impl Into<Functions>,
        parts: &dyn terrane_engine::Parts,
    ) -> Result<Db> {
        let request = OpenRequest { disk, dir, options, env, functions: with_own(functions) };
        let engine = Engine::open_elsewhere_on(request, parts)?;
        Ok(Db::from_engine(engine))
    }

    /// Opens such a database for reading, with its journal in a directory of a device. `terrane-remote` calls
    /// this.
    ///
    /// # Errors
    /// As [`Db::open_with`].
    #[doc(hidden)]
    pub fn read_elsewhere(
        (disk, dir): (Arc<dyn Disk>, &Path),
        options: &Options,
        env: Env,
        functions: impl Into<Functions>,
        parts: &terrane_engine::ReadParts,
    ) -> Result<Db> {
        let request = OpenRequest { disk, dir, options, env, functions: with_own(functions) };
        let engine = Engine::read_elsewhere_on(request, parts)?;
        Ok(Db::from_engine(engine))
    }
}
