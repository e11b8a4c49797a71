//! How a session waits.
//!
//! A waiting session checks for answers, serves a core that no thread serves, spins, and finally sleeps on
//! its bell, after it has woken every core from which it awaits an answer.

use terrane_base::sync::spin;

use super::{Lane, Session};

/// Turns of waiting before a session sleeps.
const SPIN_TURNS: u32 = 96;

impl Session {
    /// Waits until every lane is as it should be.
    pub(super) fn wait_until(&mut self, is_over: impl Fn(&Lane) -> bool) {
        self.wait_for(|lanes| lanes.iter().all(&is_over));
    }

    pub(super) fn wait_for(&mut self, is_over: impl Fn(&[Lane]) -> bool) {
        for lane in &mut self.lanes {
            lane.client.publish();
        }
        if !self.shared.helps {
            self.wake();
        }
        let mut turn = 0;
        loop {
            if self.look(&is_over) {
                return;
            }
            if self.shared.helps && self.help() {
                turn = 0;
            } else if turn < SPIN_TURNS {
                spin(turn);
                turn += 1;
            } else {
                self.wake();
                self.bell.announce();
                if self.look(&is_over) {
                    self.bell.cancel();
                    return;
                }
                self.bell.sleep();
                turn = 0;
            }
        }
    }

    #[inline]
    fn look(&mut self, is_over: impl Fn(&[Lane]) -> bool) -> bool {
        self.lanes.iter_mut().for_each(|lane| lane.client.look());
        is_over(&self.lanes)
    }

    fn wake(&self) {
        for (lane, desk) in self.lanes.iter().zip(&self.shared.desks) {
            if lane.client.unanswered() > 0 {
                desk.wake();
            }
        }
    }

    /// Serves a core that no thread serves and from which an answer is awaited; returns whether there was
    /// one.
    fn help(&self) -> bool {
        let mut pairs = self.lanes.iter().zip(&self.shared.desks);
        pairs.any(|(lane, desk)| lane.client.unanswered() > 0 && desk.help())
    }
}
