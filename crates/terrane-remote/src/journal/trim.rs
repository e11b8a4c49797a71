//! Deletes objects that are needed no more.
//!
//! An object says from which number on objects are needed. Those below are deleted once that object is
//! older than the longest reading, by the clock of the object store: a reader that began before it has
//! ended by then. Fences stay (`mod.rs` says why). A writer that was replaced meanwhile, and deletes late,
//! deletes only what later writers need as little as it did itself.

use terrane_base::Result;

use super::ObjectCommitLog;
use super::chain::is_fence;

impl ObjectCommitLog {
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
        let mut state = shared.state.lock();
        let old = state.announced.iter().filter(|(number, _)| is_old(*number)).map(|(_, first)| *first).max();
        let Some(needed_from) = old else { return Ok(0) };
        state.announced.retain(|(_, first)| *first >= needed_from);
        assert!(!state.announced.is_empty(), "the object that says what is needed is kept");
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
        Ok(gone.len())
    }
}
