//! Whole extents of a range are dropped at once, by one edit: no merge, and no record.
//!
//! 1. Choose: extents that lie within the range. An extent stays if an older extent that stays lies below it;
//!    without it, older versions of its keys would reappear. So places are searched from the oldest to the
//!    newest.
//! 2. Claim them, as a job does, so that no job reads or replaces them; then choose again among the claimed
//!    ones.
//! 3. Sync the journal, append one edit and publish the next read view; the slots are free once their last
//!    reader has left (`background/compaction/install.rs`).
//!
//! A snapshot that sees anything of a chosen extent would lose it: then nothing is dropped. Open iterators
//! keep their read view, but they count as snapshots, too, because the engine cannot know which of them will
//! read again.

use std::sync::Arc;

use terrane_base::{Collation, Error, Kind, Result};
use terrane_compaction::{Claim, ClaimId, JobResult, KeyRange, Removed, Work as JobWork};
use terrane_format::manifest::{EditOp, Place};
use terrane_levels::{Metasnapshot, Totals};
use terrane_table::Extent;

use crate::background::compaction::install::Install;
use crate::background::maintenance::Maintenance;
use crate::background::scheduler::Choice;
use crate::background::scheduler::flush_hold::refuse_held_work;
use crate::observe::stats::add;
use crate::read::row_cache::forget_rows_within;
use crate::read::scan::Bounds;
use crate::table::Table;

/// The dropped extents and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedExtents {
    /// Extents.
    pub extents: u64,
    /// Their stored bytes, and about those of the separated values that they pointed to. Space of values
    /// comes back with the last value of a value table, or when dead values are collected.
    pub bytes: u64,
    /// Versions of keys in them.
    pub entries: u64,
}

/// Extents and where they are.
type Chosen = Vec<(Place, Arc<Extent>)>;

impl Maintenance {
    /// Drops every extent of `table` that lies within `bounds` and has nothing older beneath it that stays,
    /// at once and durably. Rows in memory stay, and so do rows that share an extent with keys outside.
    ///
    /// # Errors
    /// `Busy` while a snapshot, an iterator or a transaction sees anything of these extents: nothing is
    /// dropped then. `Poisoned` if background work on the table has stopped. Otherwise those of the manifest;
    /// `Cancelled` when the database closes or the table is dropped.
    pub fn drop_extents(&self, table: &Arc<Table>, bounds: &Bounds) -> Result<DroppedExtents> {
        self.refuse_if_read_only()?;
        table.refuse_if_stopped()?;
        if bounds.is_empty() {
            return Ok(DroppedExtents::default());
        }
        // Rows of a flush under way are in memory, too, until it ends: they would be there, then gone.
        debug_assert!(table.is_of(&self.catalog), "the flushes of another database are held back");
        let held = self.background.scheduler.hold_flushes(&[table.id], &Arc::new(self.new_control()))?;
        let dropped = self.claim_within(table, bounds).and_then(|claimed| match claimed {
            None => Ok(DroppedExtents::default()),
            Some((chosen, claim)) => {
                let dropped = self.drop_claimed(table, &chosen);
                self.background.scheduler.release(claim);
                dropped
            }
        });
        self.background.scheduler.resume_flushes(&held);
        let dropped = dropped?;
        // Frees what only waits for its epoch now, so that the space is free on return if no reader needs it.
        terrane_base::epoch::forget_garbage();
        self.store.reclaim()?;
        Ok(dropped)
    }

    /// Chooses and claims the extents that can be dropped, and waits for jobs that hold some of them; `None`
    /// if no extent can be dropped.
    fn claim_within(&self, table: &Table, bounds: &Bounds) -> Result<Option<(Chosen, ClaimId)>> {
        let claimed = self.background.scheduler.claim(|schedule| {
            // A job that panicked keeps its claim.
            table.refuse_if_stopped()?;
            if let Some(error) = schedule.quarantine.of(table.id) {
                return Err(error.clone());
            }
            let chosen = choose(&table.pinned().tree, bounds);
            if chosen.is_empty() {
                return Ok(Choice::Nothing);
            }
            self.refuse_if_seen(&chosen)?;
            debug_assert!(table.is_of(&self.catalog), "a claim on the levels of another database");
            let claim = claim_of(table, &chosen);
            if !schedule.claims.allows(&claim) {
                return refuse_held_work(schedule).map(|()| Choice::Wait);
            }
            Ok(Choice::Take(chosen, vec![claim]))
        })?;
        Ok(claimed.map(|(chosen, claims)| (chosen, claims[0])))
    }

