//! Bytes that the conflict window holds, and the walk that recounts them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use terrane_base::SeqNo;

use super::Inner;
use crate::locks::key_range::KeyRange;
use crate::locks::lock_table::LockKey;
use crate::locks::window_keys::WindowKeys;

/// Memory of a noted key beside its bytes: an entry of each map, its header, its part of nodes.
const KEY_OVERHEAD_BYTES: u64 = 176;

pub(super) fn bytes_of(keys: &[LockKey]) -> u64 {
    keys.iter().map(|key| key.key.len() as u64 + KEY_OVERHEAD_BYTES).sum()
}

pub(super) fn bytes_of_ranges(ranges: &[KeyRange]) -> u64 {
    ranges.iter().map(|range| range.bounds.bytes() + KEY_OVERHEAD_BYTES).sum()
}

/// Removes a key unless a later commit has it.
pub(super) fn remove_if<K: Ord>(map: &mut BTreeMap<K, SeqNo>, key: K, seq: SeqNo) {
    if let Entry::Occupied(entry) = map.entry(key)
        && *entry.get() == seq
    {
        entry.remove();
    }
}

impl Inner {
    /// The approximate memory of the window.
    pub(super) fn held_bytes(&self) -> u64 {
        self.bytes + self.compared.values().map(WindowKeys::bytes).sum::<u64>()
    }

    /// Walks the noted commits and asserts that their bytes are those that are counted, and that each key of
    /// `last` is one of theirs. Sampled: a walk for each commit would take quadratic time.
    pub(super) fn check(&self) -> bool {
        if !self.order.len().is_multiple_of(64) {
            return true;
        }
        let keys: u64 = self.order.iter().map(|(_, keys)| bytes_of(keys)).sum();
        let ranges: u64 = self.deleted.values().map(|ranges| bytes_of_ranges(ranges)).sum();
        assert!(
            keys + ranges == self.bytes,
            "{keys} bytes of keys, {ranges} of ranges, {} counted",
            self.bytes
        );
        let noted: usize = self.order.iter().map(|(_, keys)| keys.len()).sum();
        assert!(self.last.len() <= noted, "{} keys of {noted} that are noted", self.last.len());
        assert!(self.sorted_commits <= self.order.len(), "commits are sorted in once");
        true
    }

    pub(super) fn cut_compared(&mut self, seq: SeqNo, keys: &[LockKey]) {
        if self.compared.is_empty() {
            return;
        }
        for key in keys {
            let own = self.compared.get_mut(&key.table).filter(|compared| compared.commits > 0);
            own.into_iter().for_each(|compared| compared.forget(&key.key, seq));
        }
        self.compared.values_mut().for_each(|compared| compared.commits = compared.commits.saturating_sub(1));
        let mut compared = self.compared.values();
        debug_assert!(compared.all(|compared| compared.commits <= self.order.len()), "a cut commit is there");
    }

    pub(super) fn unregister(&mut self, at: SeqNo) {
        let count = self.readers.get_mut(&at).expect("a reader that leaves is registered");
        debug_assert!(*count > 0, "a position without readers is not registered");
        *count -= 1;
        if *count == 0 {
            self.readers.remove(&at);
        }
    }
}
