//! The store of a follower: all its views read extents by it, as long as any of them may.
//!
//! An object keeps its name and bytes until it is deleted, so a read is right or finds none. The writer
//! deletes what no manifest has named for the age of garbage. So a follower pins nothing: an extent that the
//! manifest names no more is kept here for that age, for views that were made before, and refused as `Gone`
//! afterwards. What cannot be read before that is `Gone` as well, if the manifest of now does not name it;
//! otherwise it is damage.

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
    /// What the manifest names.
    live: Mutex<Live>,
}

#[derive(Debug, Default)]
struct Live {
    extents: BTreeSet<(ExtentId, u32)>,
    /// Extents that the manifest names no more, and since when.
    left: BTreeMap<ExtentId, Duration>,
}

/// Decides what a read that failed means.
#[derive(Debug)]
struct Judge {
    manifests: ManifestFolder,
    place: String,
}

impl State {
    /// Takes in extents that a later manifest names, of files that the bucket lists; forgets others.
    /// Requires: this store only reads.
    pub(super) fn follow(
        &mut self,
        listed: &BTreeMap<DataName, u64>,
        added: &[(ExtentId, u32)],
        forgotten: &[ExtentId],
    ) -> Result<()> {
        debug_assert_eq!(self.staged_bytes, 0, "a store that only reads stages nothing");
        let mut found = State::new(self.epoch, listed).groups;
        let taken = extents::by_file(added, |file| found.contains_key(&file))?;
        for (number, extents) in taken {
            let listed = found.remove(&number).expect("checked above");
            let group = match self.groups.entry(number) {
                Entry::Vacant(vacant) => vacant.insert(listed),
                Entry::Occupied(known) if known.get().epoch != listed.epoch => {
                    let (epoch, before) = (listed.epoch, known.get().epoch);
                    return Err(Error::corrupt(format!(
                        "file {number} has objects of epoch {epoch}, and had those of {before} before"
                    )));
                }
                Entry::Occupied(known) => {
                    let group = known.into_mut();
                    group.parts = listed.parts;
                    group
                }
            };
            for (slot, slots) in extents {
                let extent = Extent { slots, place: Location::Listed, is_in_object: true };
                if group.extents.insert(slot, extent).is_some() {
                    return Err(Error::corrupt(format!(
                        "extent {number}:{slot} has other slots than before"
                    )));
                }
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
        Ok(FollowedStore { inner, judge: Arc::new(Judge { manifests, place }), live: Mutex::default() })
    }

    /// Takes over what a manifest of `state` names, whose last writer has this epoch. One list, if there are
    /// new extents. After an error all is as before.
    ///
    /// # Errors
    /// `Corrupt` if an extent has no object; `Io`, `Busy`.
    pub(crate) fn follow(&self, state: &Manifested, epoch: u64) -> Result<()> {
        let mut live = self.live.lock();
        let named: BTreeSet<(ExtentId, u32)> = state.extents().collect();
        let is_known =
            |extent: &(ExtentId, u32)| live.extents.contains(extent) || live.left.contains_key(&extent.0);
        let added: Vec<_> = named.iter().filter(|extent| !is_known(extent)).copied().collect();
        let mut listed = BTreeMap::new();
        if !added.is_empty() {
            listed = all_listed(&*self.inner.bucket, &self.inner.folders)?;
            // What a later writer creates is not named by this manifest.
            listed.retain(|name, _| name.epoch <= epoch);
        }
        let now = self.inner.env.clock.now();
        let mut left = live.left.clone();
        for (id, _) in &named {
            left.remove(id);
        }
        left.extend(live.extents.difference(&named).map(|(id, _)| (*id, now)));
        let mut own = self.inner.state.write();
        let age = self.inner.settings.garbage_age;
        let is_old = |since: &Duration| !own.is_held() && *since + age <= now;
        let forgotten: Vec<_> = left.iter().filter(|(_, since)| is_old(since)).map(|(id, _)| *id).collect();
        let is_named = |id: &ExtentId| named.range((*id, 0)..=(*id, u32::MAX)).next().is_some();
        debug_assert!(!forgotten.iter().any(is_named), "what the manifest names is kept");
        own.follow(&listed, &added, &forgotten).map_err(|error| error.at(self.inner.folder(), 0))?;
        drop(own);
        for id in &forgotten {
            left.remove(id);
        }
        *live = Live { extents: named, left };
        Ok(())
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
        let found = match self.manifests.read() {
            Ok(found) => found,
            Err(why) => return why.context(format!("whether the writer replaced extent {id} is not known")),
        };
        let state = found.and_then(|found| found.state);
        let is_named = state.is_some_and(|state| state.extents().any(|(named, _)| named == id));
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
        let known = &self.live.lock().extents;
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
