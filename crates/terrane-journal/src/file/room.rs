//! How long the next segment may be on a device with little space.
//!
//! The space of a segment comes back once its records are in extents, and these take as much first, and a
//! part of a block more for each table ([`crate::SegmentRegistrar::flush_overhead`]). So a new segment leaves
//! as much free as all live segments and it may hold: the flush that gives them back then has room, but for
//! merges that run meanwhile, and extents that readers keep. Where the wanted length does not fit, a shorter
//! one is made.
//!
//! A caller that only removes rows may take of the space left free ([`crate::Journal::use_kept_room`]): the
//! flush of it is short, and merges after it give space back. It leaves the room of a merge
//! ([`crate::SegmentRegistrar::merge_room`]): runs of deletes would take that, too, and then nothing could
//! give space back. Others leave the room of one such segment more, so that one of deletes is made in any
//! case.

use terrane_base::{Error, Kind, Result, SeqNo};

use super::{Live, Shared};
use crate::SegmentState;

/// The callers that may take of the space that is left free for flushes.
#[derive(Debug, Default)]
pub(super) struct KeptRoom {
    /// Callers that may.
    users: u32,
    /// Everything up to this number was flushed when the last of them came.
    flushed: SeqNo,
    /// The same, when a segment took of it last: another one needs another flush before.
    taken: Option<SeqNo>,
}

impl KeptRoom {
    /// A caller may take of it from now on; or, with `None`, may no longer.
    pub(super) fn allow(&mut self, flushed: Option<SeqNo>) {
        match flushed {
            Some(flushed) => {
                self.users += 1;
                self.flushed = self.flushed.max(flushed);
                debug_assert!(self.taken <= Some(self.flushed), "a segment was made behind a later flush");
            }
            None => {
                assert!(self.users > 0, "a caller that may not use the kept room says that it is done");
                self.users -= 1;
            }
        }
    }

    /// Takes of it for one segment, if that is allowed.
    fn take(&mut self) -> Option<Taken> {
        debug_assert!(self.taken.is_none_or(|taken| taken <= self.flushed), "{self:?}");
        let is_again = self.taken == Some(self.flushed) && !terrane_base::planted!(TakeKeptRoomAgain);
        let is_free = self.users > 0 && !is_again;
        is_free.then(|| Taken { number: self.flushed, before: self.taken.replace(self.flushed) })
    }

    fn give_back(&mut self, taken: Taken) {
        debug_assert!(self.taken >= Some(taken.number), "only what was taken is given back");
        // What a segment has taken after a later flush stays taken.
        if self.taken == Some(taken.number) {
            self.taken = taken.before;
        }
    }
}

/// A part of the kept space that a segment takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// Everything up to this number was flushed then.
    number: SeqNo,
    /// The number of the segment that took of it before.
    before: Option<SeqNo>,
}

/// The space that a segment takes which is to be made.
#[derive(Clone, Copy)]
#[must_use]
pub(super) enum Room {
    /// Space that no flush needs.
    Free,
    /// A part of the kept space.
    Kept(Taken),
}

impl Shared {
    /// Prepares a segment of `wanted` bytes, or the longest half, quarter and so on of it that the device has
    /// room for, of `needed` bytes at least.
    pub(super) fn prepare_fitting(&self, needed: u64, wanted: u64) -> Result<Live> {
        let least = needed.max(self.shortest());
        let mut bytes = wanted.max(needed);
        loop {
            match self.prepare(bytes) {
                Err(error) if error.kind() == Kind::Full && bytes > least => bytes = (bytes / 2).max(least),
                Ok(live) => {
                    assert!(live.info.bytes >= needed, "{:?} lacks room for {needed} bytes", live.info);
                    if bytes < wanted {
                        // The ones after it grow from there.
                        self.state.lock().next_bytes = bytes;
                    }
                    return Ok(live);
                }
                refused => return refused,
            }
        }
    }

    fn shortest(&self) -> u64 {
        self.settings.first_segment_bytes.min(self.settings.segment_bytes)
    }

    /// Refuses a segment of `bytes`, of which `new` are taken from the device, if a flush would lack space.
    ///
    /// # Errors
    /// `Full`, with the remedy.
    pub(super) fn leave_room(&self, bytes: u64, new: u64) -> Result<Room> {
        debug_assert!(new <= bytes, "a file that is there takes nothing, a new one all of it");
        if !self.settings.leaves_room || terrane_base::planted!(LeaveNoRoom) {
            return Ok(Room::Free);
        }
        let has_records = |live: &&Live| live.info.state != SegmentState::Unused;
        let live: u64 = self.state.lock().live.iter().filter(has_records).map(Live::memory_bytes).sum();
        // A device without such an answer says so when it is full.
        let Ok(free) = self.disk.free_bytes(&self.dir) else { return Ok(Room::Free) };
        let (overhead, merge) = (self.registrar.flush_overhead(bytes), self.registrar.merge_room());
        let merge = if terrane_base::planted!(LeaveNoMergeRoom) { 0 } else { merge };
        let for_deletes = if merge > 0 { merge.saturating_add(self.shortest() + overhead) } else { 0 };
        let kept = (live + bytes).saturating_add(overhead).saturating_add(for_deletes);
        assert!(kept >= new, "a new segment is flushed as well, {new} bytes of {kept}");
        if free >= new.saturating_add(kept) {
            return Ok(Room::Free);
        }
        if bytes <= self.shortest()
            && (free >= new.saturating_add(for_deletes.saturating_sub(self.shortest()))
                || terrane_base::planted!(DeletesTakeMergeRoom))
            && let Some(taken) = self.state.lock().kept_room.take()
        {
            return Ok(Room::Kept(taken));
        }
        let (dir, lacking) = (self.dir.display(), new.saturating_add(kept).saturating_sub(free));
        let error = Error::new(
            Kind::Full,
            format!(
                "no space for a journal segment of {bytes} bytes in {dir}: {free} bytes are free on the device, and besides \
                 the segment {kept} must stay free for the flush of what the journal holds and for merges after it; free some on \
                 the device, or delete rows, then commits succeed again: {lacking} bytes are enough"
            ),
        );
        Err(error.of_space())
    }

    /// The segment was not made.
    pub(super) fn give_room_back(&self, room: Room) {
        if let Room::Kept(taken) = room {
            self.state.lock().kept_room.give_back(taken);
        }
    }
}
