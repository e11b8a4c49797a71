//! Makes the manifest of a clone: a take-over, which no other writer can have created, then one snapshot of
//! the state with which the clone begins. Before the snapshot there is no database.

use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::{Error, Result};
use terrane_format::manifest::{DatabaseId, ManifestObject, ObjectTag};
use terrane_levels::{ManifestLog, State};

use super::ManifestFolder;
use super::chain::step;
use super::log::{ObjectLog, Outcome, drawn};
use super::trim::Trimmer;

/// A manifest of two objects has nothing that was replaced.
const NEVER: Duration = Duration::from_secs(u64::MAX / 4);

/// A manifest without a state.
#[derive(Debug)]
pub(crate) struct NewManifest {
    log: ObjectLog,
    database: DatabaseId,
}

/// How much the folder of a manifest has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// No object.
    Nothing,
    /// The first object of a writer that made no snapshot yet.
    Begun,
    /// More.
    Database,
}

impl NewManifest {
    /// The epoch of its first writer, which makes it.
    pub(crate) const EPOCH: u64 = 1;

    /// Creates the snapshot.
    ///
    /// # Errors
    /// `Poisoned` if it is unknown whether that was created, or another writer has taken the manifest over;
    /// after any other error nothing was created.
    pub(crate) fn publish(mut self, state: &State) -> Result<()> {
        assert!(state.database == self.database, "the state is that of the clone");
        self.log.roll(state)
    }
}

impl ManifestFolder {
    /// How far a writer has come in the folder.
    ///
    /// # Errors
    /// `Corrupt`, `Invalid`, `Io`, `Busy`.
    pub(crate) fn rest(&self) -> Result<Rest> {
        let listed = self.objects.list()?;
        let Some((last, object)) = listed.last_key_value() else { return Ok(Rest::Nothing) };
        if listed.len() > 1 || *last != 1 {
            return Ok(Rest::Database);
        }
        let bytes = self.fetch(&[(1, object.bytes)])?.remove(0);
        let decoded = ManifestObject::decode(1, &bytes).map_err(|error| self.objects.at(1, error))?;
        debug_assert_eq!(decoded.0.number, 1, "an object has the number of its name");
        let is_begun = (decoded.0.tag, decoded.0.epoch) == (ObjectTag::TakeOver, NewManifest::EPOCH);
        Ok(if is_begun { Rest::Begun } else { Rest::Database })
    }

    /// Deletes the object of a manifest that was begun. Requires: no writer goes on with it.
    ///
    /// # Errors
    /// `Io`, `Busy`.
    pub(crate) fn remove_begun(&self) -> Result<()> {
        self.objects.bucket.delete(&[self.objects.name(1)])
    }

    /// Begins the manifest of the database of this id.
    ///
    /// # Errors
    /// `Invalid` if there is a manifest; `Poisoned` if the outcome is unknown; `Io`.
    pub(crate) fn begin_clone(&self, database: DatabaseId, env: &Env) -> Result<NewManifest> {
        let (nonce, journal) = (drawn(&*env.random), drawn(&*env.random) | 1);
        let header = ManifestObject {
            tag: ObjectTag::TakeOver,
            number: 1,
            parent: 0,
            base: 0,
            epoch: NewManifest::EPOCH,
            begun: 1,
            nonce,
            database,
            // That of a directory which does not exist: the first opening finds that no journal is needed.
            journal,
            len: 0,
        };
        let bytes = header.encode(&[]);
        match self.create(header.number, &bytes)? {
            Outcome::Ours => {}
            Outcome::Others(_) => return Err(self.is_taken()),
        }
        let begun = step(None, header, &[], &bytes)?;
        let trimmer = Trimmer::new(NEVER, 0);
        debug_assert!(begun.state.is_none(), "a take-over has no state");
        Ok(NewManifest { log: ObjectLog::new(self.clone(), env.random.clone(), &begun, trimmer), database })
    }

    #[cold]
    fn is_taken(&self) -> Error {
        Error::invalid(format!(
            "another process made a database in {} meanwhile: a clone begins below an empty prefix; give it \
             another one",
            self.objects.place()
        ))
    }
}
