//! New segments in the place of old ones, by one edit of the manifest.
//!
//! 1. the new segments are written and made durable, under names that no segment has yet
//! 2. one edit: the old ones go, the new ones are listed, each with its end
//! 3. the new files get their names, and the old ones go.
//!
//! If the process dies before step 2, the next opening removes the new files. If it dies before the end of
//! step 3, the next opening gives them their names ([`finish_swap`]).

use std::path::Path;
use std::sync::Arc;

use terrane_base::{Error, Result, SegmentId};
use terrane_device::Disk;
use terrane_format::manifest::{Edit, EditOp};
use terrane_journal::{
    NewNames, discard, discard_unfinished_aside, file_name, file_number, pending_number, rewrite,
};
use terrane_levels::State;

use crate::copies::checkpoint::sealed;
use crate::lifecycle::recover::Recovery;
use crate::lifecycle::replay_filter::ReplayFilter;
use crate::lifecycle::replay_filter::ask::Asking;
use crate::segment_files::listed;

/// Completes a swap that was interrupted by the death of the process: files that the manifest lists get their
/// names, all others are removed, and so are files of what was set aside that were not made whole.
///
/// # Errors
/// `Io`.
pub(crate) fn finish_swap(disk: &Arc<dyn Disk>, dir: &Path, state: &State) -> Result<()> {
    let names = disk.list(dir).map_err(|error| crate::segment_files::lost(error, dir))?;
    let mut is_changed = false;
    for (name, file) in names.iter().filter_map(|name| Some((name, pending_number(name)?))) {
        let (from, to) = (dir.join(name), dir.join(file_name(file)));
        let is_listed = state.segments.values().any(|segment| segment.spec.file == file);
        // A file that has its name already is the segment: nothing pending is ever made beside it.
        if is_listed && !disk.exists(&to)? {
            disk.rename(&from, &to)?;
        } else {
            disk.remove(&from)?;
        }
        is_changed = true;
    }
    is_changed |= discard_unfinished_aside(&**disk, dir, &names)?;
    if is_changed { disk.sync_dir(dir) } else { Ok(()) }
}

impl Recovery<'_> {
    /// Asks `filter` for every batch that is about to be replayed, and makes its changes durable in the
    /// journal. Returns the state of the manifest after that, if anything was changed.
    ///
    /// # Errors
    /// As [`Recovery::run`]; `Corrupt` where the filter says so, `Invalid` for what it puts in the place of a
    /// batch, `Poisoned` if it panics. Nothing has changed then.
    pub(crate) fn filter(&self, filter: &dyn ReplayFilter) -> Result<Option<State>> {
        self.check_registered()?;
        let all: Vec<_> = self.state.segments.values().map(listed).collect();
        let names = NewNames {
            segment: self.state.next.segment,
            file: self.next_file()?,
            edit: self.manifest.edit_number(),
        };
        let mut asking = Asking::new(filter, self.tables);
        let settings = self.replay_settings();
        let rewritten =
            rewrite(&**self.disk, self.dir, &all, &settings, &*self.env.spawn, names, &mut asking)?;
        let at_dir = |error: Error| error.at(self.dir.display().to_string(), 0);
        let discard_new =
            || discard(&**self.disk, self.dir, rewritten.written.iter().map(|written| written.spec.file));
        self.manifest.check_reached(rewritten.edit).map_err(at_dir).inspect_err(|_| discard_new())?;
        if rewritten.written.is_empty() {
            return Ok(None);
        }
        debug_assert!(
            rewritten.written.iter().all(|written| written.spec.id >= self.state.next.segment),
            "a new segment has a number that no other had"
        );
        let mut ops: Vec<_> = rewritten.gone.iter().map(|id| EditOp::RemoveSegment { id: *id }).collect();
        for (spec, seal) in rewritten.written.iter().map(sealed) {
            ops.push(EditOp::AddSegment(spec));
            ops.push(EditOp::SealSegment { id: spec.id, seal });
        }
        // Void marks are removed when the oldest segment is; the new segments need the same marks.
        ops.extend(self.state.void_marks.iter().map(|seq| EditOp::VoidMark { seq: *seq }));
        // Their segments go with this edit.
        let last_seq = rewritten.last_seq.max(self.state.last_seq());
        if asking.has_stopped() {
            self.leave_behind(&rewritten.behind, last_seq);
        } else {
            self.keep_behind(&rewritten.behind, last_seq).inspect_err(|_| discard_new())?;
        }
        self.manifest.append(&Edit { ops })?;
        let state = State::clone(&self.manifest.state());
        finish_swap(self.disk, self.dir, &state)?;
        self.remove_files(&rewritten.gone)?;
        Ok(Some(state))
    }

    /// Removes the files of segments that are not listed any more. They could serve as spares, but a repair
    /// that has no manifest takes every segment that it finds, and these hold what the filter took out.
    fn remove_files(&self, gone: &[SegmentId]) -> Result<()> {
        debug_assert!(
            !gone.iter().any(|id| self.manifest.state().segments.contains_key(id)),
            "a segment leaves the manifest before its file goes"
        );
        for segment in gone.iter().filter_map(|id| self.state.segments.get(id)) {
            let path = self.dir.join(file_name(segment.spec.file));
            if self.disk.exists(&path)? {
                self.disk.remove(&path)?;
            }
        }
        self.disk.sync_dir(self.dir)
    }

    /// The first number above those of all segment files, present and former.
    fn next_file(&self) -> Result<u32> {
        let mut next = self.state.next.segment_file.max(1);
        for name in self.disk.list(self.dir)? {
            if let Some(file) = file_number(&name) {
                next = next.max(self.file_after(file, &name)?);
            }
        }
        debug_assert!(next > 0, "0 names no segment file");
        Ok(next)
    }
}
