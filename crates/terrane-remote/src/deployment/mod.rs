//! Deployments: which part of a database lies where, said by one file.
//!
//! ```toml
//! [journal]
//! directory = "/var/lib/app/journal"   # on this machine; beside this file if it is not a whole path
//!
//! [storage]
//! url = "s3://bucket"                  # or "file:///srv/bucket"; keys of S3 come from the environment
//! prefix = "app"                       # default: "terrane"
//!
//! [cache]                              # ranges of objects on local disk; left out: none
//! directory = "/var/cache/app"
//! bytes = 10000000000
//!
//! [compaction]
//! workers = true                       # jobs go to `terrane serve compactor` on other machines
//!
//! [options]                            # those of the engine
//! memory_bytes = "1GiB"
//! ```
//!
//! With `in_bucket = true` or `url = "..."` under `[journal]` the journal lies in a bucket as well; its
//! directory is a working copy then, and may be lost.
//!
//! * `file.rs`: reads it. * `parts.rs`: opens manifest and store. * `journal.rs`: opens a journal in a
//!   bucket.
//! * `read.rs`: opens the database for reading, beside any writer. * `read_objects.rs`: what it shows of a
//!   journal in a bucket. * `follow.rs`: goes on with its writers. * `past.rs`: opens it as it was.
//! * `choice.rs`: what that is. * `earliest.rs`: how far back. * `at.rs`: moments. * `doctor.rs`: tries every
//!   part.
//! * `clone.rs`: makes a second database that reads the objects of this one. * `clone_target.rs`: where it
//!   may begin, and the removal of an unfinished one. * `clone_moment.rs`: which state it begins with.
//! * `clone_replay.rs`: replays the journal for it. * `clone_progress.rs`: how far it is, and ending it.
//! * `clone_pins.rs`: the pins of clones.

mod at;
mod choice;
mod clone;
mod clone_moment;
mod clone_pins;
mod clone_progress;
mod clone_replay;
mod clone_target;
mod doctor;
mod earliest;
mod file;
mod follow;
mod journal;
mod parts;
mod past;
mod read;
mod read_objects;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane::Db;
use terrane_base::env::Env;
use terrane_base::options::{JournalMode, Options};
use terrane_base::{Error, Functions, Result};

use crate::bucket::{self, Bucket, BucketSettings};
use crate::{BucketStoreSettings, TierSettings};
pub use at::At;
pub use clone::Cloned;
pub use clone_pins::ClonePin;
pub use clone_progress::{CloneProgress, TellClone};
pub use clone_target::UnfinishedClone;
pub use doctor::Tried;
pub use journal::BucketJournal;
pub use past::Earlier;
pub use read::{JournalRead, Reading};

/// Which part of a database lies where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// The directory of the journal.
    pub journal: PathBuf,
    /// The journal in a bucket, if it lies there: the directory is a working copy.
    pub bucket_journal: Option<BucketJournal>,
    /// The id of a journal whose commits may be given up.
    pub abandon: Option<u128>,
    /// The address of the bucket.
    pub url: String,
    /// The folder of the database in the bucket.
    pub prefix: String,
    /// How extents are kept there.
    pub settings: BucketStoreSettings,
    /// True if short reads that take long are asked for a second time, see [`crate::bucket::BucketSettings`].
    pub hedged_reads: bool,
    /// The cache on local disk; `None` for none.
    pub cache: Option<TierSettings>,
    /// How often the writer looks whether another one has replaced it, in milliseconds. Default 5000.
    pub writer_check_ms: u64,
    /// When compactions go to workers on other machines; `None` if they all run here.
    pub compaction: Option<crate::jobs::BucketCompactorSettings>,
    /// Options of the engine, as texts.
    pub options: Vec<(String, String)>,
}

