//! The store of extents in a bucket.
//!
//! Extents that are allocated one after the other share a *file*, as those of a local store do; a file
//! becomes one immutable data object of about 64 MiB (`names.rs`, `table.rs`). Written extents wait in
//! memory, in the stage, until a sync uploads them, or until their file is full. What was written after its
//! file was uploaded goes into a further part of it, an object of its own.
//!
//! # Which work holds which lock
//! 1. `state` and `ahead` are held for work in memory only, so reads wait for no writer.
//! 2. `uploads` is held while uploads begin: a sync finds all of them.
//! 3. `sync` is held while uploads are waited for: a second caller must not return before the first has made
//!    its bytes durable.
//! 4. `garbage` is held during a pass of the collection of garbage.
//!
//! Lock order: `sync` or `garbage`, `uploads`, then `state` or `ahead`.

mod ahead;
mod extents;
mod fetch;
mod follow;
pub(crate) mod fuzzing;
mod garbage;
mod judge;
mod lease;
mod names;
mod open;
mod past;
mod places;
mod read;
mod state;
mod table;
mod upload;

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use terrane_base::env::Env;
use terrane_base::sync::{Mutex, RwLock};
use terrane_base::{Error, ExtentId, Kind, Result};
use terrane_device::PendingRead;
use terrane_engine::CountRequests;
use terrane_storage::{EXTENT_SLOTS_MAX, ReadRequest, RemoteReads, SLOT_BYTES, Store, StoreUsage};

use crate::bucket::{Bucket, names as object_names};
use crate::clones::PinnedFiles;
use crate::tier::{Tier, TierCounts};
use places::Places;
use state::{Location, Phase, State};

pub(crate) use follow::FollowedStore;
pub use garbage::{Collected, Marked, Roots};
pub(crate) use garbage::{NOW, least_age};
pub use lease::{CheckEnd, LEASE_RESERVE, Written, WrittenObject};
pub(crate) use names::{DataName, Folders, PARTS_MAX};
pub use open::BucketStoreSettings;
pub(crate) use open::all_listed;
pub(crate) use past::PastObjects;

/// A store of extents in a bucket.
#[derive(Debug)]
pub struct BucketStore {
    bucket: Arc<dyn Bucket>,
    source: fetch::Source,
    places: Arc<Places>,
    prefix: String,
    folders: Folders,
    epoch: u64,
    /// Drawn for this store: it shows whose an object is.
    nonce: u128,
    settings: BucketStoreSettings,
    env: Env,
    /// When the manifest of a reader was read; `None` for a writer.
    reads_since: Option<Duration>,
    /// The numbers that a worker writes under; `None` in the store of a writer or a reader.
    lease: Option<Range<u32>>,
    state: RwLock<State>,
    uploads: Mutex<Vec<upload::Upload>>,
    sync: Mutex<()>,
    /// The first failure of an upload.
    poison: OnceLock<Error>,
    ahead: ahead::ReadAhead,
    garbage: Mutex<Option<Marked>>,
    pinned: PinnedFiles,
}

impl AsRef<BucketStore> for BucketStore {
    fn as_ref(&self) -> &BucketStore {
        self
    }
}

impl BucketStore {
    /// Puts a tier in front of the bucket, if there is one.
    #[must_use]
    pub fn with_tier(mut self, tier: impl Into<Option<Arc<Tier>>>) -> Self {
        debug_assert!(self.source.tier.is_none(), "a store has one tier");
        self.source.tier = tier.into();
        self
    }

    /// The counts of its tier; `None` without one.
    #[must_use]
    pub fn tier_counts(&self) -> Option<TierCounts> {
        self.source.tier.as_ref().map(|tier| tier.counts())
    }

    /// The requests to the buckets of a database: of its manifest and extents, of its journal if that lies in
    /// another one, and of the originals of a clone.
    pub(crate) fn count_requests(
        store: &Arc<impl AsRef<BucketStore> + Send + Sync + 'static>,
        own_journal: Option<&Arc<dyn Bucket>>,
    ) -> CountRequests {
        let (store, journal) = (Arc::clone(store), own_journal.cloned());
        CountRequests::new(move || {
            let store: &BucketStore = (*store).as_ref();
            let all = store.bucket.requests().with(&store.places.originals.requests());
            journal.as_ref().map_or(all, |journal| all.with(&journal.requests()))
        })
    }

    /// Objects of which no extent lives give their place in the tier away first.
    fn forget_dead(&self) {
        let dead = self.state.write().take_dead();
        if let Some(tier) = &self.source.tier {
            dead.iter().for_each(|object| tier.forget(object));
        }
    }

    fn check_writable(&self, what: &str) -> Result<()> {
        if self.reads_since.is_some() {
            let folder = self.folder();
            return Err(Error::invalid(format!("cannot {what} in {folder}: it is open for reading only")));
        }
        match self.poison.get() {
            None => Ok(()),
            Some(cause) => {
                let folder = self.folder();
                let message = format!(
                    "cannot {what} in {folder} after a failed upload ({cause}): open the database again"
                );
                Err(Error::new(Kind::Poisoned, message))
            }
        }
    }

    /// The size of its data objects.
    pub(crate) fn object_bytes(&self) -> u64 {
        self.settings.object_bytes
    }

    fn check_restored(&self, state: &State) -> Result<()> {
        if state.phase == Phase::Unknown {
            return Err(Error::invalid(format!("the extents of {} are not restored yet", self.folder())));
        }
        Ok(())
    }

    /// The folder of data objects, for messages.
    fn folder(&self) -> String {
        object_names::place(self.bucket.url(), &self.folders.data)
    }

