//! A metasnapshot: all levels and overflow runs of a table at one moment, immutable.
//!
//! Invariants: each level and each run is sorted and disjoint; no extent occurs twice; runs are ordered
//! newest first; no run is empty, nor is the deepest level.

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_base::{Error, ExtentId, Result};
use terrane_format::manifest::Place;
use terrane_format::manifest::edit::LEVEL_MAX;
use terrane_table::Extent;

use crate::chunk::{HasMeta, Totals};
use crate::level::{Level, Removal};
use crate::slots::Slots;

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
        Metasnapshot { runs: self.runs.clone(), levels: self.levels.clone(), slots: self.slots.clone() }
    }
}

impl<E> Default for Metasnapshot<E> {
    fn default() -> Self {
        Metasnapshot { runs: Vec::new(), levels: Vec::new(), slots: Slots::default() }
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
    /// extents would overlap in a level or run, or if a new run is older than an existing one.
    pub fn apply(&self, changes: Vec<Change<E>>) -> Result<Self> {
        let mut next = self.clone();
        next.apply_in_place(changes)?;
        Ok(next)
    }

    /// As [`Metasnapshot::apply`], in place; unusable after an error. Returns the removed extents.
    pub(crate) fn apply_in_place(&mut self, changes: Vec<Change<E>>) -> Result<Vec<E>> {
        let mut by_place: BTreeMap<Place, Vec<Change<E>>> = BTreeMap::new();
        for change in changes {
            by_place.entry(change.place()).or_default().push(change);
        }
        let mut gone = Vec::new();
        let mut come = Vec::new();
        for (place, changes) in by_place {
            let (removals, added) = split(&changes);
            come.extend(added.iter().map(|extent| (extent.meta().id, extent.meta().slots)));
            let level = Arc::make_mut(self.level_mut(place)?);
            gone.extend(level.replace_in_place(&removals, added).map_err(|e| e.context(show(place)))?);
        }
        for extent in &gone {
            self.slots.free(extent.meta().id, extent.meta().slots)?;
        }
        for (id, count) in come {
            self.slots.take(id, count)?;
        }
        self.trim();
        Ok(gone)
    }

    /// The metasnapshot without the extents that `hidden` names: it is called for each level and run and
    /// returns ascending indexes. Compares no keys: see [`Level::without`].
    #[must_use]
    pub fn without(&self, mut hidden: impl FnMut(Place, &Level<E>) -> Vec<usize>) -> Self {
        let Metasnapshot { mut runs, mut levels, mut slots } = self.clone();
        let mut hide = |place: Place, level: &mut Arc<Level<E>>| {
            let hidden = hidden(place, level);
            if hidden.is_empty() {
                return;
            }
            for &index in &hidden {
                let meta = level.get(index).meta();
                slots.free(meta.id, meta.slots).expect("an extent of a metasnapshot owns its slots");
            }
            *level = Arc::new(level.without(&hidden));
        };
        runs.iter_mut().for_each(|run| hide(Place::Run(run.id), &mut run.level));
        (1..).map(Place::Level).zip(&mut levels).for_each(|(place, level)| hide(place, level));
        let mut next = Metasnapshot { runs, levels, slots };
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
                Ok(&mut self.runs[index].level)
            }
        }
    }

    /// The level or run at `place`.
    #[must_use]
    pub fn level(&self, place: Place) -> Option<&Arc<Level<E>>> {
        match place {
            Place::Level(number) => self.levels.get(usize::from(number).checked_sub(1)?),
            Place::Run(id) => self.runs.iter().find(|run| run.id == id).map(|run| &run.level),
        }
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

    /// Sums over everything.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.places().fold(Totals::default(), |sum, (_, level)| sum.plus(level.totals()))
    }

    /// Returns true if there is no extent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.levels.is_empty()
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
        Ok(Metasnapshot { runs, levels, slots: self.slots.clone() })
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
        self.places().eq(other.places())
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
    }
}