impl Deployment {
    /// A deployment with its journal in the directory `journal` and the bucket of the address `url`;
    /// everything else has its default.
    #[must_use]
    pub fn new(journal: PathBuf, url: String) -> Deployment {
        Deployment {
            journal,
            bucket_journal: None,
            abandon: None,
            url,
            prefix: file::PREFIX.to_owned(),
            settings: BucketStoreSettings::default(),
            hedged_reads: true,
            cache: None,
            writer_check_ms: file::WRITER_CHECK_MS,
            compaction: None,
            options: Vec::new(),
        }
    }

    /// Opens the database; makes it if it does not exist.
    ///
    /// # Errors
    /// As [`Deployment::open_with`].
    pub fn open(&self) -> Result<Db> {
        self.open_with(&Options::default(), Functions::default())
    }

    /// Opens the database with options, over which those of the file count, and functions that its tables
    /// name.
    ///
    /// # Errors
    /// Those of [`Db::open_with`]; `Invalid` for options that such a database does not take, for a bucket
    /// that does not keep its promises, for another journal than that of the last writer, and for a journal
    /// of a database that is not in the bucket; `Corrupt`, `Io`.
    pub fn open_with(&self, options: &Options, functions: impl Into<Functions>) -> Result<Db> {
        let env = Env::real();
        let bucket = self.open_bucket(&env)?;
        self.open_in(bucket, options, functions, env)
    }

    /// Opens the bucket of manifest and extents.
    ///
    /// # Errors
    /// As [`bucket::open`].
    pub fn open_bucket(&self, env: &Env) -> Result<Arc<dyn Bucket>> {
        debug_assert!(!self.url.is_empty(), "a deployment has the address of a bucket");
        bucket::open_with(&self.url, env, self.bucket_settings())
    }

    /// How requests of its buckets are made.
    fn bucket_settings(&self) -> BucketSettings {
        BucketSettings { hedged_reads: self.hedged_reads, ..BucketSettings::default() }
    }

    /// [`Deployment::open_with`] in a bucket that is open: for tests, and for several databases of one
    /// bucket.
    ///
    /// # Errors
    /// As there.
    pub fn open_in(
        &self,
        bucket: Arc<dyn Bucket>,
        options: &Options,
        functions: impl Into<Functions>,
        env: Env,
    ) -> Result<Db> {
        let options = self.options_over(options)?;
        let journal = match &self.bucket_journal {
            Some(_) if options.journal == JournalMode::Off => {
                let message =
                    "option journal: a journal that is off does not lie in a bucket; leave one of both out";
                return Err(Error::invalid(message));
            }
            Some(journal) => Some(journal::bucket_of(journal, &bucket, &env)?),
            None => None,
        };
        let parts = parts::BucketParts::new(bucket, journal, self);
        Db::open_elsewhere(&self.journal, &options, env, functions, &parts)
    }

    fn options_over(&self, options: &Options) -> Result<Options> {
        let mut options = options.clone();
        self.options.iter().try_for_each(|(name, value)| options.set(name, value))?;
        Ok(options)
    }
}

/// Opens the database of the deployment file `path`; makes it if it does not exist.
///
/// ```
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// let file = dir.path().join("app.toml");
/// let bucket = dir.path().join("bucket");
/// std::fs::create_dir(&bucket).expect("a directory for the bucket");
/// let url = format!("file://{}", bucket.display());
/// let text = format!("[journal]\ndirectory = \"journal\"\n[storage]\nurl = \"{url}\"\n");
/// std::fs::write(&file, text).expect("written");
/// let db = terrane_remote::open(&file)?;
/// db.put("k", "v")?;
/// assert_eq!(db.get("k")?.expect("it was put"), "v");
/// db.close()?;
/// # Ok::<(), terrane_base::Error>(())
/// ```
///
/// # Errors
/// As [`Deployment::read`] and [`Deployment::open_with`].
pub fn open(path: impl AsRef<Path>) -> Result<Db> {
    Deployment::read(path.as_ref())?.open()
}
