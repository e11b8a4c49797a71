//! The log: writes a group of tickets as bytes of the active segment. Only the leader uses it.
//!
//! Steps of a group: 1. make room, in a new segment if necessary; 2. if the manifest has new edits, write a
//! mark that names the last one; 3. write the group header with its numbers; 4. copy the batches, large ones
//! by their owners; 5. pass the bytes to the medium; 6. persist, if a member asked for it
//! or the medium does so for every group.
//!
//! Invariants:
//! 1. A segment always has room for one more durable-end mark.
//! 2. A failure up to step 1 changes nothing: no number is taken. A later failure poisons the journal.
#![expect(unsafe_code, reason = "writes segment memory that only the leader and the owners may touch")]

mod close;
mod copy;

use std::ops::Range;
use std::sync::Arc;

use terrane_base::{Error, Kind, Result, SeqNo};
use terrane_device::SegmentMemory;
use terrane_format::segment::{
    self, BATCH_HEADER_BYTES, ChainLink, GROUP_ALIGN, GROUP_HEADER_BYTES, GroupHeader, SEGMENT_HEADER_BYTES,
    SegmentHeader,
};

use crate::medium::{Medium, SealedEnd};
use crate::poison::Poison;
use crate::ring::Ring;
use crate::{JournalSettings, JournalStart};

pub(crate) use copy::copy_batch;

/// Keeps an `Arc` at a fixed address: members hold a pointer to it while they index, which saves each of them
/// two changes of a shared count. Inside another `Arc`, because moving a `Box` would invalidate such
/// pointers.
struct Kept(Arc<SegmentMemory>);

/// The segment to which groups are appended.
struct Active {
    kept: Arc<Kept>,
    seed: u32,
    /// Used bytes.
    used: usize,
    checksum: u32,
    /// The manifest edit that its header names.
    header_edit: u64,
    /// The manifest edit that its last mark names, or else its header.
    edit: u64,
}

/// See the head of the file.
pub(crate) struct Log {
    active: Option<Active>,
    /// Former segments, each with the first ticket that does not point to it: its pointers are unused once
    /// all earlier tickets are published.
    retired: Vec<(u64, Arc<Kept>)>,
    previous: ChainLink,
    salt: u32,
    next_seq: SeqNo,
    durable: SeqNo,
    /// True if something was written since the last persist step.
    is_dirty: bool,
    /// Number of tickets that the next persist step may expect: the members of the last one, which will soon
    /// return, and those that came while it ran.
    expected: u64,
    parallel_copy_bytes: usize,
    /// Used bytes up to which the active segment is the last one when the journal is closed.
    short_bytes: usize,
    /// True if groups with records are refused.
    refuses_records: bool,
    /// The end of the last segment, if it was sealed and no group came since.
    sealed: Option<Sealed>,
}

/// The position at which the log can go on in a sealed segment. It keeps no memory of it.
struct Sealed {
    used: usize,
    header_edit: u64,
    edit: u64,
    /// The link of the segment before it.
    before: ChainLink,
}

/// The sum of what the members of a group need.
#[derive(Default)]
struct Wanted {
    batch_count: u32,
    record_count: u32,
    record_bytes: usize,
    sync: bool,
}

impl Active {
    fn memory(&self) -> &Arc<SegmentMemory> {
        &self.kept.0
    }
}

impl Log {
    pub(crate) fn new(settings: &JournalSettings, start: &JournalStart) -> Self {
        assert!(start.previous.last_seq < start.next_seq, "the journal continues behind what was replayed");
        Log {
            active: None,
            retired: Vec::new(),
            previous: start.previous,
            salt: start.salt,
            next_seq: SeqNo(
                start.next_seq.0
                    - u64::from(terrane_base::planted!(ReuseSequenceNumbers) && start.next_seq.0 > 1),
            ),
            // Replay made everything durable: see `ReplaySettings::make_durable`.
            durable: SeqNo(start.next_seq.0 - 1),
            is_dirty: false,
            expected: 0,
            parallel_copy_bytes: settings.parallel_copy_bytes,
            short_bytes: settings.first_segment_bytes as usize,
            refuses_records: false,
            sealed: None,
        }
    }

    pub(crate) fn next_seq(&self) -> SeqNo {
        self.next_seq
    }

    /// Everything up to this number is durable.
    pub(crate) fn durable(&self) -> SeqNo {
        self.durable
    }

    /// A thread that does not lead made everything up to `seq` durable: the next mark says so.
    #[inline]
    pub(crate) fn note_durable(&mut self, seq: SeqNo) {
        debug_assert!(seq < self.next_seq, "only what has a number is durable");
        self.durable = self.durable.max(seq);
    }

    /// Number of tickets that the next persist step may expect.
    pub(crate) fn expected(&self) -> u64 {
        self.expected
    }

