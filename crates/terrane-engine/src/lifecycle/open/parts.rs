//! Opening a database whose manifest and extents do not lie in its directory, which has the journal only.
//! Of a journal that has a log elsewhere the directory is a working copy: the parts bring it up to date.
//!
//! 1. the directory is locked and its journal gets a new id 2. the parts are opened: the manifest takes over
//!    under that id, after which no writer before appends 3. the new id is confirmed in the directory.
//!
//! A crash between two steps leaves a directory that names both ids; the next opening accepts either.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::sync::Mutex;
use terrane_base::{Error, Functions, Result, SeqNo};
use terrane_device::{Disk, DiskLock};
use terrane_format::manifest::{JournalMark, TableOptions};
use terrane_journal::CommitLog;
use terrane_levels::{Manifest, directory, journal_place};
use terrane_storage::Store;

use super::store::Elsewhere;
use super::{Opened, Way, forget_dropped, lock_for_writing};
pub use crate::background::MakeCompactor;
pub use crate::shared::CountRequests;
use crate::table::settings::stored_options;

/// Opens the parts of a database that lie elsewhere.
pub trait Parts: Send + Sync + Debug {
    /// Where they lie, for messages.
    fn address(&self) -> &str;

    /// Opens manifest and store for one writer. Once this returned, no writer before appends to the manifest.
    /// The store is not restored.
    ///
    /// # Errors
    /// `NotFound` if there is no database and none may be made; `Invalid` if there is one and none may be
    /// there, or if its last writer went on with another journal, whose commits would be lost; `Corrupt`,
    /// `Io`.
    fn open(&self, request: &PartsRequest<'_>) -> Result<OpenedParts>;

    /// The last commit of the journal that is replayed, where the journal in the directory has later ones:
    /// the manifest is the one of an earlier moment, whose extents have no later record. `None` for all.
    fn until(&self) -> Option<SeqNo> {
        None
    }
}

/// The request of an opening to [`Parts::open`].
#[derive(Debug)]
pub struct PartsRequest<'a> {
    /// The doors.
    pub env: &'a Env,
    /// The journal: the manifest of a database that exists names it by its present id or the one before, or
    /// lists no segment; from now on by the present one.
    pub journal: &'a JournalMark,
    /// Where the segments lie.
    pub segments: (&'a dyn Disk, &'a Path),
    /// The options of the default table of a new database; `None` if none may be made.
    pub new: Option<TableOptions>,
    /// Refuses a database that exists.
    pub must_be_new: bool,
}

/// The result of [`Parts::open`].
pub struct OpenedParts {
    /// The manifest, whose one writer this is.
    pub manifest: Arc<Manifest>,
    /// The store, before its restore.
    pub store: Arc<dyn Store>,
    /// The log of the journal, if it has one; the directory has all of its bytes that the manifest lists.
    pub log: Option<Arc<dyn CommitLog>>,
    /// How often the writer looks whether another one has taken over, and what it does as often until it
    /// finds one, on another thread: upkeep that takes long does not delay the look.
    pub upkeep: Option<(Duration, Upkeep)>,
    /// Makes what runs compaction jobs out of the compactor of this process, which is the one without it.
    pub compactor: Option<MakeCompactor>,
    /// Counts the requests of these parts to buckets.
    pub requests: Option<CountRequests>,
}

/// Work that parts do now and then, such as the collection of garbage.
pub type Upkeep = Box<dyn FnMut() + Send>;

/// The parts of a database that lie elsewhere, opened for reading: no writer is fenced off, nothing is
/// written.
#[derive(Debug)]
pub struct ReadParts {
    /// Where they lie, for messages.
    pub address: String,
    /// The manifest, which appends nothing.
    pub manifest: Arc<Manifest>,
    /// The store, before its restore.
    pub store: Arc<dyn Store>,
    /// The shared lock of the directory, if it has the journal that the manifest goes on with: the journal is
    /// replayed then. Otherwise the manifest lists no segment, and only the rows in the extents are read. A
    /// follower holds no lock: it copies the segments, and looks afterwards whether they are still listed.
    pub lock: Mutex<Option<Box<dyn DiskLock>>>,
    /// The last commit that is shown, where that is not the last one of the journal: the manifest is then the
    /// one of an earlier moment, whose extents have no later record.
    pub until: Option<SeqNo>,
    /// Counts the requests of these parts to buckets.
    pub requests: Option<CountRequests>,
}

