//! Scrubbing: reads every extent again and again at a paced rate and verifies all its checksums, so that rot
//! is found while there still is a backup to restore from.
//!
//! It is background work like any other, given out when nothing else is due: one piece verifies extents for
//! about a tenth of a second's worth of the rate, and the next is due when the rate allows it. A pass goes
//! through tables, places and keys in order; where it stands is a key, not a pin, so a pass of days keeps no
//! extent from being freed.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::{Kind, Result, TableId, ValueTableId};
use terrane_compaction::JobControl;
use terrane_table::{Extent, verify_extent};

use crate::background::job::{Job, Look};
use crate::background::maintenance::Maintenance;
use crate::background::quarantine::FINDINGS_MAX;
use crate::background::state::scrubber::Position;
use crate::observe::findings::Finding;
use crate::observe::stats::add;
use crate::table::Table;
use crate::table::catalog::{Catalog, name_of};

/// Pieces of work per second at full rate.
const PIECES_PER_SECOND: u64 = 10;

/// The place of value tables, after all others.
const VALUES: usize = usize::MAX;

impl Look<'_> {
    /// The next piece of scrubbing, if one is due.
    pub(crate) fn next_scrub(self) -> Option<Job> {
        let is_on = self.options.scrub_bytes_per_second > 0;
        let is_due = || {
            self.schedule.failures.now() >= self.background.scrubber.0.lock().due
                && !self.schedule.is_scrub_held()
        };
        (is_on && is_due()).then_some(Job::Scrub)
    }
}

impl Maintenance {
    /// Damaged parts of extents that scrubbing found since the open, each once.
    #[must_use]
    pub fn scrub_findings(&self) -> Vec<Finding> {
        self.background.scrubber.0.lock().findings.clone()
    }
}

/// The job that verifies the next extents.
#[derive(Clone, Copy)]
pub(crate) struct ScrubJob<'e> {
    pub(crate) engine: &'e Maintenance,
    pub(crate) control: &'e JobControl,
}

impl ScrubJob<'_> {
    /// Verifies the next extents.
    ///
    /// # Errors
    /// `Io` if the device refuses, `Cancelled`. Damage is a finding, not an error.
    pub(crate) fn run(self) -> Result<()> {
        let Self { engine, control } = self;
        let rate = engine.options.scrub_bytes_per_second;
        let start = engine.env.clock.now();
        let mut bytes = 0;
        let mut verified = Ok(());
        while bytes < (rate / PIECES_PER_SECOND).max(1) {
            control.check()?;
            let position = engine.background.scrubber.0.lock().position.clone();
            let Some((next, extent)) = next_extent(&engine.catalog, &position) else {
                // Begin again; an empty database is looked at as seldom as one extent.
                let is_pass = position != Position::default();
                add(&engine.counters.scrub_passes, u64::from(is_pass));
                engine.background.scrubber.0.lock().position = Position::default();
                bytes = bytes.max(rate / PIECES_PER_SECOND).max(1);
                break;
            };
            let is_behind = (next.table, next.place) >= (position.table, position.place);
            debug_assert!(
                is_behind,
                "a pass goes forward, or it would never end: {next:?} behind {position:?}"
            );
            bytes += u64::from(extent.meta.bytes);
            verified = verified.and(self.scrub_extent(next.table, &extent));
            engine.background.scrubber.0.lock().position = next;
        }
        engine.background.scrubber.0.lock().due = start + Duration::from_secs_f64(bytes as f64 / rate as f64);
        verified
    }

    fn scrub_extent(self, table: TableId, extent: &Extent) -> Result<()> {
        let engine = self.engine;
        let mut refused = Ok(());
        for error in verify_extent(&extent.meta, &*engine.store) {
            let error = engine.blamed(Some(table), error);
            // Only what was read and is wrong is damage.
            if error.kind() != Kind::Corrupt {
                refused = Err(error);
                continue;
            }
            let mut state = engine.background.scrubber.0.lock();
            let is_new = state.known.len() < FINDINGS_MAX && state.known.insert(error.to_string());
            if is_new {
                let table = name_of(&engine.catalog, table);
                state.findings.push(Finding { table, error });
                add(&engine.counters.scrub_findings, 1);
            }
            debug_assert!(state.findings.len() == state.known.len(), "each finding is kept once");
        }
        add(&engine.counters.scrub_extents, 1);
        add(&engine.counters.scrub_bytes, u64::from(extent.meta.bytes));
        refused
    }
}

/// The first extent after `position`, and the position after it. It looks at the table of `position`
/// and, after its last extent, at those that follow: no extent costs a walk over all tables.
fn next_extent(catalog: &Catalog, position: &Position) -> Option<(Position, Arc<Extent>)> {
    let mut from = position.table;
    while let Some(table) = catalog.first_from(from) {
        if let Some(found) = next_in_table(&table, position) {
            return Some(found);
        }
        from = TableId(table.id.0.checked_add(1)?);
    }
    None
}

/// The first extent of a table after `position`, which lies in it or before it.
fn next_in_table(table: &Table, position: &Position) -> Option<(Position, Arc<Extent>)> {
    debug_assert!(table.id >= position.table, "the pass is past table {:?}", table.id);
    let tree = table.pinned().tree;
    let is_within = table.id == position.table;
    for (place, (_, level)) in tree.places().enumerate() {
        if is_within && place < position.place {
            continue;
        }
        let after = position.after.as_deref().filter(|_| is_within && place == position.place);
        let lower = after.map_or(Bound::Unbounded, Bound::Excluded);
        if let Some(extent) = level.range(level.overlapping(lower, Bound::Unbounded)).next() {
            let after = Some(Box::from(extent.meta.largest.as_slice()));
            return Some((Position { table: table.id, place, after }, extent.clone()));
        }
    }
    let after = position.after.as_deref().filter(|_| is_within && position.place == VALUES);
    let after = after.and_then(|number| Some(u64::from_be_bytes(number.try_into().ok()?)));
    let values = tree.values.next_behind(after.map(ValueTableId))?;
    let after = Some(Box::from(values.number().0.to_be_bytes().as_slice()));
    Some((Position { table: table.id, place: VALUES, after }, values.extent.clone()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use terrane_base::env::{Env, SteppedSpawn};
    use terrane_base::options::Options;
    use terrane_device::MemDisk;

    use super::*;
    use crate::engine::Engine;

    #[test]
    fn a_pass_comes_to_each_extent_of_each_table_once() {
        let env = Env { spawn: Arc::new(SteppedSpawn::default()), ..Env::real() };
        let options = Options { memory_bytes: 16 << 20, ..Options::default() };
        let engine =
            Engine::open_on(Arc::new(MemDisk::new()), Path::new("/db"), &options, env).expect("opens");
        for number in 1..150_u32 {
            let table = engine.create_table(&number.to_string(), &[]).expect("a table");
            // Every third one stays empty.
            if number % 3 > 0 {
                engine.put(table.id, b"key", b"value", false).expect("commits");
            }
        }
        engine.flush().expect("flushes");
        (40..110).for_each(|number| engine.drop_table(&format!("{number}")).expect("it exists"));
        let expected: Vec<_> = (1..150_u32).filter(|n| n % 3 > 0 && !(40..110).contains(n)).collect();
        let (mut position, mut found) = (Position::default(), Vec::new());
        while let Some((next, _)) = next_extent(engine.catalog(), &position) {
            let name = name_of(engine.catalog(), next.table).expect("it is listed");
            found.push(name.parse::<u32>().expect("a number"));
            position = next;
        }
        assert_eq!(found, expected, "tables with an extent");
        engine.close().expect("closes");
    }
}
