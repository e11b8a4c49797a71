//! The journal in files: `NNNNNN.seg` in one directory, appended through a shared mapping.
//!
//! A commit copies into the mapping of the active segment: its bytes survive the death of the process without
//! a system call. `fdatasync` makes them durable (`docs/design/0001-mapped-append.md`).
//!
//! Two threads: the *preparer* makes the next segment ready ([`prepare`]), the *syncer* syncs sealed ones.
//! The opening makes the first segment, a short one; each one after it has twice the bytes of the one before,
//! up to the setting. It is prepared once a part of the active one is used, so that a journal with few
//! records has one short file. The last one of a closed journal is short, too, if there is space for it.
//!
//! # State of a segment
//! ```text
//! prepared --registered--> ready --rotate--> Active --rotate--> Sealed --syncer, persist--> Durable
//!             '--close--> Unused '--too small, close--> Unused      '--------- trim ---------> retired
//! retired --no pointer into its memory is left--> spare --prepared again, under a new id--> ...
//! ```
//!
//! Invariants:
//! 1. A segment's space is allocated and its registration is durable before its first byte is written: no
//!    store into the mapping can fail for lack of space, and replay cannot miss a segment.
//! 2. A file is reused only when no reader of this opening can read its old bytes any more; one that was
//!    there before the opening never, because handles of an earlier opening may read it, whether it is a
//!    replayed segment, history, or an unlisted file that a failed close has left.
//! 3. `state` is never locked across I/O. `syncing` is: by the syncer, and by persist steps ([`persist`]).
//! 4. Segments become durable oldest first.

mod live;
mod persist;
mod prepare;
mod ready;
mod recycle;
mod room;
mod start;
mod syncer;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::env::{Env, Joiner};
use terrane_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use terrane_base::sync::{Condvar, Mutex};
use terrane_base::{Batch, Error, Result, SegmentId, SeqNo};
use terrane_device::{Disk, File, SegmentMemory};

use crate::delegate::delegate_journal;
use crate::medium::{Medium, NewSegment, SealedEnd, seal_last};
use crate::{
    Appended, Journal, JournalSettings, JournalStart, LiveMemory, Placed, Poison, RingJournal, SegmentInfo,
    SegmentRegistrar, SegmentState,
};
use live::Live;
use persist::Synced;
use recycle::{Held, Retired};
use room::KeptRoom;

/// A segment with less room than this is not kept active for the commits that fit it.
const ROOM_BYTES_MIN: u64 = live::PAGE_BYTES;

/// The journal in files. See [`Journal`] for the calls.
///
/// An unsynced commit survives the death of the process; a synced one, and all before it, also the loss of
/// power. Dropping the journal without [`Journal::close`] stops its threads and weakens neither guarantee.
#[derive(Debug)]
pub struct FileJournal(RingJournal<FileMedium>);

delegate_journal!(FileJournal);

impl FileJournal {
    /// Continues at `start` in the directory `dir`, which exists, and prepares the first segment: commits
    /// that fit it do not need the directory. If that fails the first commit tries it again. Files of the
    /// directory that no segment uses are removed.
    ///
    /// # Errors
    /// `Invalid` if a setting is out of range, `Io`.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        settings: &JournalSettings,
        env: &Env,
        registrar: Arc<dyn SegmentRegistrar>,
        start: &JournalStart,
    ) -> Result<FileJournal> {
        open_ring(disk, dir, (settings, start), env, registrar, |files| files).map(FileJournal)
    }
}

/// The ring over a medium that is one of segment files, or wraps one, with its two threads; see
/// [`FileJournal::open`].
pub(crate) fn open_ring<M: Medium + AsRef<FileMedium>>(
    disk: Arc<dyn Disk>,
    dir: &Path,
    (settings, start): (&JournalSettings, &JournalStart),
    env: &Env,
    registrar: Arc<dyn SegmentRegistrar>,
    wrap: impl FnOnce(FileMedium) -> M,
) -> Result<RingJournal<M>> {
    let poison = Arc::new(Poison::new());
    let has_threads = env.spawn.stepper().is_none();
    let shared = Shared::new(disk, dir, settings, registrar, Arc::clone(&poison), has_threads, start)?;
    let shared = Arc::new(shared);
    settings.check()?;
    shared.prepare_wanted(0);
    let medium = FileMedium { shared: Arc::clone(&shared), threads: Mutex::new(Vec::new()) };
    // From here on, dropping the journal stops the threads.
    let journal = RingJournal::new(wrap(medium), poison, settings, start)?;
    let preparer = Arc::clone(&shared);
    if let Some(stepper) = env.spawn.stepper() {
        stepper.add("terrane-journal-prepare", Box::new(move || preparer.prepare_step()));
        stepper.add("terrane-journal-sync", Box::new(move || shared.sync_step()));
        return Ok(journal);
    }
    let threads = [
        env.spawn.spawn("terrane-journal-prepare", Box::new(move || prepare::run(&preparer)))?,
        env.spawn.spawn("terrane-journal-sync", Box::new(move || shared.sync_sealed_segments()))?,
    ];
    journal.medium().as_ref().threads.lock().extend(threads);
    Ok(journal)
}

