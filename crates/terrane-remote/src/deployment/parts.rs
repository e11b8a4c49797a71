//! Opens manifest and store of a database in a bucket: checks the bucket, takes the manifest over, opens the
//! store under the epoch of that, and collects the store's garbage as long as the database is open.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use terrane_base::env::Clock;
use terrane_base::{Error, Kind, Result};
use terrane_engine::{OpenedParts, Parts, PartsRequest, Upkeep};
use terrane_levels::Manifest;

use super::Deployment;
use crate::bucket::{names, probe};
use crate::manifest::TakeOver;
use crate::{Bucket, BucketStore, BucketStoreSettings, ManifestFolder, Roots};

/// Between two passes of the collection of garbage.
const COLLECT_EVERY: Duration = Duration::from_secs(60);

/// The parts of a database in a bucket.
#[derive(Debug)]
pub(super) struct BucketParts {
    bucket: Arc<dyn Bucket>,
    address: String,
    deployment: Deployment,
}

impl BucketParts {
    pub(super) fn new(bucket: Arc<dyn Bucket>, deployment: &Deployment) -> BucketParts {
        let address = names::place(bucket.url(), &deployment.prefix);
        BucketParts { bucket, address, deployment: deployment.clone() }
    }

    /// What is done now and then while the database is open.
    fn upkeep(&self, manifest: &Arc<Manifest>, store: &Arc<BucketStore>, clock: Arc<dyn Clock>) -> Upkeep {
        let (roots, store) = (ManifestRoots(Arc::downgrade(manifest)), Arc::downgrade(store));
        let mut next = clock.now() + COLLECT_EVERY;
        Box::new(move || {
            let Some(store) = store.upgrade().filter(|_| clock.now() >= next) else { return };
            next = clock.now() + COLLECT_EVERY;
            // Only space is at stake: the next pass goes on.
            let _ = store.collect_garbage(&roots);
        })
    }
}

impl Parts for BucketParts {
    fn address(&self) -> &str {
        &self.address
    }

    fn open(&self, request: &PartsRequest<'_>) -> Result<OpenedParts> {
        let Deployment { prefix, settings, abandon, writer_check_ms, .. } = &self.deployment;
        let env = request.env;
        if settings.probe {
            // Before anything relies on it.
            probe::run(&*self.bucket, prefix, &*env.random)?;
        }
        let asked = TakeOver { abandoned: *abandon, ..TakeOver::new(request) };
        let opened = ManifestFolder::new(self.bucket.clone(), prefix)?.take_over(&asked)?;
        let settings = BucketStoreSettings { probe: false, ..*settings };
        let store = BucketStore::open(self.bucket.clone(), prefix, opened.epoch, settings, env.clone())?;
        let (manifest, store) = (Arc::new(opened.manifest), Arc::new(store));
        let upkeep = self.upkeep(&manifest, &store, env.clock.clone());
        let interval = Duration::from_millis(*writer_check_ms);
        Ok(OpenedParts { manifest, store, upkeep: Some((interval, upkeep)) })
    }
}

/// What the manifest of an open database knows of the store's objects.
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
