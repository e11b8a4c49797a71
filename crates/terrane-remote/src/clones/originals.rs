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
use terrane_storage::BucketRequests;

use super::object::CLONE_OBJECT_BYTES_MAX;
use super::{CloneObject, CloneTag, OriginalFile, OriginalNames, PinNames};
use crate::bucket::{HedgeCounts, names};
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
            // A caller that asks for the own bucket waits no longer for this one.
            false => crate::bucket::open_with(url, &self.env, self.own.settings()),
        };
        let opened = opened.map_err(|error| error.context(self.out_of_reach()))?;
        Ok(self.opened.get_or_init(|| opened))
    }

    /// How often reads of a bucket that is not that of the clone were hedged.
    fn hedges(&self) -> HedgeCounts {
        let other = self.opened.get().filter(|_| !self.reference.url.is_empty());
        other.map_or_else(HedgeCounts::default, |bucket| bucket.hedges())
    }

    /// The requests to a bucket that is not that of the clone.
    fn requests(&self) -> BucketRequests {
        let other = self.opened.get().filter(|_| !self.reference.url.is_empty());
        other.map_or_else(BucketRequests::default, |bucket| bucket.requests())
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

    /// How often reads of the buckets of originals were hedged, those of the own bucket left out.
    pub(crate) fn hedges(&self) -> HedgeCounts {
        let all = self.all.iter().map(Original::hedges).fold(HedgeCounts::default(), HedgeCounts::with);
        debug_assert!(all.won <= all.hedged, "a hedge that won was made");
        all
    }

    /// The requests to the buckets of originals, those to the own bucket left out.
    pub(crate) fn requests(&self) -> BucketRequests {
        let all = self.all.iter().map(Original::requests);
        all.fold(BucketRequests::default(), |sum, requests| sum.with(&requests))
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

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::bucket::{BucketSettings, Listed, MemoryBucket, Pending, RetryLimits, open_with};
    use crate::{BucketStore, BucketStoreSettings, Create};

    /// A bucket of which two reads were hedged.
    #[derive(Debug)]
    struct Hedging(MemoryBucket);

    impl Bucket for Hedging {
        fn url(&self) -> &str {
            self.0.url()
        }

        fn begin_create(&self, name: &str, parts: Vec<Bytes>) -> Pending<Create> {
            self.0.begin_create(name, parts)
        }

        fn begin_get_ranges(&self, name: &str, ranges: Vec<Range<u64>>) -> Pending<Vec<Bytes>> {
            self.0.begin_get_ranges(name, ranges)
        }

        fn get_tail(&self, name: &str, bytes_max: u64) -> Result<Bytes> {
            self.0.get_tail(name, bytes_max)
        }

        fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>> {
            self.0.list(folder, after)
        }

        fn delete(&self, names: &[String]) -> Result<()> {
            self.0.delete(names)
        }

        fn hedges(&self) -> HedgeCounts {
            HedgeCounts { hedged: 2, won: 1 }
        }
    }

    fn hedging(env: &Env) -> Arc<dyn Bucket> {
        Arc::new(Hedging(MemoryBucket::new(env.clock.clone())))
    }

    /// The originals of a clone in the bucket `own`, of which one is in that bucket, and one in that of
    /// `url`.
    fn two_originals(own: &Arc<dyn Bucket>, url: &str, env: &Env) -> Originals {
        let mut originals = Originals::default();
        for (number, url) in [(1, ""), (2, url)] {
            let reference = CloneObject {
                tag: CloneTag::Reference,
                nonce: number.into(),
                clone: 7,
                original: 8,
                commit: 9,
                floor: 2,
                url: url.to_owned(),
                prefix: "db".to_owned(),
                objects: [(DataName { epoch: 1, number, part: 0 }, 10)].into(),
            };
            originals.add(own, reference, false, env).expect("sound references");
        }
        originals
    }

    #[test]
    fn a_bucket_of_an_original_is_asked_as_that_of_the_clone_is() {
        let (env, dir) = (Env::real(), tempfile::tempdir().expect("a temporary directory"));
        let pause = Duration::from_millis(1);
        let settings = BucketSettings {
            limits: RetryLimits { pause_min: pause, pause_max: pause, deadline: pause },
            attempts_min: 1,
            request_max: Duration::from_secs(5),
            hedged_reads: false,
        };
        let own = open_with("memory:", &env, settings).expect("opens");
        let originals = two_originals(&own, &format!("file://{}", dir.path().display()), &env);
        for original in &originals.all {
            assert_eq!(original.bucket().expect("opens").settings(), settings, "{}", original.place());
        }
    }

    #[test]
    fn requests_to_other_buckets_are_counted_apart_from_those_to_the_own_one() {
        let env = Env::real();
        let own = crate::bucket::open("memory:", &env).expect("opens");
        let originals = two_originals(&own, "memory:", &env);
        assert_eq!(originals.requests(), BucketRequests::default(), "no bucket is open yet");
        for original in &originals.all {
            original.bucket().expect("opens").list("db/data", None).expect("an empty list");
        }
        let lists = |requests: &BucketRequests| requests.part(terrane_storage::BucketPart::Data).lists;
        assert_eq!((lists(&originals.requests()), lists(&own.requests())), (1, 1));
    }

    #[test]
    fn reads_of_originals_that_were_hedged_count() {
        let env = Env::real();
        let own = hedging(&env);
        let counted = || {
            let originals = two_originals(&own, "memory:", &env);
            originals.all[0].bucket().expect("the own one");
            originals
        };
        assert_eq!(counted().hedges(), HedgeCounts::default(), "those of the own bucket are counted there");
        let originals = counted();
        originals.all[1].opened.set(hedging(&env)).expect("nothing was read of it");
        assert_eq!(originals.hedges(), HedgeCounts { hedged: 2, won: 1 });
        let settings = BucketStoreSettings { probe: false, ..BucketStoreSettings::default() };
        let store = BucketStore::with((own, "copy", originals), (1, BTreeMap::new()), settings, env, None);
        let reads = terrane_storage::Store::remote_reads(&store);
        assert_eq!((reads.hedged, reads.hedges_won), (4, 2));
    }
}
