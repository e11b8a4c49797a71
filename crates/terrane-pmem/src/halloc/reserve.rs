//! Zones that are granted beforehand, so that the path of a commit searches nothing.

use std::collections::VecDeque;

use terrane_base::Result;
use terrane_base::sync::Mutex;
use terrane_device::pm::PmRegion;

use super::{Halloc, Owner, Zone};

/// Zones of one size that belong to an owner of their own until they are taken. A background thread refills
/// it; if it is late, the taker is granted a zone itself.
///
/// After an opening the zones of the reserve's owner are freed, or adopted by the next reserve, as the opener
/// says that it knows the owner or not.
#[derive(Debug)]
pub struct Reserve {
    owner: Owner,
    chunks: u16,
    target: usize,
    zones: Mutex<VecDeque<Zone>>,
}

impl Reserve {
    /// An empty reserve of zones of `chunks` chunks that is refilled to `target` of them.
    #[must_use]
    pub fn new(owner: Owner, chunks: u16, target: usize) -> Self {
        Reserve { owner, chunks, target, zones: Mutex::new(VecDeque::new()) }
    }

    /// Takes over zones that an opening found; returns those that are not of this owner and size.
    pub fn adopt(&self, zones: Vec<Zone>) -> Vec<Zone> {
        let is_own = |zone: &Zone| zone.owner() == self.owner && zone.chunks() == self.chunks;
        let (own, others) = zones.into_iter().partition(is_own);
        let own: Vec<Zone> = own;
        self.zones.lock().extend(own);
        others
    }

    /// Zones in the reserve.
    #[must_use]
    pub fn len(&self) -> usize {
        self.zones.lock().len()
    }

    /// Returns true if there is no zone in the reserve.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Grants zones until the reserve has its target; returns how many. One thread at a time calls it.
    ///
    /// # Errors
    /// As [`Halloc::grant`]; what was granted until then stays in the reserve.
    pub fn refill<R: PmRegion>(&self, halloc: &Halloc<R>) -> Result<usize> {
        let missing = self.target.saturating_sub(self.len());
        for _ in 0..missing {
            let zone = halloc.grant(self.chunks, self.owner)?;
            self.zones.lock().push_back(zone);
        }
        Ok(missing)
    }

    /// A zone for `owner`, durably: one of the reserve, or a new one if it is empty.
    ///
    /// # Errors
    /// As [`Halloc::grant`].
    pub fn take<R: PmRegion>(&self, halloc: &Halloc<R>, owner: Owner) -> Result<Zone> {
        let zone = self.zones.lock().pop_front();
        match zone {
            Some(zone) => halloc.assign(zone, owner),
            None => halloc.grant(self.chunks, owner),
        }
    }
}
