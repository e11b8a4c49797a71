//! The store of a follower: all its views read extents by it, as long as any of them may.
//!
//! An object keeps its name and bytes until it is deleted, so a read is right or finds none. The writer
//! deletes what no manifest has named for the age of garbage. So a follower pins nothing: an extent that the
//! manifest names no more is kept here for that age, for views that were made before, and refused as `Gone`
//! afterwards. What cannot be read before that is `Gone` as well, if the manifest of now does not name it;
//! otherwise it is damage.

#[cfg(test)]
mod tests;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::sync::Mutex;
use terrane_base::{Error, ExtentId, Kind, Result};
use terrane_device::{PendingRead, ReadBytes};
use terrane_levels::State as Manifested;
use terrane_storage::{ReadRequest, Store, StoreUsage};

use super::names::{DataName, Folders};
use super::open::all_listed;
use super::state::{Extent, Location, Phase, State};
use super::{BucketStore, BucketStoreSettings, extents, object_names};
use crate::bucket::Bucket;
use crate::{ManifestFolder, Tier};

/// For a reader of which the manifest says what is kept, not the time.
const NO_END: Duration = Duration::from_secs(u64::MAX / 4);

/// See the head of the file.
#[derive(Debug)]
pub(crate) struct FollowedStore {
    inner: BucketStore,
    judge: Arc<Judge>,
}

/// What the manifest names, as far as it was followed.
#[derive(Debug, Default)]
struct Live {
    extents: BTreeSet<(ExtentId, u32)>,
    /// Extents that the manifest names no more, and since when.
    left: BTreeMap<(ExtentId, u32), Duration>,
    /// Those of `extents` that a newer manifest was seen not to name.
    gone: BTreeSet<ExtentId>,
    /// Counts the manifests that were followed.
    count: u64,
}

/// Decides what a read that failed means.
#[derive(Debug)]
struct Judge {
    manifests: ManifestFolder,
    place: String,
    /// Not held while the bucket is asked.
    live: Mutex<Live>,
}

/// What a manifest changes.
struct News {
    /// Extents that are new.
    added: Vec<(ExtentId, u32)>,
    /// Extents that it names no more, and since when.
    left: BTreeMap<(ExtentId, u32), Duration>,
    /// The count of what it was compared with.
    count: u64,
}

impl Live {
    /// Returns false if the extent was replaced, as far as is known here.
    fn is_named(&self, id: ExtentId) -> bool {
        !self.gone.contains(&id) && self.extents.range((id, 0)..=(id, u32::MAX)).next().is_some()
    }
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
        let mut found = State::new(self.epoch, listed).groups;
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

    /// Checks that extents of a file, whose objects are of this epoch, fit to what is known of it.
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

    /// Returns true while a copy holds what is freed.
    pub(super) fn is_held(&self) -> bool {
        self.held.0 > 0
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
        settings.check()?;
        let manifests = ManifestFolder::new(bucket.clone(), prefix)?;
        let place = object_names::place(bucket.url(), prefix);
        let none = (0, &BTreeMap::new());
        let inner = BucketStore::with(bucket, Folders::new(prefix), none, settings, env, Some(NO_END));
        let inner = inner.with_tier(tier);
        let judge = Judge { manifests, place, live: Mutex::default() };
        Ok(FollowedStore { inner, judge: Arc::new(judge) })
    }

