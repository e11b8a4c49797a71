//! Following a database whose manifest and extents lie elsewhere: what a follower asks of its parts, and the
//! views that it makes of them.
//!
//! As with a database in a directory a view never changes, and the next one shares with it the cache and
//! every extent that both have (`follower.rs`). The parts keep what they read between two views, so that they
//! read only new objects.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::options::Options;
use terrane_base::{Result, SeqNo};
use terrane_device::Disk;

use crate::engine::Engine;
use crate::lifecycle::follower::Following;
use crate::lifecycle::open::parts::{ReadParts, refuse_reading_options};
use crate::lifecycle::open::{OpenRequest, Way};

/// A database that a writer elsewhere may have open, as its followers read it.
pub trait Followed: Send + Sync + Debug {
    /// Where it lies, for messages.
    fn address(&self) -> &str;

    /// Reads what has changed, and returns the parts of a view of the present state; `None` if the view of
    /// the moment `seen` is up to date. After an error the next call goes on where this one began.
    ///
    /// # Errors
    /// `NotFound` if there is no database; `Busy` if its writer changes it faster than it can be read;
    /// `Corrupt`, `Io`.
    fn parts(&self, seen: Option<&Moment>) -> Result<Option<FollowedParts>>;

    /// Called once a view of `parts` is made, before it is given out, or failed. Returns false if the writer
    /// changed meanwhile what it is made of: it is dropped, and another one made.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, `Busy`.
    fn confirm(&self, parts: &FollowedParts) -> Result<bool>;

    /// How far the view of the moment `seen`, whose last commit is `seq`, is behind the writer.
    ///
    /// # Errors
    /// As [`Followed::parts`].
    fn lag(&self, seen: &Moment, seq: SeqNo) -> Result<Lag>;
}

/// A moment of a database that is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Counts what was new.
    pub count: u64,
    /// When the newest part of manifest or journal was written, by the clock of what holds it.
    pub written: Duration,
    /// True if the view has the records that are only in the journal.
    pub has_journal: bool,
}

/// The parts of a view.
#[derive(Debug)]
pub struct FollowedParts {
    /// The moment that it shows.
    pub moment: Moment,
    /// Where the segments lie that are replayed.
    pub disk: Arc<dyn Disk>,
    /// The directory of the journal there.
    pub dir: PathBuf,
    /// Manifest and store.
    pub read: ReadParts,
    /// The last commit up to which the view has all, if the journal is not replayed; otherwise that is the
    /// last one of the journal.
    pub has: Option<SeqNo>,
}

/// How far a follower is behind its writer.
///
/// ```
/// # use std::time::Duration;
/// # use terrane_engine::Lag;
/// fn show(lag: &Lag) -> String {
///     let least = if lag.is_least { "at least " } else { "" };
///     let time = lag.time.map_or_else(String::new, |time| format!(", {time:?}"));
///     format!("{least}{} commits behind{time}", lag.commits)
/// }
/// assert_eq!(show(&Lag::of(7)), "7 commits behind");
/// let remote = Lag::of(7).at_least().with_time(Duration::from_secs(2));
/// assert_eq!(show(&remote), "at least 7 commits behind, 2s");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lag {
    /// Commits of the writer that the view lacks, as far as a follower can see.
    pub commits: u64,
    /// True if the writer may have made more of them: its journal cannot be read from here.
    pub is_least: bool,
    /// Time between the last part of the database that the view has and the last one that the writer wrote,
    /// by the clock of what holds the database; `None` for a database in a directory, whose files do not say
    /// when a commit was made.
    pub time: Option<Duration>,
}

impl Lag {
    /// A lag of so many commits, which are all.
    #[must_use]
    pub fn of(commits: u64) -> Lag {
        Lag { commits, is_least: false, time: None }
    }

    /// It, with the time.
    #[must_use]
    pub fn with_time(self, time: Duration) -> Lag {
        Lag { time: Some(time), ..self }
    }

    /// It, where the journal cannot be read.
    #[must_use]
    pub fn at_least(self) -> Lag {
        Lag { is_least: true, ..self }
    }
}

impl Engine {
    /// A view of `parts`; `previous` is an older view of the same database. The disk and the directory of the
    /// request are those of the journal, which `parts` has the lock of if it is replayed.
    ///
    /// # Errors
    /// `Invalid` for options that such a database does not take; `Busy`, `Corrupt`, `Io`.
    pub fn follow_elsewhere_on(
        request: OpenRequest<'_>,
        parts: &ReadParts,
        previous: Option<&Arc<Engine>>,
    ) -> Result<Arc<Engine>> {
        // A cache of rows belongs to one view; the next would begin with an empty one.
        let options =
            Options { read_only: true, create_if_missing: false, row_cache: 0, ..request.options.clone() };
        refuse_reading_options(&options)?;
        let disk = request.disk.clone();
        let following = Following::behind(&disk, request.dir, previous);
        let opened = Engine::open_as(
            OpenRequest { options: &options, ..request },
            Way::FollowingParts(parts, &following),
        );
        opened.inspect(|engine| debug_assert!(engine.options.read_only, "a view writes nothing"))
    }
}
