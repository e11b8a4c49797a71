//! The replaced extents that a job's outputs name, and the reads of the device that it takes to learn them.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use crate::support;

use std::path::Path;
use std::sync::Arc;

use support::{Row, RowCursor, World};
use terrane_base::SeqNo;
use terrane_compaction::{Compactor, JobControl, JobResult, LocalCompactor, plan_dump};
use terrane_device::{Call, Failure, Fault, FaultyDisk};
use terrane_format::extent::{ExtentMeta, Origin, mark_of, origin_of};
use terrane_format::manifest::{DatabaseId, Place};
use terrane_format::range_deletes::Fragment;
use terrane_storage::{LocalStore, Store, StoreSettings};

/// Rows that fill several extents.
fn puts(step: usize, seq: u64) -> Vec<Row> {
    (0..9_000).step_by(step).map(|n| Row::put(format!("key-{n:08}"), seq, vec![b'v'; 900])).collect()
}

/// A table whose calls of the device are counted; its extents say where they come from, or do not.
struct Counted {
    world: World,
    disk: FaultyDisk,
    has_origin: bool,
}

impl Counted {
    fn new(has_origin: bool) -> Counted {
        let mut world = World::new();
        world.limits.level_base_bytes = 1;
        world.limits.job_bytes_max = 1 << 30;
        let disk = FaultyDisk::new(Arc::new(world.disk.clone()));
        let store: Arc<dyn Store> = Arc::new(
            LocalStore::open(Arc::new(disk.clone()), Path::new("data"), StoreSettings::default()).unwrap(),
        );
        store.restore(&mut std::iter::empty()).unwrap();
        (world.compactor, world.store) = (LocalCompactor::new(Arc::clone(&store)), store);
        Counted { world, disk, has_origin }
    }

    fn control(&self) -> JobControl {
        let control = World::control();
        if self.has_origin {
            control.write_as(Origin { database: DatabaseId(7), table: "t".into(), ..Origin::default() });
        }
        control
    }

    /// Writes rows into a level that is empty.
    fn load(&mut self, level: u8, rows: &[Row]) {
        self.world.remember(rows);
        self.load_with(level, rows, Vec::new());
    }

    fn load_with(&mut self, level: u8, rows: &[Row], ranges: Vec<Fragment>) {
        let spec = plan_dump(&self.world.shape(), &self.world.limits, u64::MAX);
        let mut cursor = RowCursor::new(rows.to_vec());
        let result = self.world.compactor.dump_run(&spec, &mut cursor, ranges, &self.control()).unwrap();
        self.world.publish(&JobResult { target: Place::Level(level), ..result });
    }

    /// Merges level 1 into level 2; returns the inputs, the result and the reads of the device.
    fn merge(&mut self) -> (Vec<ExtentMeta>, JobResult, u64) {
        let spec = self.world.pick().unwrap();
        let inputs: Vec<_> = spec.inputs.iter().flat_map(|input| input.extents.clone()).collect();
        let before = self.disk.count(Call::Read);
        let result = self.world.compactor.run(&spec, &self.control()).unwrap();
        let reads = self.disk.count(Call::Read) - before;
        assert_eq!(result.work.extents_relinked, 0, "all are merged");
        self.world.publish(&result);
        (inputs, result, reads)
    }

    fn origin(&self, meta: &ExtentMeta) -> Option<Origin> {
        let mut bytes = vec![0; meta.bytes as usize];
        self.world.store.read(meta.id, 0, &mut bytes).unwrap();
        origin_of(&bytes)
    }
}

/// Two merges one after the other, the second one of what the first one wrote.
fn two_merges(has_origin: bool) -> (Counted, [(Vec<ExtentMeta>, JobResult, u64); 2]) {
    let mut table = Counted::new(has_origin);
    table.load(2, &puts(1, 1));
    table.load(1, &puts(2, 10));
    let first = table.merge();
    table.load(1, &puts(3, 20));
    let second = table.merge();
    table.world.check_content();
    (table, [first, second])
}

