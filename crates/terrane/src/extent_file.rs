//! Files of sorted entries that are written without a database.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::key_order::{Order, encoded};
use terrane_base::options::Options;
use terrane_base::{KeyOrders, Moment, Result};
use terrane_device::{Disk, PosixDisk};
use terrane_engine::{ExternalSummary, ExternalWriter, WriterSettings};

use crate::table::moment_at;

/// Writes a file of sorted entries for [`Db::ingest`](crate::Db::ingest): offline, without a database.
///
/// Keys come in order, each once. A file holds 1 GiB; continue longer data in another file. Without
/// [`ExtentFileWriter::finish`] the file is removed.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// use terrane::{Db, ExtentFileWriter, IngestOptions, Options};
/// let path = dir.path().join("countries.extents");
/// let mut file = ExtentFileWriter::create(&path, &Options::default())?;
/// file.put("at", "Austria")?;
/// file.put("be", "Belgium")?;
/// file.finish()?;
///
/// let db = Db::open(dir.path().join("data"))?;
/// db.put("be", "older")?;
/// let ingested = db.ingest(&[(db.default_table(), &path)], IngestOptions::default())?;
/// assert_eq!((ingested.entries, ingested.bytes_copied), (2, 0));
/// assert_eq!(db.get("be")?.as_deref(), Some(&b"Belgium"[..]));
/// # Ok(())
/// # }
/// ```
pub struct ExtentFileWriter {
    inner: ExternalWriter,
    order: Option<Arc<Order>>,
}

impl ExtentFileWriter {
    /// A writer of the file `path`, which must not exist. Of the options those count that say how extents are
    /// built: `block_bytes`, `block_encoding`, `filter_bits_per_key` and `compression_last`; `key_order`, by
    /// which keys come and which only tables with the same one take in; and `merge_operator`: with one the
    /// file may have operands, and only tables with the same one take it in.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// use terrane::{ExtentFileWriter, Options};
    /// let path = dir.path().join("rows.extents");
    /// let mut file = ExtentFileWriter::create(&path, &Options::default())?;
    /// file.put("a", "1")?;
    /// file.finish()?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` if there is something at `path`, an option is out of range, or the order is not a built-in
    /// one; `Io`.
    pub fn create(path: impl AsRef<Path>, options: &Options) -> Result<ExtentFileWriter> {
        ExtentFileWriter::create_on(Arc::new(PosixDisk::new()), path, options, &KeyOrders::new())
    }

    /// [`ExtentFileWriter::create`] with orders of keys that are not built in.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// use terrane::{ExtentFileWriter, KeyOrders, Options};
    /// let mut options = Options::default();
    /// options.set("key_order", "reverse")?;
    /// let path = dir.path().join("rows.extents");
    /// let mut file = ExtentFileWriter::create_with_orders(&path, &options, &KeyOrders::new())?;
    /// file.put("b", "2")?;
    /// file.put("a", "1")?;
    /// file.finish()?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ExtentFileWriter::create`].
    pub fn create_with_orders(
        path: impl AsRef<Path>,
        options: &Options,
        orders: &KeyOrders,
    ) -> Result<ExtentFileWriter> {
        ExtentFileWriter::create_on(Arc::new(PosixDisk::new()), path, options, orders)
    }

    /// [`ExtentFileWriter::create_with_orders`] on another device: for simulators and tests.
    ///
    /// ```
    /// use terrane::{ExtentFileWriter, KeyOrders, MemoryDevice, Options};
    /// let disk = MemoryDevice::new(64 << 20).disk();
    /// let mut file = ExtentFileWriter::create_on(disk, "/rows", &Options::default(), &KeyOrders::new())?;
    /// file.put("a", "1")?;
    /// file.finish()?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ExtentFileWriter::create`].
    pub fn create_on(
        disk: Arc<dyn Disk>,
        path: impl AsRef<Path>,
        options: &Options,
        orders: &KeyOrders,
    ) -> Result<ExtentFileWriter> {
        let order = options.key_order.get().map(|name| orders.find(name)).transpose()?;
        let settings = WriterSettings {
            block_bytes: usize::try_from(options.block_bytes_in_memory()).unwrap_or(usize::MAX),
            block_encoding: options.block_encoding,
            filter_bits_per_key: u32::try_from(options.filter_bits_per_key).unwrap_or(u32::MAX),
            compression: options.compression_last,
            ..WriterSettings::default()
        };
        let names = (order.as_deref(), options.merge_operator.get());
        let inner = ExternalWriter::create(disk, path.as_ref(), settings, names)?;
        Ok(ExtentFileWriter { inner, order })
    }

