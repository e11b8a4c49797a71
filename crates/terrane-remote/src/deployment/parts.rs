//! Opens manifest and store of a database in a bucket: checks the bucket, takes the manifest over, opens the
//! store under the epoch of that, and collects the store's garbage as long as the database is open.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use terrane_base::env::{Clock, Env};
use terrane_base::{Error, Kind, Result};
use terrane_device::PosixDisk;
use terrane_engine::{MakeCompactor, OpenedParts, Parts, PartsRequest, Upkeep};
use terrane_journal::CommitLog;
use terrane_levels::Manifest;

use super::Deployment;
use super::journal::{Opening, journal_in_bucket};
use crate::bucket::{names, probe};
use crate::jobs::{BucketCompactor, Coordinator, JobTable};
use crate::journal::is_in_objects;
use crate::manifest::{OpenedManifest, TakeOver};
use crate::{
    Bucket, BucketStore, BucketStoreSettings, JournalFolder, ManifestFolder, ObjectCommitLog, Roots, Tier,
};

/// Between two passes of the collection of garbage.
const COLLECT_EVERY: Duration = Duration::from_secs(60);

/// The parts of a database in a bucket.
#[derive(Debug)]
pub(super) struct BucketParts {
    bucket: Arc<dyn Bucket>,
    /// The journal's bucket, if it lies in one.
    journal: Option<Arc<dyn Bucket>>,
    address: String,
    deployment: Deployment,
}

impl BucketParts {
    pub(super) fn new(
        bucket: Arc<dyn Bucket>,
        journal: Option<Arc<dyn Bucket>>,
        deployment: &Deployment,
    ) -> BucketParts {
        let address = names::place(bucket.url(), &deployment.prefix);
        BucketParts { bucket, journal, address, deployment: deployment.clone() }
    }

    /// Work at intervals while the database is open.
    fn upkeep(
        manifest: &Arc<Manifest>,
        store: &Arc<BucketStore>,
        (log, coordinator): (Option<&Arc<ObjectCommitLog>>, Option<&Arc<Coordinator>>),
        clock: Arc<dyn Clock>,
    ) -> Upkeep {
        let (roots, store) = (ManifestRoots(Arc::downgrade(manifest)), Arc::downgrade(store));
        let (log, coordinator) = (log.map(Arc::downgrade), coordinator.map(Arc::downgrade));
        let mut next = clock.now() + COLLECT_EVERY;
        Box::new(move || {
            let Some(store) = store.upgrade() else { return };
            let is_due = clock.now() >= next;
            // Only space is at stake: the next pass goes on. The journal first: its service may be short of
            // room, and the bucket of the store slow. A service that is crowded does not wait for a minute.
            if let Some(log) =
                log.as_ref().and_then(Weak::upgrade).filter(|log| is_due || log.is_trim_urgent())
            {
                let _ = log.collect_garbage();
            }
            if !is_due {
                return;
            }
            next = clock.now() + COLLECT_EVERY;
            let _ = store.collect_garbage(&roots);
            if let Some(coordinator) = coordinator.as_ref().and_then(Weak::upgrade) {
                let _ = coordinator.sweep();
            }
        })
    }
}

