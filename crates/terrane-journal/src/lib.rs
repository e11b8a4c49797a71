//! Commit ring, segments and replay: makes a commit ordered, placed, durable and visible.
//!
//! Layer 4: knows records and segments, but no table, no index and no manifest. Modules, in the order of a
//! commit:
//!
//! * `ring`: tickets, slots, waiting, publication in order. Does not know the bytes of segments.
//! * `log`: writes a group of tickets as bytes of the active segment, numbered and chained.
//! * [`RingJournal`]: all steps of a commit; connects ring, log and medium.
//! * [`Medium`]: holds the segments and makes them durable: files ([`FileJournal`]), persistent memory
//!   ([`pm`]) or the heap ([`NullJournal`]).
//! * [`CommitLog`]: has the bytes of the segments elsewhere, for a journal in files that outlives its machine
//!   ([`LoggedJournal`]).
//! * [`Excerpt`]: the content of the journal at one moment, and its copy for another database.
//! * [`rewrite()`]: rewrites the journal with other records, for a replay filter.
//! * [`replay()`]: reads the records back, checked; [`SegmentReader`] reads one, also while it is written.
//! * [`Tickets`]: commits that are made durable after their call has returned, many by one persist step.
//! * [`conformance`]: the checks that every [`Journal`] must pass.

pub mod conformance;

mod commit_log;
mod delegate;
mod excerpt;
mod file;
mod fork;
mod journal;
mod log;
mod logged;
mod medium;
mod names;
mod null;
pub mod pm;
mod poison;
mod reader;
mod replay;
mod ring;
mod settings;
mod tickets;

use std::sync::Arc;

use terrane_base::{Batch, Result, SegmentId, SeqNo};
use terrane_device::SegmentMemory;
pub use terrane_format::segment::ChainLink;

pub use commit_log::{CommitLog, complete_log};
pub use excerpt::{Excerpt, LiveMemory, SegmentWriter, WrittenSegment};
pub use file::FileJournal;
pub use journal::RingJournal;
pub use logged::LoggedJournal;
pub use medium::{Medium, NewSegment, SealedEnd};
pub use names::{aside_numbers, file_name, file_number};
pub use null::{HeapMedium, NullJournal};
pub use poison::Poison;
pub use reader::{ReadBatch, SegmentReader};
pub use replay::{
    ASIDE_FILES_MAX, AsideLimits, BatchFilter, Behind, Cut, FoundBatch, ListedSegment, NewNames, Outcome,
    RecordSink, ReplaySettings, Replayed, Rewritten, SegmentBytes, SegmentSeal, discard,
    discard_unfinished_aside, pending_name, pending_number, replay, rewrite, segment_in_file, set_aside,
};
pub use settings::JournalSettings;
pub use tickets::{OnPanic, PersistThrough, Ticket, Tickets};

/// The location of a committed batch: `len` bytes from `offset`, the unchanged [`Batch::bytes`].
#[derive(Clone, Copy, Debug)]
pub struct Placed<'a> {
    /// Number of the batch's first record; the others follow.
    pub first_seq: SeqNo,
    /// The segment.
    pub segment: &'a Arc<SegmentMemory>,
    /// Bytes from the start of the segment.
    pub offset: usize,
    /// Bytes of all records.
    pub len: usize,
}

