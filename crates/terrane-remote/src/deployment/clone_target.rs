//! Where a clone may begin: below an empty prefix, with an unused journal. A making that did not end leaves
//! objects there; a caller that knows that it has ended can have them removed.
//!
//! Nothing else removes them. A process that still makes the clone, and one that opens a new database there,
//! leave the same objects, and no deletion is fenced off from both. The object of the manifest goes last, and
//! a reference behind its pin, so that a further removal finds what a crash of this one has left.

use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::{Error, Kind, Result};
use terrane_device::PosixDisk;
use terrane_levels::journal_place;

use super::Deployment;
use super::journal::bucket_of;
use crate::bucket::{names, probe};
use crate::clones::{CloneObject, CloneTag, OriginalFile, OriginalNames, take_back};
use crate::manifest::{NewManifest, Rest};
use crate::store::Folders;
use crate::{Bucket, ManifestFolder};

/// Names that one call deletes.
const NAMES_AT_ONCE: usize = 1000;

/// The rest of an unfinished clone that was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnfinishedClone {
    /// Pins that were taken back.
    pub pins: u64,
    /// Objects below the prefix.
    pub objects: u64,
}

/// The rest of an unfinished clone below a prefix.
struct Left {
    manifests: ManifestFolder,
    rest: Rest,
    /// The names of all objects but that of the manifest.
    objects: Vec<String>,
    /// The references among them.
    references: Vec<CloneObject>,
}

impl Deployment {
    /// Removes what a clone has left below this prefix whose making did not end: its objects, and its pins.
    /// Removes nothing where there is anything else. A pin without a reference stays. Requires: no process
    /// makes a clone here, or opens a database.
    ///
    /// # Errors
    /// `Invalid` if there is anything that no unfinished clone leaves; `Corrupt`, naming the object, if a
    /// reference or a pin is damaged; those of the buckets with the pins.
    pub fn remove_unfinished_clone(&self) -> Result<UnfinishedClone> {
        if crate::bucket::is_absent(&self.url) {
            return Ok(UnfinishedClone::default());
        }
        let env = Env::real();
        let bucket = self.open_bucket(&env)?;
        self.remove_unfinished_clone_in(&bucket, &env)
    }

    /// [`Deployment::remove_unfinished_clone`] in a bucket that is open.
    ///
    /// # Errors
    /// As there.
    pub fn remove_unfinished_clone_in(&self, bucket: &Arc<dyn Bucket>, env: &Env) -> Result<UnfinishedClone> {
        let Left { manifests, rest, objects, references } = self.find_unfinished(bucket, env)?;
        let mut pins = 0;
        for reference in &references {
            pins += u64::from(self.release(bucket, reference, env)?);
        }
        for some in objects.chunks(NAMES_AT_ONCE) {
            bucket.delete(some)?;
        }
        if rest == Rest::Begun {
            manifests.remove_begun()?;
        }
        Ok(UnfinishedClone { pins, objects: objects.len() as u64 + u64::from(rest == Rest::Begun) })
    }

    /// Counts what [`Deployment::remove_unfinished_clone`] would remove, a pin for each reference.
    ///
    /// # Errors
    /// As there, but for those of the buckets with the pins.
    pub fn find_unfinished_clone(&self) -> Result<UnfinishedClone> {
        if crate::bucket::is_absent(&self.url) {
            return Ok(UnfinishedClone::default());
        }
        let env = Env::real();
        let left = self.find_unfinished(&self.open_bucket(&env)?, &env)?;
        let is_begun = u64::from(left.rest == Rest::Begun);
        debug_assert!(
            left.references.len() <= left.objects.len(),
            "a reference is one of the objects that go"
        );
        Ok(UnfinishedClone {
            pins: left.references.len() as u64,
            objects: left.objects.len() as u64 + is_begun,
        })
    }

    /// Finds the rest of an unfinished clone, and that nothing else is there.
    fn find_unfinished(&self, bucket: &Arc<dyn Bucket>, env: &Env) -> Result<Left> {
        let manifests = ManifestFolder::new(bucket.clone(), &self.prefix)?;
        let rest = manifests.rest()?;
        if rest == Rest::Database {
            let place = names::place(bucket.url(), &self.prefix);
            let message =
                format!("{place} has a database, which is not removed: give the clone another prefix");
            return Err(Error::invalid(message));
        }
        self.check_journal_unused(bucket, env)?;
        self.check_journal_directory()?;
        let mut objects = self.data_of_unfinished(bucket, rest)?;
        let (files, references) = self.references_of_unfinished(bucket)?;
        objects.extend(files);
        let own = format!("{}/", self.prefix);
        assert!(objects.iter().all(|name| name.starts_with(&own)), "only objects below the prefix go");
        Ok(Left { manifests, rest, objects, references })
    }

    /// The names of the data objects of a clone that is not finished: it writes them behind the first object
    /// of its manifest.
    fn data_of_unfinished(&self, bucket: &Arc<dyn Bucket>, rest: Rest) -> Result<Vec<String>> {
        let folders = Folders::new(&self.prefix);
        let listed = bucket.list(&folders.data, None)?;
        let is_of_clone = |name: &str| {
            rest == Rest::Begun && folders.parse(name).is_some_and(|name| name.epoch == NewManifest::EPOCH)
        };
        if let Some(other) = listed.iter().find(|object| !is_of_clone(&object.name)) {
            return Err(not_of_unfinished(bucket, &other.name));
        }
        Ok(listed.into_iter().map(|object| object.name).collect())
    }

