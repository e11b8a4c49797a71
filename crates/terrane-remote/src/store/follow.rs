//! The store of a follower: all its views read extents by it, as long as any of them may.
//!
//! An object keeps its name and bytes until it is deleted, so a read is right or finds none. The writer
//! deletes objects that no manifest has named for the age of garbage. So a follower pins nothing: an extent
//! that the manifest no longer names is kept here for that age, for views that were made before, and refused
//! as `Gone` afterwards. An extent that cannot be read before that is `Gone` as well, if the present manifest
//! does not name it; otherwise it is damage.

#[cfg(test)]
mod tests;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::sync::Mutex;
use terrane_base::{Error, ExtentId, Result};
use terrane_device::PendingRead;
use terrane_format::manifest::ManifestObject;
use terrane_levels::State as Manifested;
use terrane_storage::{ReadRequest, Store, delegate_store};

use super::judge::{Judge, Judged, Live};
use super::names::DataName;
use super::open::all_listed;
use super::past::PastObjects;
use super::state::{Extent, Location, Phase, State};
use super::{BucketStore, BucketStoreSettings, extents, object_names};
use crate::bucket::Bucket;
use crate::clones::Originals;
use crate::{ManifestFolder, Tier};

/// For a reader whose extents the manifest keeps, not the time.
const NO_END: Duration = Duration::from_secs(u64::MAX / 4);

/// See the head of the file.
#[derive(Debug)]
pub(crate) struct FollowedStore {
    inner: BucketStore,
    judge: Arc<Judge>,
}

/// The changes of a manifest.
struct News {
    /// Extents that are new.
    added: Vec<(ExtentId, u32)>,
    /// Extents that it no longer names, and since when.
    left: BTreeMap<(ExtentId, u32), Duration>,
    /// The count of what it was compared with.
    count: u64,
}

impl State {
    /// Takes in extents that a later manifest names, of files that the bucket lists; forgets others.
    /// After an error all is as before. Requires: this store only reads.
    pub(super) fn follow(
        &mut self,
        listed: &BTreeMap<DataName, u64>,
        added: &[(ExtentId, u32)],
        forgotten: &[ExtentId],
    ) -> Result<()> {
        debug_assert_eq!(self.staged_bytes, 0, "a store that only reads stages nothing");
        let mut found = State::new(self.epoch, 0, listed).groups;
        let taken = extents::by_file(added, |file| found.contains_key(&file))?;
        for (number, extents) in &taken {
            self.check_followed(*number, found[number].epoch, extents)?;
        }
        for (number, extents) in taken {
            let listed = found.remove(&number).expect("checked above");
            let group = match self.groups.entry(number) {
                Entry::Vacant(vacant) => vacant.insert(listed),
                Entry::Occupied(known) => {
                    let group = known.into_mut();
                    group.parts = listed.parts;
                    group
                }
            };
            for (slot, slots) in extents {
                let extent = Extent { slots, place: Location::Listed, is_in_object: true };
                let before = group.extents.insert(slot, extent);
                assert!(before.is_none(), "checked above");
                self.live_slots += u64::from(slots);
            }
        }
        for id in forgotten {
            let Some(group) = self.groups.get_mut(&id.file) else { continue };
            self.live_slots -= group.extents.remove(&id.slot).map_or(0, |extent| u64::from(extent.slots));
            if group.extents.is_empty() {
                self.groups.remove(&id.file);
            }
        }
        self.phase = Phase::Open;
        Ok(())
    }

    /// Checks that extents of a file, whose objects are of this epoch, fit to the known ones.
    fn check_followed(&self, number: u32, epoch: u64, extents: &BTreeMap<u32, u32>) -> Result<()> {
        let Some(known) = self.groups.get(&number) else { return Ok(()) };
        if known.epoch != epoch {
            let before = known.epoch;
            return Err(Error::corrupt(format!(
                "file {number} has objects of epoch {epoch}, and had those of {before} before"
            )));
        }
        match extents.keys().find(|slot| known.extents.contains_key(slot)) {
            Some(slot) => Err(Error::corrupt(format!("extent {number}:{slot} has other slots than before"))),
            None => Ok(()),
        }
    }

