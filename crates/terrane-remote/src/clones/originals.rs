//! The originals of a clone, each with the objects of it that the clone may name.
//!
//! The references are there before the first object of the clone's manifest, and have its id in their names:
//! those of an unfinished clone count for no other database.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use terrane_base::env::Env;
use terrane_base::sync::Mutex;
use terrane_base::{Error, Kind, Result};
use terrane_format::manifest::DatabaseId;

use super::object::CLONE_OBJECT_BYTES_MAX;
use super::{CloneObject, CloneTag, OriginalFile, OriginalNames, PinNames};
use crate::bucket::names;
use crate::store::{DataName, Folders};
use crate::{Bucket, ManifestFolder};

/// A database of which a clone reads objects.
#[derive(Debug)]
pub(crate) struct Original {
    pub(crate) reference: CloneObject,
    pub(crate) folders: Folders,
    own: Arc<dyn Bucket>,
    opened: OnceLock<Arc<dyn Bucket>>,
    env: Env,
    /// True once the pin is deleted.
    pub(crate) is_released: Mutex<bool>,
}

/// The originals of a database: none, unless it is a clone.
#[derive(Debug, Default)]
pub(crate) struct Originals {
    pub(crate) database: DatabaseId,
    pub(crate) all: Vec<Original>,
    by_file: BTreeMap<u32, usize>,
    floor: u32,
}

impl Original {
    /// Its bucket. It is opened by the first that needs it.
    ///
    /// # Errors
    /// Those of opening, with the place of the original.
    pub(crate) fn bucket(&self) -> Result<&Arc<dyn Bucket>> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let url = &self.reference.url;
        let opened = match url.is_empty() {
            true => Ok(self.own.clone()),
            false if crate::bucket::is_absent(url) => {
                Err(Error::new(Kind::NotFound, format!("the directory of {url} does not exist")))
            }
            false => crate::bucket::open(url, &self.env),
        };
        let opened = opened.map_err(|error| error.context(self.out_of_reach()))?;
        Ok(self.opened.get_or_init(|| opened))
    }

    /// Where it lies, for messages.
    pub(crate) fn place(&self) -> String {
        let url = if self.reference.url.is_empty() { self.own.url() } else { &self.reference.url };
        names::place(url, &self.reference.prefix)
    }

    fn out_of_reach(&self) -> String {
        format!(
            "this database is a clone, and the objects of {} that it reads cannot be reached: make that bucket \
             available here",
            self.place()
        )
    }

    /// The name of the pin.
    pub(crate) fn pin(&self) -> String {
        PinNames::new(&self.reference.prefix).of(self.reference.nonce)
    }

    /// Checks that the bucket answers, and that the pin is there.
    ///
    /// # Errors
    /// `Corrupt` if the pin is gone; those of the bucket, with the place.
    pub(crate) fn check_pin(&self) -> Result<()> {
        let (bucket, name) = (self.bucket()?, self.pin());
        match bucket.get(&name, CLONE_OBJECT_BYTES_MAX) {
            Err(error) if error.kind() == Kind::NotFound => {
                let message = format!(
                    "the pin of this clone is gone, so what it reads of {} may have been deleted: restore the pin \
                     and the objects, or make a new clone",
                    self.place()
                );
                Err(Error::corrupt(message).at(names::place(bucket.url(), &name), 0))
            }
            Err(error) => Err(error.context(self.out_of_reach())),
            Ok(bytes) => {
                let pin = CloneObject::decode(&bytes);
                let pin = pin.map_err(|error| error.at(names::place(bucket.url(), &name), 0))?;
                let ours = (CloneTag::Pin, self.reference.nonce, self.reference.clone);
                if (pin.tag, pin.nonce, pin.clone) == ours {
                    return Ok(());
                }
                let message = "the pin is that of another clone";
                Err(Error::corrupt(message).at(names::place(bucket.url(), &name), 0))
            }
        }
    }
}

