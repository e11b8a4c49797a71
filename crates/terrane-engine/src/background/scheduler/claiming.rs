//! Claims that a job or a caller takes on levels, apart from the claims of the worker that decides.
//!
//! Steps: 1. the schedule is copied under its lock; 2. the caller chooses from the copy, without the lock:
//! writers take the lock when they wait for room, and a choice walks levels; 3. under the lock again the
//! claims are taken if the schedule has the number of the copy, else the caller chooses again; so it does if
//! there was nothing to claim.
//!
//! No two claims conflict: every claim that is taken or released gives the schedule another number, so a
//! choice from a copy without a claim is void once the schedule has it. The levels are read after the copy
//! is made, so they have the result of each job whose claim is not in the copy.

use terrane_base::{Error, Kind, Result};
use terrane_compaction::{Claim, ClaimId};

use super::pool::Scheduler;
use super::schedule::Schedule;

/// The choice of a caller that looks at a copy of the schedule.
pub(crate) enum Choice<T> {
    /// Take these claims for it. None of them conflicts with a claim of the copy or with another of them.
    Take(T, Vec<Claim>),
    /// There is nothing to claim.
    Nothing,
    /// Choose again after the next change.
    Wait,
}

impl Scheduler {
    /// Has `choose` look at copies of the schedule until its choice holds; returns the choice with its
    /// claims, `None` if there is nothing to claim. `choose` reads the levels itself, each time.
    ///
    /// # Errors
    /// The error of `choose`; `Cancelled` if the pool closes while the caller waits; `Invalid` if a
    /// comparator of a caller orders the keys of a choice in two ways.
    pub(crate) fn claim<T>(
        &self,
        mut choose: impl FnMut(&Schedule) -> Result<Choice<T>>,
    ) -> Result<Option<(T, Vec<ClaimId>)>> {
        let mut taken = None;
        self.wait_for(|copy| {
            // One pass more for each change that comes between a copy and its choice.
            let mut later;
            let mut copy = copy;
            loop {
                match choose(copy)? {
                    Choice::Nothing if self.is_unchanged(copy) => return Ok(true),
                    Choice::Nothing => {}
                    Choice::Wait => return Ok(false),
                    Choice::Take(chosen, claims) => {
                        if let Some(ids) = self.take_claims(copy, claims)? {
                            taken = Some((chosen, ids));
                            return Ok(true);
                        }
                    }
                }
                later = self.copy_for([]);
                copy = &later;
            }
        })?;
        let is_in_order = |(_, ids): &(T, Vec<ClaimId>)| ids.is_sorted_by(|a, b| a < b);
        debug_assert!(taken.as_ref().is_none_or(is_in_order), "claims are numbered as they are taken");
        Ok(taken)
    }

    /// Takes claims that were chosen from `copy`; `None` if the schedule has changed since: the choice is
    /// void.
    fn take_claims(&self, copy: &Schedule, claims: Vec<Claim>) -> Result<Option<Vec<ClaimId>>> {
        let mut schedule = self.schedule.lock();
        if schedule.version != copy.version && !terrane_base::planted!(ClaimFromOldCopy) {
            return Ok(None);
        }
        let mut ids = Vec::new();
        for claim in claims {
            let is_trusted = claim.holds.iter().all(|(_, range)| range.collation.is_bytes());
            let Some(id) = schedule.claims.take(claim) else {
                assert!(!is_trusted, "a choice conflicts with claims that it was made beside");
                ids.into_iter().for_each(|id| schedule.claims.release(id));
                let why = "a comparator ordered the same keys differently from one call to the next";
                return Err(Error::new(Kind::Invalid, why));
            };
            ids.push(id);
        }
        schedule.version += 1;
        Ok(Some(ids))
    }
}