/// Segment files and the two threads that prepare and sync them.
pub(crate) struct FileMedium {
    shared: Arc<Shared>,
    threads: Mutex<Vec<Box<dyn Joiner>>>,
}

impl AsRef<FileMedium> for FileMedium {
    fn as_ref(&self) -> &FileMedium {
        self
    }
}

impl FileMedium {
    /// The file of the active segment; none before the first one.
    pub(crate) fn active_file(&self) -> Option<Arc<dyn File>> {
        self.shared.state.lock().active().and_then(|live| live.file.clone())
    }
}

/// State shared by the journal and its two threads.
struct Shared {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    settings: JournalSettings,
    /// Number of the first file that is made from now on.
    first_file: u32,
    registrar: Arc<dyn SegmentRegistrar>,
    poison: Arc<Poison>,
    /// True if the preparer runs on a thread; otherwise a rotation does its work.
    has_threads: bool,
    state: Mutex<State>,
    /// Signalled after each change of `state` for which a thread may wait.
    changed: Condvar,
    /// Held while a segment is synced; see [`persist`].
    syncing: Mutex<Synced>,
    /// Last number of the newest segment that is durable with all before it.
    durable: AtomicU64,
    /// Number of appends, and their bytes. Only the leader writes them, so adding takes a load and a store.
    appends: AtomicU64,
    bytes_appended: AtomicU64,
    /// A persist step ran since the last segment was prepared.
    was_persisted: AtomicBool,
}

struct State {
    live: VecDeque<Live>,
    next_segment: u64,
    next_file: u32,
    /// Files that may be reused: number and bytes.
    spares: Vec<(u32, u64)>,
    /// Trimmed segments that may still have readers.
    retired: Vec<Retired>,
    /// Memory of trimmed segments that are not used again.
    held: Vec<Held>,
    /// A prepared segment whose registration is not confirmed yet.
    pending: Option<Live>,
    ready: Option<Live>,
    /// A ready segment that the leader keeps while it has one prepared that fits better: only within its
    /// calls.
    aside: Option<Live>,
    /// Set if the next segment is to be prepared, with at least this many bytes.
    wanted: Option<u64>,
    /// Bytes of the segment that is being prepared, 0 if none is.
    preparing: u64,
    /// Bytes of the next segment to prepare; more than those of the setting only for long batches.
    next_bytes: u64,
    /// The last rotation was for a batch that makes segments long.
    was_long: bool,
    /// True once no record comes any more: a short segment is all that is still wanted.
    is_ending: bool,
    /// Why the last attempt to prepare failed.
    refused: Option<Error>,
    /// True if a sync was requested since the last rotation.
    is_sync_asked: bool,
    /// The syncer makes sealed segments up to this one durable. Segments without a requested sync are
    /// skipped: many are trimmed before the system has written them. An id, so that fast rotations lose
    /// nothing.
    sync_due: SegmentId,
    is_stopping: bool,
    is_preparer_gone: bool,
    /// The callers that may take of the room that is left free for flushes.
    kept_room: KeptRoom,
}

impl Shared {
    fn path(&self, file: u32) -> PathBuf {
        self.dir.join(crate::file_name(file))
    }
}

impl Medium for FileMedium {
    fn rotate(&self, bytes: usize, sealed: Option<&SealedEnd>) -> Result<NewSegment> {
        let shared = &*self.shared;
        let mut state = shared.state.lock();
        let wanted = bytes as u64;
        // The last segment is to be a short one, if it can be had.
        let is_unfit = |state: &State, ready: &Live| {
            let is_long = state.is_ending && ready.info.bytes > state.next_bytes && state.aside.is_none();
            ready.info.bytes < wanted || is_long
        };
        let mut ready = loop {
            match shared.take_ready(&mut state, wanted) {
                Ok(ready) if is_unfit(&state, &ready) => state.set_aside(ready),
                Ok(ready) => break ready,
                Err(refused) => {
                    let long = state.aside.take_if(|aside| aside.info.bytes >= wanted);
                    state.put_back();
                    break long.ok_or(refused)?;
                }
            }
        };
        state.list_aside();
        let sealed_state = state.state_when_sealed();
        seal_last(&mut state.live, sealed, sealed_state);
        ready.info.state = SegmentState::Active;
        let new = NewSegment { memory: Arc::clone(&ready.memory), file: ready.info.file };
        state.note_rotation(bytes as u64, &shared.settings);
        assert!(ready.info.bytes >= bytes as u64, "{:?} has no room for {bytes} bytes", ready.info);
        state.list(ready);
        if std::mem::take(&mut state.is_sync_asked)
            && let Some(sealed) = sealed
        {
            state.sync_due = sealed.link.id;
        }
        Ok(new)
    }

