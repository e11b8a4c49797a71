//! Asynchronous writes: a batch counts as committed when the call returns, and as durable only once its
//! ticket is done.
//!
//! Each ticket ends in one of these ways, and the oracle's bounds follow from it:
//! * it is done without an error: a loss of power leaves its batch, with every commit before it
//! * it is done with an error: the journal is poisoned, and no later commit may succeed
//! * the process dies before: the batch may be lost with the power, as a buffered one
//! * it is dropped: as a buffered batch, which a later sync or the close makes durable.
//!
//! A close leaves no ticket behind, and no callback that was not called.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use terrane::{Durability, Kind, Ticket};
use terrane_base::Rng;

use crate::act::changes_of;
use crate::op::{Edit, Op, Value};
use crate::run::Runner;

/// Edits of a batch, at most.
const EDITS_MAX: u64 = 5;

/// The use of a ticket by its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Keeps it, and looks from time to time whether it is done.
    Keep,
    /// Keeps it, and adds a callback.
    Call,
    /// Drops it.
    Drop,
}

/// The words of a script.
pub(crate) const USES: [(&str, Use); 3] = [("keep", Use::Keep), ("call", Use::Call), ("drop", Use::Drop)];

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = USES.iter().find(|(_, known)| known == self).map(|(word, _)| *word);
        f.write_str(word.expect("every use has a word"))
    }
}

/// The outcomes that a callback got: true without an error.
type Outcomes = Arc<Mutex<Vec<bool>>>;

/// A ticket that is not known to be done.
pub(crate) struct InFlight {
    ticket: Ticket,
    /// The number of commits, its own included.
    moment: u64,
    outcomes: Option<Outcomes>,
}

/// A callback that is due, and the outcome that it must get.
pub(crate) struct Due {
    outcomes: Outcomes,
    is_durable: bool,
}

/// An asynchronous write, or a wait for the ticket of one. Stamps are far from those of other values.
pub(crate) fn draw(numbers: &mut Rng, tables: &[String], keys: u64) -> Op {
    if numbers.one_in(4) {
        return Op::Await { which: numbers.below(8) };
    }
    let count = 1 + numbers.skewed(EDITS_MAX);
    let edits = (0..count).map(|_| {
        let (table, key) = (numbers.pick(tables).clone(), numbers.below(keys));
        let value = Value { len: numbers.skewed(600), stamp: numbers.next_u64() | 1 << 63 };
        Edit { table, key, value: (!numbers.one_in(5)).then_some(value) }
    });
    let edits = edits.collect();
    Op::WriteAsync { edits, ticket: numbers.pick(&USES).1 }
}

impl Runner {
    /// Commits a batch without a wait for its sync.
    pub(crate) fn write_async(&self, edits: &[Edit], how: Use) {
        let changes = changes_of(edits, &self.model.borrow());
        if changes.is_empty() {
            return;
        }
        let (db, mut issued) = (self.db(), None);
        let is_written = self.write(changes, false, |changes| {
            issued = Some(db.write_async(&crate::act::batch_of(&db, changes)?, Durability::Synced)?);
            Ok(())
        });
        let Some(ticket) = issued.filter(|_| is_written) else { return };
        let moment = self.model.borrow().now();
        if how == Use::Drop {
            return self.did("asynchronous write: ticket dropped");
        }
        let outcomes = (how == Use::Call).then(|| {
            let outcomes = Outcomes::default();
            let added = outcomes.clone();
            ticket.on_done(move |outcome| added.lock().push(outcome.is_ok()));
            outcomes
        });
        self.life.borrow_mut().in_flight.push(InFlight { ticket, moment, outcomes });
    }

    /// Waits for one of the tickets in flight.
    pub(crate) fn await_ticket(&self, which: u64) {
        let one = {
            let tickets = &mut self.life.borrow_mut().in_flight;
            let count = tickets.len() as u64;
            (count > 0).then(|| tickets.remove((which % count) as usize))
        };
        let Some(one) = one else { return };
        let _outcome = one.ticket.wait();
        if !self.disk().has_crashed() {
            self.judge_ticket(one);
        }
    }

    /// Takes note of the tickets that are done.
    pub(crate) fn note_tickets(&self) {
        if self.disk().has_crashed() {
            return;
        }
        let tickets = std::mem::take(&mut self.life.borrow_mut().in_flight);
        let (done, rest): (Vec<_>, Vec<_>) = tickets.into_iter().partition(|one| one.ticket.is_done());
        self.life.borrow_mut().in_flight = rest;
        done.into_iter().for_each(|one| self.judge_ticket(one));
    }

    fn judge_ticket(&self, InFlight { ticket, moment, outcomes }: InFlight) {
        let outcome = ticket.wait();
        self.world.note(u64::from(outcome.is_ok()));
        let is_durable = outcome.is_ok();
        self.life.borrow_mut().due.extend(outcomes.map(|outcomes| Due { outcomes, is_durable }));
        match outcome {
            Ok(seq) if seq != ticket.seq() => {
                self.fail(format!("the ticket of commit {} says {seq}", ticket.seq()));
            }
            Ok(_) => {
                self.did("asynchronous write: durable");
                if self.has_journal {
                    self.note_durable(moment);
                }
            }
            Err(error) => {
                self.did("asynchronous write: failed sync");
                self.met("ticket", &error);
                if error.kind() != Kind::Full {
                    self.life.borrow_mut().is_poisoned = true;
                }
            }
        }
    }

    /// The database is closed: every ticket is done, and every callback was called once.
    pub(crate) fn judge_closed_tickets(&self) {
        if self.disk().has_crashed() {
            return;
        }
        self.note_tickets();
        let mut life = self.life.borrow_mut();
        let left = life.in_flight.first().map(|one| one.ticket.seq());
        let due = std::mem::take(&mut life.due);
        drop(life);
        if let Some(seq) = left {
            self.fail(format!("a close left the ticket of commit {seq}"));
        }
        for Due { outcomes, is_durable } in due {
            self.did("asynchronous write: called back");
            let outcomes = outcomes.lock().clone();
            if outcomes != [is_durable] {
                self.fail(format!("a callback got {outcomes:?} instead of {is_durable}, once"));
            }
        }
    }
}
