//! Chooses the state with which a clone begins: that of a moment, as `past.rs` opens it, or the present one
//! with the directory of the journal, if that is here and no writer has it open.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::{Error, Kind, Result, SeqNo};
use terrane_device::{Disk, MemDisk, OpenMode, PosixDisk};
use terrane_format::segment::SEGMENT_BYTES_MAX;
use terrane_journal::file_name;
use terrane_levels::{State, directory};

use super::Deployment;
use super::at::At;
use super::choice::{Chosen, Past};
use super::read::{Held, JournalRead, hold, needs_journal};
use crate::Bucket;
use crate::clones::Originals;
use crate::journal::is_in_objects;
use crate::manifest::{Found, without_history};
use crate::store::{DataName, PastObjects};

/// A state of a database, and what a clone of it needs.
pub(super) struct Moment {
    pub(super) found: Found,
    /// Its state, with the segments that are replayed and no others.
    pub(super) state: State,
    /// Where the segments lie that are replayed.
    pub(super) disk: Arc<dyn Disk>,
    /// The last commit that is replayed; `None` for all that the segments have.
    pub(super) until: Option<SeqNo>,
    pub(super) commit: SeqNo,
    pub(super) time: Duration,
    pub(super) journal: JournalRead,
    /// The data objects that the state names, those of originals included.
    pub(super) objects: BTreeMap<DataName, u64>,
    /// The originals of the database itself.
    pub(super) originals: Originals,
    /// When the next object of the manifest was created; `None` if this state is the present one.
    pub(super) replaced: Option<Duration>,
    /// The files that the present state names.
    pub(super) present: BTreeSet<u32>,
}

impl Deployment {
    /// The state of a moment; the present one without one.
    ///
    /// # Errors
    /// As [`Deployment::open_at_with`].
    pub(super) fn moment(&self, bucket: &Arc<dyn Bucket>, at: Option<At>, env: &Env) -> Result<Moment> {
        let disk = PosixDisk::new();
        // Held before the manifest is read: no opening changes the segments meanwhile.
        let held = if at.is_none() { hold(&disk, &self.journal)? } else { Held::Missing };
        let asked = at.unwrap_or(At::Time(Duration::MAX));
        self.looked((bucket, asked), env, || {
            let Some(past) = self.past(bucket, env)? else { return Ok(None) };
            let newest = past.manifest.read_to(past.manifest.newest())?;
            let state = newest.state.clone().ok_or_else(|| self.no_database())?;
            let present = state.extents().map(|(id, _)| id.file).collect();
            let is_here = matches!(held, Held::Here(_))
                && !is_in_objects(newest.last.journal)
                && needs_journal(&state)
                && self.is_of(&disk, &newest)?;
            if is_here {
                return self.of_directory(past, &disk, (newest, &state), present).map(Some);
            }
            let (chosen, objects) = past.find(asked)?;
            let mut moment = of_past(past, chosen, &objects, present);
            if moment.journal == JournalRead::Elsewhere && matches!(held, Held::ByWriter) {
                moment.journal = JournalRead::HasWriter;
            }
            Ok(Some(moment))
        })
    }

    /// The present state with the segments of the directory of the journal.
    fn of_directory(
        &self,
        past: Past<'_>,
        from: &dyn Disk,
        (found, state): (Found, &State),
        present: BTreeSet<u32>,
    ) -> Result<Moment> {
        let objects = past.objects_of(found.last.epoch)?;
        let missing = objects.missing(state);
        if let Some(file) = missing.first() {
            let message = format!("the manifest names file {file}, and no object has it: restore the bucket");
            return Err(Error::corrupt(message).at(past.manifest_place(), 0));
        }
        let shown = state.apply(&without_history(state))?;
        let disk = copied(&shown, from, &self.journal)?;
        let time = past.manifest.time(found.last.number);
        Ok(Moment {
            objects: objects.named(&shown),
            state: shown,
            found,
            disk: Arc::new(disk),
            until: None,
            commit: state.last_seq(),
            time,
            journal: JournalRead::Whole,
            originals: past.originals,
            replaced: None,
            present,
        })
    }
}

/// A moment that was chosen.
fn of_past(past: Past<'_>, chosen: Chosen, objects: &PastObjects, present: BTreeSet<u32>) -> Moment {
    let number = chosen.found.last.number;
    let is_present = number == past.manifest.newest();
    debug_assert!(number <= past.manifest.newest(), "it is one of the objects");
    Moment {
        objects: objects.named(&chosen.state),
        until: (chosen.journal == JournalRead::Bucket).then_some(chosen.commit),
        commit: chosen.commit,
        time: chosen.time,
        journal: chosen.journal,
        disk: chosen.disk,
        originals: past.originals,
        replaced: (!is_present).then(|| past.manifest.time(number + 1)),
        found: chosen.found,
        state: chosen.state,
        present,
    }
}

/// A device in memory with the segments that `state` lists.
fn copied(state: &State, from: &dyn Disk, dir: &std::path::Path) -> Result<MemDisk> {
    let disk = MemDisk::new();
    let segments = dir.join(directory::JOURNAL);
    disk.create_dir(&segments)?;
    disk.open(&dir.join(directory::LOCK), OpenMode::Create, false)?;
    for segment in state.segments.values() {
        assert!(segment.spec.bytes <= SEGMENT_BYTES_MAX, "a manifest with a longer segment is damaged");
        let path = segments.join(file_name(segment.spec.file));
        let source = from.open(&path, OpenMode::Read, false).map_err(|error| match error.kind() {
            Kind::NotFound => {
                let message =
                    "a segment that the manifest lists is missing: restore the directory of the journal";
                Error::corrupt(message).at(path.display().to_string(), 0)
            }
            _ => error,
        })?;
        let mut bytes = vec![0; source.len()?.min(segment.spec.bytes) as usize];
        source.read_at(0, &mut bytes)?;
        let copy = disk.open(&path, OpenMode::Create, false)?;
        copy.set_len(segment.spec.bytes)?;
        copy.write_at(0, &bytes)?;
    }
    Ok(disk)
}
