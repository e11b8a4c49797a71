//! Adding listeners, and waiting for them.

use std::collections::BTreeSet;
use std::sync::Arc;
use terrane_base::sync::atomic::Ordering;

use terrane_base::env::{Env, Step};
use terrane_base::{Error, Result};
use terrane_compaction::JobControl;

use crate::observe::events::{Events, Listener, Queue};

/// The goal of a caller that waits: the ends of flushes, then the events that were queued by then.
struct Awaited {
    flushes: BTreeSet<u64>,
    upto: Option<u64>,
}

impl Awaited {
    /// All running flushes, and all queued events.
    fn of(queue: &Queue) -> Awaited {
        Awaited { flushes: queue.flushes.keys().copied().collect(), upto: None }
    }

    fn is_over(&mut self, queue: &Queue) -> bool {
        // One that a pause holds may never end.
        let runs = |flush: &u64| queue.flushes.get(flush).is_some_and(|control| !control.is_paused());
        self.flushes.retain(runs);
        if !self.flushes.is_empty() {
            return false;
        }
        let upto = *self.upto.get_or_insert(queue.put);
        debug_assert!(upto <= queue.put, "a caller waits for what was queued, or it would wait for ever");
        queue.delivered >= upto
    }
}

impl Events {
    /// A flush begins that will queue an event at its end.
    pub(crate) fn begin_flush(&self, job: u64, control: &Arc<JobControl>) {
        self.queue.lock().flushes.insert(job, control.clone());
    }

    /// The background was paused: wakes callers that wait for a flush, because it may be one that the pause
    /// holds.
    pub(crate) fn look_again(&self) {
        // Under the lock: no caller is between its check and its wait.
        let _queue = self.queue.lock();
        self.changed.notify_all();
    }

    /// The event of the end of a flush is queued.
    pub(crate) fn end_flush(&self, job: u64) {
        let was_there = self.queue.lock().flushes.remove(&job).is_some();
        if was_there {
            self.changed.notify_all();
        }
    }

    /// Waits until all running flushes that are not paused have ended, and listeners got the events that were
    /// queued by then.
    fn wait_until_delivered(&self) {
        let mut queue = self.queue.lock();
        debug_assert!(queue.is_sound(), "a caller would wait for events that were never queued");
        let mut awaited = Awaited::of(&queue);
        while !awaited.is_over(&queue) {
            self.changed.wait(&mut queue);
        }
    }
}

impl Events {
    /// Adds `listener`, which gets all events from now on; the first one starts the thread.
    ///
    /// # Errors
    /// `Cancelled` if the database is closing, `Io` if no thread can be started.
    pub(crate) fn add_listener(
        self: &Arc<Self>,
        (env, instance): (&Env, u64),
        is_closing: impl Fn() -> bool,
        listener: Arc<dyn Listener>,
    ) -> Result<()> {
        let mut thread = self.thread.lock();
        if is_closing() {
            return Err(Error::new(terrane_base::Kind::Cancelled, "the database is closing"));
        }
        if !self.is_heard.load(Ordering::Relaxed) {
            let events = self.clone();
            match env.spawn.stepper() {
                Some(stepper) => stepper.add("terrane-events", Box::new(move || events.step(instance))),
                None => {
                    let body = Box::new(move || events.run(instance));
                    debug_assert!(thread.is_none(), "two threads would deliver events in another order");
                    *thread = Some(env.spawn.spawn("terrane-events", body)?);
                }
            }
        }
        self.queue.lock().listeners.push(listener);
        self.is_heard.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until listeners got all events so far, including the ends of running flushes.
    pub(crate) fn wait_for_listeners(&self, (env, instance): (&Env, u64)) {
        match env.spawn.stepper() {
            // No other thread would call the listeners.
            Some(_) => while self.step(instance) == Step::Worked {},
            None => self.wait_until_delivered(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control() -> Arc<JobControl> {
        Arc::new(JobControl::new(terrane_base::env::Env::real().clock, None))
    }

    #[test]
    fn a_flush_that_is_paused_is_not_waited_for() {
        let (events, paused) = (Arc::new(Events::default()), control());
        events.begin_flush(7, &paused);
        let queue = events.queue.lock();
        let mut awaited = Awaited::of(&queue);
        assert!(!awaited.is_over(&queue), "the flush runs");
        paused.pause();
        assert!(awaited.is_over(&queue), "the flush stands still");
        drop(queue);
        events.wait_until_delivered();
    }

    #[test]
    fn waiting_for_listeners_includes_the_ends_of_running_flushes() {
        let events = Events::default();
        events.begin_flush(7, &control());
        let mut queue = events.queue.lock();
        let mut awaited = Awaited::of(&queue);
        assert!(!awaited.is_over(&queue), "the flush runs");
        queue.put = 3;
        queue.flushes.insert(8, control());
        queue.flushes.remove(&7);
        assert!(!awaited.is_over(&queue), "its end is not delivered");
        (queue.put, queue.delivered) = (5, 3);
        assert!(awaited.is_over(&queue), "flush 8 and what came later do not count");
    }
}