    /// Adds a value. The time to live of the table does not hold for it: see [`ExtentFileWriter::put_until`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// use terrane::{ExtentFileWriter, Options};
    /// let path = dir.path().join("rows.extents");
    /// let mut file = ExtentFileWriter::create(&path, &Options::default())?;
    /// file.put("a", "1")?;
    /// file.put("b", "2")?;
    /// assert!(file.put("b", "again").is_err()); // keys come in order, each once
    /// file.finish()?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` if the key does not come after the one before it, or beyond the limits; `Full` if the file
    /// has 1 GiB already, or the device no room; `Io`.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_bytes(key.as_ref(), value.as_ref())
    }

    fn put_bytes(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.inner.put(&encoded(self.order.as_deref(), key)?, value, Moment::NEVER)
    }

    /// As [`ExtentFileWriter::put`], until a moment, counted from the beginning of 1970; see
    /// [`Table::put_until`](crate::Table::put_until).
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// use terrane::{ExtentFileWriter, Options};
    /// let path = dir.path().join("rows.extents");
    /// let mut file = ExtentFileWriter::create(&path, &Options::default())?;
    /// file.put_until("licence", "ada", std::time::Duration::from_secs(4_102_444_800))?; // the year 2100
    /// file.finish()?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ExtentFileWriter::put`].
    pub fn put_until(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        until: Duration,
    ) -> Result<()> {
        self.put_bytes_until(key.as_ref(), value.as_ref(), until)
    }

    fn put_bytes_until(&mut self, key: &[u8], value: &[u8], until: Duration) -> Result<()> {
        self.inner.put(&encoded(self.order.as_deref(), key)?, value, moment_at(until))
    }

    /// Adds a delete: it removes the key from the table.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// use terrane::{ExtentFileWriter, Options};
    /// let path = dir.path().join("rows.extents");
    /// let mut file = ExtentFileWriter::create(&path, &Options::default())?;
    /// file.delete("a")?;
    /// assert_eq!(file.finish()?.entries, 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ExtentFileWriter::put`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_bytes(key.as_ref())
    }

    fn delete_bytes(&mut self, key: &[u8]) -> Result<()> {
        self.inner.delete(&encoded(self.order.as_deref(), key)?)
    }

    /// Adds a delete of a range: at the ingest it removes the table's rows from `start` to before `end`, and
    /// nothing of the file itself. Range deletes come in any order, among each other and among the rows; they
    /// are kept in memory until [`ExtentFileWriter::finish`], and take at least one extent of the file, 2
    /// MiB.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let path = dir.path().join("january.extents");
    /// use terrane::{Db, ExtentFileWriter, IngestOptions, Options};
    /// let mut file = ExtentFileWriter::create(&path, &Options::default())?;
    /// file.put("2024-01-15", "corrected")?;
    /// file.delete_range("2024-01", "2024-02")?;
    /// file.finish()?;
    ///
    /// let db = Db::open(dir.path().join("data"))?;
    /// for day in [b"2024-01-15", b"2024-01-30", b"2024-02-01"] {
    ///     db.put(day, "..")?;
    /// }
    /// let ingested = db.ingest(&[(db.default_table(), &path)], IngestOptions::default())?;
    /// assert_eq!((ingested.entries, ingested.range_deletes), (1, 1));
    /// assert_eq!(db.get("2024-01-15")?.as_deref(), Some(&b"corrected"[..]));
    /// assert_eq!((db.get("2024-01-30")?, db.default_table().iter().count()), (None, 2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` if `start` is not less than `end` or a key is beyond the limits; `Full` if the file has 1
    /// GiB already; `Io`.
    pub fn delete_range(&mut self, start: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.delete_range_bytes(start.as_ref(), end.as_ref())
    }

    fn delete_range_bytes(&mut self, start: &[u8], end: &[u8]) -> Result<()> {
        let order = self.order.as_deref();
        self.inner.delete_range(&encoded(order, start)?, &encoded(order, end)?)
    }

    /// Names the merge operator of the file, where the options did not: before the first operand. Without
    /// operands a file that names none goes into any table.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let path = dir.path().join("visits.extents");
    /// use terrane::{Db, ExtentFileWriter, IngestOptions, Options, TableOptions, counter};
    /// let mut file = ExtentFileWriter::create(&path, &Options::default())?;
    /// assert!(file.merge("k", counter::encode(2)).is_err());
    /// file.set_merge_operator("counter")?;
    /// file.merge("k", counter::encode(2))?;
    /// assert!(file.set_merge_operator("append").is_err());
    /// file.finish()?;
    ///
    /// let db = Db::open(dir.path().join("data"))?;
    /// assert!(db.ingest(&[(db.default_table(), &path)], IngestOptions::default()).is_err());
    /// let counters = db.create_table("counters", &TableOptions::new().merge_operator("counter"))?;
    /// db.ingest(&[(&counters, &path)], IngestOptions::default())?;
    /// assert!(counters.contains("k")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` if the file has another one.
    pub fn set_merge_operator(&mut self, operator: &str) -> Result<()> {
        self.inner.set_merge_operator(operator)
    }

    /// Adds an operand for the merge operator that the file was made with.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// use terrane::{ExtentFileWriter, Options, counter};
    /// let path = dir.path().join("visits.extents");
    /// let mut file = ExtentFileWriter::create(&path, &Options::default())?;
    /// file.set_merge_operator("counter")?;
    /// file.merge("page", counter::encode(1))?;
    /// file.finish()?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ExtentFileWriter::put`], and `Invalid` for a file without a merge operator.
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_bytes(key.as_ref(), operand.as_ref())
    }

    fn merge_bytes(&mut self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.inner.merge(&encoded(self.order.as_deref(), key)?, operand)
    }

    /// Bytes of the file so far, about.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// use terrane::{ExtentFileWriter, Options};
    /// let path = dir.path().join("rows.extents");
    /// let mut file = ExtentFileWriter::create(&path, &Options::default())?;
    /// file.put("a", [0; 1000])?;
    /// println!("about {} bytes", file.bytes());
    /// file.finish()?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.inner.bytes()
    }

    /// Ends the file; it is durable on return.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// use terrane::{ExtentFileWriter, Options};
    /// let path = dir.path().join("rows.extents");
    /// let mut file = ExtentFileWriter::create(&path, &Options::default())?;
    /// file.put("a", "1")?;
    /// assert_eq!(file.finish()?.entries, 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` if nothing was added, `Full`, `Io`. Nothing is at the path then.
    pub fn finish(self) -> Result<ExternalSummary> {
        self.inner.finish()
    }
}

impl fmt::Debug for ExtentFileWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtentFileWriter").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}
