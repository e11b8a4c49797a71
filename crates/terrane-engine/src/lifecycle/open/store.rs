//! Opens the store of extents: in the directory of the database, or as parts that lie elsewhere have it.

use std::path::Path;
use std::sync::Arc;

use terrane_base::Result;
use terrane_base::options::Options;
use terrane_device::Disk;
use terrane_levels::State;
use terrane_levels::directory::DATA;
use terrane_storage::{LocalStore, Store, StoreSettings};

use super::parts::{CountRequests, MakeCompactor, Watch};
use crate::lifecycle::follower::Following;
use crate::segment_files::lost;

/// The store of extents, and what comes with one that lies elsewhere.
pub(super) struct Elsewhere {
    pub(super) store: Arc<dyn Store>,
    /// Work at intervals while it is open.
    pub(super) upkeep: Option<Watch>,
    /// Makes the compactor that runs jobs in the place of the one of this process.
    pub(super) compactor: Option<MakeCompactor>,
    /// Counts the requests to its buckets.
    pub(super) requests: Option<CountRequests>,
}

impl Elsewhere {
    /// A store with which nothing comes.
    pub(super) fn only(store: Arc<dyn Store>) -> Elsewhere {
        Elsewhere { store, upkeep: None, compactor: None, requests: None }
    }
}

/// Opens the store of the directory, or restores the one that lies elsewhere.
pub(super) fn open_extents(
    (disk, dir): (&Arc<dyn Disk>, &Path),
    options: &Options,
    state: &State,
    following: Option<&Following<'_>>,
    elsewhere: Option<Elsewhere>,
) -> Result<Elsewhere> {
    match elsewhere {
        None => open_store(disk, dir, options, state, following).map(Elsewhere::only),
        Some(elsewhere) => elsewhere.store.restore(&mut state.extents()).map(|()| elsewhere),
    }
}

fn open_store(
    disk: &Arc<dyn Disk>,
    dir: &Path,
    options: &Options,
    state: &State,
    following: Option<&Following<'_>>,
) -> Result<Arc<dyn Store>> {
    let settings = StoreSettings {
        direct_io: options.direct_io,
        read_only: options.read_only,
        io_uring: options.io_uring,
    };
    let data = dir.join(DATA);
    let store = LocalStore::open(disk.clone(), &data, settings).map_err(|error| lost(error, &data))?;
    store.restore(&mut state.extents())?;
    let store: Arc<dyn Store> = Arc::new(store);
    Ok(following.map_or_else(|| store.clone(), |following| following.store(&store, state)))
}
