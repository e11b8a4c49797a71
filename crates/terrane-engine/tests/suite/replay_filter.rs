//! A replay filter whose opening crashes at any call of the device: the next opening, without a filter, finds
//! all tables either unchanged or as the filter decided; never a part of that.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use support::gate::GateDisk;
use support::{DIR, open, request, rows, small_options};
use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Batch, Functions, Kind, SeqNo, TableId};
use terrane_device::{Disk, MemDisk};
use terrane_engine::{
    ChangeKind, Engine, Feed, FeedOptions, ReplayDecision, ReplayFilter, ReplayedBatch, ReplayedChanges, Row,
    Viewed, last_commit, repair_on,
};

/// Ignores every third batch, puts something longer in the place of every fifth, and stops at the last tenth.
struct Every;

const BATCHES: u32 = 300;

impl ReplayFilter for Every {
    fn name(&self) -> &str {
        "every"
    }

    fn batch(&self, batch: &ReplayedBatch<'_>) -> ReplayDecision {
        let ChangeKind::Put { key, .. } = batch.changes()[0].kind else { panic!("puts only") };
        let number = u32::from_be_bytes(key.try_into().unwrap());
        match number {
            _ if number >= BATCHES / 10 * 9 => ReplayDecision::Stop,
            _ if number.is_multiple_of(3) => ReplayDecision::Ignore,
            _ if number.is_multiple_of(5) => {
                let mut changes = ReplayedChanges::new();
                let other = batch.changes().last().unwrap().table_id;
                changes.put(other, &number.to_be_bytes(), &[b'x'; 2000]).unwrap();
                ReplayDecision::Replace(changes)
            }
            _ => ReplayDecision::Keep,
        }
    }
}

/// The rows of each table.
type State = Vec<Vec<Row>>;

fn state(engine: &Arc<Engine>) -> State {
    let tables = ["default", "other"].map(|name| engine.catalog().require(name).unwrap());
    tables.iter().map(|table| rows(engine, table).unwrap()).collect()
}

/// A device with a journal of several segments over two tables, a part of which is in the levels of one of
/// them; everything is durable.
fn loaded() -> MemDisk {
    let disk = MemDisk::new();
    let options = Options { memtable_bytes: 1 << 20, global_index_bytes: 1 << 20, ..small_options() };
    let engine = open(disk.clone(), &options).unwrap();
    let other = engine.create_table("other", &[]).unwrap();
    let default = engine.catalog().require("default").unwrap();
    for number in 0..BATCHES {
        let mut batch = Batch::new();
        batch.put(default.id, &number.to_be_bytes(), &[b'd'; 300]).unwrap();
        batch.put(other.id, &number.to_be_bytes(), &[b'o'; 300]).unwrap();
        engine.write(&batch, number + 1 == BATCHES).unwrap();
        if number == 40 {
            engine.flush_to_run(&other).unwrap();
        }
    }
    assert!(engine.segments().len() > 3);
    disk.kill()
}

fn filtered(disk: impl Disk + 'static) -> terrane_base::Result<Arc<Engine>> {
    Engine::open_filtered_on(request(Arc::new(disk), &small_options()), &Every)
}

#[test]
fn a_crash_at_any_call_leaves_all_or_none_of_the_decisions_of_a_filter() {
    let image = loaded();
    let before = state(&open(image.kill(), &small_options()).unwrap());
    let after = state(&filtered(image.kill()).unwrap());
    assert_eq!(before[0].len(), BATCHES as usize);
    assert!(after[0].len() < before[0].len() * 2 / 3 && after != before);
    let gate = GateDisk::new(image.kill());
    let images = Arc::new(Mutex::new(Vec::new()));
    let taken = images.clone();
    let look = move |disk: &MemDisk| {
        let mut taken = taken.lock();
        let seed = taken.len() as u64;
        taken.push((disk.kill(), disk.crash(seed)));
        1
    };
    gate.look_after(1, Box::new(look));
    let engine = filtered(gate.clone()).unwrap();
    gate.look_away();
    assert_eq!(state(&engine), after);
    drop(engine);
    let images = std::mem::take(&mut *images.lock());
    assert!(images.len() > 20, "{} calls", images.len());
    let (mut as_before, mut as_after) = (0, 0);
    for (call, (killed, crashed)) in images.into_iter().enumerate() {
        for (disk, what) in [(killed, "killed"), (crashed, "crashed")] {
            let again = disk.kill();
            let engine = open(disk, &small_options())
                .unwrap_or_else(|error| panic!("{what} before call {call}: {error}"));
            let found = state(&engine);
            as_before += u64::from(found == before);
            as_after += u64::from(found == after);
            assert!(found == before || found == after, "{what} before call {call}: something between");
            drop(engine);
            // An opening with the filter ends what the other began.
            let engine =
                filtered(again).unwrap_or_else(|error| panic!("{what} before call {call}, again: {error}"));
            assert!(state(&engine) == after, "{what} before call {call}: the filter, asked again");
        }
    }
    assert!(as_before > 0 && as_after > 0, "the edit is among the calls: {as_before} and {as_after}");
}

