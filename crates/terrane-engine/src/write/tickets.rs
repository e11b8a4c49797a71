//! Asynchronous writes: a batch is committed without a sync, and a ticket says when it is durable.
//!
//! All steps of a write run on the calling thread before the ticket is made, so the batch has its number, is
//! visible, and its memory is free. One thread of the database ("terrane-tickets", started by the first such
//! write) makes durable what no caller waits for, and calls the callbacks. It counts as a thread of the
//! background ([`crate::reentrancy`]).

use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::{Env, Joiner, Step};
use terrane_base::sync::Mutex;
use terrane_base::{Batch, Error, Kind, Result, SeqNo};
use terrane_journal::{Journal, PersistThrough, Ticket, Tickets};

use crate::readers::feed_waiters::FeedWaiters;
use crate::reentrancy::{Working, works_for};
use crate::shared::Shared;
use crate::throttle::deadline::WriteWait;
use crate::write::WritePath;

/// Tickets that may be in flight; a writer that wants one more waits, or is refused.
pub(crate) const TICKETS_MAX: usize = 1 << 16;

/// Tickets in flight, and the thread that serves them.
pub(crate) struct AsyncWrites {
    tickets: Arc<Tickets>,
    service: Mutex<Service>,
}

#[derive(Default)]
enum Service {
    #[default]
    NotStarted,
    /// With its thread, unless steps do its work.
    Started(Option<Box<dyn Joiner>>),
    Closed,
}

/// The journal, and the readers of changes that wait until commits are durable.
struct DurableJournal {
    journal: Arc<dyn Journal>,
    feed_waiters: Arc<FeedWaiters>,
}

impl PersistThrough for DurableJournal {
    fn persist_through(&self, seq: SeqNo) -> Result<()> {
        self.journal.sync_through(seq)?;
        debug_assert!(self.journal.durable() >= seq, "a sync that succeeded made it durable");
        if !terrane_base::planted!(LeaveDurableReaders) {
            self.feed_waiters.wake_if_waiting();
        }
        Ok(())
    }

    fn durable(&self) -> SeqNo {
        self.journal.durable()
    }
}

impl AsyncWrites {
    pub(crate) fn new(shared: &Shared) -> AsyncWrites {
        let (journal, feed_waiters) = (shared.journal.clone(), shared.readers.of_changes().clone());
        let journal = DurableJournal { journal, feed_waiters };
        let tickets = Tickets::new(Box::new(journal), TICKETS_MAX, &shared.env, log_panic);
        AsyncWrites { tickets, service: Mutex::new(Service::NotStarted) }
    }

    /// Starts what serves tickets, once.
    fn start(&self, env: &Env, instance: u64) -> Result<()> {
        let mut service = self.service.lock();
        match &*service {
            Service::Started(_) => return Ok(()),
            Service::Closed => return Err(Error::new(Kind::Cancelled, "the database is closing")),
            Service::NotStarted => {}
        }
        let tickets = self.tickets.clone();
        let thread = match env.spawn.stepper() {
            Some(stepper) => {
                stepper.add("terrane-tickets", Box::new(move || step(&tickets, instance)));
                None
            }
            None => {
                let run = move || {
                    let _working = Working::of(instance);
                    tickets.run();
                };
                Some(env.spawn.spawn("terrane-tickets", Box::new(run))?)
            }
        };
        *service = Service::Started(thread);
        Ok(())
    }

    /// The number of callbacks that panicked.
    pub(crate) fn callback_panics(&self) -> u64 {
        self.tickets.callback_panics()
    }

    /// Completes every ticket and waits until the callbacks were called, unless one of them closes.
    pub(crate) fn close(&self, instance: u64) {
        self.tickets.close();
        let service = std::mem::replace(&mut *self.service.lock(), Service::Closed);
        match service {
            Service::Started(Some(thread)) if !works_for(instance) => thread.join(),
            Service::Started(None) => while step(&self.tickets, instance) == Step::Worked {},
            _ => {}
        }
    }
}

fn log_panic(seq: SeqNo, text: &str) {
    tracing::error!(target: "terrane::ticket", seq = seq.0, panic = text, "the callback of an asynchronous write panicked");
}

fn step(tickets: &Tickets, instance: u64) -> Step {
    let _working = Working::of(instance);
    tickets.step()
}

impl WritePath {
    /// As [`WritePath::write`], but does not wait for the sync: the ticket says when the batch is durable. It
    /// is visible on return. Without `sync` the ticket is done.
    ///
    /// # Errors
    /// As [`WritePath::write`], but for a failed sync, which the ticket gets.
    pub fn write_async(&self, batch: &Batch, sync: bool) -> Result<Ticket> {
        self.write_for_ticket(batch, sync, &WriteWait::by_options(self), || {
            self.async_writes.tickets.wait_for_room();
            Ok(())
        })
    }

    /// As [`WritePath::write_async`], but never held back.
    ///
    /// # Errors
    /// `Busy` if it would be held back or too many tickets are in flight; otherwise as
    /// [`WritePath::write_within`].
    pub fn try_write_async(&self, batch: &Batch, sync: bool) -> Result<Ticket> {
        self.write_for_ticket(batch, sync, &WriteWait::within(self, Duration::ZERO), || {
            let has_room = self.async_writes.tickets.has_room();
            if has_room { Ok(()) } else { Err(too_many()) }
        })
    }

    fn write_for_ticket(
        &self,
        batch: &Batch,
        sync: bool,
        wait: &WriteWait,
        make_room: impl FnOnce() -> Result<()>,
    ) -> Result<Ticket> {
        // Before anything else: the thread of tickets must not wait for itself.
        self.refuse_if_read_only()?;
        if sync {
            self.async_writes.start(&self.env, self.instance())?;
            make_room()?;
        }
        let seq = self.write_waiting(batch, false, wait)?;
        debug_assert!(seq <= self.visible(), "a ticket is for a visible commit, which can be made durable");
        Ok(if sync { self.async_writes.tickets.issue(seq) } else { self.async_writes.tickets.done(seq) })
    }
}

#[cold]
fn too_many() -> Error {
    Error::new(
        Kind::Busy,
        format!(
            "{TICKETS_MAX} asynchronous writes are not durable yet: nothing is written; wait for one of them"
        ),
    )
}

#[cfg(test)]
mod tests;