    /// Takes over what a manifest of `state` names, whose last writer has this epoch. One list, if there are
    /// new extents. After an error all is as before. Requires: one caller at a time.
    ///
    /// # Errors
    /// `Corrupt` if an extent has no object; `Io`, `Busy`.
    pub(crate) fn follow(&self, state: &Manifested, epoch: u64) -> Result<()> {
        let named: BTreeSet<(ExtentId, u32)> = state.extents().collect();
        let News { added, mut left, count } = self.compare(&named);
        let mut listed = BTreeMap::new();
        if !added.is_empty() {
            listed = all_listed(&*self.inner.bucket, &self.inner.folders)?;
            // What a later writer creates is not named by this manifest.
            listed.retain(|name, _| name.epoch <= epoch);
        }
        let mut own = self.inner.state.write();
        let (now, age) = (self.inner.env.clock.now(), self.inner.settings.garbage_age);
        let is_old = |since: &Duration| !own.is_held() && *since + age <= now;
        let forgotten: Vec<_> =
            left.iter().filter(|(_, since)| is_old(since)).map(|(extent, _)| *extent).collect();
        debug_assert!(!forgotten.iter().any(|old| named.contains(old)), "what the manifest names is kept");
        let ids: Vec<_> = forgotten.iter().map(|(id, _)| *id).collect();
        own.follow(&listed, &added, &ids).map_err(|error| error.at(self.inner.folder(), 0))?;
        drop(own);
        for extent in &forgotten {
            left.remove(extent);
        }
        let mut live = self.judge.live.lock();
        assert_eq!(live.count, count, "one caller follows at a time");
        *live = Live { extents: named, left, gone: BTreeSet::new(), count: count + 1 };
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

impl Judge {
    /// The error, or that the writer has given the extent up, if it did.
    fn explain(&self, id: ExtentId, error: Error) -> Error {
        if !matches!(error.kind(), Kind::Corrupt | Kind::NotFound) {
            return error;
        }
        let is_named = match self.is_named(id) {
            Ok(is_named) => is_named,
            Err(why) => return why.context(format!("whether the writer replaced extent {id} is not known")),
        };
        if is_named || terrane_base::planted!(CallRemovedDamage) {
            return error;
        }
        let place = &self.place;
        Error::gone(
            format!("extent {id} of {place}, which its writer replaced since this view was made"),
            None,
        )
    }
}

impl Judge {
    /// Returns false if the writer replaced the extent. Reads the manifest unless that is known already: an
    /// extent that a manifest does not name is named by no later one.
    fn is_named(&self, id: ExtentId) -> Result<bool> {
        let count = {
            let live = self.live.lock();
            if !live.is_named(id) {
                return Ok(false);
            }
            live.count
        };
        let state = self.manifests.read()?.and_then(|found| found.state);
        let newer: BTreeSet<ExtentId> =
            state.iter().flat_map(|state| state.extents()).map(|(id, _)| id).collect();
        let mut live = self.live.lock();
        // What was followed meanwhile may have extents that this manifest did not have yet.
        if live.count == count {
            live.gone = live.extents.iter().map(|(id, _)| *id).filter(|id| !newer.contains(id)).collect();
        }
        Ok(newer.contains(&id))
    }
}

impl Store for FollowedStore {
    fn allocate(&self, slots: u32) -> Result<ExtentId> {
        self.inner.allocate(slots)
    }

    fn allocate_for(&self, slots: u32, bytes: u64) -> Result<ExtentId> {
        self.inner.allocate_for(slots, bytes)
    }

    fn write(&self, id: ExtentId, bytes: &[u8]) -> Result<()> {
        self.inner.write(id, bytes)
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

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

    fn prefetch(&self, id: ExtentId, offset: u32, len: u32) {
        self.inner.prefetch(id, offset, len);
    }

    fn free(&self, id: ExtentId, slots: u32) -> Result<()> {
        self.inner.free(id, slots)
    }

    fn hold(&self) {
        self.inner.hold();
    }

    fn release(&self) {
        self.inner.release();
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

    fn reclaim(&self) -> Result<u64> {
        self.inner.reclaim()
    }

    fn usage(&self) -> StoreUsage {
        self.inner.usage()
    }

    fn explain(&self, id: ExtentId, error: Error) -> Error {
        self.judge.explain(id, error)
    }

    fn place(&self, id: ExtentId, offset: u32) -> (String, u64) {
        self.inner.place(id, offset)
    }
}

/// A read that was started.
#[derive(Debug)]
struct Judged {
    begun: Box<dyn PendingRead>,
    id: ExtentId,
    judge: Arc<Judge>,
}

impl PendingRead for Judged {
    fn finish(self: Box<Self>) -> Result<ReadBytes> {
        let Judged { begun, id, judge } = *self;
        begun.finish().map_err(|error| judge.explain(id, error))
    }
}