fn read_only() -> Options {
    Options { read_only: true, create_if_missing: false, ..small_options() }
}

/// A reader cannot end what a writer began; it says what to do.
#[test]
fn a_reader_beside_an_opening_that_died_gets_an_error() {
    let image = loaded();
    let mut refused = 0;
    for disk in images_of_an_opening(&image) {
        if let Err(error) = open(disk, &read_only()) {
            assert!(error.to_string().contains("open the database for writing once"), "{error}");
            refused += 1;
        }
    }
    assert!(refused > 0, "the names come behind the edit");
}

/// Images of the device before each call of an opening with a filter, which ends well.
fn images_of_an_opening(image: &MemDisk) -> Vec<MemDisk> {
    let gate = GateDisk::new(image.kill());
    let images = Arc::new(Mutex::new(Vec::new()));
    let taken = images.clone();
    let look = move |disk: &MemDisk| {
        taken.lock().push(disk.kill());
        1
    };
    gate.look_after(1, Box::new(look));
    drop(filtered(gate.clone()).unwrap());
    gate.look_away();
    std::mem::take(&mut *images.lock())
}

fn keeping_history() -> Options {
    let mut options = small_options();
    options.set("history_bytes", "64MiB").unwrap();
    options
}

/// Neither followers nor readers of changes take it for damage, or for changes that are no longer kept. A
/// view that sees that the process died says what an opening for reading says.
#[test]
fn a_read_beside_an_opening_that_died_gets_busy() {
    let image = loaded();
    let mut refused = 0;
    for (call, disk) in images_of_an_opening(&image).into_iter().enumerate() {
        let is_unnamed = open(disk.kill(), &read_only()).is_err();
        // A follower tries many times: not for each call.
        if !is_unnamed || refused == 3 {
            continue;
        }
        refused += 1;
        let (door, dir): (Arc<dyn Disk>, _) = (Arc::new(disk.kill()), Path::new(DIR));
        let functions = Functions::default();
        let view = |door| Viewed::of(door, dir, &small_options(), &Env::real(), &functions, None);
        let alone = view(&door).err().unwrap();
        let locked = open(disk.kill(), &read_only()).err().unwrap();
        assert_eq!((alone.kind(), alone.to_string()), (Kind::Invalid, locked.to_string()));
        // A lock stands for the process, which lives.
        let lock = door.lock(&dir.join("LOCK")).unwrap();
        let errors = [
            view(&door).err(),
            last_commit(&door, dir, &Env::real()).err(),
            Feed::beside(door.clone(), dir, Env::real(), SeqNo(1)).err(),
        ];
        for (reader, error) in errors.into_iter().enumerate() {
            let error = error.unwrap_or_else(|| panic!("before call {call}: reader {reader}"));
            assert_eq!(error.kind(), Kind::Busy, "before call {call}, reader {reader}: {error}");
            assert!(error.to_string().contains("open the database for writing once"), "{error}");
        }
        drop(lock);
        // After one opening for writing every read works. The background may flush meanwhile: trimmed
        // segments must stay readable for the feed.
        drop(open(disk.clone(), &keeping_history()).unwrap());
        let door: Arc<dyn Disk> = Arc::new(disk);
        view(&door).unwrap();
        let mut feed = Feed::beside(door, dir, Env::real(), SeqNo(1)).unwrap();
        assert!(feed.try_next().unwrap().is_some());
    }
    assert!(refused > 0, "the names come behind the edit");
}

