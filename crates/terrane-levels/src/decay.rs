//! When neighbouring extents reach a share of dead entries: deletes, and expired entries. A search for such
//! extents skips chunks that cannot have one yet.

use terrane_base::Moment;
use terrane_format::extent::ExtentMeta;

/// Number of shares that are distinguished.
const STEPS: usize = 8;
const PERMILLE: u64 = 1000;

/// For each number of eighths, the earliest time at which one of the extents has at least this share of its
/// entries dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decay([Moment; STEPS]);

impl Decay {
    pub(crate) fn of<'m>(metas: impl Iterator<Item = &'m ExtentMeta>) -> Decay {
        let mut earliest = [Moment::NEVER; STEPS];
        for meta in metas.filter(|meta| meta.deletes > 0 || meta.expiry.is_some()) {
            for (step, moment) in (1..).zip(&mut earliest) {
                let needed = share(meta.entries, step).max(1);
                *moment = (*moment).min(moment_of(meta, needed));
            }
        }
        Decay(earliest)
    }

    /// Returns true if an extent may have `permille` of its entries dead at `now`. Never returns false if one
    /// has.
    pub(crate) fn may_reach(&self, permille: u64, now: Moment) -> bool {
        debug_assert!(self.0.is_sorted(), "a greater share of entries is dead no earlier than a smaller one");
        // The greatest step that is not above `permille`; below the first step, whether any entry is dead.
        match usize::try_from(permille.min(PERMILLE) * STEPS as u64 / PERMILLE).unwrap_or(STEPS) {
            0 => true,
            step => self.0[step - 1] <= now,
        }
    }
}

/// The first time at which this many entries are dead.
fn moment_of(meta: &ExtentMeta, needed: u64) -> Moment {
    if meta.deletes >= needed {
        return Moment(0);
    }
    let Some(expiry) = &meta.expiry else { return Moment::NEVER };
    let is_enough = |moment: &Moment| meta.deletes.saturating_add(expiry.expired(*moment)) >= needed;
    expiry.quarters.into_iter().find(is_enough).unwrap_or(Moment::NEVER)
}

/// This many eighths of `entries`, rounded down, so that the needed number is never too large.
fn share(entries: u64, step: u64) -> u64 {
    (u128::from(entries) * u128::from(step) / STEPS as u128) as u64
}
