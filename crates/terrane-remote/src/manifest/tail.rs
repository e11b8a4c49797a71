//! Goes on with a manifest as its writers do.
//!
//! One list, from the last known object on, shows the new ones. Its own object is in it as long as nothing
//! was deleted, so a follower that was away for as long as any time finds out whether it missed something.
//! Then it begins again with the newest snapshot, as it does where that is less to read.

use std::time::Duration;

use bytes::Bytes;
use terrane_base::{Error, Kind, Result};
use terrane_format::manifest::ManifestObject;

use super::chain::step_on;
use super::{Found, ManifestFolder};

/// Most new objects that are applied one by one. A writer makes a snapshot after 64 edits.
const STEPS_MAX: u64 = 256;
/// Most bytes of new objects that are applied one by one: these are in memory at once, and of several
/// snapshots among them only the newest counts.
const STEP_BYTES_MAX: u64 = 16 << 20;

/// A manifest as far as it was read.
#[derive(Debug)]
pub(crate) struct ManifestTail {
    folder: ManifestFolder,
    found: Found,
    written: Duration,
}

impl ManifestTail {
    /// Reads the manifest; `None` if the folder has no manifest.
    ///
    /// # Errors
    /// As [`ManifestFolder::read`].
    pub(crate) fn begin(folder: ManifestFolder) -> Result<Option<ManifestTail>> {
        let Some(found) = folder.read()? else { return Ok(None) };
        let mut tail = ManifestTail { folder, found, written: Duration::ZERO };
        // This also says when the last object was written.
        tail.go_on()?;
        Ok(Some(tail))
    }

    /// The state that was read so far.
    pub(crate) fn found(&self) -> &Found {
        &self.found
    }

    /// When the last object was written, by the clock of the object store.
    pub(crate) fn written(&self) -> Duration {
        self.written
    }

    /// Reads the new objects; returns true if there are any. After an error all is as before.
    ///
    /// # Errors
    /// As [`ManifestFolder::read`]; `Corrupt` also if the folder has another database, or less than before.
    pub(crate) fn go_on(&mut self) -> Result<bool> {
        let last = self.found.last.number;
        let listed = self.folder.objects.list_from(last)?;
        let newest = listed.last_key_value().map_or(0, |(number, _)| *number);
        let is_whole = listed.len() as u64 == (newest + 1).saturating_sub(last);
        let is_missed = !is_whole || !listed.contains_key(&last);
        if is_missed && !terrane_base::planted!(TakeTrimmedForNothing) {
            return self.begin_again();
        }
        if newest == last || is_missed {
            self.written = listed.get(&last).map_or(self.written, |object| object.modified);
            return Ok(false);
        }
        if newest - last > STEPS_MAX {
            return self.begin_again();
        }
        let wanted: Vec<_> = (last + 1..=newest).map(|number| (number, listed[&number].bytes)).collect();
        if wanted.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add) > STEP_BYTES_MAX {
            return self.begin_again();
        }
        let objects = match self.folder.fetch(&wanted) {
            // Deleted between the list and its reading.
            Err(error) if error.kind() == Kind::NotFound => return self.begin_again(),
            fetched => fetched?,
        };
        self.found = self.follow(&wanted, &objects)?;
        self.written = listed[&newest].modified;
        assert!(self.found.last.number == newest, "all that was listed was applied");
        Ok(true)
    }

    /// The found state with these objects behind it.
    fn follow(&self, wanted: &[(u64, u64)], objects: &[Bytes]) -> Result<Found> {
        let mut found = self.found.clone();
        for ((number, _), bytes) in wanted.iter().zip(objects) {
            let read = ManifestObject::decode(*number, bytes);
            let next = read.and_then(|(header, payload)| step_on(found, header, payload, bytes));
            found = next.map_err(|error| self.folder.objects.at(*number, error))?;
        }
        Ok(found)
    }

    /// Begins with the newest snapshot.
    #[cold]
    fn begin_again(&mut self) -> Result<bool> {
        let place = self.folder.objects.place();
        let read = self.folder.read()?;
        let found = read.ok_or_else(|| {
            let message = "there is no manifest any more: restore the bucket";
            Error::corrupt(message).at(place.clone(), 0)
        })?;
        let before = &self.found.last;
        if found.last.database != before.database || found.last.number < before.number {
            let message = format!(
                "the manifest ends with object {} of database {:032x}, and had object {} of {:032x}: it is that \
                 of another database, or an older copy; open it again",
                found.last.number, found.last.database.0, before.number, before.database.0
            );
            return Err(Error::corrupt(message).at(place, 0));
        }
        let last = found.last.number;
        let listed = self.folder.objects.list_from(last)?;
        self.written = listed.get(&last).map_or(self.written, |object| object.modified);
        assert!(found.last.number >= before.number, "a follower does not go back");
        let is_new = found.last != *before;
        self.found = found;
        Ok(is_new)
    }
}
