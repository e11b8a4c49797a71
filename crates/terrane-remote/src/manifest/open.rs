//! Takes a manifest over, or makes one.
//!
//! 1. read the manifest 2. check what the caller asks of it 3. create the next object with the next epoch; if
//!    another one has it, begin again; it also says whether the journal of the writer before is given up
//!    4. if there is no state, write the first snapshot.

use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::{Error, Kind, Result};
use terrane_engine::PartsRequest;
use terrane_format::manifest::{DatabaseId, JournalMark, ManifestObject, ObjectTag};
use terrane_levels::{Manifest, ManifestLog, ManifestSettings, State};

use super::chain::step;
use super::log::{ObjectLog, Outcome, drawn};
use super::trim::Trimmer;
use super::{Found, ManifestFolder};
use crate::journal::is_in_objects;

/// How often a take-over begins again because another writer was faster.
const ATTEMPTS: u32 = 16;

/// The arguments of a writer for a take-over.
#[derive(Clone, Copy, Debug)]
pub struct TakeOver<'a> {
    /// The request of the engine.
    pub request: &'a PartsRequest<'a>,
    /// The id of a journal that may be abandoned, with all its commits that are not in the extents.
    pub abandoned: Option<u128>,
    /// When a snapshot is written.
    pub settings: ManifestSettings,
    /// An object that a snapshot replaced is deleted once the snapshot is older than this, by the clock of
    /// the object store: a reader that began before has ended by then.
    pub replaced_age: Duration,
}

/// Records of edits from which on a snapshot is written, where the settings are those of objects.
const EDITS_PER_SNAPSHOT: u64 = 64;

impl<'a> TakeOver<'a> {
    /// A take-over that abandons nothing: a snapshot after 64 edits, objects kept for an hour.
    #[must_use]
    pub fn new(request: &'a PartsRequest<'a>) -> TakeOver<'a> {
        TakeOver {
            request,
            abandoned: None,
            settings: ManifestSettings { roll_edits_max: EDITS_PER_SNAPSHOT, ..ManifestSettings::default() },
            replaced_age: Duration::from_secs(3600),
        }
    }
}

impl TakeOver<'_> {
    /// It, where earlier states can be opened for this age, if that is more than an hour.
    #[must_use]
    pub(crate) fn kept_for(self, age: Duration) -> Self {
        TakeOver { replaced_age: self.replaced_age.max(age), ..self }
    }
}

/// How the journal of a directory fits to a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalFit {
    /// There is no database, and the directory was used with none.
    NoDatabase,
    /// It is that of the last writer.
    Last,
    /// The directory is new, and the manifest needs no journal.
    NoneNeeded,
    /// The directory is new, and the caller abandons the journal of the last writer.
    GivenUp,
}

/// A manifest that was taken over.
#[derive(Debug)]
pub struct OpenedManifest {
    /// The manifest, whose one writer this is.
    pub manifest: Manifest,
    /// Its state.
    pub state: State,
    /// The epoch of this writer, which no other has or had.
    pub epoch: u64,
}

impl ManifestFolder {
    /// Takes the manifest over: once this returned, no writer before appends.
    ///
    /// # Errors
    /// `NotFound` if the manifest does not exist and none may be made; `Invalid` if it exists and must not,
    /// or its last writer went on with another journal, or it does not exist and the journal belongs to one;
    /// `Busy` if others are always faster; `Poisoned` if the outcome is unknown: try again; `Corrupt`, `Io`.
    pub fn take_over(&self, asked: &TakeOver<'_>) -> Result<OpenedManifest> {
        for _ in 0..ATTEMPTS {
            let found = self.read()?;
            let tag = match self.check(found.as_ref(), asked)? {
                JournalFit::GivenUp => ObjectTag::TakeOverWithoutJournal,
                _ => ObjectTag::TakeOver,
            };
            let (header, bytes) = first_object(tag, found.as_ref(), asked.request);
            if let Outcome::Others(_) = self.create(header.number, &bytes)? {
                continue;
            }
            return self.begin(found, header, &bytes, asked);
        }
        let message = format!(
            "other writers take over the database in {} without end: stop them",
            self.objects.place()
        );
        Err(Error::new(Kind::Busy, message))
    }

    /// Checks that the caller may have what was found; returns how its journal fits to that.
    fn check(&self, found: Option<&Found>, asked: &TakeOver<'_>) -> Result<JournalFit> {
        let fit = self.journal_fit(found, asked.request.journal, asked.abandoned)?;
        if fit == JournalFit::NoDatabase {
            if asked.request.new.is_some() {
                return Ok(fit);
            }
            let message = format!(
                "there is no database in {}: set create_if_missing to make one",
                self.objects.place()
            );
            return Err(Error::new(Kind::NotFound, message));
        };
        if asked.request.must_be_new {
            let message =
                format!("{} holds a database already and error_if_exists is set", self.objects.place());
            return Err(Error::invalid(message));
        }
        Ok(fit)
    }

