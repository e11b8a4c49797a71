//! Indexed batches of a run: changes that are read before they are written, over the present or over a
//! snapshot.

use std::ops::Bound;

use terrane::{Durability, IndexedBatch, Snapshot, Table};
use terrane_base::Rng;

use crate::draft::{draw_edit, draw_key, mark};
use crate::op::key;
use crate::overlay::{Edits as _, Overlay};
use crate::run::Runner;
use crate::transactions::STEPS_MAX;

/// A batch, and what the model makes of it.
struct BatchBuilder<'r> {
    runner: &'r Runner,
    numbers: Rng,
    tables: Vec<Table>,
    batch: IndexedBatch,
    overlay: Overlay,
    saved: Vec<Overlay>,
}

impl Runner {
    /// Makes an indexed batch, reads it and writes it.
    pub(crate) fn index(&self, tables: &[String], seed: u64) {
        let Some(tables) = self.tables_of(tables) else { return };
        let mut builder = BatchBuilder {
            runner: self,
            numbers: Rng::new(seed),
            tables,
            batch: IndexedBatch::new(),
            overlay: Overlay::default(),
            saved: Vec::new(),
        };
        // All its reads are compared with one moment.
        self.is_transacting.set(true);
        match builder.fill() {
            Ok(()) if !self.disk().has_crashed() && self.failure.borrow().is_none() => builder.write(),
            Ok(()) => {}
            Err(error) => self.met("indexed batch", &error),
        }
        self.is_transacting.set(false);
    }
}

impl BatchBuilder<'_> {
    fn table(&mut self) -> Table {
        self.numbers.pick(&self.tables).clone()
    }

    fn fill(&mut self) -> terrane::Result<()> {
        for _ in 0..1 + self.numbers.below(STEPS_MAX) {
            match self.numbers.below(8) {
                0..4 => self.change()?,
                4 => self.savepoint()?,
                5 => self.get()?,
                _ => self.scan()?,
            }
        }
        let table = self.tables[0].clone();
        let edit = mark(&mut self.numbers, &table);
        self.batch.edit(&table, &edit.what)?;
        self.overlay.make(&edit);
        Ok(())
    }

    fn change(&mut self) -> terrane::Result<()> {
        let table = self.table();
        let edit = {
            let (model, clock) = (self.runner.model.borrow(), self.runner.wall_millis());
            draw_edit(&mut self.numbers, &table, &self.overlay, &model, model.now(), clock)
        };
        self.runner.did(&format!("indexed batch: {}", edit.what.name()));
        self.batch.edit(&table, &edit.what)?;
        self.overlay.make(&edit);
        Ok(())
    }

    fn savepoint(&mut self) -> terrane::Result<()> {
        self.runner.did("indexed batch: savepoint");
        if self.numbers.one_in(2) {
            self.batch.mark();
            self.saved.push(self.overlay.clone());
        } else if let Some(overlay) = self.saved.pop() {
            self.batch.go_back()?;
            self.overlay = overlay;
        }
        Ok(())
    }

    /// The rows below the batch: the present, or a snapshot.
    fn under(&mut self) -> (Option<Snapshot>, u64) {
        let life = self.runner.life.borrow();
        let of_snapshot = life.snapshots.get(&self.numbers.below(6));
        match of_snapshot {
            Some((snapshot, moment)) => (Some(snapshot.clone()), *moment),
            None => (None, self.runner.model.borrow().now()),
        }
    }

    fn get(&mut self) -> terrane::Result<()> {
        let (table, key) = (self.table(), key(draw_key(&mut self.numbers)));
        let (snapshot, at) = self.under();
        self.runner.did("indexed batch: read");
        let found = match &snapshot {
            Some(snapshot) => self.batch.get_at(snapshot, &table, &key)?,
            None => self.batch.get(&table, &key)?,
        };
        let found = found.map(terrane::Value::into_vec);
        let place = (table.name().to_owned(), key);
        let expected = self.overlay.get(&self.runner.model.borrow(), &place, at);
        self.runner.note_answer(found.as_deref());
        if found != expected && !self.runner.disk().has_crashed() {
            self.runner.fail(format!(
                "indexed batch: \"{}\" of {:?} is {:?} bytes, expected {:?}",
                place.1.escape_ascii(),
                place.0,
                found.map(|value| value.len()),
                expected.map(|value| value.len())
            ));
        }
        Ok(())
    }

    fn scan(&mut self) -> terrane::Result<()> {
        let table = self.table();
        let mut bound = || match self.numbers.below(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(key(draw_key(&mut self.numbers))),
            _ => Bound::Excluded(key(draw_key(&mut self.numbers))),
        };
        let (lower, upper) = (bound(), bound());
        let bounds = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
        let (snapshot, at) = self.under();
        let mut turns = Rng::new(self.numbers.next_u64());
        let way = self.numbers.below(3);
        self.runner.did("indexed batch: scan");
        let rows = match &snapshot {
            Some(snapshot) => self.batch.range_at(snapshot, &table, bounds),
            None => self.batch.range(&table, bounds),
        };
        let rows: Vec<_> = match way {
            0 => rows.collect::<terrane::Result<_>>()?,
            1 => rows.rev().collect::<terrane::Result<_>>()?,
            _ => crate::read::both_ends(rows, &mut turns)?,
        };
        let mut expected = self.overlay.rows(&self.runner.model.borrow(), table.name(), bounds, at);
        if way == 1 {
            expected.reverse();
        }
        rows.iter().for_each(|(key, value)| self.runner.note_row(key, value));
        if rows != expected && !self.runner.disk().has_crashed() {
            self.runner.fail(format!(
                "indexed batch: scan from {lower:?} to {upper:?} of {:?}, way {way}: {} rows, expected {}",
                table.name(),
                rows.len(),
                expected.len()
            ));
        }
        Ok(())
    }

    fn write(&mut self) {
        let changes = self.overlay.changes(&self.runner.model.borrow());
        let sync = self.numbers.one_in(8) && self.runner.has_journal;
        let mode = if sync { Durability::Synced } else { Durability::Buffered };
        let db = self.runner.db();
        if self.runner.write(changes, sync, |_| self.batch.write(&db, mode).map(drop)) {
            self.runner.did("indexed batch: written");
        }
    }
}