    /// Refuses to drop what a snapshot sees.
    fn refuse_if_seen(&self, chosen: &Chosen) -> Result<()> {
        debug_assert!(!chosen.is_empty(), "extents that are chosen have an oldest entry");
        let oldest_entry = chosen.iter().map(|(_, extent)| extent.meta.seq_min).min().unwrap_or_default();
        let Some(newest) = self.pins.newest().filter(|newest| *newest >= oldest_entry) else { return Ok(()) };
        if terrane_base::planted!(DropUnderSnapshot) {
            return Ok(());
        }
        let count = self.pins.count();
        Err(Error::new(
            Kind::Busy,
            format!(
                "{count} snapshots, iterators or transactions are open, one at {newest}, and see extents that would be \
                 dropped: end them first, or delete the range with delete_range, which they do not mind"
            ),
        ))
    }

    fn drop_claimed(&self, table: &Table, chosen: &Chosen) -> Result<DroppedExtents> {
        debug_assert!(!chosen.is_empty(), "an edit drops some extents");
        let removed = chosen.iter().map(|(place, extent)| Removed {
            place: *place,
            id: extent.meta.id,
            smallest: extent.meta.smallest.clone(),
        });
        let result = JobResult {
            table: table.id,
            target: Place::Level(1),
            removed: removed.collect(),
            added: Vec::new(),
            values: Vec::new(),
            relinked: Vec::new(),
            work: JobWork::default(),
            next: None,
        };
        let values = &table.pinned().tree.values;
        let of_extent = |(_, extent): &(Place, Arc<Extent>)| Totals::of(&extent.meta).separated_bytes;
        let value_bytes = values.stored_bytes_of(chosen.iter().map(of_extent).fold(0, u64::saturating_add));
        // If the edit were durable before the journal, a loss of power could remove a range delete and keep
        // this edit.
        let seq = self.journal.visible();
        self.sync_journal_through(seq)?;
        Install { engine: self, table, result: &result }.run(Vec::new(), vec![EditOp::Durable { seq }])?;
        forget_rows_within(self, table, chosen.iter().map(|(_, extent)| &extent.meta));
        add(&self.counters.extents_dropped, chosen.len() as u64);
        let mut dropped = DroppedExtents { extents: chosen.len() as u64, ..DroppedExtents::default() };
        dropped.bytes = value_bytes;
        for (_, extent) in chosen {
            dropped.bytes += u64::from(extent.meta.bytes);
            dropped.entries += extent.meta.entries;
        }
        Ok(dropped)
    }
}

/// The extents within the bounds without an older extent below them that stays; places from the oldest to the
/// newest.
fn choose(tree: &Metasnapshot, bounds: &Bounds) -> Chosen {
    let places: Vec<_> = tree.places().collect();
    let (lower, upper) = bounds.as_slices();
    let mut chosen: Chosen = Vec::new();
    // The smallest and largest keys of extents of older places that stay and may lie below an extent within
    // the bounds.
    let mut stays: Vec<(&[u8], &[u8])> = Vec::new();
    for (place, level) in places.into_iter().rev() {
        let mut kept = Vec::new();
        for extent in level.range(level.overlapping(lower, upper)) {
            let meta = &extent.meta;
            let is_within = bounds.above_lower(&meta.smallest) && bounds.below_upper(&meta.largest);
            let hides = |(smallest, largest): &(&[u8], &[u8])| {
                meta.collation.le(smallest, &meta.largest) && meta.collation.le(&meta.smallest, largest)
            };
            let hides_older = stays.iter().any(hides) && !terrane_base::planted!(DropNewerExtent);
            if is_within && !hides_older {
                chosen.push((place, extent.clone()));
            } else {
                kept.push((meta.smallest.as_slice(), meta.largest.as_slice()));
            }
        }
        stays.extend(kept);
        stays = joined(stays, &bounds.collation);
        let is_apart = stays.is_sorted_by(|a, b| a.1 < b.0);
        debug_assert!(is_apart || !bounds.collation.is_bytes(), "spans that overlap were joined");
    }
    chosen
}

/// The same keys as disjoint spans, in order: there are as few as can be.
fn joined<'k>(mut spans: Vec<(&'k [u8], &'k [u8])>, collation: &Collation) -> Vec<(&'k [u8], &'k [u8])> {
    collation.sort_by_key(&mut spans, |span| span.0);
    let mut joined: Vec<(&[u8], &[u8])> = Vec::with_capacity(spans.len());
    for (smallest, largest) in spans {
        match joined.last_mut() {
            Some((_, last)) if collation.le(smallest, last) => *last = collation.max(*last, largest),
            _ => joined.push((smallest, largest)),
        }
    }
    joined
}

fn claim_of(table: &Table, chosen: &Chosen) -> Claim {
    let hold = |(place, extent): &(Place, Arc<Extent>)| {
        let range = KeyRange::closed(&extent.meta.smallest, &extent.meta.largest);
        (*place, range.ordered(&extent.meta.collation))
    };
    Claim { table: table.id, holds: chosen.iter().map(hold).collect(), leaves: Vec::new() }
}