    /// Returns true while a copy holds freed extents.
    pub(super) fn is_held(&self) -> bool {
        self.held.0 > 0
    }
}

impl AsRef<BucketStore> for FollowedStore {
    fn as_ref(&self) -> &BucketStore {
        &self.inner
    }
}

impl FollowedStore {
    /// The store below the folder `prefix` of a bucket, without an extent.
    ///
    /// # Errors
    /// `Invalid` if a setting or the prefix is impossible.
    pub(crate) fn open(
        bucket: Arc<dyn Bucket>,
        prefix: &str,
        settings: BucketStoreSettings,
        tier: Option<Arc<Tier>>,
        env: Env,
    ) -> Result<FollowedStore> {
        FollowedStore::with((bucket, prefix), (settings, Some(NO_END)), tier, env)
    }

    /// The store of an earlier state, to which [`FollowedStore::take_past`] gives its extents: an object that
    /// is missing was deleted, unless the present manifest names it.
    ///
    /// # Errors
    /// `Invalid` if a setting or the prefix is impossible.
    pub(crate) fn open_past(
        bucket: Arc<dyn Bucket>,
        prefix: &str,
        settings: BucketStoreSettings,
        tier: Option<Arc<Tier>>,
        env: Env,
    ) -> Result<FollowedStore> {
        let settings = BucketStoreSettings { garbage_age: Duration::ZERO, ..settings };
        FollowedStore::with((bucket, prefix), (settings, Some(Duration::ZERO)), tier, env)
    }

    fn with(
        (bucket, prefix): (Arc<dyn Bucket>, &str),
        (settings, since): (BucketStoreSettings, Option<Duration>),
        tier: Option<Arc<Tier>>,
        env: Env,
    ) -> Result<FollowedStore> {
        settings.check()?;
        let manifests = ManifestFolder::new(bucket.clone(), prefix)?;
        let place = object_names::place(bucket.url(), prefix);
        let (none, is_past) = (BTreeMap::new(), since == Some(Duration::ZERO));
        let originals = Originals::read(&bucket, prefix, &env)?;
        let floor = originals.floor();
        let inner =
            BucketStore::with((bucket, prefix, originals), (0, BTreeMap::new()), settings, env, since);
        // Extents in originals come with the extents that are followed.
        *inner.state.write() = State::new(0, floor, &none);
        let judge = Judge { manifests, place, is_past, live: Mutex::default() };
        Ok(FollowedStore { inner: inner.with_tier(tier), judge: Arc::new(judge) })
    }

    /// Takes over what a manifest of `state` names, of which `last` is the last object. One list, if there
    /// are new extents. After an error all is as before. Requires: one caller at a time.
    ///
    /// # Errors
    /// `Corrupt` if an extent has no object; `Io`, `Busy`.
    pub(crate) fn follow(&self, state: &Manifested, last: &ManifestObject) -> Result<()> {
        let named: BTreeSet<(ExtentId, u32)> = state.extents().collect();
        let news = self.compare(&named);
        let mut listed = BTreeMap::new();
        if !news.added.is_empty() {
            listed = all_listed(&*self.inner.bucket, &self.inner.folders)?;
            // What a later writer creates is not named by this manifest.
            listed.retain(|name, _| name.epoch <= last.epoch);
            listed = self.inner.places.originals.with(listed);
            self.inner.places.originals.check(news.added.iter().map(|(id, _)| id.file))?;
        }
        self.take(named, last.number, news, &listed)
    }

