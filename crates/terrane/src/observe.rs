//! Observation: statistics, events, live readers.

use std::sync::Arc;

use terrane_base::Result;
use terrane_base::key_order::Order;
use terrane_engine::{
    ExtentInfo, Finding, Listener, LiveReader, Origin, Progress, ReaderKind, SegmentEntry, Shape, Statistics,
    Stats,
};

use crate::snapshot::pin;
use crate::{Db, Snapshot, Table};

impl Db {
    /// All metrics of the database and of each of its tables at this moment, by name.
    /// [`metrics`](crate::metrics) lists what there is; [`Db::stats`] has the numbers of the database as
    /// fields.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.put("k", "v")?;
    /// let statistics = db.statistics();
    /// assert_eq!(statistics.get("records_written").map(|value| value.number()), Some(1));
    /// let table = statistics.table("default").expect("every database has it");
    /// assert_eq!(table.get("table_memory_entries").map(|value| value.number()), Some(1));
    /// assert!(statistics.to_prometheus().contains("terrane_records_written_total 1\n"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.engine().statistics()
    }

    /// How far the background is behind: 0 is not at all, 1 is the limit at which writers wait.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// if db.pressure() > 0.8 {
    ///     println!("writers will soon wait");
    /// }
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn pressure(&self) -> f64 {
        self.engine().debt()
    }

    /// The running background work and its progress.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// for job in db.progress() {
    ///     println!("{:?} of {:?}: {} bytes read", job.work, job.table, job.bytes_in);
    /// }
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn progress(&self) -> Vec<Progress> {
        self.engine().progress()
    }

    /// The counters since the open.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// println!("{} bytes of memory at most", db.stats().memory_limit_bytes);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.engine().stats()
    }

    /// The state of the tree of every table.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("k", "v")?;
    /// assert_eq!(db.shape().tables[0].memtable_entries, 1);
    /// println!("{}", db.shape());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.engine().shape()
    }

    /// Problems of the background: damage that it found, tables whose background work has stopped until the
    /// database is opened again, and work that keeps failing and is retried. Empty if all is well.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// for finding in db.background_errors() {
    ///     eprintln!("{finding:?}");
    /// }
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn background_errors(&self) -> Vec<Finding> {
        self.engine().background_errors()
    }

    /// Damage that scrubbing found since the open, each damaged part once. Off unless
    /// [`Options::scrub_bytes_per_second`](crate::Options) is set.
    ///
    /// ```
    /// use terrane::{Db, Options};
    /// let options = Options { scrub_bytes_per_second: 1 << 20, ..Options::in_memory() };
    /// let db = Db::open_in_memory_with(&options)?;
    /// assert!(db.scrub_findings().is_empty());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn scrub_findings(&self) -> Vec<Finding> {
        self.engine().scrub_findings()
    }

    /// Changes the memory ceiling of the open database, and every size that the engine derives from it. A
    /// lower one takes effect at once: the block cache evicts the excess before this returns, except blocks
    /// that readers hold, and writers wait until the excess of write memory is flushed. Segments, levels and
    /// the size of the row cache keep their settings until the next opening:
    /// [`Options::memory_bytes`](crate::Options) is the value at the opening, the metric `memory_limit_bytes`
    /// the present one.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.set_memory_bytes(1 << 30)?;
    /// assert_eq!(db.stats().memory_limit_bytes, 1 << 30);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` where it contradicts another option, such as segments that are too large for it, or the
    /// database was opened read-only. Nothing has changed then.
    pub fn set_memory_bytes(&self, memory_bytes: u64) -> Result<()> {
        self.engine().set_memory_bytes(memory_bytes)
    }

    /// As [`Db::snapshot`], with a name that appears in [`Db::live_readers`] and in errors.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// let report = db.snapshot_labelled("nightly report");
    /// assert_eq!(db.live_readers()[0].origin.label.as_deref(), Some("nightly report"));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn snapshot_labelled(&self, label: &str) -> Snapshot {
        let origin = Origin { label: Some(label.to_owned()), ..Origin::here(ReaderKind::Snapshot) };
        Snapshot { pin: pin(self.handle(), origin) }
    }

    /// Calls `listener` for later events: flushes, compactions, stalls, background failures, tables and
    /// checkpoints. See [`Listener`] for what it may do. It is kept until the database is closed, which waits
    /// until all events are delivered. A database that is open for reading, such as the view of a follower,
    /// has no events.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// struct Prints;
    /// impl terrane::Listener for Prints {
    ///     fn flush_ended(&self, job: &terrane::JobEnded) {
    ///         println!("flushed {} bytes of {} in {:?}", job.bytes_written, job.table, job.took);
    ///     }
    /// }
    /// db.add_listener(std::sync::Arc::new(Prints))?;
    /// db.put("k", "v")?;
    /// db.flush()?;
    /// db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Cancelled` after a close, `Io` if no thread can be started.
    pub fn add_listener(&self, listener: Arc<dyn Listener>) -> Result<()> {
        self.engine().add_listener(listener)
    }

    /// Waits until all events so far are delivered to listeners, including the ends of running flushes.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// #[derive(Default)]
    /// struct Counts(AtomicU64);
    /// impl terrane::Listener for Counts {
    ///     fn flush_ended(&self, job: &terrane::JobEnded) {
    ///         self.0.fetch_add(job.flushed.map_or(0, |flushed| flushed.entries), Ordering::Relaxed);
    ///     }
    /// }
    /// let counts = Arc::new(Counts::default());
    /// db.add_listener(counts.clone())?;
    /// db.put("k", "v")?;
    /// db.flush()?;
    /// db.wait_for_listeners()?;
    /// assert_eq!(counts.0.load(Ordering::Relaxed), 1);
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` if a listener calls it, because it would wait for itself.
    pub fn wait_for_listeners(&self) -> Result<()> {
        self.engine().wait_for_listeners()
    }

    /// The segments of the journal, oldest first: those that are history, then those that are live.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.put("k", "v")?;
    /// let segments = db.segments();
    /// let active = segments.iter().find(|segment| segment.is_active).expect("commits go somewhere");
    /// assert!(active.used_bytes > 0 && active.file.as_ref().is_some_and(|file| file.exists()));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn segments(&self) -> Vec<SegmentEntry> {
        self.engine().segments()
    }

    /// The id of the database, drawn at its creation: 32 hexadecimal digits. A checkpoint, and a database
    /// restored from a backup, have ids of their own.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// assert_eq!(db.id().len(), 32);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn id(&self) -> String {
        self.engine().database_id()
    }

    /// The live snapshots, transactions and scans, oldest first: the origin and age of each, and what it
    /// keeps from being freed. The option `reader_age_max_ms` limits their age.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// let report = db.snapshot_labelled("nightly report");
    /// db.put("k", "v")?;
    /// let readers = db.live_readers();
    /// assert_eq!(readers[0].origin.label.as_deref(), Some("nightly report"));
    /// assert_eq!(readers[0].records_since, 1);
    /// println!("made at {}, {:?} ago", readers[0].origin.place, readers[0].age);
    /// # drop(report);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn live_readers(&self) -> Vec<LiveReader> {
        self.engine().live_readers()
    }
}

impl Table {
    /// The extents of the table: location, key range and content of each. Those of overflow runs come first,
    /// then those of level 1, and so on, each in key order. Reads nothing from the device.
    ///
    /// In a table with a key order, an extent whose range deletes begin directly after a key is reported to
    /// begin with that key.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// db.flush()?;
    /// let extents = db.default_table().extents()?;
    /// assert_eq!((extents[0].smallest.as_slice(), extents[0].largest.as_slice()), (&b"a"[..], &b"b"[..]));
    /// assert_eq!(extents[0].summary.entries, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound` if the table was dropped; `Corrupt` if its key order cannot decode a key.
    pub fn extents(&self) -> Result<Vec<ExtentInfo>> {
        self.refuse_if_dropped()?;
        let mut extents = self.engine.extents(&self.inner);
        if let Some(order) = &self.order {
            for extent in &mut extents {
                extent.smallest = decoded_bound(order, &extent.smallest)?;
                extent.largest = decoded_bound(order, &extent.largest)?;
            }
        }
        Ok(extents)
    }

    /// The options of the table that its rows and its writers depend on, as [`TableOptions::set`] takes them:
    /// `merge_operator`, `key_order`, `time_to_live` and `prefix_extractor`, as far as they are not the
    /// defaults of a table.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// let options = terrane::TableOptions::new().merge_operator("counter");
    /// let visits = db.create_table("visits", &options)?;
    /// assert_eq!(visits.kept_options(), [("merge_operator".to_owned(), "counter".to_owned())]);
    /// assert!(db.default_table().kept_options().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`TableOptions::set`]: crate::TableOptions::set
    #[must_use]
    pub fn kept_options(&self) -> Vec<(String, String)> {
        let settings = self.inner.settings();
        let time_to_live = settings.time_to_live.millis().map(|millis| format!("{millis}ms"));
        let kept = [
            ("merge_operator", settings.merge_operator.get().map(str::to_owned)),
            ("key_order", settings.key_order.get().map(str::to_owned)),
            ("time_to_live", time_to_live),
            ("prefix_extractor", settings.prefix_extractor.get().map(str::to_owned)),
        ];
        kept.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// Its number in the database, by which [`Change::table_id`](crate::Change::table_id) names it: 0 for the
    /// default table, and never given to another one.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// assert_eq!(db.default_table().number(), 0);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn number(&self) -> u32 {
        self.id().0
    }
}

/// The key of a bound, or the key directly before it, where range deletes are cut.
fn decoded_bound(order: &Order, kept: &[u8]) -> Result<Vec<u8>> {
    order.decode(kept).or_else(|_| order.decode(&order.collation().last_before(kept)))
}
