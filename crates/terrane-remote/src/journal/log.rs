//! Appends to a journal: the log beneath the persist step of the commit ring.
//!
//! Bytes gather in a batch. It becomes an object when a commit asks for durability, when it is full, or
//! after a time. Objects are chained when their creation begins, several may be under way, and they are
//! confirmed in order: what a call of `persist` waits for is there with all before it.
//!
//! Locks, in this order: `chain` while a batch becomes an object, so that objects begin in the order of their
//! bytes; `confirming` while the outcome of the oldest object is awaited; `state` for moments, never across a
//! request.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use terrane_base::env::{Env, Joiner, Random};
use terrane_base::sync::atomic::{AtomicBool, Ordering};
use terrane_base::sync::{Condvar, Mutex, MutexGuard};
use terrane_base::{Result, SegmentId};
use terrane_format::journal_object::{JournalObject, JournalRange, JournalTag, encode_payload};
use terrane_format::object::object_hash;
use terrane_journal::CommitLog;

use super::fence::{Outcome, drawn};
use super::{Fence, JournalFolder, ObjectJournalSettings, Restored, UNDER_WAY_MAX};
use crate::bucket::{Create, Pending};

/// The log of the one writer of a journal.
pub struct ObjectCommitLog {
    pub(super) shared: Arc<Shared>,
    held: BTreeMap<SegmentId, u64>,
    uploader: Mutex<Option<Box<dyn Joiner>>>,
}

/// State that the callers share with the uploader.
pub(super) struct Shared {
    pub(super) folder: JournalFolder,
    pub(super) settings: ObjectJournalSettings,
    random: Arc<dyn Random>,
    /// The last object whose creation was begun, and the hash of its bytes.
    chain: Mutex<(JournalObject, u128)>,
    confirming: Mutex<()>,
    /// The log was given what it lacked of replayed segments.
    is_complete: AtomicBool,
    pub(super) state: Mutex<State>,
    /// Signalled when there is work for an uploader that has none, and at the end.
    changed: Condvar,
}

/// See the head of the file.
pub(super) struct State {
    batch: Batch,
    /// Bytes that were appended so far.
    appended: u64,
    /// So many of them are durable.
    durable: u64,
    /// Objects under way, oldest first.
    under_way: VecDeque<UnderWay>,
    /// The number of the last object that is known to be there.
    confirmed: u64,
    /// Objects that may be needed, each with its greatest segment.
    objects: VecDeque<(u64, SegmentId)>,
    trimmed: SegmentId,
    /// Objects in the bucket, ascending, each with the first object number that its header says is needed.
    pub(super) announced: VecDeque<(u64, u64)>,
    /// The first number that the newest object needed when garbage of a crowded bucket was collected last.
    pub(super) collected: u64,
    failed: Option<terrane_base::Error>,
    /// The uploader waits for work.
    is_idle: bool,
    is_stopping: bool,
}

/// Bytes that are in no object yet.
#[derive(Default)]
struct Batch {
    ranges: Vec<JournalRange>,
    bytes: Vec<u8>,
}

/// An object whose creation was begun.
struct UnderWay {
    header: JournalObject,
    bytes: Bytes,
    /// All bytes that were appended up to its end.
    end: u64,
    pending: Pending<Create>,
}

impl std::fmt::Debug for ObjectCommitLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectCommitLog").field("folder", &self.shared.folder).finish_non_exhaustive()
    }
}

impl Batch {
    /// Adds bytes behind those of before.
    fn add(&mut self, segment: SegmentId, offset: u64, bytes: &[u8]) {
        let len = bytes.len() as u64;
        match self.ranges.last_mut() {
            Some(last) if last.segment == segment && last.offset + last.len == offset => last.len += len,
            _ => self.ranges.push(JournalRange { segment, offset, len }),
        }
        self.bytes.extend_from_slice(bytes);
    }
}