    /// Reserves room in the stage: uploads written extents until there is room.
    fn allocate_staged(&self, slots: u32, bytes: u64) -> Result<ExtentId> {
        loop {
            self.check_writable("allocate an extent")?;
            let can_wait = {
                let mut state = self.state.write();
                self.check_restored(&state)?;
                let staged = state.staged_bytes + state.uploading_bytes;
                if staged + bytes <= self.settings.stage_bytes || staged == 0 {
                    return state.allocate(slots, bytes, self.settings.object_bytes);
                }
                state.uploading_bytes > 0 || !state.staged(false).is_empty()
            };
            if !can_wait {
                return Err(self.stage_is_full(bytes));
            }
            self.make_room()?;
        }
    }

    #[cold]
    fn stage_is_full(&self, bytes: u64) -> Error {
        let message = format!(
            "no room for {bytes} bytes: the stage of {} holds {} bytes, all of them reserved by jobs that have \
             not written; raise stage_bytes, or run fewer jobs at once",
            self.folder(),
            self.settings.stage_bytes
        );
        Error::new(Kind::Full, message)
    }
}

impl Store for BucketStore {
    fn allocate(&self, slots: u32) -> Result<ExtentId> {
        self.allocate_for(slots, u64::from(slots) * SLOT_BYTES as u64)
    }

    fn allocate_for(&self, slots: u32, bytes: u64) -> Result<ExtentId> {
        if !(1..=EXTENT_SLOTS_MAX).contains(&slots) {
            return Err(Error::invalid(format!(
                "an extent of {slots} slots: 1 to {EXTENT_SLOTS_MAX} are possible"
            )));
        }
        self.allocate_staged(slots, bytes.min(u64::from(slots) * SLOT_BYTES as u64))
    }

    fn write(&self, id: ExtentId, bytes: &[u8]) -> Result<()> {
        self.check_writable("write an extent")?;
        let bytes = Bytes::copy_from_slice(bytes);
        let full = {
            let mut state = self.state.write();
            self.check_restored(&state)?;
            state.stage(id, bytes)?;
            state.staged(true)
        };
        self.ahead.forget(id);
        self.begin_uploads(&full)
    }

    fn sync(&self) -> Result<()> {
        self.check_writable("sync")?;
        self.upload_all()
    }

    fn read(&self, id: ExtentId, offset: u32, buf: &mut [u8]) -> Result<()> {
        self.read_one(id, offset, buf)
    }

    fn read_batch(&self, reads: &mut [ReadRequest<'_>]) {
        self.read_many(reads);
    }

    fn begin_read(
        &self,
        id: ExtentId,
        offset: u32,
        len: usize,
        memory: Vec<u8>,
    ) -> Result<Box<dyn PendingRead>> {
        self.begin_one(id, offset, len, memory)
    }

    fn prefetch(&self, id: ExtentId, offset: u32, len: u32) {
        self.read_ahead(id, offset, len);
    }

    fn free(&self, id: ExtentId, slots: u32) -> Result<()> {
        let mut state = self.state.write();
        self.check_restored(&state)?;
        // Also after a failed upload: only memory changes.
        state.free(id, slots)?;
        drop(state);
        self.forget_dead();
        self.ahead.forget(id);
        Ok(())
    }

    fn hold(&self) {
        self.state.write().hold();
    }

    fn release(&self) {
        self.state.write().release();
        self.forget_dead();
    }

    fn restore(&self, live: &mut dyn Iterator<Item = (ExtentId, u32)>) -> Result<()> {
        // Outside the lock: the iterator is the caller's code.
        let live: Vec<_> = live.collect();
        self.places.originals.check(live.iter().map(|(id, _)| id.file))?;
        let mut state = self.state.write();
        if state.phase == Phase::Open {
            let message =
                format!("the extents of {} are restored already, or it was written to", self.folder());
            return Err(Error::invalid(message));
        }
        state.restore(&live).map_err(|error| error.at(self.folder(), 0))
    }

    /// Frees nothing: dead objects go by [`BucketStore::collect_garbage`].
    fn reclaim(&self) -> Result<u64> {
        self.check_writable("give space back")?;
        Ok(0)
    }

    fn usage(&self) -> StoreUsage {
        self.state.read().usage()
    }

    fn remote_reads(&self) -> RemoteReads {
        let tier = self.tier_counts().unwrap_or_default();
        let hedges = self.bucket.hedges().with(self.places.originals.hedges());
        debug_assert!(hedges.won <= hedges.hedged, "a hedge that won was made");
        RemoteReads {
            tier_hits: tier.hits,
            tier_misses: tier.misses,
            tier_bytes_read: tier.bytes_read,
            tier_bytes_written: tier.bytes_written,
            tier_bytes_dropped: tier.bytes_dropped,
            tier_frames_damaged: tier.frames_damaged,
            tier_frames_evicted: tier.frames_evicted,
            tier_frames: tier.frames,
            hedged: hedges.hedged,
            hedges_won: hedges.won,
            object_bytes: self.state.read().object_bytes(),
        }
    }

    fn place(&self, id: ExtentId, offset: u32) -> (String, u64) {
        let state = self.state.read();
        let (part, base) = match state.extent(id).map(|extent| &extent.place) {
            Some(Location::Stored { part, offset, .. }) => (*part, *offset),
            _ => (0, 0),
        };
        let epoch = state.groups.get(&id.file).map_or(self.epoch, |group| group.epoch);
        (self.places.text(DataName { epoch, number: id.file, part }), base + u64::from(offset))
    }
}
