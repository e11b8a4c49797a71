//! A medium holds segments and makes them durable.

use std::collections::VecDeque;
use std::sync::Arc;

use terrane_base::{Result, SegmentId, SeqNo};
use terrane_device::SegmentMemory;

use crate::{Appended, ChainLink, LiveMemory, SegmentInfo, SegmentState};

/// A segment that is ready for its header.
#[derive(Clone, Debug)]
pub struct NewSegment {
    /// Its memory; no other thread writes to it.
    pub memory: Arc<SegmentMemory>,
    /// Number in its file's name; 0 if it has no file.
    pub file: u32,
}

/// The end of a segment that accepts no further groups.
#[derive(Clone, Copy, Debug)]
pub struct SealedEnd {
    /// The segment, its last number and running checksum.
    pub link: ChainLink,
    /// Used bytes.
    pub used: u64,
}

/// The persist step behind the commit ring.
///
/// An implementer guarantees:
/// 1. Ids of segments grow.
/// 2. A segment is registered for replay, and its whole space is allocated, before [`Medium::rotate`] returns
///    it.
/// 3. [`Medium::persist`] makes all bytes given to [`Medium::write`] durable, in all segments.
/// 4. A failure to make a sealed segment durable in the background sets the [`Poison`](crate::Poison) that
///    the medium shares with its journal.
///
/// `rotate`, `write` and `persist` are called by one thread at a time: the leader. `persist_through` may
/// be called by another thread at the same time.
pub trait Medium: Send + Sync {
    /// The next segment, with room for at least `bytes`; `sealed` describes the active one, which takes no
    /// more groups. After an error the active segment stays active.
    ///
    /// # Errors
    /// `Full` if there is no space, `Io`, any error of the registrar.
    fn rotate(&self, bytes: usize, sealed: Option<&SealedEnd>) -> Result<NewSegment>;

    /// The active segment, which has records, is complete, and no segment follows it yet: the next
    /// [`Medium::rotate`] has no segment to seal. Called by the leader. Returns false if the medium cannot do
    /// so, or not without the room that commits have in the segment: it stays active then.
    fn seal(&self, _sealed: &SealedEnd) -> bool {
        false
    }

    /// The segment `id`, which was sealed and which none follows, is active again, for the last mark of the
    /// journal. Called by the leader. Returns its memory, or nothing if it was trimmed.
    fn unseal(&self, _id: SegmentId) -> Option<Arc<SegmentMemory>> {
        None
    }

    /// While no segment is active: if the prepared one is longer than an ordinary one, a short one takes its
    /// place, if there is space for one, and the next trim takes the long one. Called by the leader.
    fn give_up_long(&self) {}

    /// `len` bytes at `offset` of the active segment are complete in its memory.
    ///
    /// # Errors
    /// `Io`; the journal is poisoned then.
    fn write(&self, segment: &SegmentMemory, offset: usize, len: usize) -> Result<()>;

    /// Makes everything written so far durable.
    ///
    /// # Errors
    /// `Io`; the journal is poisoned then.
    fn persist(&self) -> Result<()>;

    /// True if a persist step is so cheap that each group gets one, whether a member asked or not: every
    /// commit is durable then. Asked by the leader, of the active segment.
    #[inline]
    fn persists_groups(&self) -> bool {
        false
    }

    /// Makes everything up to `seq`, which was written, durable. May be called during all other calls.
    ///
    /// # Errors
    /// As [`Medium::persist`].
    fn persist_through(&self, _seq: SeqNo) -> Result<()> {
        self.persist()
    }

    /// Everything up to this number was made durable in the background; 0 if that is unknown.
    fn durable(&self) -> SeqNo;

    /// See [`SegmentRegistrar::edit_number`](crate::SegmentRegistrar::edit_number).
    fn edit_number(&self) -> u64 {
        0
    }

    /// The live segments, oldest first; the journal corrects the used bytes of the active one.
    fn segments(&self) -> Vec<SegmentInfo>;

    /// The live segments with their memory, oldest first; 0 used bytes for one that was never used. The
    /// journal knows more about the active one.
    fn live_memory(&self) -> Vec<LiveMemory>;

    /// Memory of all segments, in bytes.
    fn memory_bytes(&self) -> u64 {
        self.segments().iter().map(|segment| segment.bytes).sum()
    }

    /// See [`Journal::held_bytes`](crate::Journal::held_bytes).
    fn held_bytes(&self) -> u64 {
        0
    }

    /// The bytes that [`Medium::write`] sent to a device; zero without a device.
    fn appended(&self) -> Appended {
        Appended::default()
    }

    /// See [`Journal::trim`](crate::Journal::trim).
    ///
    /// # Errors
    /// `Io`.
    fn trim(&self, upto: SegmentId) -> Result<Vec<SegmentId>>;

    /// See [`Journal::trim_keeping`](crate::Journal::trim_keeping). A medium without files keeps nothing.
    ///
    /// # Errors
    /// `Io`.
    fn trim_keeping(&self, upto: SegmentId, _kept: &[SegmentId]) -> Result<Vec<SegmentId>> {
        self.trim(upto)
    }

    /// See [`Journal::take_back`](crate::Journal::take_back).
    ///
    /// # Errors
    /// `Io`.
    fn take_back(&self, _files: &[(u32, u64)]) -> Result<()> {
        Ok(())
    }

    /// See [`Journal::unused_segments`](crate::Journal::unused_segments).
    fn unused_segments(&self) -> Vec<SegmentInfo> {
        Vec::new()
    }

    /// See [`Journal::remove_unused`](crate::Journal::remove_unused).
    ///
    /// # Errors
    /// `Io`.
    fn remove_unused(&self, _ids: &[SegmentId]) -> Result<()> {
        Ok(())
    }

    /// See [`Journal::remove_spares`](crate::Journal::remove_spares).
    ///
    /// # Errors
    /// `Io`.
    fn remove_spares(&self) -> Result<u64> {
        Ok(0)
    }

    /// See [`Journal::use_kept_room`](crate::Journal::use_kept_room).
    fn use_kept_room(&self, _flushed: Option<SeqNo>) {}

    /// No record comes any more: the next segment is the last one, and a short one does.
    fn begin_end(&self) {}

    /// The active segment accepts no further groups, and all of it is durable: the journal closes. It stays
    /// active, so that it is not trimmed.
    fn end(&self, _sealed: &SealedEnd) {}

    /// Ends background work; called at least once, possibly more often.
    fn stop(&self);
}

/// Sets the active segment of a list to `state`, with the end in `sealed`.
pub(crate) fn seal_last<L: AsMut<SegmentInfo>>(
    live: &mut VecDeque<L>,
    sealed: Option<&SealedEnd>,
    state: SegmentState,
) {
    let Some(sealed) = sealed.filter(|_| !terrane_base::planted!(LeaveUnsealed)) else { return };
    let last = live.iter_mut().map(AsMut::as_mut).find(|info| info.id == sealed.link.id);
    let last = last.expect("the active segment is live: it cannot be trimmed");
    assert!(last.used <= sealed.used && sealed.used <= last.bytes, "{last:?} cannot end at {}", sealed.used);
    debug_assert!(last.last_seq <= sealed.link.last_seq, "{last:?} has lost records");
    (last.state, last.used, last.last_seq) = (state, sealed.used, sealed.link.last_seq);
}

impl AsMut<SegmentInfo> for SegmentInfo {
    fn as_mut(&mut self) -> &mut SegmentInfo {
        self
    }
}