    /// How the journal of a directory with this mark fits to the manifest. A directory that was used has one
    /// of the last two journals of the database, whatever the manifest lists: its records would be lost.
    ///
    /// # Errors
    /// `Invalid`, with the remedy, if it is that of another database, or of this one before another directory
    /// took its place; or if the last journal has commits and is not given up.
    pub(crate) fn journal_fit(
        &self,
        found: Option<&Found>,
        mark: &JournalMark,
        abandoned: Option<u128>,
    ) -> Result<JournalFit> {
        let Some((found, state)) = found.and_then(|found| Some((found, found.state.as_ref()?))) else {
            return if mark.before == 0 {
                Ok(JournalFit::NoDatabase)
            } else {
                Err(no_database(&self.objects.place()))
            };
        };
        let last = found.last.journal;
        if [mark.journal, mark.before].contains(&last) || terrane_base::planted!(IgnoreJournalId) {
            return Ok(JournalFit::Last);
        }
        let needs_last = !(state.segments.is_empty() && state.history.is_empty());
        // Out of a bucket no journal comes back: its objects stay, and a later move would take them for its
        // own.
        let comes_back = is_in_objects(last) && !is_in_objects(mark.journal);
        if comes_back || mark.before != 0 && !needs_last {
            return Err(self.other_journal(last));
        }
        if !needs_last {
            return Ok(JournalFit::NoneNeeded);
        }
        if abandoned == Some(last) {
            return if mark.before == 0 { Ok(JournalFit::GivenUp) } else { Err(self.other_journal(last)) };
        }
        Err(Error::invalid(format!(
            "the database in {} was last written with journal {:032x}, which may hold commits that are not in \
             the bucket: open it with that directory, or with a copy of it; to give up these commits for good, \
             set abandon = \"{:032x}\" under [journal] for one opening",
            self.objects.place(),
            last,
            last
        )))
    }

    /// The error of an opening with a directory whose journal is another one, and may have commits.
    #[cold]
    fn other_journal(&self, last: u128) -> Error {
        Error::invalid(format!(
            "the database in {} was last written with journal {last:032x}; the directory of the journal was used \
             with another database, or with this one before another directory took its place: correct the \
             address, or give the journal a new directory",
            self.objects.place()
        ))
    }

    /// Goes on behind the take-over `header`, whose object has `bytes`.
    fn begin(
        &self,
        found: Option<Found>,
        header: ManifestObject,
        bytes: &[u8],
        asked: &TakeOver<'_>,
    ) -> Result<OpenedManifest> {
        let env = asked.request.env;
        // As every reader from now on takes it.
        let taken = step(found, header, &[], bytes)?;
        let trimmer = Trimmer::new(asked.replaced_age, header.base);
        let mut log = ObjectLog::new(self.clone(), env.random.clone(), &taken, trimmer);
        let state = match taken.state {
            Some(state) => state,
            None => {
                let options = asked.request.new.clone().unwrap_or_default();
                let state = State::new(header.database, options)?;
                log.roll(&state)?;
                state
            }
        };
        let manifest = Manifest::on(Box::new(log), &state, asked.settings);
        assert!(header.epoch > 0, "the first writer has epoch 1");
        let forgets = header.tag == ObjectTag::TakeOverWithoutJournal;
        debug_assert!(!forgets || state.segments.is_empty(), "a journal that is given up is not looked for");
        Ok(OpenedManifest { manifest, state, epoch: header.epoch })
    }
}

/// The error of an opening that finds no database, with a journal that belongs to one: a new database would
/// take the journal from it.
#[cold]
fn no_database(place: &str) -> Error {
    Error::invalid(format!(
        "there is no database in {place}, and the directory of the journal was used with one: correct the \
         address, or give the new database a directory of its own"
    ))
}

/// The take-over behind what was found.
fn first_object(
    tag: ObjectTag,
    found: Option<&Found>,
    request: &PartsRequest<'_>,
) -> (ManifestObject, Vec<u8>) {
    let Env { random, .. } = request.env;
    let (nonce, journal) = (drawn(&**random), request.journal.journal);
    let header = match found {
        None => ManifestObject {
            tag,
            number: 1,
            parent: 0,
            base: 0,
            epoch: 1,
            begun: 1,
            nonce,
            database: DatabaseId(drawn(&**random)),
            journal,
            len: 0,
        },
        Some(Found { last, hash, .. }) => ManifestObject {
            tag,
            number: last.number + 1,
            parent: *hash,
            epoch: last.epoch + 1,
            begun: last.number + 1,
            nonce,
            journal,
            len: 0,
            ..*last
        },
    };
    let bytes = header.encode(&[]);
    (header, bytes)
}
