//! Deletes objects that are no longer needed.
//!
//! An object says from which number on objects are needed. Those below are deleted once that object is
//! older than the longest reading, by the clock of the object store: a reader that began before it has
//! ended by then. If there are very many, they go before; a reader that misses one begins again. Fences stay
//! (`mod.rs` says why). A writer that was replaced meanwhile, and deletes late, deletes only what later
//! writers need as little as it did itself.

use std::collections::BTreeMap;

use terrane_base::Result;

use super::ObjectCommitLog;
use super::chain::is_fence;

/// As many as `garbage_objects_max`, in a bucket that is crowded.
const CROWDED_MAX: usize = 100;

/// The number below which objects go because more than `most` lie below `needed`: half as many stay. 0 if
/// there are not so many.
fn beyond<T>(listed: &BTreeMap<u64, T>, needed: u64, most: usize) -> u64 {
    let count = listed.range(..needed).count();
    let kept = listed.range(..needed).rev().nth(most / 2).filter(|_| count > most);
    kept.map_or(0, |(number, _)| *number)
}

impl ObjectCommitLog {
    /// Returns true if what may go should go soon, as far as the last answers of the bucket said.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.shared.folder.objects.bucket.is_crowded()
    }

    /// Returns true if the bucket is crowded and objects may have become garbage since the last collection
    /// that found it so. Needed objects stay, and a list of them in vain would cost as much.
    #[must_use]
    pub fn is_trim_urgent(&self) -> bool {
        self.is_crowded() && {
            let state = self.shared.state.lock();
            state.announced.back().is_some_and(|(_, first)| *first > state.collected)
        }
    }

    /// Deletes what may go; returns how many objects.
    ///
    /// # Errors
    /// `Io`, `Busy`: a later call goes on.
    pub fn collect_garbage(&self) -> Result<usize> {
        let shared = &self.shared;
        let listed = shared.folder.objects.list()?;
        let now = listed.values().map(|object| object.modified).max().unwrap_or_default();
        let is_old = |number: u64| {
            listed.get(&number).is_some_and(|object| object.modified + shared.settings.replaced_age <= now)
        };
        let newest = shared.state.lock().announced.back().map_or(0, |(_, first)| *first);
        let most = shared.settings.garbage_objects_max;
        let is_crowded = self.is_crowded();
        let most = if is_crowded { most.min(CROWDED_MAX) } else { most };
        let needed = if terrane_base::planted!(TrimByCountOnly) { u64::MAX } else { newest };
        let too_many = beyond(&listed, needed, most);
        let mut state = shared.state.lock();
        debug_assert!(state.collected <= newest, "the needed objects begin later and later");
        let collected = if is_crowded { newest } else { state.collected };
        let old = state.announced.iter().filter(|(number, _)| is_old(*number)).map(|(_, first)| *first).max();
        // The newest object does not need those below `too_many`, whatever older ones said.
        let needed_from = old.unwrap_or(0).max(too_many);
        if needed_from == 0 {
            state.collected = collected;
            return Ok(0);
        }
        state.announced.retain(|(_, first)| *first >= needed_from);
        debug_assert!(
            needed_from <= newest || terrane_base::planted!(TrimByCountOnly),
            "the object that names the needed ones is kept"
        );
        drop(state);
        let below = listed.iter().filter(|(number, _)| **number < needed_from);
        let is_kept = |bytes| is_fence(bytes) && !terrane_base::planted!(DeleteJournalFences);
        let gone: Vec<String> = below
            .filter(|(_, object)| !is_kept(object.bytes))
            .map(|(_, object)| object.name.clone())
            .collect();
        if !gone.is_empty() {
            shared.folder.objects.bucket.delete(&gone)?;
        }
        shared.state.lock().collected = collected;
        Ok(gone.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_objects_that_no_reader_needs_half_stays() {
        let listed: BTreeMap<u64, ()> = (1..=100).map(|number| (number * 2, ())).collect();
        assert_eq!(beyond(&listed, 41, 20), 0, "20 are not too many");
        assert_eq!(beyond(&listed, 43, 20), 22, "10 stay below 43");
        assert_eq!(beyond(&listed, 0, 20), 0);
        assert_eq!(listed.range(beyond(&listed, 201, 50)..201).count(), 26);
    }
}
