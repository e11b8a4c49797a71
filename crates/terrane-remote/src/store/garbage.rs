//! The collection of garbage: data objects that no manifest needs any more.
//!
//! 1. The first pass lists the data objects, takes off those that a manifest, a pin or this store needs, and
//!    writes the rest down, as an object under the own epoch.
//! 2. The second pass, when the list is older than [`BucketStoreSettings::garbage_age`], asks the manifest
//!    again whether this writer is still the newest and which objects are needed, and deletes the rest of the
//!    list.
//!
//! Ages are differences between creation times by the object store's clock; clocks of writers decide
//! nothing. An object that was created under a lease is not garbage while the lease lives, and is garbage
//! behind its end unless it was adopted. An object that was created after the first pass is in no list. A
//! name is never used twice, and a dead object stays dead unless a clone is made of an earlier state
//! (`clones/`), so a writer that pauses between the question and the deletion deletes only garbage. Objects
//! of newer epochs, and names that are not those of data objects, are left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::time::Duration;

use terrane_base::{Error, Kind, Result};

use super::names::{DataName, Folders};
use super::open::replaced;
use super::{BucketStore, object_names};
use crate::bucket::{Bucket, Create};
use crate::clones::Releasing;

/// Names that one call deletes.
const NAMES_AT_ONCE: usize = 1000;

/// The beginning of a list: its version, and how old it must be, in seconds.
const HEAD: &str = "terrane garbage 2\nage ";
/// Most bytes of a list up to the end of its age.
const HEAD_BYTES_MAX: u64 = 64;

/// In the name of an object that is created to show the time.
pub(crate) const NOW: &str = "-now-";

/// The least age at which a list that is there now may be deleted from, as far as the lists say so.
///
/// # Errors
/// `Io`, `Busy`.
pub(crate) fn least_age(bucket: &dyn Bucket, prefix: &str) -> Result<Option<Duration>> {
    let mut least: Option<Duration> = None;
    let folder = Folders::new(prefix).garbage;
    let is_list = |name: &str| name.strip_prefix(folder.as_str()).is_some_and(|end| !end.contains(NOW));
    for object in bucket.list(&folder, None)?.iter().filter(|object| is_list(&object.name)) {
        let head = 0..object.bytes.min(HEAD_BYTES_MAX);
        let read = match bucket.begin_get_ranges(&object.name, vec![head]).wait() {
            // Its writer has ended the pass.
            Err(error) if error.kind() == Kind::NotFound => continue,
            read => read?,
        };
        // A list of an earlier version says nothing of an age.
        let said = read.first().and_then(|bytes| age_of(bytes));
        least = said.map(|age| least.map_or(age, |least| least.min(age))).or(least);
    }
    Ok(least)
}

/// The age that a list of garbage says.
fn age_of(bytes: &[u8]) -> Option<Duration> {
    let rest = bytes.strip_prefix(HEAD.as_bytes())?;
    let digits = rest.split(|byte| *byte == b'\n').next().filter(|digits| digits.len() < rest.len())?;
    str::from_utf8(digits).ok()?.parse().ok().map(Duration::from_secs)
}

/// The store's objects that the manifest needs.
pub trait Roots: Debug {
    /// Asks the durable manifest whether this writer's epoch is still the newest.
    ///
    /// # Errors
    /// The error of a writer that was replaced; `Io`.
    fn confirm(&self) -> Result<()>;

    /// The files, as in [`ExtentId::file`](terrane_base::ExtentId), that a retained manifest or a pin names.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    fn files(&self) -> Result<BTreeSet<u32>>;
}

/// A list of garbage that waits for its age.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    /// The object that has the list.
    name: String,
    objects: Vec<(DataName, u64)>,
}

impl Marked {
    /// Data objects in the list.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.objects.len()
    }

    /// Their bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        bytes_of(&self.objects)
    }
}

/// Their bytes, as the bucket lists them: it may say anything.
fn bytes_of(objects: &[(DataName, u64)]) -> u64 {
    objects.iter().fold(0, |all, (_, bytes)| all.saturating_add(*bytes))
}

/// The outcome of [`BucketStore::collect_garbage`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Collected {
    /// There is no garbage.
    Nothing,
    /// This was written down, to be deleted later.
    Marked(Marked),
    /// The list is too young.
    TooYoung(Marked),
    /// Data objects and bytes that were deleted.
    Deleted {
        /// Data objects.
        objects: usize,
        /// Their bytes.
        bytes: u64,
    },
}

