//! The prepared segment: taken by a rotation, or set aside while a better one is prepared.
//!
//! Where the device refuses the better one, the segment that was set aside is ready again: on a full device
//! it is all the room that commits have.

use terrane_base::sync::{MutexGuard, unlocked};
use terrane_base::{Result, verify};

use super::{Live, Shared, State};

impl Shared {
    /// Takes the prepared segment. If no segment is, waits for one of `bytes` or more; it may be one that was
    /// in the making before, with fewer bytes. Called by the leader.
    ///
    /// # Errors
    /// Why the device or the registrar refused it.
    pub(super) fn take_ready(&self, state: &mut MutexGuard<'_, State>, bytes: u64) -> Result<Live> {
        state.refused = None;
        loop {
            if let Some(ready) = state.ready.take() {
                debug_assert!(ready.info.used == 0, "{:?} was used before", ready.info);
                return Ok(ready);
            }
            if let Some(refused) = state.refused.take().or_else(|| state.refusal()) {
                return Err(refused);
            }
            state.wanted = Some(bytes);
            self.changed.notify_all();
            if self.has_threads {
                self.changed.wait(state);
            } else {
                // Runs the preparer only: other waiters may wait for the lead, which the caller has.
                unlocked(state, || self.prepare_step());
            }
        }
    }

    /// See [`Medium::give_up_long`](crate::medium::Medium::give_up_long).
    pub(super) fn give_up_long(&self) {
        let mut state = self.state.lock();
        debug_assert!(state.active().is_none(), "behind an active segment it would stay");
        let longest = self.settings.segment_bytes;
        // One in the making counts as well: nothing takes back that it comes.
        let coming = state.ready.as_ref().map_or(state.preparing, |ready| ready.info.bytes);
        if coming <= longest || state.next_bytes > longest || terrane_base::planted!(KeepLongSegment) {
            return;
        }
        while let Ok(ready) = self.take_ready(&mut state, 0) {
            if ready.info.bytes <= longest || state.aside.is_some() {
                state.ready = Some(ready);
                state.list_aside();
                break;
            }
            state.set_aside(ready);
        }
        state.put_back();
        verify!(state.check());
    }
}

impl State {
    /// Another one is to be prepared instead of `segment`.
    pub(super) fn set_aside(&mut self, segment: Live) {
        if let Some(before) = self.aside.replace(segment) {
            self.push_unused(before);
        }
        debug_assert!(self.ready.is_none(), "the ready segment is taken first");
    }

    /// There is a better one: what was set aside is not used.
    pub(super) fn list_aside(&mut self) {
        if let Some(unused) = self.aside.take() {
            self.push_unused(unused);
        }
        debug_assert!(self.aside.is_none(), "a segment is listed or set aside");
    }

    /// There is no better one: the segment that was set aside, if one was, is ready again.
    pub(super) fn put_back(&mut self) {
        // The preparer of a journal that ends may still be at one.
        if self.preparing > 0 || self.ready.is_some() {
            self.list_aside();
        } else {
            self.ready = self.aside.take();
        }
        debug_assert!(self.aside.is_none(), "a segment is ready or set aside");
    }
}
