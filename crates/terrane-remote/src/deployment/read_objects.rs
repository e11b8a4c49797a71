//! Reads a journal in a bucket for a reader.
//!
//! 1. read the journal's objects 2. write their bytes of the live segments to a device in memory, where the
//!    opening replays them 3. read the manifest again: if its writer changed it meanwhile, segments may have
//!    come and gone, so the reader begins again with the newer one.
//!
//! Nothing is fenced off, so the writer goes on. The reader shows one moment: the objects only become more
//! while the manifest stays the same.

use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::{Error, Kind, Result};
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_levels::{State, directory};

use super::Deployment;
use super::journal::{bucket_of, has_fence, has_written, journal_in_bucket};
use super::read::{JournalRead, Shown};
use crate::bucket::names;
use crate::manifest::{Found, without_history, without_journal};
use crate::{Bucket, JournalFolder, ManifestFolder};

/// Readings until the writer is too fast for this reader.
const READINGS: u32 = 8;

impl Deployment {
    /// Shows a journal in a bucket, which the manifest `found` needs.
    pub(super) fn show_objects(
        &self,
        (storage, env): (&Arc<dyn Bucket>, &Env),
        manifests: &ManifestFolder,
        mut found: Found,
    ) -> Result<Shown> {
        let Some(journal) = &self.bucket_journal else {
            return Err(journal_in_bucket(&names::place(&self.url, &self.prefix)));
        };
        let journals = JournalFolder::new(bucket_of(journal, storage, env)?, &self.prefix)?;
        for _ in 0..READINGS {
            let state = found.state.clone().ok_or_else(|| self.no_database())?;
            let read = self.segments_of_objects(&journals, &found, &state);
            let again = manifests.read()?.ok_or_else(|| self.no_database())?;
            let is_same = again.last == found.last;
            found = again;
            if !is_same {
                continue;
            }
            let read = match read {
                // The writer trims faster than this reader reads.
                Err(error) if error.kind() == Kind::Busy => continue,
                read => read?,
            };
            let Some(disk) = read else {
                return nothing_of_it(JournalRead::Elsewhere, found, &state);
            };
            let lock = disk.lock_shared(&self.journal.join(directory::LOCK))?;
            assert!(lock.is_some(), "the file was made with the segments");
            let state = state.apply(&without_history(&state))?;
            return Ok(Shown { journal: JournalRead::Bucket, disk: Arc::new(disk), lock, found, state });
        }
        let state = found.state.clone().ok_or_else(|| self.no_database())?;
        nothing_of_it(JournalRead::Overtaken, found, &state)
    }

    /// The live segments as the objects have them; `None` if the journal is on the way from a directory.
    fn segments_of_objects(
        &self,
        journals: &JournalFolder,
        found: &Found,
        state: &State,
    ) -> Result<Option<MemDisk>> {
        let chain = journals.chain()?;
        let last = match &chain.last {
            None if !has_written(found) => return Ok(None),
            Some((last, _)) if has_fence(found, last) => last,
            _ => {
                let message = format!("the journal is not in {}: correct the address", journals.place());
                return Err(Error::corrupt(message));
            }
        };
        journals.check_database(last, state.database)?;
        if !last.is_whole {
            return Ok(None);
        }
        let disk = MemDisk::new();
        let segments: &Path = &self.journal.join(directory::JOURNAL);
        disk.create_dir(segments)?;
        disk.open(&self.journal.join(directory::LOCK), OpenMode::Create, false)?;
        journals.restore(&chain, state, &disk, segments)?;
        Ok(Some(disk))
    }
}

/// A reading without the journal.
fn nothing_of_it(journal: JournalRead, found: Found, state: &State) -> Result<Shown> {
    let state = state.apply(&without_journal(state))?;
    debug_assert!(state.segments.is_empty(), "segments that are not shown are not looked for");
    Ok(Shown { journal, disk: Arc::new(MemDisk::new()), lock: None, found, state })
}
