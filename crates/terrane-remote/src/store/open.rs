//! Opens a store.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::sync::{Mutex, RwLock};
use terrane_base::{Error, Kind, Result};

use super::names::{DataName, Folders};
use super::places::Places;
use super::state::State;
use super::{BucketStore, ahead, fetch};
use crate::bucket::{Bucket, names as object_names, probe};
use crate::clones::{Originals, PinnedFiles};

/// How to open a [`BucketStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketStoreSettings {
    /// Bytes of a data object: it is full when a further extent would pass them. 1 MiB to 1 GiB.
    pub object_bytes: u64,
    /// Most bytes of extents that wait in memory, reserved ones and those being uploaded included; one extent
    /// may always be written. Twice `object_bytes` at least.
    pub stage_bytes: u64,
    /// Age, by the clock of the object store, from which a list of garbage may be deleted: longer than any
    /// pause of a writer, and than any read of a process that does not pin what it reads.
    pub garbage_age: Duration,
    /// True if the promises of the object store are checked at opening.
    pub probe: bool,
}

impl Default for BucketStoreSettings {
    /// Objects of 64 MiB, a stage of 256 MiB, garbage of an hour, and a check.
    fn default() -> Self {
        BucketStoreSettings {
            object_bytes: 64 << 20,
            stage_bytes: 256 << 20,
            garbage_age: Duration::from_secs(3600),
            probe: true,
        }
    }
}

impl BucketStoreSettings {
    /// Refuses impossible settings.
    pub(crate) fn check(&self) -> Result<()> {
        if !(1 << 20..=1 << 30).contains(&self.object_bytes) {
            let bytes = self.object_bytes;
            return Err(Error::invalid(format!("object_bytes={bytes}: 1 MiB to 1 GiB are possible")));
        }
        if self.stage_bytes < 2 * self.object_bytes {
            let (stage, object) = (self.stage_bytes, self.object_bytes);
            let message = format!(
                "stage_bytes={stage}: twice object_bytes={object} is the least, so that one object is filled \
                 while another is uploaded"
            );
            return Err(Error::invalid(message));
        }
        Ok(())
    }
}

impl BucketStore {
    /// Opens the store below the folder `prefix` of a bucket that repeats its requests, for the writer of
    /// this epoch. Requires: the manifest has the epoch already, so that no older writer can commit any more;
    /// [`Store::restore`](terrane_storage::Store::restore) follows with the extents of that manifest, as read
    /// after the epoch was taken.
    ///
    /// # Errors
    /// `Invalid` if a setting or the prefix is impossible, the object store failed a check, or the epoch was
    /// used before; `Poisoned` if a newer writer is at work; `Io`.
    pub fn open(
        bucket: Arc<dyn Bucket>,
        prefix: &str,
        epoch: u64,
        settings: BucketStoreSettings,
        env: Env,
    ) -> Result<Self> {
        settings.check()?;
        object_names::check(prefix)?;
        if settings.probe {
            probe::run(&*bucket, prefix, &*env.random)?;
        }
        let folders = Folders::new(prefix);
        let listed = listed(&*bucket, &folders, epoch)?;
        let originals = Originals::read(&bucket, prefix, &env)?;
        Ok(BucketStore::with((bucket, prefix, originals), (epoch, listed), settings, env, None))
    }

    /// Opens the store for reading what the manifest names whose last writer has this epoch, beside any
    /// writer. [`Store::restore`](terrane_storage::Store::restore) follows with the extents of that manifest,
    /// whose reading began at `since`. Writes are refused.
    ///
    /// An object that is gone once `garbage_age` has passed since is `Gone`: a writer may have deleted it.
    ///
    /// # Errors
    /// `Invalid` if a setting or the prefix is impossible; `Io`.
    pub fn open_to_read(
        bucket: Arc<dyn Bucket>,
        prefix: &str,
        (epoch, since): (u64, Duration),
        settings: BucketStoreSettings,
        env: Env,
    ) -> Result<Self> {
        settings.check()?;
        object_names::check(prefix)?;
        assert!(since <= env.clock.now(), "what the manifest names is kept from its reading on");
        let folders = Folders::new(prefix);
        let mut listed = all_listed(&*bucket, &folders)?;
        // What a later writer creates is not named by this manifest.
        listed.retain(|name, _| name.epoch <= epoch);
        let originals = Originals::read(&bucket, prefix, &env)?;
        Ok(BucketStore::with((bucket, prefix, originals), (epoch, listed), settings, env, Some(since)))
    }

    /// The store of a database whose own data objects are `listed`.
    pub(crate) fn with(
        (bucket, prefix, originals): (Arc<dyn Bucket>, &str, Originals),
        (epoch, listed): (u64, BTreeMap<DataName, u64>),
        settings: BucketStoreSettings,
        env: Env,
        reads_since: Option<Duration>,
    ) -> Self {
        let nonce = u128::from(env.random.next_u64()) << 64 | u128::from(env.random.next_u64());
        let listed = originals.with(listed);
        let state = State::new(epoch, originals.floor(), &listed);
        let folders = Folders::new(prefix);
        let places = Arc::new(Places { bucket: bucket.clone(), folders: folders.clone(), originals });
        let source = fetch::Source::new(places.clone());
        BucketStore {
            bucket,
            source,
            places,
            prefix: prefix.to_owned(),
            folders,
            epoch,
            nonce,
            settings,
            env,
            reads_since,
            lease: None,
            state: RwLock::new(state),
            uploads: Mutex::default(),
            sync: Mutex::default(),
            poison: OnceLock::new(),
            ahead: ahead::ReadAhead::default(),
            garbage: Mutex::default(),
            pinned: PinnedFiles::default(),
        }
    }
}

/// The data objects and their bytes, of which none is of this epoch or a newer one. What else is in the
/// folder is left alone.
fn listed(bucket: &dyn Bucket, folders: &Folders, epoch: u64) -> Result<BTreeMap<DataName, u64>> {
    let listed = all_listed(bucket, folders)?;
    let newest = listed.last_key_value().map(|(name, _)| name.epoch);
    let place = object_names::place(bucket.url(), &folders.data);
    match newest {
        Some(newest) if newest > epoch => Err(replaced(&place, epoch, newest)),
        Some(newest) if newest == epoch => {
            Err(Error::invalid(format!("epoch {epoch} of {place} was used before: take the next one")))
        }
        _ => Ok(listed),
    }
}

pub(crate) fn all_listed(bucket: &dyn Bucket, folders: &Folders) -> Result<BTreeMap<DataName, u64>> {
    let objects = bucket.list(&folders.data, None)?;
    let named = objects.iter().filter_map(|object| Some((folders.parse(&object.name)?, object.bytes)));
    Ok(named.collect())
}

/// The error of a writer that learns of a newer one.
#[cold]
pub(super) fn replaced(place: &str, epoch: u64, newest: u64) -> Error {
    let message = format!(
        "a writer of epoch {newest} is at work in {place}, this one has epoch {epoch}: it was replaced; open \
         the database again if it should take over"
    );
    Error::new(Kind::Poisoned, message)
}