impl ObjectCommitLog {
    /// The log behind a fence, whose objects before have what `restored` says.
    ///
    /// # Errors
    /// `Invalid` if a setting is out of range; `Io` if the system refuses a thread.
    pub fn open(
        folder: JournalFolder,
        fence: &Fence,
        restored: Restored,
        settings: ObjectJournalSettings,
        env: &Env,
    ) -> Result<ObjectCommitLog> {
        settings.check()?;
        let (header, hash) = fence.fence;
        let Restored { objects, held, trimmed } = restored;
        let state = State {
            batch: Batch::default(),
            appended: 0,
            durable: 0,
            under_way: VecDeque::new(),
            confirmed: header.number,
            objects,
            trimmed,
            announced: VecDeque::from([(header.number, header.first)]),
            collected: 0,
            failed: None,
            is_idle: false,
            is_stopping: false,
        };
        let shared = Arc::new(Shared {
            folder,
            settings,
            random: env.random.clone(),
            chain: Mutex::new((header, hash)),
            confirming: Mutex::new(()),
            is_complete: AtomicBool::new(false),
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let own = shared.clone();
        let uploader = env.spawn.spawn("terrane-journal-upload", Box::new(move || own.upload()))?;
        Ok(ObjectCommitLog { shared, held, uploader: Mutex::new(Some(uploader)) })
    }
}

impl Shared {
    /// The state, unless something failed.
    fn sound(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state.lock();
        match &state.failed {
            Some(error) => Err(error.clone()),
            None => Ok(state),
        }
    }

    fn append(&self, segment: SegmentId, mut offset: u64, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let mut state = self.sound()?;
            let room = (self.settings.batch_bytes as usize).saturating_sub(state.batch.bytes.len());
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            if !now.is_empty() {
                state.batch.add(segment, offset, now);
                state.appended += now.len() as u64;
                (bytes, offset) = (later, offset + now.len() as u64);
            }
            let is_full = state.batch.bytes.len() as u64 >= self.settings.batch_bytes;
            if std::mem::take(&mut state.is_idle) {
                self.changed.notify_all();
            }
            drop(state);
            if is_full {
                self.begin()?;
            }
        }
        Ok(())
    }

    fn persist(&self) -> Result<()> {
        let end = {
            let state = self.sound()?;
            debug_assert!(state.durable <= state.appended, "what was not appended is not durable");
            if state.durable >= state.appended {
                return Ok(());
            }
            state.appended
        };
        self.begin()?;
        if terrane_base::planted!(AcknowledgeBeforeObject) {
            return Ok(());
        }
        self.confirm_through(end)
    }

    /// Makes the batch an object, and begins its creation. On return all that was appended before the call is
    /// in objects.
    fn begin(&self) -> Result<()> {
        let mut chain = self.chain.lock();
        while self.sound()?.under_way.len() >= UNDER_WAY_MAX {
            self.confirm_oldest()?;
        }
        let mut state = self.sound()?;
        if state.batch.ranges.is_empty() {
            return Ok(());
        }
        let (batch, end) = (std::mem::take(&mut state.batch), state.appended);
        let greatest = batch.ranges.iter().map(|range| range.segment).max().unwrap_or_default();
        let (last, hash) = *chain;
        let number = last.next_number();
        state.objects.push_back((number, greatest));
        let (first, confirmed) = (state.first_needed(), state.confirmed);
        drop(state);
        let payload = encode_payload(&batch.ranges, &batch.bytes);
        let header = JournalObject {
            tag: JournalTag::Bytes,
            number,
            parent: hash,
            first: if terrane_base::planted!(TrimJournalEarly) { number } else { first.max(last.first) },
            confirmed,
            epoch: last.epoch,
            nonce: drawn(&*self.random),
            database: last.database,
            is_whole: last.is_whole || self.is_complete.load(Ordering::Acquire),
            len: payload.len() as u64,
        };
        debug_assert!(header.check_follows(&last, hash).is_ok(), "readers check the same");
        let bytes = Bytes::from(header.encode(&payload));
        *chain = (header, object_hash(&bytes));
        let pending =
            self.folder.objects.bucket.begin_create(&self.folder.objects.name(number), vec![bytes.clone()]);
        let mut state = self.state.lock();
        assert!(state.under_way.len() < UNDER_WAY_MAX, "a fence leaves so many numbers void");
        state.under_way.push_back(UnderWay { header, bytes, end, pending });
        Ok(())
    }

    /// Waits until the first `end` bytes are durable. Requires: they are in objects.
    fn confirm_through(&self, end: u64) -> Result<()> {
        while self.sound()?.durable < end {
            self.confirm_oldest()?;
        }
        Ok(())
    }

    /// Waits for the oldest object under way, or for another thread that does.
    fn confirm_oldest(&self) -> Result<()> {
        let oldest = self.sound()?.under_way.front().map(|object| object.end);
        let _one_at_a_time = self.confirming.lock();
        let mut state = self.sound()?;
        // Another thread was faster.
        if state.under_way.front().map(|object| object.end) != oldest {
            return Ok(());
        }
        let Some(UnderWay { header, bytes, end, pending }) = state.under_way.pop_front() else {
            return Ok(());
        };
        drop(state);
        let created = self.folder.create(&header, &bytes, Some(pending.wait()));
        let mut state = self.state.lock();
        let error = match created {
            Ok(Outcome::Ours) => {
                assert!(state.durable < end && end <= state.appended, "objects are confirmed in order");
                state.durable = end;
                state.confirmed = header.number;
                if state.announced.back().is_none_or(|(_, first)| *first < header.first) {
                    state.announced.push_back((header.number, header.first));
                }
                return Ok(());
            }
            Ok(Outcome::Others(other)) => self.folder.fenced(header.epoch, other),
            Err(error) => error,
        };
        Err(state.failed.get_or_insert(error).clone())
    }

    /// The uploader: what no commit waits for gets to the bucket after a time.
    fn upload(&self) {
        loop {
            let mut state = self.state.lock();
            while !state.is_stopping && state.durable >= state.appended {
                state.is_idle = true;
                self.changed.wait(&mut state);
            }
            state.is_idle = false;
            if !state.is_stopping {
                self.changed.wait_for(&mut state, self.settings.batch);
            }
            if state.is_stopping {
                return;
            }
            drop(state);
            // An error stays, and fails the next commit.
            if self.persist().is_err() {
                return;
            }
        }
    }
}

impl State {
    /// The first object that is needed. The newest one always is.
    fn first_needed(&mut self) -> u64 {
        let is_old = |state: &State| {
            state.objects.len() > 1
                && state.objects.front().is_some_and(|(_, greatest)| *greatest <= state.trimmed)
        };
        while is_old(self) {
            self.objects.pop_front();
        }
        debug_assert!(
            self.objects.iter().map(|(number, _)| number).is_sorted(),
            "in the order of their numbers"
        );
        let first = self.objects.front().map(|(number, _)| *number);
        first.expect("the object that asks is one of them")
    }
}

impl CommitLog for ObjectCommitLog {
    fn append(&self, segment: SegmentId, offset: u64, bytes: &[u8]) -> Result<()> {
        self.shared.append(segment, offset, bytes)
    }

    fn persist(&self) -> Result<()> {
        self.shared.persist()?;
        // Release: pairs with the Acquire of the next object, which records the durable end.
        self.shared.is_complete.store(true, Ordering::Release);
        Ok(())
    }

    fn held(&self, segment: SegmentId) -> u64 {
        self.held.get(&segment).copied().unwrap_or(0)
    }

    fn trim(&self, upto: SegmentId) {
        let mut state = self.shared.state.lock();
        state.trimmed = state.trimmed.max(upto);
    }

    fn stop(&self) {
        self.shared.state.lock().is_stopping = true;
        self.shared.changed.notify_all();
        let uploader = self.uploader.lock().take();
        if let Some(uploader) = uploader {
            uploader.join();
        }
    }
}

impl Drop for ObjectCommitLog {
    fn drop(&mut self) {
        self.stop();
    }
}
