//! Decides why a read of a follower, or of an earlier state, failed: by damage, or because the writer deleted
//! an object that no manifest names any longer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use terrane_base::sync::Mutex;
use terrane_base::{Error, ExtentId, Kind, Result};
use terrane_device::{PendingRead, ReadBytes};

use crate::ManifestFolder;

/// The extents that the manifest names, as far as it was followed.
#[derive(Debug, Default)]
pub(super) struct Live {
    pub(super) extents: BTreeSet<(ExtentId, u32)>,
    /// Extents that the manifest no longer names, and since when.
    pub(super) left: BTreeMap<(ExtentId, u32), Duration>,
    /// Extents of `extents` that a newer manifest no longer names.
    pub(super) gone: BTreeSet<ExtentId>,
    /// Counts the manifests that were followed.
    pub(super) count: u64,
    /// Number of the last object of the manifest that was followed.
    pub(super) number: u64,
}

impl Live {
    /// Returns false if the extent was replaced, as far as is known here.
    fn is_named(&self, id: ExtentId) -> bool {
        !self.gone.contains(&id) && self.extents.range((id, 0)..=(id, u32::MAX)).next().is_some()
    }
}

/// Decides what a read that failed means.
#[derive(Debug)]
pub(super) struct Judge {
    pub(super) manifests: ManifestFolder,
    pub(super) place: String,
    /// True for the store of an earlier state.
    pub(super) is_past: bool,
    /// Not held while the bucket is asked.
    pub(super) live: Mutex<Live>,
}

impl Judge {
    /// The error, or that the writer has given the extent up, if it did.
    pub(super) fn explain(&self, id: ExtentId, error: Error) -> Error {
        if self.is_past {
            return self.explain_past(id, error);
        }
        if !matches!(error.kind(), Kind::Corrupt | Kind::NotFound) {
            return error;
        }
        let is_named = match self.is_named(id) {
            Ok(is_named) => is_named,
            Err(why) => return why.context(format!("cannot tell whether the writer replaced extent {id}")),
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

    /// The error of a read of an earlier state: an object that is missing is damage if the present manifest
    /// names it. Bytes that are there and wrong are damage in any case.
    #[cold]
    fn explain_past(&self, id: ExtentId, error: Error) -> Error {
        debug_assert!(self.is_past, "a view knows itself what was replaced");
        if error.kind() != Kind::Gone {
            return error;
        }
        let place = &self.place;
        match self.is_named(id) {
            Ok(false) => Error::new(
                Kind::Gone,
                format!(
                    "no longer kept: extent {id} of {place}, which its writer deleted since this earlier state was \
                     opened: open a later one, or keep more (garbage_age_s)"
                ),
            ),
            Ok(true) => {
                let message = "the object is missing: restore it, or the database from a backup";
                Error::corrupt(message).at(format!("{place}, extent {id}"), 0)
            }
            Err(why) => why.context(format!("cannot tell whether the writer replaced extent {id}")),
        }
    }

    /// Returns false if the writer replaced the extent. Reads the manifest unless that is known already: an
    /// extent that a manifest does not name is named by no later one.
    fn is_named(&self, id: ExtentId) -> Result<bool> {
        let (count, number) = {
            let live = self.live.lock();
            if !live.is_named(id) {
                return Ok(false);
            }
            (live.count, live.number)
        };
        let found = self.manifests.read()?.filter(|found| found.last.number >= number);
        let Some(state) = found.and_then(|found| found.state) else {
            return Err(Error::new(
                Kind::Io,
                "the bucket returned no manifest, or an older one than before: try again; if it stays so, check the consistency of the bucket",
            ));
        };
        let newer: BTreeSet<ExtentId> = state.extents().map(|(id, _)| id).collect();
        let mut live = self.live.lock();
        // What was followed meanwhile may have extents that this manifest did not have yet.
        if live.count == count {
            live.gone = live.extents.iter().map(|(id, _)| *id).filter(|id| !newer.contains(id)).collect();
        }
        Ok(newer.contains(&id))
    }
}

/// A read that was started.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) begun: Box<dyn PendingRead>,
    pub(super) id: ExtentId,
    pub(super) judge: Arc<Judge>,
}

impl PendingRead for Judged {
    fn finish(self: Box<Self>) -> Result<ReadBytes> {
        let Judged { begun, id, judge } = *self;
        begun.finish().map_err(|error| judge.explain(id, error))
    }
}
