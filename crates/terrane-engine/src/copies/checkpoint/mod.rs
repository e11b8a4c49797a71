//! Checkpoints: a second, independent and writable database with the rows of this one at one moment.
//!
//! 1. a directory beside the target (`unfinished.rs`)
//! 2. the moment: hold freed slots, then take the state of the manifest, then the journal between two groups
//!    (`moment.rs`)
//! 3. data files are linked, or extents copied where that is not possible
//! 4. the journal is written again for the new database's id
//! 5. the manifest as one snapshot 6. one rename.
//!
//! Commits go on meanwhile. Nothing of the source is written but the names of its files. A crash leaves the
//! source as it is, and nothing under the target's name or all of it.
//!
//! Of a database that is only read, extents are copied and checked, never linked (`of_reader.rs`): a writer
//! beside it, or the next one, would not know that it shares a file before it uses a slot of it again.

pub(crate) mod moment;
mod of_reader;
pub(crate) mod unfinished;

use std::path::Path;
use std::sync::Arc;

use terrane_base::{Error, Kind, Result};
use terrane_device::Disk;
use terrane_format::manifest::{DatabaseId, Seal, SegmentSpec};
use terrane_journal::WrittenSegment;
use terrane_levels::directory::{DATA, JOURNAL, Others, read_origins, write_origins};
use terrane_levels::{Manifest, State};

use crate::copies::refuse_if;
use crate::observe::events::{Checkpoint, Event};
use crate::shared::Shared;
use moment::{Moment, refuse_undecided};
use unfinished::Unfinished;

impl Shared {
    /// Makes a checkpoint in the directory `path`, which must not exist: a database with every commit up to
    /// now, all or nothing of each, durable on return. Takes the time to write the records that are only in
    /// the journal, as far as data files can be linked. Commits go on. Of a database that was opened for
    /// reading, every extent is copied.
    ///
    /// # Errors
    /// `Invalid` if there is something at `path`, or the extents lie in no directory; `Busy` if another
    /// checkpoint is being made there, or an ingest into a database that is open for reading is not decided;
    /// `Gone` if the database is a view, and extents of it are gone; `Corrupt` if an extent that is copied
    /// for a reader is damaged; `Full`, `Io`, `Poisoned`. The source is unharmed, and nothing is at `path`,
    /// unless only the last sync of its parent failed: then a whole checkpoint is there that a loss of power
    /// may take away.
    pub fn checkpoint(&self, path: &Path) -> Result<Checkpoint> {
        self.checkpoint_until(path, &|| false)
    }

    /// As [`Shared::checkpoint`], unless `is_cancelled` says so before the copy is whole: it is asked
    /// in front of each extent that is copied, and of each other step.
    ///
    /// # Errors
    /// As [`Shared::checkpoint`]; `Cancelled` if `is_cancelled` said so, and nothing is at `path`.
    pub fn checkpoint_until(&self, path: &Path, is_cancelled: &dyn Fn() -> bool) -> Result<Checkpoint> {
        crate::reentrancy::refuse(self.instance())?;
        self.refuse_elsewhere("a checkpoint", "make a backup instead, which copies")?;
        if self.options.read_only {
            refuse_undecided(self)?;
        }
        if self.disk().real_path(path)?.starts_with(self.disk().real_path(self.dir())?) {
            return Err(Error::invalid(format!(
                "{} is within the database {}: name a place beside it",
                path.display(),
                self.dir().display()
            )));
        }
        // A view of what another process writes has a device that only reads.
        let disk = self.disk().beneath().unwrap_or_else(|| self.disk().clone());
        let others = Others::beside(self.options.beside_others);
        let unfinished = Unfinished::begin(&disk, path, others)?;
        match self.fill_checkpoint(&disk, &unfinished, path, is_cancelled) {
            Ok(checkpoint) => {
                unfinished.finish()?;
                self.events.enqueue(|| Event::CheckpointMade(checkpoint.clone()));
                Ok(checkpoint)
            }
            Err(error) => {
                unfinished.abandon();
                Err(error)
            }
        }
    }

    fn fill_checkpoint(
        &self,
        disk: &Arc<dyn Disk>,
        unfinished: &Unfinished,
        path: &Path,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Checkpoint> {
        let dir = unfinished.dir();
        let (data, journal) = (dir.join(DATA), dir.join(JOURNAL));
        disk.create_dir(&data)?;
        disk.create_dir(&journal)?;
        let moment = Moment::take(self)?;
        refuse_if(is_cancelled)?;
        let copied = if self.options.read_only {
            self.copy_of_reader(disk, &data, moment.state(), is_cancelled)?
        } else {
            let live: Vec<_> = moment.state().extents().collect();
            self.store.copy_to(&data, &live)?
        };
        refuse_if(is_cancelled)?;
        let id = Manifest::draw_id(&self.env);
        let id = if terrane_base::planted!(CheckpointKeepsId) { moment.state().database } else { id };
        let written = moment.excerpt().write(&**disk, &journal, id.segment_salt())?;
        let segments: Vec<_> = written.iter().map(sealed).collect();
        let last_seq = moment.excerpt().last_seq();
        debug_assert!(last_seq >= moment.state().last_seq(), "the journal reaches as far as the levels");
        let state: State = moment.state().detached(id, &segments, last_seq);
        write_origins(&**disk, dir, &self.origins()?)?;
        Manifest::write_copy(disk.clone(), dir, &state)?;
        let journal_bytes = moment.excerpt().bytes();
        Ok(Checkpoint {
            path: path.to_owned(),
            last_seq,
            files_linked: copied.files_linked,
            bytes_copied: copied.bytes_copied,
            journal_bytes,
        })
    }
}

impl Shared {
    /// The databases that may have written extents of this one, the oldest first and itself last. One that
    /// is damaged where it says so names itself only.
    ///
    /// # Errors
    /// `Io`.
    fn origins(&self) -> Result<Vec<DatabaseId>> {
        let before = match read_origins(&**self.disk(), self.dir()) {
            Err(error) if error.kind() == Kind::Corrupt => None,
            before => before?,
        };
        Ok(before.unwrap_or_default().into_iter().chain([self.manifest.state().database]).collect())
    }
}

/// A segment that was written, as the manifest lists it.
pub(crate) fn sealed(segment: &WrittenSegment) -> (SegmentSpec, Seal) {
    let terrane_journal::SegmentSpec { id, file, bytes } = segment.spec;
    let seal =
        Seal { end_offset: segment.seal.end, last_seq: segment.seal.last_seq, checksum: segment.checksum };
    (SegmentSpec { id, file, bytes }, seal)
}
