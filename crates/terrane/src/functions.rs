//! Opening a database with functions of the program that its tables name.

use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Functions, MergeOperators, Result};
use terrane_device::{Disk, PosixDisk};
use terrane_engine::{Engine, OpenRequest, ReplayFilter};

use crate::Db;

/// The functions of a program, and the operators that the library has beside those of `terrane-base`.
pub(crate) fn with_own(functions: impl Into<Functions>) -> Functions {
    let functions = functions.into();
    #[cfg(feature = "json")]
    let functions = Functions {
        operators: functions.operators.with_reserved(Arc::new(crate::json::JsonMergePatch)),
        ..functions
    };
    functions
}

impl Db {
    /// Opens a database with functions that are not built in (merge operators, prefix extractors, key
    /// orders), by the names that its tables have them by.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// use terrane::{Db, Functions, KeyOrders, MergeOperators, Options};
    /// let functions = Functions { operators: MergeOperators::new(), ..Functions::from(KeyOrders::new()) };
    /// let db = Db::open_with_functions(dir.path().join("data"), &Options::default(), functions)?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::open_with`], and `Invalid` for a table that names a function which is not registered; the
    /// error names both.
    pub fn open_with_functions(
        path: impl AsRef<Path>,
        options: &Options,
        functions: impl Into<Functions>,
    ) -> Result<Db> {
        Ok(Db::from_engine(Engine::open_with(path.as_ref(), options, Env::real(), with_own(functions))?))
    }

    /// [`Db::open_with_functions`] on another device than the files of the operating system: for simulators
    /// and tests.
    ///
    /// ```
    /// use terrane::{Db, Env, Functions, MemoryDevice, Options};
    /// let (disk, options) = (MemoryDevice::new(64 << 20).disk(), Options::in_memory());
    /// let db = Db::open_with_functions_on(disk, "/data", &options, Env::real(), Functions::default())?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn open_with_functions_on(
        disk: Arc<dyn Disk>,
        path: impl AsRef<Path>,
        options: &Options,
        env: Env,
        functions: impl Into<Functions>,
    ) -> Result<Db> {
        Ok(Db::from_engine(Engine::open_with_on(disk, path.as_ref(), options, env, with_own(functions))?))
    }

    /// [`Db::open_with_functions`] with a filter that is called for each batch of the journal before replay.
    /// Its decision is permanent: it is written into the journal, atomically, before anything is replayed,
    /// and no later opening, with or without a filter, sees what was ignored or replaced. What a close has
    /// flushed (option `close_flush`) is not in the journal any more.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// use terrane::{ChangeKind, Db, Functions, Options, ReplayDecision, ReplayFilter, ReplayedBatch};
    /// struct WithoutDeletes;
    /// impl ReplayFilter for WithoutDeletes {
    ///     fn name(&self) -> &str {
    ///         "without deletes"
    ///     }
    ///     fn batch(&self, batch: &ReplayedBatch<'_>) -> ReplayDecision {
    ///         let is_delete = |kind: &ChangeKind| matches!(kind, ChangeKind::Delete { .. });
    ///         let deletes = batch.changes().iter().any(|change| is_delete(&change.kind));
    ///         if deletes { ReplayDecision::Ignore } else { ReplayDecision::Keep }
    ///     }
    /// }
    /// let path = dir.path().join("data");
    /// let options = Options { close_flush: false, ..Options::default() };
    /// let db = Db::open_with(&path, &options)?;
    /// db.put(b"key", b"value")?;
    /// db.delete(b"key")?;
    /// drop(db);
    /// let db = Db::open_with_replay_filter(&path, &options, Functions::default(), &WithoutDeletes)?;
    /// assert_eq!(db.get(b"key")?.as_deref(), Some(&b"value"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Db::open_with_functions`]; `Corrupt` if the filter returns it; `Invalid` for an invalid
    /// replacement of a batch, and for `read_only`; `Poisoned` if the filter panics. Nothing has changed
    /// then.
    pub fn open_with_replay_filter(
        path: impl AsRef<Path>,
        options: &Options,
        functions: impl Into<Functions>,
        filter: &dyn ReplayFilter,
    ) -> Result<Db> {
        let disk = Arc::new(PosixDisk::new());
        Db::open_with_replay_filter_on(disk, path, options, Env::real(), functions, filter)
    }

    /// [`Db::open_with_replay_filter`] on another device than the files of the operating system: for
    /// simulators and tests.
    ///
    /// ```
    /// use terrane::{Db, Env, Functions, MemoryDevice, Options, ReplayDecision, ReplayFilter, ReplayedBatch};
    /// struct All;
    /// impl ReplayFilter for All {
    ///     fn name(&self) -> &str {
    ///         "all"
    ///     }
    ///     fn batch(&self, _: &ReplayedBatch<'_>) -> ReplayDecision {
    ///         ReplayDecision::Keep
    ///     }
    /// }
    /// let (disk, options) = (MemoryDevice::new(64 << 20).disk(), Options::in_memory());
    /// let functions = Functions::default();
    /// let db = Db::open_with_replay_filter_on(disk, "/data", &options, Env::real(), functions, &All)?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn open_with_replay_filter_on(
        disk: Arc<dyn Disk>,
        path: impl AsRef<Path>,
        options: &Options,
        env: Env,
        functions: impl Into<Functions>,
        filter: &dyn ReplayFilter,
    ) -> Result<Db> {
        let request = OpenRequest { disk, dir: path.as_ref(), options, env, functions: with_own(functions) };
        Ok(Db::from_engine(Engine::open_filtered_on(request, filter)?))
    }

    /// [`Db::open_with_functions`] with merge operators.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// use terrane::{Db, MergeOperator, MergeOperators, Options, TableOptions};
    /// /// Keeps the longest.
    /// #[derive(Debug)]
    /// struct Longest;
    /// impl MergeOperator for Longest {
    ///     fn name(&self) -> &str {
    ///         "longest"
    ///     }
    ///     fn full(
    ///         &self,
    ///         _key: &[u8],
    ///         base: Option<&[u8]>,
    ///         operands: &[&[u8]],
    ///         out: &mut Vec<u8>,
    ///     ) -> terrane::Result<()> {
    ///         let all = base.into_iter().chain(operands.iter().copied());
    ///         out.extend_from_slice(all.max_by_key(|value| value.len()).unwrap_or_default());
    ///         Ok(())
    ///     }
    /// }
    /// let operators = MergeOperators::new().with(std::sync::Arc::new(Longest))?;
    /// let db = Db::open_with_operators(dir.path().join("data"), &Options::default(), operators)?;
    /// let names = db.create_table("names", &TableOptions::new().merge_operator("longest"))?;
    /// names.merge("k", "ab")?;
    /// names.merge("k", "a")?;
    /// assert_eq!(names.get("k")?.expect("it was merged"), "ab");
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn open_with_operators(
        path: impl AsRef<Path>,
        options: &Options,
        operators: MergeOperators,
    ) -> Result<Db> {
        Db::open_with_functions(path, options, operators)
    }
}