    /// The names in the folder of the references of a clone that is not finished, and the references.
    fn references_of_unfinished(&self, bucket: &Arc<dyn Bucket>) -> Result<(Vec<String>, Vec<CloneObject>)> {
        let files = OriginalNames::new(&self.prefix);
        let (mut listed, mut references) = (Vec::new(), Vec::new());
        for object in bucket.list(&files.folder, None)? {
            let Some((clone, nonce, file)) = files.parse(&object.name) else {
                return Err(not_of_unfinished(bucket, &object.name));
            };
            if file == OriginalFile::Reference {
                let at = |error: Error| error.at(names::place(bucket.url(), &object.name), 0);
                let bytes = bucket.get(&object.name, CloneObject::BYTES_MAX)?;
                let reference = CloneObject::decode(&bytes).map_err(at)?;
                if (reference.tag, reference.clone, reference.nonce) != (CloneTag::Reference, clone.0, nonce)
                {
                    return Err(at(Error::corrupt("the reference is not the one of its name")));
                }
                references.push(reference);
            }
            listed.push(object.name);
        }
        Ok((listed, references))
    }

    /// Takes back the pin of a reference; returns true if it was there.
    fn release(&self, own: &Arc<dyn Bucket>, reference: &CloneObject, env: &Env) -> Result<bool> {
        assert!(reference.tag == CloneTag::Reference, "a reference says where its pin is");
        let (url, prefix) = (&reference.url, &reference.prefix);
        let of_original = match url.is_empty() {
            true => Ok(own.clone()),
            false if crate::bucket::is_absent(url) => {
                Err(Error::new(Kind::NotFound, format!("the directory of {url} does not exist")))
            }
            false => crate::bucket::open_with(url, env, own.settings()),
        };
        let number = reference.nonce;
        let of_original = of_original.map_err(|error| {
            let kept = "no object below the prefix was removed";
            error.context(format!(
                "pin {number:032x} of the unfinished clone cannot be taken back, and {kept}: make {url} available here, \
                 or delete the objects by hand"
            ))
        })?;
        // The address of the clone as its pin has it.
        let home = if url.is_empty() { "" } else { &self.url };
        take_back(&*of_original, prefix, reference, (home, &self.prefix))
    }

    /// Refuses a target that has anything, or whose journal is that of another database.
    pub(super) fn check_target(
        &self,
        original: &Deployment,
        bucket: &Arc<dyn Bucket>,
        env: &Env,
    ) -> Result<()> {
        let prefix = &self.prefix;
        let place = names::place(bucket.url(), prefix);
        if original.url == self.url && original.prefix == *prefix {
            let message = format!("{place} is the original itself: give the clone another prefix");
            return Err(Error::invalid(message));
        }
        if self.settings.probe {
            probe::run(&**bucket, prefix, &*env.random)?;
        }
        let begins = "a clone begins below an empty prefix";
        match ManifestFolder::new(bucket.clone(), prefix)?.rest()? {
            Rest::Nothing => {}
            Rest::Begun => {
                return Err(Error::invalid(format!(
                    "{place} has what a clone or a new database left whose making did not end, or is under way, and \
                     {begins}: if no process is at work there, --replace-unfinished (`terrane clone`) removes it; \
                     otherwise give the clone another prefix"
                )));
            }
            Rest::Database => {
                return Err(Error::invalid(format!(
                    "{place} has a database, and {begins}: give it another one"
                )));
            }
        }
        let data = Folders::new(prefix).data;
        if !bucket.list(&data, None)?.is_empty() {
            let place = names::place(bucket.url(), &data);
            return Err(Error::invalid(format!(
                "{place} has objects, and {begins}: give it another one, or delete them"
            )));
        }
        self.check_journal_unused(bucket, env)?;
        self.check_journal_directory()
    }

    /// Refuses a directory for the journal that a database has used.
    fn check_journal_directory(&self) -> Result<()> {
        let is_used =
            journal_place::read(&PosixDisk::new(), &self.journal)?.is_some_and(|mark| mark.before != 0);
        if is_used {
            let journal = self.journal.display();
            return Err(Error::invalid(format!(
                "{journal} has the journal of another database: give the clone a directory of its own"
            )));
        }
        Ok(())
    }

    /// Refuses a folder for the journal that has an object, in the bucket of the database or in its own.
    fn check_journal_unused(&self, bucket: &Arc<dyn Bucket>, env: &Env) -> Result<()> {
        let own = self.bucket_journal.as_ref().filter(|journal| journal.url.is_some());
        let own = own.map(|journal| bucket_of(journal, bucket, env)).transpose()?;
        let folder = format!("{}/journal", self.prefix);
        for bucket in [Some(bucket), own.as_ref()].into_iter().flatten() {
            if !bucket.list(&folder, None)?.is_empty() {
                let place = names::place(bucket.url(), &folder);
                return Err(Error::invalid(format!(
                    "{place} has the journal of another database: give the clone an empty prefix, or another bucket for \
                     its journal; delete the objects if that database is not needed"
                )));
            }
        }
        Ok(())
    }
}

/// The error where there is an object that no unfinished clone leaves.
fn not_of_unfinished(bucket: &Arc<dyn Bucket>, name: &str) -> Error {
    let place = names::place(bucket.url(), name);
    Error::invalid(format!("{place} does not belong to an unfinished clone: give the clone another prefix"))
}