    /// Takes over the extents of an earlier state, of which `number` is the last object of the manifest.
    ///
    /// # Errors
    /// `Corrupt` if an extent has no object.
    pub(crate) fn take_past(&self, state: &Manifested, number: u64, objects: &PastObjects) -> Result<()> {
        assert!(self.judge.is_past, "the store of a follower goes on with the present manifest");
        let named: BTreeSet<(ExtentId, u32)> = state.extents().collect();
        let news = self.compare(&named);
        self.inner.places.originals.check(news.added.iter().map(|(id, _)| id.file))?;
        self.take(named, number, news, &objects.listed)
    }

    fn take(
        &self,
        named: BTreeSet<(ExtentId, u32)>,
        number: u64,
        News { added, mut left, count }: News,
        listed: &BTreeMap<DataName, u64>,
    ) -> Result<()> {
        let mut own = self.inner.state.write();
        let (now, age) = (self.inner.env.clock.now(), self.inner.settings.garbage_age);
        let is_old = |since: &Duration| !own.is_held() && *since + age <= now;
        let forgotten: Vec<_> =
            left.iter().filter(|(_, since)| is_old(since)).map(|(extent, _)| *extent).collect();
        debug_assert!(!forgotten.iter().any(|old| named.contains(old)), "what the manifest names is kept");
        let ids: Vec<_> = forgotten.iter().map(|(id, _)| *id).collect();
        own.follow(listed, &added, &ids).map_err(|error| error.at(self.inner.folder(), 0))?;
        drop(own);
        for extent in &forgotten {
            left.remove(extent);
        }
        let mut live = self.judge.live.lock();
        assert_eq!(live.count, count, "one caller follows at a time");
        let gone = BTreeSet::new();
        *live = Live { extents: named, left, gone, count: count + 1, number };
        Ok(())
    }

    fn compare(&self, named: &BTreeSet<(ExtentId, u32)>) -> News {
        let now = self.inner.env.clock.now();
        let live = self.judge.live.lock();
        let is_new =
            |extent: &&(ExtentId, u32)| !live.extents.contains(*extent) && !live.left.contains_key(*extent);
        let added = named.iter().filter(is_new).copied().collect();
        let mut left = live.left.clone();
        left.retain(|extent, _| !named.contains(extent));
        left.extend(live.extents.difference(named).map(|extent| (*extent, now)));
        News { added, left, count: live.count }
    }

    fn explain_all(&self, reads: &mut [ReadRequest<'_>]) {
        for ReadRequest { id, result, .. } in reads {
            *result = std::mem::replace(result, Ok(())).map_err(|error| self.judge.explain(*id, error));
        }
    }
}

impl Store for FollowedStore {
    delegate_store!(inner: allocate, allocate_for, write, sync, prefetch, free);
    delegate_store!(inner: hold, release, reclaim, reclaim_all, usage, remote_reads, place);

    fn read(&self, id: ExtentId, offset: u32, buf: &mut [u8]) -> Result<()> {
        self.inner.read(id, offset, buf).map_err(|error| self.judge.explain(id, error))
    }

    fn read_batch(&self, reads: &mut [ReadRequest<'_>]) {
        self.inner.read_batch(reads);
        self.explain_all(reads);
    }

    fn begin_read(
        &self,
        id: ExtentId,
        offset: u32,
        len: usize,
        memory: Vec<u8>,
    ) -> Result<Box<dyn PendingRead>> {
        let begun = self.inner.begin_read(id, offset, len, memory);
        let begun = begun.map_err(|error| self.judge.explain(id, error))?;
        Ok(Box::new(Judged { begun, id, judge: self.judge.clone() }))
    }

    /// Checks that a view has no extent that was not followed.
    fn restore(&self, live: &mut dyn Iterator<Item = (ExtentId, u32)>) -> Result<()> {
        let known = &self.judge.live.lock().extents;
        for (id, slots) in live {
            if !known.contains(&(id, slots)) {
                let message = format!("extent {id} is not one of the manifest that is followed");
                return Err(Error::corrupt(message).at(self.inner.folder(), 0));
            }
        }
        Ok(())
    }

    fn explain(&self, id: ExtentId, error: Error) -> Error {
        self.judge.explain(id, error)
    }
}
