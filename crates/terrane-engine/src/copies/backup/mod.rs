//! Backups: complete databases of single moments, in a backup place, which share equal objects.
//!
//! A place has three sorts of objects: extents and segments, each under a name that follows from its content,
//! and manifests, each naming the objects of its backup. An extent never changes, so a backup copies only
//! those that no earlier one has. A backup exists if and only if its manifest does, which is written last,
//! when all else is durable.
//!
//! * `place.rs`: where objects are kept. `objects.rs`: which there are, and which backups need them
//! * `create.rs`, `restore.rs`, `verify.rs`, `remove.rs`; `progress.rs`: their progress
//!
//! Invariants: an object that a whole backup names is never removed or written, but by one of the same
//! content that was checked; a process that writes holds the lock of the place.

mod create;
mod objects;
mod place;
mod progress;
mod remove;
mod restore;
mod verify;

use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::{Error, Result, SeqNo};
use terrane_format::backup::BackupManifest;

pub use create::BackupOptions;
pub use place::{BackupPlace, DirectoryPlace, FOLDERS};
pub use progress::{BackupProgress, Watcher};
pub use remove::Removed;
pub use restore::{RestoreOptions, Restored};
pub use verify::{BackupFinding, VerifyReport};

/// The backups of a place.
#[derive(Clone)]
pub struct Backups {
    place: Arc<dyn BackupPlace>,
    env: Env,
}

/// A backup, as its manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupInfo {
    /// Its number; a later backup has a higher one.
    pub id: u64,
    /// When it was made: milliseconds since the beginning of 1970.
    pub created_millis: u64,
    /// The database that it was made of: 32 hexadecimal digits.
    pub database: String,
    /// It has exactly the commits up to this number.
    pub last_seq: SeqNo,
    /// Extents in it.
    pub extents: u64,
    /// Their bytes.
    pub extent_bytes: u64,
    /// Bytes of the journal in it.
    pub journal_bytes: u64,
    /// Bytes that were copied for it, without objects of older backups.
    pub copied_bytes: u64,
    /// The options that the database was open with, for [`terrane_base::options::Options::set`]: name and
    /// value.
    pub options: Vec<(String, String)>,
    /// The text that it was made with, if any: [`BackupOptions::note`].
    pub note: Option<String>,
}

/// Under what name the options in a manifest have the note: no option has it.
const NOTE: &str = ":note";

/// A listing of a place.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct BackupList {
    /// The backups, oldest first.
    pub backups: Vec<BackupInfo>,
    /// Backups whose manifest cannot be read: number and error.
    pub damaged: Vec<(u64, Error)>,
}

impl Backups {
    /// The backups in `place`. Nothing is read or made yet.
    #[must_use]
    pub fn new(place: Arc<dyn BackupPlace>, env: Env) -> Self {
        Backups { place, env }
    }

    /// Lists the backups.
    ///
    /// # Errors
    /// `NotFound` if there is no such place; `Invalid` if the directory is not such a place; `Io`.
    pub fn list(&self) -> Result<BackupList> {
        let mut list = BackupList::default();
        for id in self.ids()? {
            match self.load(id) {
                Ok(manifest) => list.backups.push(BackupInfo::new(id, manifest)),
                Err(error) if objects::is_damage(&error) => list.damaged.push((id, error)),
                Err(error) => return Err(error),
            }
        }
        Ok(list)
    }
}

impl BackupInfo {
    fn new(id: u64, mut manifest: BackupManifest) -> BackupInfo {
        let note = manifest.options.iter().position(|(name, _)| name == NOTE);
        let note = note.map(|at| manifest.options.remove(at).1);
        BackupInfo {
            id,
            created_millis: manifest.created_millis,
            database: manifest.database.to_string(),
            last_seq: manifest.last_seq,
            extents: manifest.extents,
            extent_bytes: manifest.extent_bytes,
            journal_bytes: manifest.segments.iter().map(|segment| segment.bytes).sum(),
            copied_bytes: manifest.copied_bytes,
            options: manifest.options,
            note,
        }
    }
}

impl std::fmt::Debug for Backups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backups").field("place", &self.place).finish_non_exhaustive()
    }
}
