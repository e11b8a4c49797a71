//! A table on a store in memory: extents are really written, read and freed, and a map knows every version.

#![allow(dead_code, reason = "each test binary uses a part of it")]

mod describe;
mod parts;
pub(crate) mod values;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::options::{Compression, Options};
use terrane_base::{Cursor, Entry, RecordKind, Result, SeqKind, SeqNo, TableId};
use terrane_compaction::{
    ClaimId, Claims, Cursors, FlushPlan, JobControl, JobResult, JobSpec, KeyRange, Limits, LocalCompactor,
    TableShape, pick, pick_due, plan_dump, plan_flush,
};
use terrane_device::{Disk, MemDisk};
use terrane_format::manifest::Place;
use terrane_format::range_deletes::Fragment;
use terrane_levels::{Change, Metasnapshot};
use terrane_storage::{LocalStore, SLOT_BYTES, Store, StoreSettings};
use terrane_table::{Extent, verify_extent};

use describe::describe;
pub(crate) use values::rows_of;

pub(crate) const TABLE: TableId = TableId(3);

/// One version of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) key: Vec<u8>,
    pub(crate) seq_kind: SeqKind,
    pub(crate) value: Vec<u8>,
}

impl Row {
    pub(crate) fn put(key: impl AsRef<[u8]>, seq: u64, value: impl Into<Vec<u8>>) -> Row {
        let seq_kind = SeqKind::new(SeqNo(seq), RecordKind::Put);
        Row { key: key.as_ref().to_vec(), seq_kind, value: value.into() }
    }

    pub(crate) fn delete(key: impl AsRef<[u8]>, seq: u64) -> Row {
        let seq_kind = SeqKind::new(SeqNo(seq), RecordKind::Delete);
        Row { key: key.as_ref().to_vec(), seq_kind, value: Vec::new() }
    }
}

/// Rows in internal order.
#[derive(Debug)]
pub(crate) struct RowCursor {
    rows: Vec<Row>,
    at: Option<usize>,
}

impl RowCursor {
    pub(crate) fn new(mut rows: Vec<Row>) -> Self {
        rows.sort_by(|a, b| a.key.cmp(&b.key).then(b.seq_kind.seq().cmp(&a.seq_kind.seq())));
        RowCursor { rows, at: None }
    }

    fn place(&mut self, at: usize) -> Result<()> {
        self.at = (at < self.rows.len()).then_some(at);
        Ok(())
    }
}

impl Cursor for RowCursor {
    fn entry(&self) -> Option<Entry<'_>> {
        let row = &self.rows[self.at?];
        Some(Entry { key: &row.key, seq_kind: row.seq_kind, value: &row.value })
    }

    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        let at = self
            .rows
            .partition_point(|row| row.key.as_slice() < key || (row.key == key && row.seq_kind.seq() > seq));
        self.place(at)
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        let at = self.rows.partition_point(|row| row.key.as_slice() < key);
        self.place(at.wrapping_sub(1))
    }

    fn seek_first(&mut self) -> Result<()> {
        self.place(0)
    }

    fn seek_last(&mut self) -> Result<()> {
        self.place(self.rows.len().wrapping_sub(1))
    }

    fn next(&mut self) -> Result<()> {
        self.place(self.at.unwrap() + 1)
    }

    fn prev(&mut self) -> Result<()> {
        self.place(self.at.unwrap().wrapping_sub(1))
    }
}

/// Key to value.
pub(crate) type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// A table under test.
pub(crate) struct World {
    pub(crate) disk: MemDisk,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) compactor: LocalCompactor,
    pub(crate) metasnapshot: Metasnapshot<Arc<Extent>>,
    pub(crate) limits: Limits,
    pub(crate) snapshots: Vec<SeqNo>,
    pub(crate) cursors: Cursors,
    pub(crate) claims: Claims,
    /// Jobs that were claimed and not run yet.
    pub(crate) pending: Vec<(ClaimId, JobSpec)>,
    /// Every version of every key that was flushed.
    history: BTreeMap<Vec<u8>, Vec<(SeqKind, Vec<u8>)>>,
    next_run: u64,
    /// Parts of jobs that were published before their end.
    pub(crate) parts: usize,
    /// True if only due jobs are picked.
    pub(crate) puts_off: bool,
    /// Bytes that are free on the device, as a picker sees it.
    pub(crate) room_bytes: u64,
    /// Ranges of keys in which scans met too many value tables.
    pub(crate) scanned: Vec<KeyRange>,
}

