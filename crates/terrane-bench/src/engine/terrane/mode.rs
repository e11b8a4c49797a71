//! Options of the adapter itself, beside those of the database: how requests come to it.
//!
//! | option | meaning |
//! |---|---|
//! | `requests` | how those of a window are done: `apart` (default), one by one; `together`, see below |
//! | `cores` | 0 (default): threads use the database; more: so many cores own its tables (`terrane::cores`) |
//! | `transactions` | how transactions find conflicts: `optimistic` (default), `pessimistic` |
//! | `isolation` | what transactions promise: `serializable` (default), `snapshot`, `read_committed` |
//! | `watched` | if true, an idle transaction is always open, so that each write is watched; `false` |
//! | `parts` | where manifest and extents lie: `local` (default), `bucket` (a directory as a bucket) |
//! | `preset` | options that go together: `none` (default), `xs`, `xp`, `xs-pm`, `xp-pm`; see `preset.rs` |
//! | `cores_helping`, `cores_pinned`, `cores_spreading` | as in the builder; `true`, `false`, `true` |
//!
//! Requests done together are one multi-get for each table and one batch of all writes.

use std::collections::BTreeMap;
use std::path::Path;

use terrane::cores::Cores;
use terrane::{Concurrency, Db, Functions, Isolation, Options, Table, Transaction, TransactionOptions};

use terrane_remote::Deployment;

use super::failed;
use super::preset::Preset;
use crate::engine::options::Named;
use crate::error::{Error, Result};

/// Names of the adapter's own options.
const NAMES: [&str; 10] = [
    "requests",
    "cores",
    "cores_helping",
    "cores_pinned",
    "cores_spreading",
    "parts",
    "preset",
    "transactions",
    "isolation",
    "watched",
];

/// See the head of the file.
#[derive(Clone, Debug)]
pub(super) struct Mode {
    /// True if the requests of one window are done together.
    pub(super) together: bool,
    /// How transactions are run.
    pub(super) transactions: TransactionOptions,
    watched: bool,
    /// True if manifest and extents lie in a bucket.
    in_bucket: bool,
    /// Options of the database that a plan chooses by one name.
    pub(super) preset: Preset,
    cores: usize,
    helping: bool,
    pinned: bool,
    spreading: bool,
}

impl Mode {
    /// Takes the adapter's options out of `options`.
    pub(super) fn take(options: &mut BTreeMap<String, String>) -> Result<Mode> {
        let (own, others) =
            std::mem::take(options).into_iter().partition(|(name, _)| NAMES.contains(&name.as_str()));
        *options = others;
        let own = Named::new("terrane", &own, &NAMES)?;
        let mode = Mode {
            together: own.one_of("requests", &["apart", "together"])? == "together",
            transactions: transactions(&own)?,
            watched: own.flag("watched", false)?,
            in_bucket: own.one_of("parts", &["local", "bucket"])? == "bucket",
            preset: Preset::named(own.one_of("preset", &Preset::NAMES)?),
            cores: own.number("cores", 0)? as usize,
            helping: own.flag("cores_helping", true)?,
            pinned: own.flag("cores_pinned", false)?,
            spreading: own.flag("cores_spreading", true)?,
        };
        if mode.in_bucket && mode.preset.has_pool() {
            return Err(Error::plan(
                "option parts of terrane: a database in a bucket has no pool of persistent memory; choose xs or xp",
            ));
        }
        if mode.together && mode.cores > 0 {
            return Err(Error::plan("option requests of terrane: cores do all together; leave it out"));
        }
        Ok(mode)
    }

    /// Opens or creates the database in `directory`.
    pub(super) fn open(&self, directory: &Path, options: &Options) -> Result<Db> {
        if !self.in_bucket {
            return Db::open_with(directory, options).map_err(failed("open"));
        }
        let whole = std::path::absolute(directory)
            .map_err(|error| Error::engine("terrane", "find the directory", error))?;
        let url = format!("file://{}", whole.join("bucket").display());
        let deployment = Deployment::new(whole.join("journal"), url);
        deployment.open_with(options, Functions::default()).map_err(failed("open"))
    }

    /// The transaction for which writes are watched, if they are to be.
    pub(super) fn watcher(&self, db: &Db) -> Result<Option<Transaction>> {
        let begin = || db.transaction(&self.transactions).map_err(failed("begin a transaction"));
        self.watched.then(begin).transpose()
    }

    /// The cores, if there are to be any.
    pub(super) fn cores(&self, db: &Db, tables: &[Table]) -> Result<Option<Cores>> {
        if self.cores == 0 {
            return Ok(None);
        }
        let builder = Cores::builder(db).cores(self.cores).slots(1024);
        let builder = builder.helping(self.helping).pinned(self.pinned).spreading(self.spreading);
        let builder = tables.iter().fold(builder, |builder, table| builder.table(table));
        builder.build().map(Some).map_err(failed("start the cores"))
    }
}

fn transactions(own: &Named<'_>) -> Result<TransactionOptions> {
    let concurrency = match own.one_of("transactions", &["optimistic", "pessimistic"])? {
        "pessimistic" => Concurrency::Pessimistic,
        _ => Concurrency::Optimistic,
    };
    let isolation = match own.one_of("isolation", &["serializable", "snapshot", "read_committed"])? {
        "read_committed" => Isolation::ReadCommitted,
        "snapshot" => Isolation::Snapshot,
        _ => Isolation::Serializable,
    };
    Ok(TransactionOptions { concurrency, isolation, ..TransactionOptions::default() })
}

/// Refuses options that neither the adapter nor the database has.
///
/// # Errors
/// `Plan`, naming the option.
pub fn check_options(options: &BTreeMap<String, String>) -> Result<()> {
    let mut others = options.clone();
    Mode::take(&mut others)?;
    let mut chosen = Options::default();
    others
        .iter()
        .try_for_each(|(name, value)| chosen.set(name, value).map_err(|error| Error::plan(error.to_string())))
}
