//! The keys that running jobs hold, so that several jobs run on one table without touching the same keys of
//! the same level or run.

use terrane_base::TableId;
use terrane_format::manifest::Place;

use crate::range::KeyRange;

/// The keys that one job holds: for each level or run, the keys that it reads or writes there.
///
/// That is also enough for dropping deletes: levels below a job's target may lose keys while the job runs,
/// and can gain keys only from a level and range that the job holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Which table.
    pub table: TableId,
    /// Levels or runs, and keys, in no order.
    pub holds: Vec<(Place, KeyRange)>,
    /// Levels or runs, and the bytes that leave them; these no longer count for the size of a level.
    pub leaves: Vec<(Place, u64)>,
}

impl Claim {
    /// Returns true if both cannot run at once.
    #[must_use]
    pub fn conflicts(&self, other: &Claim) -> bool {
        self.table == other.table && self.holds.iter().any(|(place, range)| other.holds(*place, range))
    }

    fn holds(&self, place: Place, range: &KeyRange) -> bool {
        self.holds.iter().any(|(held, held_range)| *held == place && held_range.overlaps(range))
    }
}

/// Identifies a held claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimId(pub u64);

/// The claims of all running jobs. The engine picks from a copy and takes a claim if
/// nothing has changed since.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    held: Vec<(ClaimId, Claim)>,
    next: u64,
}

impl Claims {
    /// No claims.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Holds a claim; `None` if it conflicts with one that is held.
    pub fn take(&mut self, claim: Claim) -> Option<ClaimId> {
        if !self.allows(&claim) {
            return None;
        }
        debug_assert!(!claim.holds.is_empty(), "a job holds at least the keys of its target");
        let id = ClaimId(self.next);
        self.next += 1;
        assert!(self.held.last().is_none_or(|(last, _)| *last < id), "a claim is named once");
        self.held.push((id, claim));
        Some(id)
    }

    /// Returns true if a claim conflicts with none that is held.
    #[must_use]
    pub fn allows(&self, claim: &Claim) -> bool {
        !self.held.iter().any(|(_, held)| held.conflicts(claim))
    }

    /// Releases a claim, after its job's result was published or dropped. Requires: it is held.
    pub fn release(&mut self, id: ClaimId) {
        let before = self.held.len();
        self.held.retain(|(held, _)| *held != id);
        assert_eq!(self.held.len() + 1, before, "a claim is released once");
    }

    /// Returns true if no held claim touches these keys of a level or run.
    #[must_use]
    pub fn is_free(&self, table: TableId, place: Place, range: &KeyRange) -> bool {
        !self.of(table).any(|claim| claim.holds(place, range))
    }

    /// Returns true if nothing is held for a table.
    #[must_use]
    pub fn is_idle(&self, table: TableId) -> bool {
        self.of(table).next().is_none()
    }

    /// Bytes that running jobs move out of a place.
    pub(crate) fn leaving(&self, table: TableId, place: Place) -> u64 {
        let leaves = self.of(table).flat_map(|claim| &claim.leaves);
        leaves.filter(|(from, _)| *from == place).map(|(_, bytes)| bytes).sum()
    }

    fn of(&self, table: TableId) -> impl Iterator<Item = &Claim> {
        self.held.iter().map(|(_, claim)| claim).filter(move |claim| claim.table == table)
    }
}
