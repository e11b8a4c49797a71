//! A metasnapshot: all levels and overflow runs of a table at one moment, immutable.
//!
//! Invariants: each level and each run is sorted and disjoint; no extent occurs twice; runs are ordered
//! newest first; no run is empty, nor is the deepest level.

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_base::{Error, ExtentId, Result};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::Place;
use terrane_format::manifest::edit::LEVEL_MAX;
use terrane_table::Extent;

use crate::chunk::{HasMeta, Totals};
use crate::level::{Level, Removal};
use crate::slots::Slots;
use crate::values::{Moves, ValueTables};

/// An overflow run (L0): sorted and disjoint in itself, may overlap everything else.
#[derive(Debug)]
pub struct Run<E = Arc<Extent>> {
    /// Its number; a higher number is newer.
    pub id: u64,
    /// Its extents.
    pub level: Arc<Level<E>>,
}

/// All levels and overflow runs of a table at one moment. Immutable; [`Metasnapshot::apply`] makes a new one.
///
/// Each level and each run is sorted and disjoint, no extent occurs twice, no run is empty, nor is the
/// deepest level.
#[derive(Debug)]
pub struct Metasnapshot<E = Arc<Extent>> {
    /// Overflow runs, newest first.
    pub runs: Vec<Run<E>>,
    /// Levels; the first is L1.
    pub levels: Vec<Arc<Level<E>>>,
    /// The value tables that entries of runs and levels point into.
    pub values: ValueTables<E>,
    slots: Slots,
}

/// One change of a metasnapshot. Removals refer to the state before all changes.
#[derive(Clone, Debug)]
pub enum Change<E = Arc<Extent>> {
    /// Adds an extent; a run that does not exist is created.
    Add {
        /// To which level or run.
        place: Place,
        /// The extent.
        extent: E,
    },
    /// Removes an extent; a run is removed with its last one.
    Remove {
        /// From which level or run.
        place: Place,
        /// Which extent.
        id: ExtentId,
        /// Its smallest key.
        smallest: Vec<u8>,
    },
}

impl<E: HasMeta> Change<E> {
    /// Removes `extent` from `place`.
    #[must_use]
    pub fn remove(place: Place, extent: &E) -> Self {
        Change::Remove { place, id: extent.meta().id, smallest: extent.meta().smallest.clone() }
    }

    fn place(&self) -> Place {
        match self {
            Change::Add { place, .. } | Change::Remove { place, .. } => *place,
        }
    }
}

impl<E> Clone for Run<E> {
    fn clone(&self) -> Self {
        Run { id: self.id, level: self.level.clone() }
    }
}

impl<E> Clone for Metasnapshot<E> {
    fn clone(&self) -> Self {
        let (runs, levels) = (self.runs.clone(), self.levels.clone());
        Metasnapshot { runs, levels, values: self.values.clone(), slots: self.slots.clone() }
    }
}

impl<E> Default for Metasnapshot<E> {
    fn default() -> Self {
        let (values, slots) = (ValueTables::default(), Slots::default());
        Metasnapshot { runs: Vec::new(), levels: Vec::new(), values, slots }
    }
}

impl<E: HasMeta> Metasnapshot<E> {
    /// A table without extents.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The metasnapshot after `changes`, sharing every chunk that they do not touch.
    ///
    /// # Errors
    /// `Invalid` if an extent to be removed is missing or named twice, if an added one exists already, if
    /// extents would overlap in a level or run, or if a new run is older than an existing one; if an extent
    /// points into a value table that is not there, or a value table is to be removed by name.
    pub fn apply(&self, changes: Vec<Change<E>>) -> Result<Self> {
        self.apply_listing(changes).map(|(next, _)| next)
    }

    /// As [`Metasnapshot::apply`]; also returns the value tables that the last pointer has left.
    ///
    /// # Errors
    /// As there.
    pub fn apply_listing(&self, changes: Vec<Change<E>>) -> Result<(Self, Vec<E>)> {
        let mut next = self.clone();
        let gone = next.apply_in_place(changes)?;
        let emptied: Vec<E> = gone.into_iter().filter(|extent| extent.meta().value_table.is_some()).collect();
        let mut numbers = emptied.iter().filter_map(|extent| extent.meta().value_table.map(|it| it.number));
        debug_assert!(
            numbers.all(|number| next.values.get(number).is_none()),
            "a value table that left is not found any more"
        );
        Ok((next, emptied))
    }

