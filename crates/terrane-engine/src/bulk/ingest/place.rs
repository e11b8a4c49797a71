//! The places of ingested extents: below all newer versions of their keys, above all older ones.
//!
//! That is the deepest level that has no overlap in itself or above it, or an overflow run. Extents of one
//! ingest have one number and do not overlap, with two exceptions, where one extent lies above the other:
//! 1. The entries of a file lie above its range deletes, because reads end at the first source that has the
//!    key.
//! 2. The bound of a range delete is the first key behind it, at which another file may begin. Entries that
//!    begin there lie above as well. For two range deletes that touch, the order does not matter, but they
//!    cannot be in one level or run: those of many neighbouring files alternate between two runs.

use terrane_base::sync::atomic::Ordering;
use terrane_base::{Result, TableId};
use terrane_compaction::{Claim, ClaimId, Claims, KeyRange as ClaimRange};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::Place;
use terrane_levels::Metasnapshot;

use crate::background::maintenance::Maintenance;
use crate::background::scheduler::Choice;
use crate::bulk::ingest::{Arrival, Incoming, bounds_of};

/// The places of the extents of one file or load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    /// Those of entries.
    pub(super) extents: Place,
    /// Those of range deletes.
    pub(super) deletes: Place,
}

/// How extents may overlap others of this ingest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// Range deletes to range deletes.
    Apart,
    /// Entries to range deletes.
    Above,
}

impl Relation {
    /// Returns true if extents may go to `place` if they meet some in `met`.
    fn allows(self, place: Place, met: Place) -> bool {
        match (self, place, met) {
            (Relation::Apart, place, met) => place != met,
            (Relation::Above, Place::Level(level), Place::Level(met)) => level < met,
            (Relation::Above, Place::Run(run), Place::Run(met)) => run > met,
            (Relation::Above, Place::Run(_), Place::Level(_)) => true,
            (Relation::Above, Place::Level(_), Place::Run(_)) => false,
            // An external file has no pointers, and no ingest goes there.
            (Relation::Above, Place::Values, _) | (Relation::Above, _, Place::Values) => false,
        }
    }
}

/// Extents that have their places already.
#[derive(Default)]
struct Layers<'a> {
    /// True if extents of this ingest may overlap.
    is_layered: bool,
    taken: Vec<Layer<'a>>,
    claims: Vec<Claim>,
    /// Runs of this commit, ascending.
    runs: Vec<u64>,
}

struct Layer<'a> {
    table: TableId,
    first: &'a [u8],
    last: &'a [u8],
    place: Place,
}

impl Incoming<'_> {
    /// Chooses the places and claims them. It does not wait for running jobs: a new run is always free.
    pub(super) fn claim_places(self) -> Result<(Vec<Placed>, Vec<ClaimId>)> {
        let Self { engine, arrivals } = self;
        let is_layered = arrivals.iter().any(|arrival| !arrival.deletes.is_empty());
        let claimed = engine.background.scheduler.claim(|schedule| {
            let mut layers = Layers { is_layered, ..Layers::default() };
            let mut claims = schedule.claims.clone();
            // All range deletes first: entries of any file lie above those that they touch.
            let deletes: Vec<_> = arrivals
                .iter()
                .map(|arrival| {
                    place(engine, &mut claims, &mut layers, Relation::Apart, arrival, &arrival.deletes)
                })
                .collect();
            let places: Vec<_> = arrivals
                .iter()
                .zip(deletes)
                .map(|(arrival, deletes)| {
                    let extents =
                        place(engine, &mut claims, &mut layers, Relation::Above, arrival, &arrival.extents);
                    let is_swapped = terrane_base::planted!(IngestedDeletesAbove)
                        && !arrival.extents.is_empty()
                        && !arrival.deletes.is_empty();
                    if is_swapped {
                        return Placed { extents: deletes, deletes: extents };
                    }
                    Placed { extents, deletes }
                })
                .collect();
            Ok(Choice::Take(places, layers.claims))
        })?;
        let (places, claims) = claimed.expect("an ingest always finds places: a new run is free");
        assert!(places.len() == arrivals.len(), "a place for each arrival");
        Ok((places, claims))
    }
}

fn place<'a>(
    engine: &Maintenance,
    claims: &mut Claims,
    layers: &mut Layers<'a>,
    relation: Relation,
    arrival: &'a Arrival,
    extents: &'a [ExtentMeta],
) -> Place {
    // There are no extents.
    let Some((first, last)) = bounds_of(extents) else { return Place::Level(1) };
    let table = arrival.table.id;
    let met = layers.met(arrival, first, last);
    let allows = |place| met.iter().all(|met| relation.allows(place, *met));
    let free = free_level(&arrival.table.pinned().tree, first, last).unwrap_or(0);
    let mut place = None;
    if let Some(level) = (1..=free).rev().find(|level| allows(Place::Level(*level))) {
        let holds = vec![(
            Place::Level(level),
            ClaimRange::closed(first, last).ordered(arrival.table.semantics.collation()),
        )];
        let claim = Claim { table, holds, leaves: Vec::new() };
        if claims.take(claim.clone()).is_some() {
            layers.claims.push(claim);
            place = Some(Place::Level(level));
        }
    }
    let new_run = || engine.background.next_run.fetch_add(1, Ordering::Relaxed);
    let place = place.unwrap_or_else(|| Place::Run(layers.run(allows, new_run)));
    debug_assert!(allows(place), "extents that lie over each other are in the places of their order");
    layers.taken.push(Layer { table, first, last, place });
    place
}

impl Layers<'_> {
    /// The places of extents that have keys in this range already.
    fn met(&self, arrival: &Arrival, first: &[u8], last: &[u8]) -> Vec<Place> {
        if !self.is_layered {
            return Vec::new();
        }
        let collation = arrival.table.semantics.collation();
        let overlapping = self.taken.iter().filter(|layer| {
            layer.table == arrival.table.id
                && collation.le(layer.first, last)
                && collation.le(first, layer.last)
        });
        overlapping.map(|layer| layer.place).collect()
    }

    /// The first run of this commit that is allowed, or a new one, which is newer than all.
    fn run(&mut self, allows: impl Fn(Place) -> bool, new: impl FnOnce() -> u64) -> u64 {
        if let Some(run) = self.runs.iter().find(|run| allows(Place::Run(**run))) {
            return *run;
        }
        let run = new();
        debug_assert!(self.runs.iter().all(|known| *known < run), "a new run is newer than all others");
        self.runs.push(run);
        run
    }
}

/// The deepest level in which nothing overlaps the keys, and above which nothing does; `None` if that must be
/// a run.
fn free_level(tree: &Metasnapshot, first: &[u8], last: &[u8]) -> Option<u8> {
    let overlaps = |level: &terrane_levels::Level| {
        !level.overlapping(std::ops::Bound::Included(first), std::ops::Bound::Included(last)).is_empty()
    };
    if tree.runs.iter().any(|run| overlaps(&run.level)) {
        return None;
    }
    let free = tree.levels.iter().take_while(|level| !overlaps(level)).count();
    let deepest = if terrane_base::planted!(IngestTooDeep) { tree.levels.len().max(1) } else { free };
    match (deepest, tree.levels.is_empty()) {
        (_, true) => Some(1),
        (0, false) => None,
        (level, false) => u8::try_from(level).ok(),
    }
}
