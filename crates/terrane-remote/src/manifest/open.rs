//! Takes a manifest over, or makes one.
//!
//! 1. read the manifest 2. check what the caller asks of it 3. create the next object with the next epoch; if
//!    another one has it, begin again 4. if there is no state, write the first snapshot 5. if the journal of
//!    the writer before is abandoned, an edit says so.

use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::{Error, Kind, Result};
use terrane_engine::PartsRequest;
use terrane_format::manifest::object::object_hash;
use terrane_format::manifest::{DatabaseId, Edit, EditOp, ManifestObject, ObjectTag};
use terrane_levels::{Manifest, ManifestLog, ManifestSettings, ManifestSize, State};

use super::log::{ObjectLog, Outcome, drawn};
use super::trim::Trimmer;
use super::{Found, ManifestFolder};

/// How often a take-over begins again because another writer was faster.
const ATTEMPTS: u32 = 16;

/// What a writer brings to a take-over.
#[derive(Clone, Copy, Debug)]
pub struct TakeOver<'a> {
    /// What the engine asks.
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
    /// `NotFound` if there is none and none may be made; `Invalid` if there is one and must not be, or its
    /// last writer went on with another journal, or there is none and the journal is that of one; `Busy` if
    /// others are always faster; `Poisoned` if the outcome is unknown: try again; `Corrupt`, `Io`.
    pub fn take_over(&self, asked: &TakeOver<'_>) -> Result<OpenedManifest> {
        for _ in 0..ATTEMPTS {
            let found = self.read()?;
            let forgets = self.check(found.as_ref(), asked)?;
            let (header, bytes) = first_object(found.as_ref(), asked.request);
            if let Outcome::Others(_) = self.create(header.number, &bytes)? {
                continue;
            }
            return self.begin(found, header, &bytes, forgets, asked);
        }
        let message =
            format!("other writers take over the database in {} without end: stop them", self.place());
        Err(Error::new(Kind::Busy, message))
    }

    /// Checks that the caller may have what was found; returns whether its journal is to be forgotten.
    fn check(&self, found: Option<&Found>, asked: &TakeOver<'_>) -> Result<bool> {
        let Some((found, state)) = found.and_then(|found| Some((found, found.state.as_ref()?))) else {
            if asked.request.journal.before != 0 {
                return Err(other_database(&self.place()));
            }
            if asked.request.new.is_some() {
                return Ok(false);
            }
            let message =
                format!("there is no database in {}: set create_if_missing to make one", self.place());
            return Err(Error::new(Kind::NotFound, message));
        };
        if asked.request.must_be_new {
            let message = format!("{} holds a database already and error_if_exists is set", self.place());
            return Err(Error::invalid(message));
        }
        let journal = asked.request.journal;
        let is_known = [journal.journal, journal.before].contains(&found.last.journal)
            || terrane_base::planted!(IgnoreJournalId);
        if is_known || state.segments.is_empty() && state.history.is_empty() {
            return Ok(false);
        }
        if asked.abandoned == Some(found.last.journal) {
            return Ok(true);
        }
        Err(Error::invalid(format!(
            "the database in {} was last written with journal {:032x}, which may hold commits that are not in \
             the bucket: open it with that directory, or with a copy of it; to give up these commits for good, \
             set abandon = \"{:032x}\" under [journal] for one opening",
            self.place(),
            found.last.journal,
            found.last.journal
        )))
    }

    /// Goes on behind the take-over `header`, whose object has `bytes`.
    fn begin(
        &self,
        found: Option<Found>,
        header: ManifestObject,
        bytes: &[u8],
        forgets: bool,
        asked: &TakeOver<'_>,
    ) -> Result<OpenedManifest> {
        let env = asked.request.env;
        let (state, mut size) = match found {
            Some(found) => (found.state, found.size),
            None => (None, ManifestSize { file: 0, snapshot_bytes: 0, edit_bytes: 0, edits: 0 }),
        };
        size.edits += 1;
        let taken = Found { last: header, state: None, hash: object_hash(bytes), size };
        let trimmer = Trimmer::new(asked.replaced_age, header.base);
        let mut log = ObjectLog::new(self.clone(), env.random.clone(), &taken, trimmer);
        let state = match state {
            Some(state) => state,
            None => {
                let options = asked.request.new.clone().unwrap_or_default();
                let state = State::new(header.database, options)?;
                log.roll(&state)?;
                state
            }
        };
        let manifest = Manifest::on(Box::new(log), &state, asked.settings);
        if forgets {
            manifest.append(&without_journal(&state))?;
        }
        let state = State::clone(&manifest.state());
        assert!(header.epoch > 0, "the first writer has epoch 1");
        Ok(OpenedManifest { manifest, state, epoch: header.epoch })
    }
}

/// The error of an opening that finds no database, with a journal that belongs to one: a new database would
/// take the journal from it.
#[cold]
pub(crate) fn other_database(place: &str) -> Error {
    Error::invalid(format!(
        "there is no database in {place}, and the directory of the journal was used with one: correct the \
         address, or give the new database a directory of its own"
    ))
}

/// The take-over behind what was found.
fn first_object(found: Option<&Found>, request: &PartsRequest<'_>) -> (ManifestObject, Vec<u8>) {
    let Env { random, .. } = request.env;
    let (nonce, journal) = (drawn(&**random), request.journal.journal);
    let header = match found {
        None => ManifestObject {
            tag: ObjectTag::TakeOver,
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
            tag: ObjectTag::TakeOver,
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

/// The edit that forgets all segments, the history's too: what only they hold is given up.
fn without_journal(state: &State) -> Edit {
    let kept = state.history.keys().map(|id| EditOp::ForgetSegment { id: *id });
    let live = state.segments.keys().map(|id| EditOp::RemoveSegment { id: *id });
    Edit { ops: kept.chain(live).collect() }
}