    /// Id and used bytes of the active segment.
    pub(crate) fn active(&self) -> Option<(terrane_base::SegmentId, u64)> {
        self.active.as_ref().map(|active| (active.memory().id, active.used as u64))
    }

    /// The end of the active segment, if it accepts no further groups.
    pub(crate) fn active_end(&self) -> Option<SealedEnd> {
        debug_assert!(
            self.active.as_ref().is_none_or(|active| active.used >= SEGMENT_HEADER_BYTES),
            "a segment begins with its header"
        );
        self.active.as_ref().map(|active| SealedEnd {
            link: ChainLink {
                id: active.memory().id,
                last_seq: SeqNo(self.next_seq.0 - 1),
                checksum: active.checksum,
            },
            used: active.used as u64,
        })
    }

    /// From now on every group with records is refused.
    pub(crate) fn refuse_records(&mut self) {
        self.refuses_records = true;
    }

    /// Drops former segments to which no member points any more: all tickets below `published` are finished.
    pub(crate) fn release_former(&mut self, published: u64) {
        debug_assert!(
            self.retired.is_sorted_by_key(|(ticket, _)| *ticket),
            "segments retire in ticket order"
        );
        self.retired.retain(|(ticket, _)| *ticket > published);
    }

    /// Forms the group of `tickets`. On success every entry contains the location of its records. `own` is
    /// the ticket of the calling thread, whose records only this thread can copy.
    pub(crate) fn form<M: Medium>(
        &mut self,
        ring: &Ring,
        tickets: &Range<u64>,
        own: Option<u64>,
        medium: &M,
        poison: &Poison,
    ) -> Result<()> {
        poison.check()?;
        let mut wanted = Wanted::default();
        for ticket in tickets.clone() {
            // SAFETY: rule 2 of the ring, the caller is the leader.
            let entry = unsafe { &*ring.entry(ticket) };
            wanted.batch_count += u32::from(entry.len() > 0);
            wanted.record_count += entry.record_count();
            wanted.record_bytes += entry.len();
            wanted.sync |= entry.sync();
        }
        debug_assert!(wanted.batch_count <= wanted.record_count, "a batch without records has no number");
        if wanted.batch_count > 0 {
            if self.refuses_records {
                return Err(Error::new(Kind::Cancelled, "the database is closing"));
            }
            let len = segment::group_len(wanted.batch_count as usize, wanted.record_bytes);
            if !self.has_room(len) {
                self.rotate(len, ring.published_tickets(), tickets.start, medium, poison)?;
            }
            self.note_edits(len, medium)
                .and_then(|()| self.place(ring, tickets, own, &wanted, len, medium))
                .inspect_err(|error| poison.set(error.clone()))?;
        }
        let is_cheap = medium.persists_groups();
        if wanted.sync || is_cheap {
            self.persist(medium).inspect_err(|error| poison.set(error.clone()))?;
            // Counted from the start of this group: its members, and all that came while it became durable.
            // A cheap step is over before any of them returns.
            self.expected = if is_cheap { 0 } else { ring.gathered() };
        }
        Ok(())
    }

    #[inline]
    fn has_room(&self, len: usize) -> bool {
        let limit = |active: &Active| active.memory().region.len() - GROUP_HEADER_BYTES;
        debug_assert!(self.active.as_ref().is_none_or(|active| active.used <= limit(active)), "invariant 1");
        self.active.as_ref().is_some_and(|active| len <= limit(active) - active.used)
    }

    /// Writes a mark with the manifest's edit number, if it has changed since the last mark and a group of
    /// `len` bytes still fits after it: recovery of a record then knows which edits were durable before it.
    #[inline]
    fn note_edits<M: Medium>(&mut self, len: usize, medium: &M) -> Result<()> {
        let is_new = |active: &Active| medium.edit_number() > active.edit;
        if self.active.as_ref().is_some_and(is_new) && self.has_room(len + GROUP_HEADER_BYTES) {
            self.mark(medium)?;
        }
        debug_assert!(self.has_room(len), "the mark lies where the group of {len} bytes was to go");
        Ok(())
    }