    /// As [`Metasnapshot::apply`], in place; unusable after an error. Returns the removed extents, value
    /// tables included.
    pub(crate) fn apply_in_place(&mut self, changes: Vec<Change<E>>) -> Result<Vec<E>> {
        let before = if cfg!(debug_assertions) { self.totals().extents } else { 0 };
        let mut by_place: BTreeMap<Place, Vec<Change<E>>> = BTreeMap::new();
        for change in changes {
            by_place.entry(change.place()).or_default().push(change);
        }
        let mut gone = Vec::new();
        let mut come = Vec::new();
        let mut moves = Moves::default();
        for (place, changes) in by_place {
            let (removals, added) = split(&changes);
            come.extend(added.iter().map(|extent| (extent.meta().id, extent.meta().slots)));
            if place == Place::Values {
                self.add_values(&removals, added)?;
                continue;
            }
            added.iter().try_for_each(|extent| come_in(&mut moves, extent.meta()))?;
            let stays = added.is_empty() && terrane_base::planted!(KeepHiddenReferences);
            let level = Arc::make_mut(self.level_mut(place)?);
            let removed = level.replace_in_place(&removals, added).map_err(|e| e.context(show(place)))?;
            let mut leaving = removed.iter().filter(|_| !stays);
            leaving.try_for_each(|extent| moves.go(extent.meta()))?;
            gone.extend(removed);
        }
        gone.extend(self.values.count(&moves)?);
        for extent in &gone {
            self.slots.free(extent.meta().id, extent.meta().slots)?;
        }
        let (came, went) = (come.len() as u64, gone.len() as u64);
        for (id, count) in come {
            self.slots.take(id, count)?;
        }
        self.trim();
        debug_assert!(
            self.totals().extents + went == before + came,
            "of {before} extents and {came} that came {went} went, so {} cannot be left",
            self.totals().extents
        );
        Ok(gone)
    }

    /// Adds value tables. None can be removed by name.
    fn add_values(&mut self, removals: &[Removal<'_>], added: Vec<E>) -> Result<()> {
        if let Some(removal) = removals.first() {
            let id = removal.id;
            return Err(Error::invalid(format!(
                "value table {id} leaves with the last pointer into it only"
            )));
        }
        let all = self.values.len() + added.len();
        added.into_iter().try_for_each(|extent| self.values.add(extent))?;
        debug_assert!(self.values.len() == all, "each value table has a number of its own");
        Ok(())
    }

    /// The metasnapshot without the extents that `hidden` names, and without the value tables that only they
    /// point into: it is called for each level and run and returns ascending indexes. Compares no keys: see
    /// [`Level::without`].
    #[must_use]
    pub fn without(&self, mut hidden: impl FnMut(Place, &Level<E>) -> Vec<usize>) -> Self {
        let Metasnapshot { mut runs, mut levels, mut values, mut slots } = self.clone();
        let mut moves = Moves::default();
        let mut hide = |place: Place, level: &mut Arc<Level<E>>| {
            let hidden = hidden(place, level);
            if hidden.is_empty() {
                return;
            }
            for &index in &hidden {
                let meta = level.get(index).meta();
                slots.free(meta.id, meta.slots).expect("an extent of a metasnapshot owns its slots");
                moves.go(meta).expect("pointers that were counted can be counted");
            }
            *level = Arc::new(level.without(&hidden));
        };
        runs.iter_mut().for_each(|run| hide(Place::Run(run.id), &mut run.level));
        (1..).map(Place::Level).zip(&mut levels).for_each(|(place, level)| hide(place, level));
        let emptied = values.count(&moves).expect("pointers that go have come");
        for extent in &emptied {
            let meta = extent.meta();
            slots.free(meta.id, meta.slots).expect("a value table of a metasnapshot owns its slots");
        }
        let mut next = Metasnapshot { runs, levels, values, slots };
        next.trim();
        debug_assert!(next.totals().extents <= self.totals().extents, "extents are hidden, none is added");
        next
    }

    /// Removes empty runs and empty deepest levels.
    fn trim(&mut self) {
        self.runs.retain(|run| !run.level.is_empty());
        while self.levels.last().is_some_and(|level| level.is_empty()) {
            self.levels.pop();
        }
        debug_assert!(self.runs.is_sorted_by(|a, b| a.id > b.id), "readers ask the newest run first");
    }

    /// The level or run at `place`, created if it does not exist.
    fn level_mut(&mut self, place: Place) -> Result<&mut Arc<Level<E>>> {
        match place {
            Place::Level(number @ 1..=LEVEL_MAX) => {
                let index = usize::from(number) - 1;
                if self.levels.len() <= index {
                    self.levels.resize_with(index + 1, Arc::default);
                }
                Ok(&mut self.levels[index])
            }
            Place::Level(number) => {
                Err(Error::invalid(format!("level {number} is out of range: 1 to {LEVEL_MAX}")))
            }
            Place::Run(id) => {
                let index = match self.runs.iter().position(|run| run.id == id) {
                    Some(index) => index,
                    None if self.runs.first().is_none_or(|newest| newest.id < id) => {
                        self.runs.insert(0, Run { id, level: Arc::default() });
                        0
                    }
                    None => {
                        let newest = self.runs[0].id;
                        return Err(Error::invalid(format!("new run {id} is older than run {newest}")));
                    }
                };
                debug_assert!(
                    self.runs.is_sorted_by(|a, b| a.id > b.id),
                    "readers would ask an older run first"
                );
                Ok(&mut self.runs[index].level)
            }
            Place::Values => {
                Err(Error::invalid("value tables belong to no level: name a level or an overflow run"))
            }
        }
    }

    /// The level or run at `place`.
    #[must_use]
    pub fn level(&self, place: Place) -> Option<&Arc<Level<E>>> {
        match place {
            Place::Level(number) => self.levels.get(usize::from(number).checked_sub(1)?),
            Place::Run(id) => self.runs.iter().find(|run| run.id == id).map(|run| &run.level),
            Place::Values => None,
        }
    }

    /// Every extent with its place: of runs and levels as [`Metasnapshot::places`] gives them, then the value
    /// tables.
    pub fn extents(&self) -> impl Iterator<Item = (Place, &E)> {
        let keyed = self.places().flat_map(|(place, level)| level.iter().map(move |extent| (place, extent)));
        keyed.chain(self.values.iter().map(|table| (Place::Values, &table.extent)))
    }

    /// Every level and run with its name: runs newest first, then levels from L1.
    pub fn places(&self) -> impl Iterator<Item = (Place, &Arc<Level<E>>)> {
        let runs = self.runs.iter().map(|run| (Place::Run(run.id), &run.level));
        runs.chain((1..).map(Place::Level).zip(&self.levels))
    }

    /// Sums for each level and run, for display: runs newest first, then levels from L1, empty ones included.
    #[must_use]
    pub fn summary(&self) -> Vec<(Place, Totals)> {
        self.places().map(|(place, level)| (place, level.totals())).collect()
    }

    /// Sums over everything, value tables included; their entries are counted where they are pointed to only.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let values = Totals { entries: 0, ..self.values.totals() };
        self.places().fold(values, |sum, (_, level)| sum.plus(level.totals()))
    }