/// A repair finds a segment that is listed but not renamed yet.
#[test]
fn a_repair_reads_segments_that_have_not_got_their_names() {
    let image = loaded();
    let after = state(&filtered(image.kill()).unwrap());
    let mut unnamed = 0;
    for (call, disk) in images_of_an_opening(&image).into_iter().enumerate() {
        if open(disk.kill(), &read_only()).is_ok() {
            continue;
        }
        unnamed += 1;
        let (door, target): (Arc<dyn Disk>, _) = (Arc::new(disk), Path::new("/repaired"));
        let report = repair_on(&door, Path::new(DIR), target, &small_options(), Env::real()).unwrap();
        assert!(report.losses.is_empty(), "before call {call}: {:?}", report.losses);
        let engine = Engine::open_on(door, target, &small_options(), Env::real()).unwrap();
        assert!(state(&engine) == after, "before call {call}");
    }
    assert!(unnamed > 0, "the names come behind the edit");
}

/// A repair without a manifest would take them for segments of the database.
#[test]
fn files_of_rewritten_segments_are_removed() {
    let image = loaded();
    let journal = Path::new(DIR).join("journal");
    let before = image.list(&journal).unwrap();
    let disk = image.kill();
    let engine = filtered(disk.clone()).unwrap();
    let left: Vec<_> = before.iter().filter(|name| disk.exists(&journal.join(name)).unwrap()).collect();
    // Only files that were prepared and never used stay.
    assert!(left.len() + 2 < before.len(), "{left:?} of {before:?}");
    drop(engine);
}

/// Ignores the batch that puts `key` first.
struct Ignoring(&'static [u8]);

impl ReplayFilter for Ignoring {
    fn name(&self) -> &str {
        "ignoring"
    }

    fn batch(&self, batch: &ReplayedBatch<'_>) -> ReplayDecision {
        match batch.changes()[0].kind {
            ChangeKind::Put { key, .. } if key == self.0 => ReplayDecision::Ignore,
            _ => ReplayDecision::Keep,
        }
    }
}

fn open_ignoring(disk: MemDisk, key: &'static [u8]) -> Arc<Engine> {
    Engine::open_filtered_on(request(Arc::new(disk), &small_options()), &Ignoring(key)).unwrap()
}

/// How often readers of changes get an ingest, and the keys that they get.
fn changes_of(engine: &Arc<Engine>) -> (u64, Vec<Vec<u8>>) {
    let (mut ingests, mut keys) = (0, Vec::new());
    let mut feed = Feed::open(engine.clone(), SeqNo(1), FeedOptions::new()).unwrap();
    while let Some(batch) = feed.try_next().unwrap() {
        for change in batch.changes() {
            match change.kind {
                ChangeKind::Ingest => ingests += 1,
                ChangeKind::Put { key, .. } => keys.push(key.to_vec()),
                other => panic!("{other:?}"),
            }
        }
    }
    (ingests, keys)
}

/// The journal announces extents whose edit a death prevents: that they did not come in is known behind a
/// rewriting, too.
#[test]
fn void_marks_stay_void_in_rewritten_segments() {
    let gate = GateDisk::new(MemDisk::new());
    let engine = open(gate.clone(), &small_options()).unwrap();
    engine.put(TableId::DEFAULT, b"first", b"1", true).unwrap();
    engine.put(TableId::DEFAULT, b"second", b"2", true).unwrap();
    let mark = SeqNo(engine.visible().0 + 1);
    let images = Arc::new(Mutex::new(Vec::new()));
    let taken = images.clone();
    let look = move |disk: &MemDisk| {
        taken.lock().push(disk.kill());
        1
    };
    gate.look_after(1, Box::new(look));
    let mut loader = engine.begin_load(&engine.catalog().require("default").unwrap()).unwrap();
    (0..50u64).try_for_each(|number| loader.put(&number.to_be_bytes(), b"loaded")).unwrap();
    loader.finish().unwrap();
    gate.look_away();
    drop(engine);
    let mut void = 0;
    for (call, image) in std::mem::take(&mut *images.lock()).into_iter().enumerate() {
        let engine = open(image.clone(), &small_options()).unwrap();
        let default = engine.catalog().require("default").unwrap();
        let loaded = u64::from(rows(&engine, &default).unwrap().iter().any(|(_, value)| value == b"loaded"));
        void += u64::from(engine.visible() >= mark && loaded == 0);
        assert_eq!(changes_of(&engine).0, loaded, "call {call}");
        let oldest = engine.segments()[0].id;
        drop(default);
        engine.close().unwrap();
        let engine = open_ignoring(image, b"first");
        assert!(engine.segments()[0].id > oldest, "call {call}: rewritten");
        assert_eq!(changes_of(&engine), (loaded, vec![b"second".to_vec()]), "call {call}");
    }
    assert!(void > 0, "the mark comes before the edit");
}