    fn seal(&self, sealed: &SealedEnd) -> bool {
        let mut state = self.shared.state.lock();
        let active_bytes = state.active().map_or(0, |active| active.info.bytes);
        debug_assert!(active_bytes > 0, "the last rotation left an active segment");
        if active_bytes.saturating_sub(sealed.used) >= ROOM_BYTES_MIN {
            // Commits have room in it, and on a full device nowhere else.
            match self.shared.take_ready(&mut state, 0) {
                Ok(ready) => state.ready = Some(ready),
                Err(_) if terrane_base::planted!(SealWithoutNext) => {}
                Err(_) => return false,
            }
        }
        let sealed_state = state.state_when_sealed();
        seal_last(&mut state.live, Some(sealed), sealed_state);
        if std::mem::take(&mut state.is_sync_asked) {
            state.sync_due = sealed.link.id;
        }
        debug_assert!(state.active().is_none(), "the next group goes to another segment");
        drop(state);
        // The next commit is not to wait until one is made.
        self.shared.want_next();
        true
    }

    fn unseal(&self, id: SegmentId) -> Option<Arc<SegmentMemory>> {
        let mut state = self.shared.state.lock();
        assert!(state.active().is_none(), "one segment is active at most");
        let sealed = state.live.iter_mut().find(|live| live.info.id == id && live.file.is_some())?;
        sealed.info.state = SegmentState::Active;
        Some(Arc::clone(&sealed.memory))
    }

    fn give_up_long(&self) {
        self.shared.give_up_long();
    }

    fn write(&self, segment: &SegmentMemory, offset: usize, len: usize) -> Result<()> {
        debug_assert!(offset + len <= segment.region.len(), "bytes behind the segment are not of it");
        // The mapping is shared with the file: the bytes are written.
        let shared = &*self.shared;
        let part = shared.part_before_next(segment.region.len() as u64);
        if (offset as u64) <= part && part < (offset + len) as u64 {
            shared.want_next();
        }
        for (counter, amount) in [(&shared.appends, 1), (&shared.bytes_appended, len as u64)] {
            // Release: pairs with the Acquire in `next_unsynced`; a sync that counts the bytes has them.
            counter.store(counter.load(Ordering::Relaxed) + amount, Ordering::Release);
        }
        Ok(())
    }

    fn persist(&self) -> Result<()> {
        self.shared.persist_through(SeqNo::MAX)
    }

    fn persist_through(&self, seq: SeqNo) -> Result<()> {
        self.shared.persist_through(seq)
    }

    fn durable(&self) -> SeqNo {
        SeqNo(self.shared.durable.load(Ordering::Relaxed))
    }

    fn edit_number(&self) -> u64 {
        self.shared.registrar.edit_number()
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        self.shared.state.lock().live.iter().map(|live| live.info.clone()).collect()
    }

    fn live_memory(&self) -> Vec<LiveMemory> {
        let state = self.shared.state.lock();
        state.live.iter().map(|live| (live.info.id, live.info.used, Arc::clone(&live.memory))).collect()
    }

    fn memory_bytes(&self) -> u64 {
        // A segment without readers is only a file.
        self.shared.recycle();
        self.shared.state.lock().memory_bytes(&self.shared.settings)
    }

    fn held_bytes(&self) -> u64 {
        self.shared.held_bytes()
    }

    fn appended(&self) -> Appended {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Appended { appends: load(&self.shared.appends), bytes: load(&self.shared.bytes_appended) }
    }

    fn trim(&self, upto: SegmentId) -> Result<Vec<SegmentId>> {
        self.shared.trim(upto, &[])
    }

    fn trim_keeping(&self, upto: SegmentId, kept: &[SegmentId]) -> Result<Vec<SegmentId>> {
        self.shared.trim(upto, kept)
    }

    fn take_back(&self, files: &[(u32, u64)]) -> Result<()> {
        self.shared.take_back(files)
    }

    fn unused_segments(&self) -> Vec<SegmentInfo> {
        self.shared.unused_segments()
    }

    fn remove_unused(&self, ids: &[SegmentId]) -> Result<()> {
        self.shared.remove_unused(ids)
    }

    fn remove_spares(&self) -> Result<u64> {
        self.shared.remove_spares()
    }

    fn use_kept_room(&self, flushed: Option<SeqNo>) {
        self.shared.state.lock().kept_room.allow(flushed);
    }

    fn begin_end(&self) {
        let state = &mut *self.shared.state.lock();
        state.is_ending = true;
        state.wanted = None;
        state.next_bytes = self.shared.settings.first_segment_bytes.min(self.shared.settings.segment_bytes);
    }

    fn end(&self, sealed: &SealedEnd) {
        seal_last(&mut self.shared.state.lock().live, Some(sealed), SegmentState::Active);
    }

    fn stop(&self) {
        self.shared.state.lock().is_stopping = true;
        self.shared.changed.notify_all();
        let threads: Vec<_> = self.threads.lock().drain(..).collect();
        for thread in threads {
            thread.join();
        }
        self.shared.give_up_prepared();
        let has_prepared = || {
            let state = self.shared.state.lock();
            state.ready.is_some() || state.pending.is_some()
        };
        debug_assert!(!has_prepared(), "the preparer runs on behind the end of its journal");
    }
}