/// The component that owns segments.
///
/// An implementer guarantees ([`conformance`] checks it):
/// 1. Numbers are consecutive over all batches, in the order in which the batches lie in the segments.
/// 2. `index` runs once for each accepted batch, on the committing thread, before this batch or a later one
///    is visible.
/// 3. [`Journal::visible`] never passes a batch that is not indexed, and never goes back.
/// 4. A commit with `sync` returns only when it and everything before it is durable.
/// 5. After a failed persist step no later commit succeeds.
pub trait Journal: Send + Sync {
    /// Numbers, places and persists `batch`, calls `index` once, publishes in order, and returns the batch's
    /// last number when everything up to it is visible. Records are immutable and readable from the call of
    /// `index` on. An empty batch takes no number and is not indexed; with `sync` it is [`Journal::sync`].
    ///
    /// `index` must neither commit nor wait for another commit. If it panics, the journal is poisoned and the
    /// panic continues in the caller.
    ///
    /// # Errors
    /// `Full` if there is no space for a segment (later commits may succeed), `Poisoned` after an earlier
    /// failure, `Cancelled` after [`Journal::refuse_commits`] or [`Journal::close`], `Io` if this group's
    /// persist step failed.
    fn commit(&self, batch: &Batch, sync: bool, index: &mut dyn FnMut(&Placed<'_>)) -> Result<SeqNo>;

    /// Every record up to this number is indexed.
    fn visible(&self) -> SeqNo;

    /// Runs `f(next_seq)` while no group is formed: every later record has a number of at least `next_seq`.
    /// Earlier groups may still be indexed: wait for [`Journal::visible`] to reach `next_seq - 1` if that
    /// matters. `f` must not commit.
    fn between_groups(&self, f: &mut dyn FnMut(SeqNo));

    /// Makes everything committed so far durable.
    ///
    /// # Errors
    /// As [`Journal::commit`].
    fn sync(&self) -> Result<()>;

    /// Makes everything up to `seq`, which is visible, durable without blocking commits meanwhile.
    ///
    /// # Errors
    /// As [`Journal::commit`].
    fn sync_through(&self, seq: SeqNo) -> Result<()>;

    /// Refuses with `Cancelled` every commit that has no number yet, and every later one. Commits with a
    /// number continue: once [`Journal::visible`] reaches the last one, none follows. Everything else works
    /// until [`Journal::close`]. Idempotent.
    fn refuse_commits(&self);

    /// From now on no commit succeeds that is not persisted yet: `cause` says why. The first cause stays.
    fn poison(&self, cause: terrane_base::Error);

    /// Checks that commits can succeed.
    ///
    /// # Errors
    /// `Poisoned` after a failure, naming the cause.
    fn check(&self) -> Result<()>;

    /// The live segments that accept no further records, oldest first. Never waits for a group.
    fn complete_segments(&self) -> Vec<SegmentInfo>;

    /// Memory of all segments in bytes, including those that only readers use, prepared ones, and the one
    /// that is being prepared.
    fn memory_bytes(&self) -> u64;

    /// Memory of trimmed segments that only readers still use and whose files are not used again: no part of
    /// [`Journal::memory_bytes`].
    fn held_bytes(&self) -> u64 {
        0
    }

    /// If the active segment has more than `bytes`, it is complete from now on: a trim can take it without
    /// waiting for the next commit. The journal itself keeps no memory of a trimmed segment then.
    ///
    /// # Errors
    /// As [`Journal::check`].
    fn seal_longer_than(&self, _bytes: u64) -> Result<()> {
        Ok(())
    }

    /// Appends to segments on a device since the journal was opened.
    fn appended(&self) -> Appended;

    /// The live segments, oldest first.
    fn segments(&self) -> Vec<SegmentInfo>;

    /// The content of the journal between two groups, up to the last group. Requires: the caller prevents
    /// trimming of the segments that it needs.
    ///
    /// # Errors
    /// As [`Journal::check`].
    fn excerpt(&self) -> Result<Excerpt>;

    /// Removes the segments up to `upto` that are not active; returns their ids. Requires: the caller has
    /// removed them durably from the manifest. Their files are reused or removed once no [`SegmentMemory`]
    /// points to them.
    ///
    /// # Errors
    /// `Io` if a file could not be removed; the segments are removed from the journal nevertheless.
    fn trim(&self, upto: SegmentId) -> Result<Vec<SegmentId>> {
        self.trim_keeping(upto, &[])
    }

    /// As [`Journal::trim`], but the files of the segments in `kept` stay unchanged until
    /// [`Journal::take_back`].
    ///
    /// # Errors
    /// As [`Journal::trim`].
    fn trim_keeping(&self, upto: SegmentId, kept: &[SegmentId]) -> Result<Vec<SegmentId>>;

    /// The segments that were prepared and that nothing will use: the journal is closed. None before.
    fn unused_segments(&self) -> Vec<SegmentInfo> {
        Vec::new()
    }

    /// Removes segments of [`Journal::unused_segments`] with their files. Requires: the caller has removed
    /// them durably from the manifest.
    ///
    /// # Errors
    /// As [`Journal::trim`].
    fn remove_unused(&self, _ids: &[SegmentId]) -> Result<()> {
        Ok(())
    }

    /// Takes back files, by number and bytes, that were kept and that the manifest no longer names; they are
    /// reused or removed.
    ///
    /// # Errors
    /// `Io` if a file could not be removed.
    fn take_back(&self, files: &[(u32, u64)]) -> Result<()>;

    /// Everything up to this number is known to be durable; never falls.
    fn durable(&self) -> SeqNo;

    /// Removes the files that are kept for reuse, for an idle journal; returns the number of bytes. The
    /// prepared segment stays; the one after it is short again. Behind [`Journal::close`] no segment is
    /// prepared, and the unused ends of those that are left are given back to the device, too.
    ///
    /// # Errors
    /// `Io` if a file could not be removed; it is not reused.
    fn remove_spares(&self) -> Result<u64> {
        Ok(0)
    }

    /// The next segment, if it is a short one, may take of the space that is left free for flushes, if all up
    /// to `flushed` is in the levels; one segment for each such number. For a caller whose batch only removes
    /// rows. `None` says that it is done, once for each time that it was allowed.
    fn use_kept_room(&self, _flushed: Option<SeqNo>) {}

    /// Syncs, writes a durable-end mark and stops background work; every later commit is refused. Returns the
    /// last number. A second call does nothing. The active segment stays, to say which edits the manifest
    /// had; it is short, if there was space for a new one.
    ///
    /// # Errors
    /// `Io` if the last sync failed, `Poisoned` after an earlier failure; background work is stopped in any
    /// case.
    fn close(&self) -> Result<SeqNo>;
}

/// A segment as the manifest lists it before its first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSpec {
    /// Its id.
    pub id: SegmentId,
    /// Number in its file's name, `NNNNNN.seg`.
    pub file: u32,
    /// Bytes of the file.
    pub bytes: u64,
}

impl SegmentSpec {
    /// Name of the file within the journal's directory.
    #[must_use]
    pub fn file_name(&self) -> String {
        file_name(self.file)
    }
}

/// Records segments in the manifest.
pub trait SegmentRegistrar: Send + Sync {
    /// Registers `segment` durably as live. Called before the segment is used, not on the path of a commit.
    ///
    /// # Errors
    /// Any error; the segment is then not used, and commits that need a new segment fail with this error.
    fn register(&self, segment: &SegmentSpec) -> Result<()>;

