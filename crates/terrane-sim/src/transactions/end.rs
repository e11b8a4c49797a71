//! The end of a transaction: commit, rollback, or prepare and then either; and its effect on the model.

use terrane::{Durability, Transaction};

use super::{Over, RunningTransaction, Step};
use crate::draft::mark;
use crate::fault::Crash;
use crate::op::Op;
use crate::prepared_transactions::{PreparedTransaction, name_of, rolls_back};

impl RunningTransaction<'_> {
    pub(super) fn end(mut self, mut running: Transaction, seed: u64) -> Step {
        if !self.overlay.is_empty() {
            let table = self.tables[0].clone();
            let edit = mark(&mut self.numbers, &table);
            self.edit(&mut running, &table, &edit)?;
        }
        if self.is_over() {
            return Err(Over);
        }
        match self.numbers.below(8) {
            0 => {
                self.runner.did("transaction: rolled back");
                running.rollback();
                Ok(())
            }
            1..4 if !self.overlay.is_empty() && self.runner.has_journal => self.prepare(running, seed),
            1..4 if !self.overlay.is_empty() => self.end_unprepared(running, seed),
            _ => self.commit(running),
        }
    }

    fn commit(mut self, running: Transaction) -> Step {
        let refusal = self.refusal();
        let sync = self.numbers.one_in(8) && self.runner.has_journal;
        let mode = if sync { Durability::Synced } else { Durability::Buffered };
        if refusal.is_some() || self.overlay.is_empty() {
            self.runner.make_room();
            let now = self.runner.model.borrow().now();
            self.judge("a commit", running.commit(mode), refusal)?;
            if sync {
                self.runner.note_durable(now);
            }
        } else {
            let changes = self.overlay.changes(&self.runner.model.borrow());
            if !self.runner.write(changes, sync, |_| running.commit(mode).map(drop)) {
                return Err(Over);
            }
        }
        self.runner.did("transaction: committed");
        Ok(())
    }

    /// Both phases, with something in between: perhaps the end of the process.
    fn prepare(mut self, running: Transaction, seed: u64) -> Step {
        let refusal = self.refusal();
        let changes = self.overlay.changes(&self.runner.model.borrow());
        let name = name_of(seed);
        let now = self.runner.model.borrow().now();
        self.runner.make_room();
        if refusal.is_none() {
            self.runner.waiting.borrow_mut().push(PreparedTransaction::new(&name, changes));
        }
        let prepared = running.prepare(&name);
        let is_sure = prepared.is_ok();
        self.judge("a prepare", prepared, refusal)?;
        if self.is_over() || !is_sure {
            return Err(Over);
        }
        self.runner.did("transaction: prepared");
        self.runner
            .waiting
            .borrow_mut()
            .iter_mut()
            .filter(|one| one.name == name)
            .for_each(PreparedTransaction::is_there);
        // It was synced, and with it all before.
        self.runner.note_durable(now);
        if self.between() {
            let crash =
                if self.numbers.one_in(3) { Crash::Kill } else { Crash::Power(self.numbers.next_u64()) };
            self.runner.life.borrow_mut().armed = Some((crash, None));
            self.runner.disk().crash_now(crash);
        }
        if self.is_over() {
            return Err(Over);
        }
        self.runner.resolve(&name);
        Ok(())
    }

    /// Without a journal nothing can be prepared; the reads and the outcome are the same nevertheless.
    fn end_unprepared(mut self, running: Transaction, seed: u64) -> Step {
        if self.refusal().is_some() {
            return self.commit(running);
        }
        let (runner, ends) = (self.runner, self.between());
        if self.is_over() {
            return Err(Over);
        }
        if rolls_back(&name_of(seed)) {
            running.rollback();
        } else {
            self.commit(running)?;
        }
        if ends {
            // A process that dies would leave nothing.
            runner.reopen(0);
        }
        Ok(())
    }

    /// Something between the two phases; whether that is to be the end of the process.
    fn between(&mut self) -> bool {
        let choice = self.numbers.below(6);
        match choice {
            0 => self.runner.use_database(&Op::Flush),
            1 => self.runner.use_database(&Op::Steps { count: 4 }),
            2 => self.runner.use_database(&Op::Check),
            _ => {}
        }
        choice == 3
    }
}