    #[cold]
    fn rotate<M: Medium>(
        &mut self,
        len: usize,
        published: u64,
        head: u64,
        medium: &M,
        poison: &Poison,
    ) -> Result<()> {
        let sealed = self.active_end();
        let new = medium.rotate(SEGMENT_HEADER_BYTES + len + GROUP_HEADER_BYTES, sealed.as_ref())?;
        let previous = sealed.map_or(self.previous, |sealed| sealed.link);
        assert!(
            new.memory.id > previous.id,
            "ids grow along the chain: replay takes segments in their order"
        );
        assert!(
            new.memory.region.len() >= SEGMENT_HEADER_BYTES + len + GROUP_HEADER_BYTES,
            "room for the group"
        );
        let region = &new.memory.region;
        let (id, bytes, edit) = (new.memory.id, region.len() as u64, medium.edit_number());
        let salt = Some(self.salt);
        let header = SegmentHeader { id, file: new.file, bytes, previous, edit, salt }.encode();
        // SAFETY: the medium gave a writable segment, longer than its header, to the leader alone.
        unsafe { region.write(0, &header) };
        let mut checksum = [0; 4];
        checksum.copy_from_slice(&header[SEGMENT_HEADER_BYTES - 4..]);
        let active = Active {
            seed: segment::segment_seed(new.memory.id, salt),
            used: SEGMENT_HEADER_BYTES,
            checksum: u32::from_le_bytes(checksum),
            header_edit: edit,
            edit,
            kept: Arc::new(Kept(new.memory)),
        };
        self.release_former(published);
        if let Some(former) = self.active.replace(active) {
            self.retired.push((head, former.kept));
        }
        self.previous = previous;
        self.sealed = None;
        self.is_dirty = true;
        let active = self.active.as_ref().expect("set above");
        medium.write(active.memory(), 0, SEGMENT_HEADER_BYTES).inspect_err(|error| poison.set(error.clone()))
    }

    /// Writes the group of `len` bytes into the active segment, which has room for it.
    fn place<M: Medium>(
        &mut self,
        ring: &Ring,
        tickets: &Range<u64>,
        own: Option<u64>,
        wanted: &Wanted,
        len: usize,
        medium: &M,
    ) -> Result<()> {
        let active = self.active.as_mut().expect("the caller made room");
        let start = active.used;
        let header = GroupHeader {
            len: len as u32,
            first_seq: self.next_seq,
            durable: if terrane_base::planted!(NoDurableMark) {
                SeqNo(0)
            } else {
                self.durable.max(medium.durable())
            },
            record_count: wanted.record_count,
            batch_count: wanted.batch_count,
            edits: 0,
        };
        let (header, group_checksum) = header.encode(active.seed, start as u64);
        let segment: *const Arc<SegmentMemory> = active.memory();
        let (mut at, mut next_seq) = (start + GROUP_HEADER_BYTES, self.next_seq);
        for ticket in tickets.clone() {
            // SAFETY: rule 2 of the ring.
            let entry = unsafe { &mut *ring.entry(ticket) };
            if entry.len() == 0 {
                continue;
            }
            next_seq = SeqNo(next_seq.0 + u64::from(entry.record_count()));
            entry.last_seq = SeqNo(next_seq.0 - 1);
            entry.offset = (at + BATCH_HEADER_BYTES) as u32;
            entry.group_checksum = group_checksum;
            entry.segment = segment;
            at += BATCH_HEADER_BYTES + entry.len();
        }
        debug_assert!(at <= start + len, "the batches are longer than the group for which there is room");
        let taken = next_seq.0 - self.next_seq.0;
        assert!(
            taken == u64::from(wanted.record_count),
            "{taken} numbers for {} records",
            wanted.record_count
        );
        let padding = &[0; GROUP_ALIGN][..start + len - at];
        active.checksum = segment::chain(active.checksum, group_checksum);
        if wanted.batch_count == 1 {
            self.copy_only(ring, tickets, &header, padding);
        } else {
            let region = &active.memory().region;
            // SAFETY: bytes behind `used` are the leader's, and `has_room` holds; the padding lies within the
            // group.
            unsafe {
                region.write(start, &header);
                region.write(at, padding);
            }
            self.copy(ring, tickets, own);
        }
        let active = self.active.as_mut().expect("set on entry");
        active.used = start + len;
        debug_assert!(active.used + GROUP_HEADER_BYTES <= active.memory().region.len(), "invariant 1");
        self.next_seq = next_seq;
        self.is_dirty = true;
        medium.write(active.memory(), start, len)
    }

    fn mark<M: Medium>(&mut self, medium: &M) -> Result<()> {
        let Some(active) = &mut self.active else { return Ok(()) };
        active.edit = medium.edit_number().max(active.edit);
        let edits = u32::try_from(active.edit - active.header_edit).unwrap_or(u32::MAX);
        let header = GroupHeader::mark(self.next_seq, self.durable, edits);
        let start = active.used;
        assert!(start + GROUP_HEADER_BYTES <= active.memory().region.len(), "invariant 1");
        let (header, checksum) = header.encode(active.seed, start as u64);
        // SAFETY: bytes behind `used` are the leader's; invariant 1 keeps room for a mark.
        unsafe { active.memory().region.write(start, &header) };
        active.checksum = segment::chain(active.checksum, checksum);
        active.used += GROUP_HEADER_BYTES;
        self.is_dirty = true;
        medium.write(active.memory(), start, GROUP_HEADER_BYTES)
    }
}