impl World {
    pub(crate) fn new() -> World {
        let disk = MemDisk::new();
        let dir = Path::new("data");
        disk.create_dir(dir).unwrap();
        let settings = StoreSettings::default();
        let store: Arc<dyn Store> =
            Arc::new(LocalStore::open(Arc::new(disk.clone()), dir, settings).unwrap());
        store.restore(&mut std::iter::empty()).unwrap();
        // Tests of separated values say from which length on.
        let inline = Options { value_separation_bytes: 0, ..Options::default() };
        let mut limits = Limits::from_options(&inline.resolve(1).unwrap());
        (limits.compression, limits.compression_last) = (Compression::None, Compression::None);
        World {
            disk,
            compactor: LocalCompactor::new(Arc::clone(&store)),
            store,
            metasnapshot: Metasnapshot::new(),
            limits,
            snapshots: Vec::new(),
            cursors: Cursors::new(),
            claims: Claims::new(),
            pending: Vec::new(),
            history: BTreeMap::new(),
            next_run: 1,
            parts: 0,
            puts_off: false,
            room_bytes: u64::MAX,
            scanned: Vec::new(),
        }
    }

    pub(crate) fn control() -> JobControl {
        let control = JobControl::new(Env::real().clock, None);
        control.number_values_with(values::NUMBERS.with(Arc::clone));
        control
    }