/// How often a writer looks whether it was replaced, and its upkeep.
pub(super) type Watch = (Duration, Upkeep);

/// Refuses options that need all of a database in a directory.
///
/// # Errors
/// `Invalid`, with the option.
pub(super) fn refuse_options(options: &Options) -> Result<()> {
    let refused = [
        (options.read_only, "read_only", "open it for writing where no other process has it open"),
        (options.pmem_path.get().is_some(), "pmem_path", "leave it out: its journal is in files"),
        (options.beside_others, "beside_others", "give its journal a directory of its own"),
    ];
    match refused.into_iter().find(|(is_set, ..)| *is_set) {
        None => Ok(()),
        Some((_, option, remedy)) => Err(Error::invalid(format!(
            "option {option}: a database whose manifest and extents lie elsewhere does not take it yet; {remedy}"
        ))),
    }
}

/// Refuses options that contradict an opening for reading of parts that lie elsewhere.
///
/// # Errors
/// `Invalid`, with the option.
pub(crate) fn refuse_reading_options(options: &Options) -> Result<()> {
    debug_assert!(options.read_only, "set by the opening");
    refuse_options(&Options { read_only: false, ..options.clone() })
}

/// The state with which an opening for reading goes on.
pub(super) fn read_elsewhere(parts: &ReadParts, functions: &Functions, way: Way<'_>) -> Result<Opened> {
    let state = parts.manifest.set_orders(&functions.orders)?;
    let lock = parts.lock.lock().take();
    let has_segments = !(state.segments.is_empty() && state.history.is_empty());
    assert!(
        lock.is_some() || way.following().is_some() || !has_segments,
        "a journal that is replayed is held against a writer"
    );
    let elsewhere = Elsewhere { requests: parts.requests.clone(), ..Elsewhere::only(parts.store.clone()) };
    Ok(Opened { manifest: parts.manifest.clone(), state, lock, elsewhere: Some(elsewhere), log: None })
}

/// Steps 1 to 3 of the head.
pub(super) fn open_elsewhere(
    (disk, dir): (&Arc<dyn Disk>, &Path),
    options: &Options,
    env: &Env,
    functions: &Functions,
    parts: &dyn Parts,
) -> Result<Opened> {
    debug_assert!(!options.read_only, "refused before");
    if !disk.exists(&dir.join(directory::REMOTE))? {
        directory::refuse_within(&**disk, dir, directory::Others::Refused)?;
    }
    directory::prepare(&**disk, dir)?;
    journal_place::check(&**disk, dir)?;
    let lock = lock_for_writing(&**disk, dir, env)?;
    // Looked at again under the lock: another process may have used the directory meanwhile.
    journal_place::check(&**disk, dir)?;
    let mark = renewed(journal_place::read(&**disk, dir)?, env, parts.address());
    journal_place::write(&**disk, dir, &mark)?;
    let segments = &dir.join(directory::JOURNAL);
    disk.create_dir(segments)?;
    let new = options.create_if_missing.then(|| stored_options(options, &[], functions));
    let (segments, must_be_new) = ((&**disk, &**segments), options.error_if_exists);
    let request = PartsRequest { env, journal: &mark, segments, new, must_be_new };
    let OpenedParts { manifest, store, log, upkeep, compactor, requests } = parts.open(&request)?;
    let address = parts.address().to_owned();
    journal_place::write(&**disk, dir, &JournalMark { before: mark.journal, address, ..mark })?;
    let state = manifest.set_orders(&functions.orders)?;
    let state = forget_dropped(&manifest, state)?;
    let elsewhere = Some(Elsewhere { store, upkeep, compactor, requests });
    Ok(Opened { manifest, state, lock: Some(lock), elsewhere, log })
}

/// The mark with which this opening begins. The id of an opening that was not confirmed is used again: the
/// manifest may have it, or the one before. The address stays the one before until the opening is confirmed.
fn renewed(mark: Option<JournalMark>, env: &Env, address: &str) -> JournalMark {
    let drawn = || u128::from(env.random.next_u64()) << 64 | u128::from(env.random.next_u64()) | 1;
    match mark {
        None => JournalMark { journal: drawn(), before: 0, address: address.to_owned() },
        Some(mark) if mark.before == mark.journal => JournalMark { journal: drawn(), ..mark },
        Some(mark) => mark,
    }
}
