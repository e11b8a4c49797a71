//! When the entries of an extent expire, so that compaction finds extents with expired entries.

use terrane_base::{Error, Moment, Result, SeqKind, Stored};

use crate::wire::Fields;

/// Bytes of an [`Expiry`].
pub const EXPIRY_BYTES: usize = 8 + PARTS * 8;

/// Number of equal parts into which the expiring entries are divided.
const PARTS: usize = 4;

/// When the entries of an extent expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// Number of entries that expire; at least one.
    pub entries: u64,
    /// The times by which a quarter, a half, three quarters and all of them have expired; the counts are
    /// rounded up.
    pub quarters: [Moment; PARTS],
}

impl Expiry {
    /// Appends an entry's expiry time to `moments`, if it expires. A value too short for its kind does not
    /// expire.
    #[inline]
    pub fn note(moments: &mut Vec<Moment>, seq_kind: SeqKind, value: &[u8]) {
        if seq_kind.is_wrapped()
            && let Ok(Stored { expires_at, .. }) = Stored::of_entry(seq_kind, value)
            && expires_at != Moment::NEVER
        {
            moments.push(expires_at);
        }
    }

    /// Summarises these expiry times; `None` for an empty list. Sorts them.
    #[must_use]
    pub fn of(moments: &mut [Moment]) -> Option<Expiry> {
        moments.sort_unstable();
        let last = *moments.last()?;
        let mut quarters = [last; PARTS];
        for (part, quarter) in quarters.iter_mut().enumerate() {
            *quarter = moments[share(moments.len() as u64, part + 1) as usize - 1];
        }
        Some(Expiry { entries: moments.len() as u64, quarters })
    }

    /// A lower bound of the number of entries that have expired at `now`.
    #[must_use]
    pub fn expired(&self, now: Moment) -> u64 {
        let parts = self.quarters.iter().take_while(|quarter| **quarter <= now).count();
        if parts == 0 { 0 } else { share(self.entries, parts) }
    }

    /// Returns true if this summary holds for these sorted times, and perhaps more times that it was made
    /// from.
    #[must_use]
    pub fn is_true_of(&self, moments: &[Moment]) -> bool {
        let expired = |quarter: &Moment| moments.partition_point(|moment| moment <= quarter) as u64;
        let mut parts = (1..).zip(&self.quarters);
        parts.all(|(parts, quarter)| expired(quarter) >= share(self.entries, parts))
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.entries.to_le_bytes());
        self.quarters.iter().for_each(|quarter| out.extend_from_slice(&quarter.0.to_le_bytes()));
    }

    pub(super) fn decode(fields: &mut Fields<'_>, entries_max: u64) -> Result<Expiry> {
        let entries = fields.u64()?;
        let mut quarters = [Moment(0); PARTS];
        for quarter in &mut quarters {
            *quarter = Moment(fields.u64()?);
        }
        let is_sound = quarters.is_sorted() && quarters[PARTS - 1] != Moment::NEVER;
        if entries == 0 || entries > entries_max || !is_sound {
            return Err(Error::corrupt(format!(
                "extent of {entries_max} entries: {entries} that expire by {quarters:?}"
            )));
        }
        Ok(Expiry { entries, quarters })
    }
}

/// `parts` quarters of `entries`, rounded up.
fn share(entries: u64, parts: usize) -> u64 {
    (u128::from(entries) * parts as u128).div_ceil(PARTS as u128) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_is_said_to_have_expired_than_has() {
        for count in 1..40u64 {
            let mut moments: Vec<Moment> = (0..count).map(|number| Moment(number * 7919 % 31 * 10)).collect();
            let expiry = Expiry::of(&mut moments).expect("two moments give an expiry");
            assert!(expiry.is_true_of(&moments));
            for now in (0..320).map(Moment) {
                let expired = moments.iter().filter(|moment| **moment <= now).count() as u64;
                let said = expiry.expired(now);
                assert!(
                    said <= expired && expired - said <= count.div_ceil(4),
                    "{said} of {expired} of {count}"
                );
            }
            assert_eq!(expiry.expired(Moment(310)), count);
            let more = Expiry { entries: count + 1, ..expiry };
            assert!(!more.is_true_of(&moments));
        }
        assert_eq!(Expiry::of(&mut []), None);
        let far = Expiry { entries: u64::MAX, quarters: [Moment(0); PARTS] };
        assert_eq!(far.expired(Moment(0)), u64::MAX);
    }
}
