//! Point search in a block without rebuilding a key.
//!
//! 1. A binary search over the heads of the restart points, whose keys are stored whole, finds the last
//!    restart before the target.
//! 2. From there entries are compared in order. `matched` is the number of leading bytes that the previous
//!    entry, which is less than the target, has in common with it. An entry that shares *more* than `matched`
//!    bytes with the previous one differs from the target at the same byte, so it is less as well: only its
//!    header is read. Any other entry is compared from its first unshared byte, because its shared bytes
//!    equal the target's.

use std::cmp::Ordering;
use std::ops::Range;

use terrane_base::{SeqKind, SeqNo, key};

use super::entry::Header;
use super::{PlainBlock, RESTART_INTERVAL};
use crate::block::entry_pos::Intervals;

/// The entry at which a walk ended, and how its key compares to the target.
pub(super) struct Found {
    pub(super) at: usize,
    pub(super) header: Header,
    pub(super) is_equal: bool,
}

impl PlainBlock<'_> {
    /// The last restart whose entry comes before (`key`, `seq`), or the first.
    pub(super) fn restart_before(self, key: &[u8], seq: SeqNo) -> usize {
        let undecided = self.plain.heads.undecided(key, self.entries());
        let (mut low, mut high) = (undecided.start, undecided.end);
        // Invariant: restarts before `low` come before the target, those from `high` on do not.
        while low < high {
            let middle = low + (high - low) / 2;
            if self.restart_is_before(middle, key, seq) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.saturating_sub(1)
    }

    fn restart_is_before(self, index: usize, key: &[u8], seq: SeqNo) -> bool {
        let entries = self.entries();
        let Some(header) = Header::decode(entries, self.start(index)) else { return false };
        match header.suffix(entries).cmp(key) {
            Ordering::Less => true,
            Ordering::Equal => header.seq_kind(entries).seq() > seq,
            Ordering::Greater => false,
        }
    }

    /// The version `seq` of `key`, if it is entry number `entry`: its number, and where its value lies. Keys
    /// share bytes with those before them, so this walks from the restart before it: a few entries where
    /// values are long.
    #[inline]
    pub(in crate::block) fn locate_at(
        self,
        entry: usize,
        key: &[u8],
        seq: SeqNo,
    ) -> Option<(SeqKind, Range<usize>)> {
        if entry >= self.plain.entry_count {
            return None;
        }
        let entries = self.entries();
        let mut header = Header::decode(entries, self.start(entry / RESTART_INTERVAL))?;
        debug_assert!(header.shared == 0, "the key at a restart is whole");
        // Leading bytes that the key of the entry has in common with the target, in any order of keys.
        let mut matched = key::common_len(header.suffix(entries), key);
        for _ in 0..entry % RESTART_INTERVAL {
            header = Header::decode(entries, header.end())?;
            if header.shared <= matched {
                matched = header.shared + key::common_len(header.suffix(entries), &key[header.shared..]);
            }
        }
        let found = header.seq_kind(entries);
        let has_key = matched == key.len() && header.shared + header.unshared == key.len();
        let is_it = found.seq() == seq && (has_key || terrane_base::planted!(TrustPosition));
        (is_it && header.end() <= entries.len()).then(|| (found, header.value_at()..header.end()))
    }

    /// The first entry at or after (`key`, `seq`), walking from restart `from`; `None` past the last entry.
    pub(super) fn walk_to(self, from: usize, key: &[u8], seq: SeqNo) -> Option<Found> {
        let entries = self.entries();
        let mut at = if from < self.count() { self.start(from) } else { return None };
        let mut matched = 0;
        while let Some(header) = Header::decode(entries, at) {
            if header.shared <= matched {
                let suffix = header.suffix(entries);
                let target = key.get(header.shared..).unwrap_or_default();
                let common = key::common_len(suffix, target);
                matched = header.shared + common;
                let is_equal = common == suffix.len() && common == target.len();
                if is_equal {
                    if header.seq_kind(entries).seq() <= seq {
                        return Some(Found { at, header, is_equal: true });
                    }
                } else if common == target.len() || (common < suffix.len() && suffix[common] > target[common])
                {
                    return Some(Found { at, header, is_equal: false });
                }
            }
            at = header.end();
        }
        None
    }
}