    pub(crate) fn shape(&self) -> TableShape<'_> {
        let shape = TableShape::of(TABLE, &self.metasnapshot, &self.snapshots);
        TableShape { scanned: self.scanned.clone(), room_bytes: self.room_bytes, ..shape }
    }

    pub(crate) fn remember(&mut self, rows: &[Row]) {
        for row in rows {
            self.history.entry(row.key.clone()).or_default().push((row.seq_kind, row.value.clone()));
        }
    }

    /// Flushes rows into L1, or dumps them where runs are in the way. Returns the results of all steps.
    pub(crate) fn flush(&mut self, rows: &[Row]) -> Vec<JobResult> {
        self.remember(rows);
        let mut cursor = RowCursor::new(rows.to_vec());
        let bytes = rows.iter().map(|row| row.value.len() as u64).sum();
        let mut from = Vec::new();
        let mut results = Vec::new();
        loop {
            let spec = match plan_flush(&self.shape(), &self.limits, &self.claims, &from, bytes) {
                FlushPlan::Step(spec) => spec,
                FlushPlan::Runs => {
                    results.push(self.dump(rows));
                    return results;
                }
                FlushPlan::Busy => {
                    self.finish_job(0);
                    continue;
                }
            };
            let result = self.compactor.flush_step(&spec, &mut cursor, &from, &Self::control()).unwrap();
            self.publish(&result);
            results.push(result.clone());
            let Some(next) = result.next else { return results };
            assert!(next > from || from.is_empty(), "a step goes on");
            from = next;
        }
    }

    /// Dumps rows as an overflow run. They must have been remembered.
    pub(crate) fn dump(&mut self, rows: &[Row]) -> JobResult {
        self.dump_with(rows, Vec::new())
    }

    /// Dumps rows and range deletes as an overflow run.
    pub(crate) fn dump_with(&mut self, rows: &[Row], ranges: Vec<Fragment>) -> JobResult {
        let spec = plan_dump(&self.shape(), &self.limits, self.next_run);
        self.next_run += 1;
        let mut cursor = RowCursor::new(rows.to_vec());
        let result = self.compactor.dump_run(&spec, &mut cursor, ranges, &Self::control()).unwrap();
        self.publish(&result);
        result
    }

    /// Puts rows straight into a level, which must have no extents there.
    pub(crate) fn load(&mut self, place: Place, rows: &[Row]) {
        self.remember(rows);
        let spec = plan_dump(&self.shape(), &self.limits, u64::MAX);
        let mut cursor = RowCursor::new(rows.to_vec());
        let result = self.compactor.dump_run(&spec, &mut cursor, Vec::new(), &Self::control()).unwrap();
        self.publish(&JobResult { target: place, ..result });
    }

    pub(crate) fn pick(&self) -> Option<JobSpec> {
        let pick = if self.puts_off { pick_due } else { pick };
        pick(&self.shape(), &self.limits, &self.claims, &self.cursors)
    }

    /// Picks a job that can run beside the pending ones, and claims it.
    pub(crate) fn start_job(&mut self) {
        let Some(spec) = self.pick() else { return };
        let id = self.claims.take(spec.claim()).expect("a picked job can be claimed");
        self.cursors.advance(&spec);
        self.pending.push((id, spec));
    }

    /// Runs and publishes a pending job.
    pub(crate) fn finish_job(&mut self, index: usize) {
        let (id, spec) = self.pending.remove(index);
        self.run_in_parts(&spec);
        self.claims.release(id);
    }

    /// Runs a job and publishes its result.
    pub(crate) fn run(&mut self, spec: &JobSpec) -> JobResult {
        self.cursors.advance(spec);
        self.run_in_parts(spec)
    }

    /// Picks and runs until nothing is picked.
    pub(crate) fn compact_until_done(&mut self) -> Vec<JobResult> {
        let mut results = Vec::new();
        while let Some(spec) = self.pick() {
            results.push(self.run(&spec));
            assert!(results.len() < 1000, "picking does not come to an end: {}", describe(&spec, &results));
        }
        results
    }

    /// Does what the engine does with a result: publishes a new read view and frees the extents that no view
    /// has.
    pub(crate) fn publish(&mut self, result: &JobResult) {
        let old: BTreeMap<_, _> =
            self.extents().into_iter().map(|(_, extent)| (extent.meta.id, extent)).collect();
        let mut changes = Vec::new();
        changes.extend(self.new_value_tables(result));
        for removed in &result.removed {
            changes.push(Change::Remove {
                place: removed.place,
                id: removed.id,
                smallest: removed.smallest.clone(),
            });
        }
        for meta in &result.added {
            let extent = match old.get(&meta.id) {
                Some(extent) => {
                    assert!(result.relinked.contains(&meta.id), "a new extent has a new id");
                    Arc::clone(extent)
                }
                None => {
                    let findings = verify_extent(meta, &*self.store);
                    assert!(findings.is_empty(), "{findings:?}");
                    Extent::new((**meta).clone(), Arc::clone(&self.store))
                }
            };
            changes.push(Change::Add { place: result.target, extent });
        }
        let (next, emptied) = self.metasnapshot.apply_listing(changes).unwrap();
        next.check().unwrap();
        self.metasnapshot = next;
        emptied.iter().for_each(|extent| extent.mark_obsolete());
        drop(emptied);
        for removed in result.freed() {
            old[&removed.id].mark_obsolete();
        }
        drop(old);
        self.check_space();
    }

    /// All extents of runs and levels, newest place first.
    pub(crate) fn extents(&self) -> Vec<(Place, Arc<Extent>)> {
        let mut extents = Vec::new();
        for run in &self.metasnapshot.runs {
            extents.extend(run.level.iter().map(|extent| (Place::Run(run.id), Arc::clone(extent))));
        }
        for (index, level) in self.metasnapshot.levels.iter().enumerate() {
            let place = Place::Level(index as u8 + 1);
            extents.extend(level.iter().map(|extent| (place, Arc::clone(extent))));
        }
        extents
    }

    pub(crate) fn named_bytes(&self) -> u64 {
        let keyed = self.extents().into_iter().map(|(_, extent)| extent);
        keyed.chain(self.value_tables()).map(|extent| u64::from(extent.meta.slots) * SLOT_BYTES as u64).sum()
    }

    /// The store holds what the metasnapshot names and nothing else.
    pub(crate) fn check_space(&self) {
        assert_eq!(self.store.usage().live_bytes, self.named_bytes(), "slots leak or are missing");
    }

    /// All entries of a place.
    pub(crate) fn rows(&self, wanted: Place) -> Vec<Row> {
        let extents = self.extents().into_iter().filter(|(place, _)| *place == wanted);
        extents.flat_map(|(_, extent)| rows_of(&extent)).collect()
    }

    /// The rows that a reader at `seq` sees: newer places hide older ones.
    pub(crate) fn content(&self, seq: SeqNo) -> Content {
        let mut places: Vec<Place> = self.metasnapshot.runs.iter().map(|run| Place::Run(run.id)).collect();
        places.extend((1..=self.metasnapshot.levels.len()).map(|number| Place::Level(number as u8)));
        let mut found: BTreeMap<Vec<u8>, Row> = BTreeMap::new();
        for place in places {
            let mut of_place: BTreeMap<Vec<u8>, Row> = BTreeMap::new();
            for row in self.rows(place).into_iter().filter(|row| row.seq_kind.seq() <= seq) {
                of_place.entry(row.key.clone()).or_insert(row);
            }
            for (key, row) in of_place {
                found.entry(key).or_insert(row);
            }
        }
        let values = found.into_iter().filter(|(_, row)| !row.seq_kind.is_delete());
        let mut read = BTreeMap::new();
        values.map(|(key, row)| (key, self.value_of(row, &mut read))).collect()
    }

    /// The rows that a reader at `seq` should see.
    pub(crate) fn expected(&self, seq: SeqNo) -> Content {
        let newest = |versions: &Vec<(SeqKind, Vec<u8>)>| {
            let seen = versions.iter().filter(|(seq_kind, _)| seq_kind.seq() <= seq);
            seen.max_by_key(|(seq_kind, _)| seq_kind.seq()).cloned()
        };
        let found = self.history.iter().filter_map(|(key, versions)| Some((key.clone(), newest(versions)?)));
        let values = found.filter(|(_, (seq_kind, _))| !seq_kind.is_delete());
        values.map(|(key, (_, value))| (key, value)).collect()
    }

    /// Every live reader sees what it should.
    pub(crate) fn check_content(&self) {
        for reader in self.snapshots.iter().chain([&SeqNo::MAX]) {
            let (found, expected) = (self.content(*reader), self.expected(*reader));
            if found != expected {
                let missing = expected.iter().find(|(key, value)| found.get(*key) != Some(value));
                let extra = found.iter().find(|(key, value)| expected.get(*key) != Some(value));
                panic!(
                    "reader at {reader}: expected {:?}, found {:?}",
                    missing.map(|(key, value)| (key.escape_ascii().to_string(), value.len())),
                    extra.map(|(key, value)| (key.escape_ascii().to_string(), value.len()))
                );
            }
        }
    }
}