impl BucketStore {
    /// Makes the next pass: writes a list of garbage, or deletes the objects of a list that is old enough.
    /// Call it now and then, from one thread.
    ///
    /// # Errors
    /// `Poisoned` if this writer was replaced, or an upload failed; `Invalid` if the store is not restored;
    /// those of `roots`; `Io`. The next call goes on.
    pub fn collect_garbage(&self, roots: &dyn Roots) -> Result<Collected> {
        self.check_writable("collect garbage")?;
        if self.lease.is_some() {
            let folder = self.folder();
            return Err(Error::invalid(format!("a worker collects no garbage of {folder}: its writer does")));
        }
        self.check_restored(&self.state.read())?;
        let mut marked = self.garbage.lock();
        let outcome = match marked.clone() {
            None => {
                *marked = self.mark(roots)?;
                marked.clone().map_or(Collected::Nothing, Collected::Marked)
            }
            Some(list) => {
                let outcome = self.sweep(&list, roots)?;
                if !matches!(outcome, Collected::TooYoung(_)) {
                    *marked = None;
                }
                outcome
            }
        };
        self.release_originals(roots)?;
        Ok(outcome)
    }

    /// Goes on to release the pins of a clone whose manifest needs nothing of an original.
    fn release_originals(&self, roots: &dyn Roots) -> Result<()> {
        let originals = &self.places.originals;
        if originals.all.is_empty() {
            return Ok(());
        }
        let mut needed = roots.files()?;
        needed.extend(self.state.read().used_of_originals());
        let clone = Releasing {
            bucket: &*self.bucket,
            prefix: &self.prefix,
            age: self.settings.garbage_age,
            random: &*self.env.random,
        };
        originals.release(&needed, &clone, &|| roots.confirm())
    }

    /// The first pass. `None` if there is no garbage.
    fn mark(&self, roots: &dyn Roots) -> Result<Option<Marked>> {
        roots.confirm()?;
        let listed = self.listed_objects()?;
        let needed = self.needed(&listed, roots)?;
        let garbage = listed.into_iter().filter(|(name, _)| !needed.contains(&(name.epoch, name.number)));
        let objects: Vec<(DataName, u64)> = garbage.collect();
        self.remove_lists_of_others()?;
        if objects.is_empty() {
            return Ok(None);
        }
        let (garbage, epoch, nonce) = (&self.folders.garbage, self.epoch, self.env.random.next_u64());
        let name = format!("{garbage}/{epoch:020}-{nonce:016x}");
        let text: String = objects.iter().map(|(name, _)| format!("{name}\n")).collect();
        let head = format!("{HEAD}{}\n", self.settings.garbage_age.as_secs());
        match self.bucket.create(&name, format!("{head}{text}").as_bytes())? {
            Create::Created => Ok(Some(Marked { name, objects })),
            Create::AlreadyExists => {
                let place = object_names::place(self.bucket.url(), &name);
                Err(Error::invalid(format!(
                    "{place} exists: another writer uses epoch {epoch}; stop one of them"
                )))
            }
        }
    }

    /// The second pass.
    fn sweep(&self, list: &Marked, roots: &dyn Roots) -> Result<Collected> {
        match self.age(list)? {
            // A newer writer removed the list: the question below says so.
            None => roots.confirm().map(|()| Collected::Nothing),
            Some(age) if age < self.settings.garbage_age => Ok(Collected::TooYoung(list.clone())),
            Some(_) => self.delete_listed(list, roots),
        }
    }

    fn delete_listed(&self, list: &Marked, roots: &dyn Roots) -> Result<Collected> {
        let listed = self.listed_objects()?;
        let needed = self.needed(&listed, roots)?;
        let is_garbage = |(name, _): &&(DataName, u64)| !needed.contains(&(name.epoch, name.number));
        let garbage: Vec<(DataName, u64)> = list.objects.iter().filter(is_garbage).copied().collect();
        let used = self.state.read().used();
        let is_used = |(name, _): &(DataName, u64)| used.contains(&(name.epoch, name.number));
        debug_assert!(!list.objects.iter().any(is_used), "a dead object stays dead");
        assert!(garbage.iter().all(|(name, _)| name.epoch <= self.epoch), "no object of a newer writer");
        roots.confirm()?;
        for some in garbage.chunks(NAMES_AT_ONCE) {
            let names: Vec<DataName> = some.iter().map(|(name, _)| *name).collect();
            let texts: Vec<String> = names.iter().map(|name| self.folders.data_name(*name)).collect();
            self.bucket.delete(&texts)?;
            self.state.write().deleted(&names);
        }
        self.bucket.delete(std::slice::from_ref(&list.name))?;
        Ok(Collected::Deleted { objects: garbage.len(), bytes: bytes_of(&garbage) })
    }