    /// Number of the manifest's last durable edit; never falls. The journal stores it, so that replay detects
    /// a manifest that lost edits. 0 if edits have no numbers.
    fn edit_number(&self) -> u64 {
        0
    }

    /// Bytes that a flush takes beside those of the records, once `bytes` more of them were committed: each
    /// table that has some takes blocks of its own.
    fn flush_overhead(&self, _bytes: u64) -> u64 {
        0
    }

    /// Bytes that a merge of what was flushed takes on the device before it gives some back; 0 where nothing
    /// was.
    fn merge_room(&self) -> u64 {
        0
    }
}

/// The state of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentState {
    /// Commits go there.
    Active,
    /// Complete, but not known to be durable.
    Sealed,
    /// Complete and durable.
    Durable,
    /// Registered but never used.
    Unused,
}

/// Appends to segments, including headers and marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// Number of appends: one for each commit group, header and mark.
    pub appends: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A live segment.
#[derive(Clone, Debug)]
pub struct SegmentInfo {
    /// Its id.
    pub id: SegmentId,
    /// Number in its file's name; 0 if it has no file.
    pub file: u32,
    /// Its state.
    pub state: SegmentState,
    /// Bytes of memory, and of the file.
    pub bytes: u64,
    /// Used bytes, from the front.
    pub used: u64,
    /// Number of its last record, or of the record before it if it holds none.
    pub last_seq: SeqNo,
}

/// A segment that [`replay()`] found valid up to `end`.
#[derive(Clone, Debug)]
pub struct SealedSegment {
    /// The segment as the manifest lists it.
    pub spec: SegmentSpec,
    /// Valid bytes, from the front. Once the manifest records this end, everything after it is ignored for
    /// ever.
    pub end: u64,
    /// Number of its last record, or of the record before it if it holds none.
    pub last_seq: SeqNo,
    /// Running checksum up to `end`.
    pub checksum: u32,
    /// Its memory, into which the replayed records point.
    pub memory: Arc<SegmentMemory>,
}

impl SealedSegment {
    /// The link that the next segment's header contains.
    #[must_use]
    pub fn link(&self) -> ChainLink {
        ChainLink { id: self.spec.id, last_seq: self.last_seq, checksum: self.checksum }
    }
}

/// The position at which a journal continues.
#[derive(Clone, Debug)]
pub struct JournalStart {
    /// Id of the first new segment; greater than every id ever registered.
    pub next_segment: SegmentId,
    /// Number of the next new file; greater than that of every file in the directory.
    pub next_file: u32,
    /// Number of the next record.
    pub next_seq: SeqNo,
    /// Link of the last replayed segment; the default if no segment was replayed.
    pub previous: ChainLink,
    /// Salt of the database, for the checksums of groups; see [`ReplaySettings::salt`].
    pub salt: u32,
    /// Numbers of the files in the directory that no live segment and no history uses: they are removed.
    pub unlisted_files: Vec<u32>,
    /// Live segments from before, oldest first.
    pub replayed: Vec<SealedSegment>,
}

impl Default for JournalStart {
    /// An empty journal: ids, files and numbers start at 1.
    fn default() -> Self {
        JournalStart {
            next_segment: SegmentId(1),
            next_file: 1,
            next_seq: SeqNo(1),
            previous: ChainLink::default(),
            salt: 0,
            unlisted_files: Vec::new(),
            replayed: Vec::new(),
        }
    }
}