/// A read is a request in a bucket: what an extent had replaced comes with its index block.
#[test]
fn origins_of_inputs_take_no_read_of_their_own() {
    let (_, without) = two_merges(false);
    let (table, with) = two_merges(true);
    for ((inputs, _, reads), (as_many, _, fewest)) in with.iter().zip(&without) {
        assert!(inputs.len() >= 6 && inputs.len() == as_many.len(), "{} inputs", inputs.len());
        assert!(inputs.iter().all(|meta| meta.has_origin()) && !as_many.iter().any(|meta| meta.has_origin()));
        assert_eq!(reads, fewest, "reads of the device for {} inputs", inputs.len());
    }
    let [(first, ..), (second, result, _)] = &with;
    let [first, second] = [first, second].map(|metas| metas.iter().map(mark_of).collect::<Vec<_>>());
    let mut marks = [0, 0];
    for meta in &result.added {
        let replaced = table.origin(meta).expect("it says where it comes from").replaced;
        let (own, inherited) = replaced.split_first().expect("it took the place of others");
        assert!(own.marks.iter().all(|mark| second.contains(mark)), "inputs of the job");
        let inherited: Vec<_> = inherited.iter().flat_map(|replaced| &replaced.marks).collect();
        assert!(inherited.iter().all(|mark| first.contains(mark)), "inputs of the job before");
        marks = [marks[0] + own.marks.len(), marks[1] + inherited.len()];
    }
    assert!(marks[0] >= second.len() && marks[1] > 0, "{marks:?}");
}

/// Unreadable bytes behind the index block matter to repair alone: the job reads the index block alone.
#[test]
fn an_end_that_cannot_be_read_ends_no_job() {
    let mut table = Counted::new(true);
    table.load(2, &puts(1, 1));
    table.load(1, &puts(2, 10));
    let damaged = table.world.extents().pop().unwrap().1.meta.clone();
    let origin = u64::from(damaged.bytes - 4096);
    let at = u64::from(damaged.id.slot) * terrane_storage::SLOT_BYTES as u64 + origin;
    let whole = table.origin(&damaged);
    assert!(whole.is_some());
    // Every read sees the same wrong bit in the last bytes of the footer.
    let bit = (at + 4095) * 8;
    table.disk.fail(Fault::new(Call::Read, Failure::WrongBit(bit)).lasting());
    assert_eq!(table.origin(&damaged), None, "the bit lies in the footer");
    let before = table.disk.wrong_bits();
    // The second read of the job is that of the first index block with what lies behind.
    table.disk.fail(Fault::new(Call::Read, Failure::Broken).after(1));
    let (_, result, _) = table.merge();
    assert!(table.disk.wrong_bits() > before && !result.added.is_empty());
    table.disk.heal();
    table.world.check_content();
}

/// A job does not open an extent that a range delete hides; what that one had replaced is passed on all
/// the same.
#[test]
fn origins_of_a_hidden_input_are_passed_on() {
    let mut table = Counted::new(true);
    table.load(2, &puts(1, 1));
    table.load(1, &puts(2, 10));
    let (first, ..) = table.merge();
    let first: Vec<_> = first.iter().map(mark_of).collect();
    let (start, end) = ("key-00002000", "key-00007000");
    let range = Fragment { start: start.into(), end: end.into(), seqs: vec![SeqNo(100)] };
    table.load_with(1, &puts(3, 20), vec![range]);
    let (second, result, _) = table.merge();
    let is_hidden =
        |meta: &&ExtentMeta| *meta.smallest >= *start.as_bytes() && *meta.largest < *end.as_bytes();
    let hidden = second.iter().find(is_hidden).expect("the range hides a whole extent");
    let replaced_of: Vec<_> =
        result.added.iter().flat_map(|meta| table.origin(meta).unwrap().replaced).collect();
    let within = |replaced: &&terrane_format::extent::Replaced| {
        *replaced.from <= *hidden.largest && (replaced.to.is_empty() || *replaced.to > *hidden.smallest)
    };
    let marks: Vec<_> = replaced_of.iter().filter(within).flat_map(|replaced| &replaced.marks).collect();
    assert!(marks.contains(&&mark_of(hidden)), "the hidden extent itself");
    assert!(marks.iter().any(|mark| first.contains(mark)), "and what it had replaced: {marks:?}");
}