impl Deployment {
    /// Opens the tier, if there is one; `None`, and a warning, also if another process has its directory:
    /// that may be a reader that ends soon, and no opening fails for a cache.
    pub(super) fn open_tier(&self, env: &Env) -> Result<Option<Arc<Tier>>> {
        let Some(cache) = &self.cache else { return Ok(None) };
        match Tier::open(Arc::new(PosixDisk::new()), cache, env) {
            Ok(tier) => Ok(Some(Arc::new(tier))),
            Err(error) if error.kind() == Kind::Busy => {
                tracing::warn!(
                    target: "terrane::cache",
                    %error,
                    "the cache on disk is not used until the database is opened again"
                );
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl Parts for BucketParts {
    fn address(&self) -> &str {
        &self.address
    }

    fn open(&self, request: &PartsRequest<'_>) -> Result<OpenedParts> {
        let Deployment { prefix, settings, writer_check_ms, .. } = &self.deployment;
        let env = request.env;
        if settings.probe {
            // Before anything relies on it.
            probe::run(&*self.bucket, prefix, &*env.random)?;
            if let Some(own) = self.own_journal_bucket() {
                probe::run(&**own, prefix, &*env.random)?;
            }
        }
        // A directory that is refused replaces no writer.
        let tier = self.deployment.open_tier(env)?;
        let (opened, log) = self.take_over(request)?;
        let settings = BucketStoreSettings { probe: false, ..*settings };
        let store = BucketStore::open(self.bucket.clone(), prefix, opened.epoch, settings, env.clone())?;
        let (manifest, store) = (Arc::new(opened.manifest), Arc::new(store.with_tier(tier)));
        let (coordinator, compactor) = self.workers(opened.epoch, &store, env).unzip();
        let upkeep = Self::upkeep(&manifest, &store, (log.as_ref(), coordinator.as_ref()), env.clock.clone());
        let interval = Duration::from_millis(*writer_check_ms);
        let log = log.map(|log| -> Arc<dyn CommitLog> { log });
        let requests = Some(BucketStore::count_requests(&store, self.own_journal_bucket()));
        Ok(OpenedParts { manifest, store, log, upkeep: Some((interval, upkeep)), compactor, requests })
    }
}

impl BucketParts {
    /// The bucket of the journal, if it is not the one of manifest and extents.
    fn own_journal_bucket(&self) -> Option<&Arc<dyn Bucket>> {
        let is_own = self.deployment.bucket_journal.as_ref().is_some_and(|journal| journal.url.is_some());
        self.journal.as_ref().filter(|_| is_own)
    }

    /// Begins to offer jobs, if the deployment has workers: the table's coordinator, and what makes the
    /// compactor that uses it. Without workers it ends the jobs of the writer before.
    fn workers(
        &self,
        epoch: u64,
        store: &Arc<BucketStore>,
        env: &Env,
    ) -> Option<(Arc<Coordinator>, MakeCompactor)> {
        let place = (self.bucket.clone(), self.deployment.prefix.as_str());
        if let Some(settings) = self.deployment.compaction {
            return BucketCompactor::begin(place, epoch, store, settings, env);
        }
        // The writer before may have had workers: they are not to go on with its jobs.
        let table = JobTable::new(place.0, place.1, env.random.clone());
        if let Err(error) = table.and_then(|table| table.end_older(epoch)) {
            tracing::warn!(target: "terrane::job", %error, "workers may go on with jobs of the writer before");
        }
        None
    }

    /// Takes the manifest over, and the journal if it lies in a bucket.
    fn take_over(
        &self,
        request: &PartsRequest<'_>,
    ) -> Result<(OpenedManifest, Option<Arc<ObjectCommitLog>>)> {
        let Deployment { prefix, abandon, bucket_journal, settings, .. } = &self.deployment;
        let manifests = &ManifestFolder::new(self.bucket.clone(), prefix)?;
        let (Some(bucket), Some(journal)) = (&self.journal, bucket_journal) else {
            let asked =
                TakeOver { abandoned: *abandon, ..TakeOver::new(request) }.kept_for(settings.garbage_age);
            let taken = manifests.take_over(&asked).map_err(|error| self.explain(manifests, error));
            return Ok((taken?, None));
        };
        let opening = Opening {
            manifests,
            journals: JournalFolder::new(bucket.clone(), prefix)?,
            address: &self.address,
            deployment: &self.deployment,
            settings: journal.settings_for(settings.garbage_age),
        };
        opening.run(request).map(|(manifest, log)| (manifest, Some(log)))
    }

    /// The error of an opening with a journal in a directory, where that of the last writer lies in a bucket.
    #[cold]
    fn explain(&self, manifests: &ManifestFolder, error: Error) -> Error {
        let found = if error.kind() == Kind::Invalid { manifests.read().ok().flatten() } else { None };
        match found {
            Some(found) if is_in_objects(found.last.journal) => journal_in_bucket(&self.address),
            _ => error,
        }
    }
}

/// The store's objects that the manifest of an open database names.
#[derive(Debug)]
struct ManifestRoots(Weak<Manifest>);

impl ManifestRoots {
    fn manifest(&self) -> Result<Arc<Manifest>> {
        self.0.upgrade().ok_or_else(|| Error::new(Kind::Cancelled, "the database is closed"))
    }
}

impl Roots for ManifestRoots {
    fn confirm(&self) -> Result<()> {
        self.manifest()?.check_writer()
    }

    fn files(&self) -> Result<BTreeSet<u32>> {
        Ok(self.manifest()?.state().extents().map(|(id, _)| id.file).collect())
    }
}