impl Originals {
    /// Reads those of the database below `prefix`. One list, and two reads for a clone.
    ///
    /// # Errors
    /// `Corrupt` if a reference is damaged; `Invalid` if a later version wrote it; `Io`, `Busy`.
    pub(crate) fn read(bucket: &Arc<dyn Bucket>, prefix: &str, env: &Env) -> Result<Originals> {
        let files = OriginalNames::new(prefix);
        let listed = bucket.list(&files.folder, None)?;
        if listed.is_empty() {
            return Ok(Originals::default());
        }
        let Some(database) = ManifestFolder::new(bucket.clone(), prefix)?.database()? else {
            return Ok(Originals::default());
        };
        let parsed = listed.iter().filter_map(|object| files.parse(&object.name));
        let of_own: Vec<_> = parsed.filter(|(of, ..)| *of == database).collect();
        let mut originals = Originals { database, ..Originals::default() };
        for (_, nonce, _) in of_own.iter().filter(|(.., file)| *file == OriginalFile::Reference) {
            let name = files.of(database, *nonce, OriginalFile::Reference);
            let at = |error: Error| error.at(names::place(bucket.url(), &name), 0);
            let reference = bucket.get(&name, CLONE_OBJECT_BYTES_MAX)?;
            let reference = CloneObject::decode(&reference).map_err(at)?;
            let is_released = of_own.contains(&(database, *nonce, OriginalFile::Released));
            let found = (reference.tag, reference.nonce, reference.clone);
            if found != (CloneTag::Reference, *nonce, database.0) {
                return Err(at(Error::corrupt("the reference is not the one of its name")));
            }
            originals.add(bucket, reference, is_released, env).map_err(at)?;
        }
        Ok(originals)
    }

    fn add(
        &mut self,
        own: &Arc<dyn Bucket>,
        reference: CloneObject,
        is_released: bool,
        env: &Env,
    ) -> Result<()> {
        let at = self.all.len();
        for name in reference.objects.keys() {
            if self.by_file.insert(name.number, at).is_some_and(|before| before != at) {
                return Err(Error::corrupt(format!("file {} is in two references", name.number)));
            }
        }
        self.floor = self.floor.max(reference.floor);
        debug_assert!(
            self.by_file.keys().all(|number| *number <= self.floor),
            "decoded references are sound"
        );
        let folders = Folders::new(&reference.prefix);
        let (own, env, is_released) = (own.clone(), env.clone(), Mutex::new(is_released));
        self.all.push(Original { reference, folders, own, opened: OnceLock::new(), env, is_released });
        Ok(())
    }

    /// The original that has this file; `None` for an own one.
    pub(crate) fn of(&self, number: u32) -> Option<&Original> {
        self.by_file.get(&number).map(|at| &self.all[*at])
    }

    /// Own files have greater numbers.
    pub(crate) fn floor(&self) -> u32 {
        self.floor
    }

    /// The own objects and those of the originals. What an older clone below this prefix left under the
    /// numbers of originals is left out.
    pub(crate) fn with(&self, mut own: BTreeMap<DataName, u64>) -> BTreeMap<DataName, u64> {
        if self.all.is_empty() {
            return own;
        }
        own.retain(|name, _| name.number > self.floor);
        let objects = self.all.iter().flat_map(|original| &original.reference.objects);
        own.extend(objects.map(|(name, bytes)| (*name, *bytes)));
        debug_assert!(self.by_file.len() <= own.len(), "each file of an original has an object");
        own
    }

    /// Checks that the originals with these files can be reached, and that their pins are there.
    ///
    /// # Errors
    /// Those of [`Original::check_pin`].
    pub(crate) fn check(&self, files: impl Iterator<Item = u32>) -> Result<()> {
        if self.all.is_empty() {
            return Ok(());
        }
        let needed: BTreeSet<usize> = files.filter_map(|file| self.by_file.get(&file).copied()).collect();
        needed.into_iter().try_for_each(|at| self.all[at].check_pin())
    }
}