    /// Bytes of the blocks of runs and levels before compression: what a cache would need for all of them.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.places().map(|(_, level)| level.totals().raw_bytes).fold(0, u64::saturating_add)
    }

    /// Returns true if there is no extent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.levels.is_empty() && self.values.is_empty()
    }

    /// A metasnapshot of the same shape with the extents that `make` returns for these: opens the extents
    /// that a manifest describes.
    ///
    /// # Errors
    /// Any error of `make`.
    pub fn try_map<F: HasMeta>(&self, mut make: impl FnMut(&E) -> Result<F>) -> Result<Metasnapshot<F>> {
        let mut map = |level: &Arc<Level<E>>| level.try_map(&mut make).map(Arc::new);
        let runs = self.runs.iter().map(|run| Ok(Run { id: run.id, level: map(&run.level)? }));
        let runs = runs.collect::<Result<_>>()?;
        let levels = self.levels.iter().map(&mut map).collect::<Result<_>>()?;
        let values = self.values.try_map(&mut make)?;
        Ok(Metasnapshot { runs, levels, values, slots: self.slots.clone() })
    }

    /// Checks every invariant of the module's head.
    ///
    /// # Errors
    /// `Invalid`, naming what breaks one.
    pub fn check(&self) -> Result<()> {
        let mut slots = Slots::default();
        for (place, level) in self.places() {
            level.check().map_err(|error| error.context(show(place)))?;
            level.iter().try_for_each(|extent| slots.take(extent.meta().id, extent.meta().slots))?;
        }
        for (_, extent) in self.extents().filter(|(place, _)| *place == Place::Values) {
            slots.take(extent.meta().id, extent.meta().slots)?;
        }
        self.values.check(self.places().flat_map(|(_, level)| level.iter()))?;
        let ordered = self.runs.windows(2).all(|pair| pair[0].id > pair[1].id);
        let filled = self.runs.iter().all(|run| !run.level.is_empty());
        if !ordered || !filled || self.levels.last().is_some_and(|level| level.is_empty()) {
            return Err(Error::invalid("runs out of order, an empty run or an empty deepest level"));
        }
        Ok(())
    }
}

impl<E: HasMeta> PartialEq for Metasnapshot<E> {
    fn eq(&self, other: &Self) -> bool {
        self.places().eq(other.places()) && self.values == other.values
    }
}

fn split<E: HasMeta>(changes: &[Change<E>]) -> (Vec<Removal<'_>>, Vec<E>) {
    let mut removals = Vec::new();
    let mut added = Vec::new();
    for change in changes {
        match change {
            Change::Add { extent, .. } => added.push(extent.clone()),
            Change::Remove { id, smallest, .. } => removals.push(Removal { id: *id, smallest }),
        }
    }
    (removals, added)
}

fn show(place: Place) -> String {
    match place {
        Place::Level(number) => format!("L{number}"),
        Place::Run(id) => format!("run {id}"),
        Place::Values => "value tables".to_owned(),
    }
}

/// The pointers of an extent come with it; a value table cannot be in a level.
fn come_in(moves: &mut Moves, meta: &ExtentMeta) -> Result<()> {
    match meta.value_table {
        Some(values) => Err(Error::invalid(format!("extent {} is value table {}", meta.id, values.number))),
        None => moves.come(meta),
    }
}
