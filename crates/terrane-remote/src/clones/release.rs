//! A clone deletes its pin when it needs no object of the original any more.
//!
//! 1. The manifest names none of the objects: a mark says so. Extents never come back, so this stays. 2. When
//!    the mark is as old as garbage must be, which readers of earlier states and followers of the clone rely
//!    on, the pin is deleted. 3. A second mark says that the original is not asked any more.
//!
//! A crash between two steps repeats the one that was under way.

use std::collections::BTreeSet;
use std::time::Duration;

use terrane_base::Result;
use terrane_base::env::Random;

use super::originals::Original;
use super::{OriginalFile, OriginalNames, Originals};
use crate::Bucket;

/// The clone that releases: where it is, and how old a mark must be.
pub(crate) struct Releasing<'a> {
    pub(crate) bucket: &'a dyn Bucket,
    pub(crate) prefix: &'a str,
    pub(crate) age: Duration,
    pub(crate) random: &'a dyn Random,
}

impl Originals {
    /// Makes the next step for each original of which none of the files `needed` is. `confirm` says whether
    /// this writer is the newest.
    ///
    /// # Errors
    /// Those of `confirm` and of the buckets; the next call goes on.
    pub(crate) fn release(
        &self,
        needed: &BTreeSet<u32>,
        clone: &Releasing<'_>,
        confirm: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        for original in self.all.iter().filter(|original| !*original.is_released.lock()) {
            let is_needed = original.reference.objects.keys().any(|name| needed.contains(&name.number));
            if !is_needed {
                confirm()?;
                self.release_one(original, clone)?;
            }
        }
        Ok(())
    }

    fn release_one(&self, original: &Original, clone: &Releasing<'_>) -> Result<()> {
        let files = OriginalNames::new(clone.prefix);
        let name = |file| files.of(self.database, original.reference.nonce, file);
        let unneeded = name(OriginalFile::Unneeded);
        // An object that is created now shows what time it is there.
        let now = format!("{unneeded}-now-{:016x}", clone.random.next_u64());
        clone.bucket.create(&now, b"now")?;
        let listed = clone.bucket.list(&files.folder, None);
        clone.bucket.delete(std::slice::from_ref(&now))?;
        let listed = listed?;
        let time =
            |name: &str| listed.iter().find(|object| object.name == name).map(|object| object.modified);
        let since = time(&unneeded);
        if since.is_none() {
            clone.bucket.create(&unneeded, b"unneeded")?;
        }
        let age = time(&now).zip(since).map(|(now, since)| now.saturating_sub(since));
        let is_old = age.is_some_and(|age| age >= clone.age);
        if !is_old && !terrane_base::planted!(ReleasePinAtOnce) {
            return Ok(());
        }
        assert!(self.floor() >= original.reference.floor, "the files of an original are never own ones");
        original.bucket()?.delete(&[original.pin()])?;
        clone.bucket.create(&name(OriginalFile::Released), b"released")?;
        *original.is_released.lock() = true;
        Ok(())
    }
}
