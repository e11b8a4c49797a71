//! Events at a call of the device: the bounds of a crash are noted, or another operation runs in the middle.

use crate::disk::Watcher;
use crate::fault::Crash;
use crate::model::Change;
use crate::op::Op;
use crate::run::Runner;

/// In the middle of which call something else comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum During {
    /// A read or write of a data file; nothing the write way or the read way needs is locked.
    Transfer,
    /// Another call on a data file; as above.
    Data,
    /// A change of the journal, the manifest or a directory: writers may have to wait for it, readers never.
    Log,
}

impl Watcher for Runner {
    fn at_crash(&self) {
        let crash = self.life.borrow().armed.map_or(Crash::Power(0), |(crash, _)| crash);
        if !self.is_opening.get() {
            let allowed = self.allowed(crash);
            self.life.borrow_mut().captured = Some(allowed);
        } else if crash != Crash::Kill {
            self.weaken_captured();
        }
    }

    fn during_call(&self, of: During) {
        if self.nesting.get() > 0 || self.db.borrow().is_none() {
            return;
        }
        let due = {
            let mut life = self.life.borrow_mut();
            // An operation that may interrupt only data calls waits for one.
            let may_write = !self.is_transacting.get();
            let is_meant = |op: &Op| {
                (of != During::Log || op.is_read()) && (may_write || !matches!(op, Op::Batch { .. }))
            };
            let waiting = life.during.iter_mut().filter(|(_, op)| is_meant(op));
            waiting.for_each(|(after, _)| *after = after.saturating_sub(1));
            let index = life.during.iter().position(|(after, op)| *after == 0 && is_meant(op));
            index.map(|index| life.during.remove(index).1)
        };
        let Some(op) = due else { return };
        self.nesting.set(1);
        if self.may_nest(&op, of) {
            self.count(|outcome| outcome.nested += 1);
            self.use_database(&op);
        }
        self.nesting.set(0);
    }
}

impl Runner {
    /// Returns true if no operation is under way around this one.
    pub(crate) fn is_outermost(&self) -> bool {
        self.nesting.get() == 0
    }

    /// A batch that may be in the image that was just taken, too.
    pub(crate) fn add_to_captured(&self, changes: Vec<Change>) {
        if let Some(captured) = &mut self.life.borrow_mut().captured {
            captured.extra.get_or_insert(changes);
        }
    }

    fn may_nest(&self, op: &Op, of: During) -> bool {
        let is_calm = self.struck().sum() == 0 && !self.life.borrow().is_cramped;
        match op {
            Op::Steps { .. } => of == During::Transfer,
            // A writer that waits for memory in the middle of the job that brings it back waits for ever.
            Op::Batch { .. } => is_calm && self.db().pressure() < 0.5,
            Op::Snapshot { .. } => true,
            op => op.is_read(),
        }
    }
}