    /// The data objects of this epoch and older ones, with their bytes.
    fn listed_objects(&self) -> Result<BTreeMap<DataName, u64>> {
        let listed = self.bucket.list(&self.folders.data, None)?;
        let named =
            listed.iter().filter_map(|object| Some((self.folders.parse(&object.name)?, object.bytes)));
        let objects: BTreeMap<DataName, u64> = named.collect();
        match objects.last_key_value() {
            Some((name, _)) if name.epoch > self.epoch => {
                Err(replaced(&self.folder(), self.epoch, name.epoch))
            }
            _ => Ok(objects),
        }
    }

    /// The epochs and numbers of which every object is needed.
    fn needed(&self, listed: &BTreeMap<DataName, u64>, roots: &dyn Roots) -> Result<BTreeSet<(u64, u32)>> {
        // What this store uses is asked for last: an extent that the manifest names meanwhile was in use
        // before.
        let files =
            if terrane_base::planted!(CollectNamedObjects) { BTreeSet::new() } else { roots.files()? };
        let mut newest: BTreeMap<u32, u64> = BTreeMap::new();
        for name in listed.keys() {
            newest.insert(name.number, name.epoch);
        }
        let originals = &self.places.originals;
        let own = files.iter().filter(|number| originals.of(**number).is_none());
        let of_roots = own.filter_map(|number| Some((*newest.get(number)?, *number)));
        let mut needed: BTreeSet<(u64, u32)> = of_roots.collect();
        if !terrane_base::planted!(CollectPinnedObjects) {
            needed.extend(self.pinned.now(&*self.bucket, &self.prefix)?);
        }
        // Under one lock: an adoption comes before the end of its lease.
        let state = self.state.read();
        needed.extend(state.used());
        let own = listed.keys().filter(|name| name.epoch == self.epoch && state.is_leased(name.number));
        needed.extend(own.map(|name| (name.epoch, name.number)));
        Ok(needed)
    }

    /// Lists of older writers are void: theirs may lack what they never learned.
    fn remove_lists_of_others(&self) -> Result<()> {
        let own = format!("{}/{:020}-", self.folders.garbage, self.epoch);
        let listed = self.bucket.list(&self.folders.garbage, None)?;
        let others = listed.into_iter().map(|object| object.name).filter(|name| !name.starts_with(&own));
        let older: Vec<String> = others.filter(|name| *name < own).collect();
        if older.is_empty() { Ok(()) } else { self.bucket.delete(&older) }
    }

    /// How old the list is, by the object store's clock; `None` if it is gone.
    fn age(&self, list: &Marked) -> Result<Option<Duration>> {
        // An object that is created now shows what time it is there.
        let now = format!("{}{NOW}{:016x}", list.name, self.env.random.next_u64());
        self.bucket.create(&now, b"now")?;
        let listed = self.bucket.list(&self.folders.garbage, None);
        self.bucket.delete(std::slice::from_ref(&now))?;
        let listed = listed?;
        let time =
            |name: &str| listed.iter().find(|object| object.name == name).map(|object| object.modified);
        Ok(time(&list.name).zip(time(&now)).map(|(then, now)| now.saturating_sub(then)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_age_of_a_whole_head_counts() {
        let age = |text: &str| age_of(text.as_bytes()).map(|age| age.as_secs());
        assert_eq!(age("terrane garbage 2\nage 3600\n1-2-3\n"), Some(3600));
        assert_eq!(age("terrane garbage 2\nage 0\n"), Some(0));
        for other in [
            "",
            "now",
            "terrane garbage 1\n1-2-3\n",
            "terrane garbage 2\nage 36",
            "terrane garbage 2\nage \n",
            "terrane garbage 2\nage -1\n",
            "terrane garbage 2\nage 99999999999999999999\n",
            "terrane garbage 3\nage 60\n",
        ] {
            assert_eq!(age(other), None, "{other:?}");
        }
        assert_eq!(age_of(b"terrane garbage 2\nage \xff\n"), None);
    }
}
