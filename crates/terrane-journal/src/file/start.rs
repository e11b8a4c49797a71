//! The state with which a journal in files starts.

use std::path::Path;
use std::sync::Arc;

use terrane_base::sync::atomic::{AtomicBool, AtomicU64};
use terrane_base::sync::{Condvar, Mutex};
use terrane_base::{Result, SegmentId};
use terrane_device::Disk;

use super::room::KeptRoom;
use super::{Live, Shared, State};
use crate::{JournalSettings, JournalStart, Poison, SegmentInfo, SegmentRegistrar, SegmentState};

impl Shared {
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        dir: &Path,
        settings: &JournalSettings,
        registrar: Arc<dyn SegmentRegistrar>,
        poison: Arc<Poison>,
        has_threads: bool,
        start: &JournalStart,
    ) -> Result<Self> {
        let live = start.replayed.iter().map(|sealed| Live {
            info: SegmentInfo {
                id: sealed.spec.id,
                file: sealed.spec.file,
                state: SegmentState::Durable,
                bytes: sealed.spec.bytes,
                used: sealed.end,
                last_seq: sealed.last_seq,
            },
            file: None,
            memory: Arc::clone(&sealed.memory),
        });
        let state = State {
            live: live.collect(),
            next_segment: start.next_segment.0,
            next_file: start.next_file,
            spares: Vec::new(),
            retired: Vec::new(),
            held: Vec::new(),
            pending: None,
            ready: None,
            aside: None,
            wanted: None,
            preparing: 0,
            next_bytes: settings.first_segment_bytes.min(settings.segment_bytes),
            was_long: false,
            is_ending: false,
            refused: None,
            is_sync_asked: false,
            sync_due: SegmentId(0),
            is_stopping: false,
            is_preparer_gone: false,
            kept_room: KeptRoom::default(),
        };
        let shared = Shared {
            disk,
            dir: dir.to_owned(),
            settings: settings.clone(),
            first_file: start.next_file,
            registrar,
            poison,
            has_threads,
            state: Mutex::new(state),
            changed: Condvar::new(),
            syncing: Mutex::default(),
            durable: AtomicU64::new(start.next_seq.0 - 1),
            appends: AtomicU64::new(0),
            bytes_appended: AtomicU64::new(0),
            // Unknown yet: a first sync of a whole segment costs more than page faults in it.
            was_persisted: AtomicBool::new(true),
        };
        start.unlisted_files.iter().try_for_each(|file| shared.remove_unlisted(*file))?;
        Ok(shared)
    }
}
