//! The journal in files under the schedule explorer: what a sync promises beside rotations and other syncs.

use std::path::Path;
use std::sync::{Arc, Mutex};

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner, thread};
use terrane_base::env::{Env, Joiner, Spawn};
use terrane_base::{Batch, Kind, Result, SeqNo, TableId};
use terrane_device::{Call, Disk, Failure, Fault, FaultyDisk, MemDisk};
use terrane_journal::{
    FileJournal, Journal, JournalSettings, JournalStart, ListedSegment, ReplaySettings, SegmentRegistrar,
    SegmentSpec, replay,
};

const DIR: &str = "journal";
/// Two batches fit a segment.
const VALUE_BYTES: usize = 1500;

/// Threads of the explorer.
#[derive(Debug)]
struct Explored;

struct Thread(thread::JoinHandle<()>);

impl Joiner for Thread {
    fn join(self: Box<Self>) {
        self.0.join().unwrap();
    }
}

impl Spawn for Explored {
    fn spawn(&self, _name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Joiner>> {
        Ok(Box::new(Thread(thread::spawn(body))))
    }

    fn parallelism(&self) -> usize {
        1
    }
}

/// The segments that a manifest lists; durable at once.
#[derive(Default)]
struct Listed(Mutex<Vec<ListedSegment>>);

impl SegmentRegistrar for Listed {
    fn register(&self, segment: &SegmentSpec) -> Result<()> {
        self.0.lock().unwrap().push(ListedSegment { spec: *segment, seal: None });
        Ok(())
    }
}

/// A journal of the shortest segments on a device in memory.
struct World {
    disk: MemDisk,
    listed: Arc<Listed>,
    journal: Arc<FileJournal>,
}

impl World {
    /// A sync of the first segment fails, behind so many, if there is a number, and every later one of it.
    fn new(failing_sync: Option<u64>) -> World {
        let (disk, listed) = (MemDisk::new(), Arc::<Listed>::default());
        disk.create_dir(Path::new(DIR)).unwrap();
        let faulty = FaultyDisk::new(Arc::new(disk.clone()));
        let settings =
            JournalSettings { segment_bytes: 4096, first_segment_bytes: 4096, ..JournalSettings::default() };
        let env = Env { spawn: Arc::new(Explored), ..Env::real() };
        let (shared, registrar) = (Arc::new(faulty.clone()), Arc::clone(&listed));
        let start = JournalStart::default();
        let journal = FileJournal::open(shared, Path::new(DIR), &settings, &env, registrar, &start).unwrap();
        if let Some(skip) = failing_sync {
            let sync = |failure| Fault::new(Call::Sync, failure).on("000001.seg");
            faulty.fail(sync(Failure::Broken).after(skip));
            // Later syncs must return the first error: the device may have lost the bytes that the failed
            // sync was to make durable.
            faulty.fail(sync(Failure::Full).after(skip + 1).lasting());
        }
        World { disk, listed, journal: Arc::new(journal) }
    }

    /// The last number that a replay finds after the loss of power, in the worst of some cases.
    fn left_by_a_power_cut(&self) -> SeqNo {
        let listed = self.listed.0.lock().unwrap().clone();
        let settings = ReplaySettings {
            threads: 1,
            durable_floor: SeqNo(0),
            flushed: SeqNo(0),
            make_durable: false,
            salt: 0,
        };
        let found = |seed| {
            let cut = self.disk.crash(seed);
            let replayed = replay(&cut, Path::new(DIR), &listed, &settings, &Explored, &|_, _, _, _| Ok(()));
            replayed.unwrap().last_seq
        };
        (0..4).map(found).min().unwrap()
    }
}

/// Runs `sync`, which makes everything durable up to the number that it returns; returns its error.
fn promised(world: &World, sync: impl Fn(&FileJournal) -> Result<SeqNo>) -> Option<Kind> {
    match sync(&world.journal) {
        Ok(seq) => {
            let left = world.left_by_a_power_cut();
            assert!(left >= seq, "{left} of {seq} is left");
            None
        }
        Err(error) => Some(error.kind()),
    }
}

fn commit(journal: &FileJournal, sync: bool) -> Result<SeqNo> {
    let mut batch = Batch::new();
    batch.put(TableId::DEFAULT, b"key", &[7; VALUE_BYTES]).unwrap();
    journal.commit(&batch, sync, &mut |_| {})
}

/// A device and a replay need more stack than the explorer gives.
fn explore(test: impl Fn() + Send + Sync + 'static) {
    let schedules = super::schedules() / 3;
    let config = || {
        let mut config = Config::new();
        config.stack_size = 1 << 19;
        config
    };
    let test = Arc::new(test);
    let random = Arc::clone(&test);
    Runner::new(RandomScheduler::new(schedules), config()).run(move || random());
    Runner::new(PctScheduler::new(4, schedules), config()).run(move || test());
}

/// Found that the active segment was looked up behind the sealed ones, with a rotation in between: the
/// segment that it sealed was not synced.
#[test]
fn a_sync_makes_durable_what_it_names_beside_rotations() {
    explore(|| {
        let world = World::new(None);
        // The next commit rotates.
        (0..2).for_each(|_| assert!(commit(&world.journal, false).is_ok()));
        let writer = thread::spawn({
            let journal = Arc::clone(&world.journal);
            move || (0..3).for_each(|_| assert!(commit(&journal, false).is_ok()))
        });
        assert_eq!([(); 2].map(|()| promised(&world, sync_visible)), [None, None]);
        writer.join().unwrap();
    });
}

/// As a flush does.
fn sync_visible(journal: &FileJournal) -> Result<SeqNo> {
    let seq = journal.visible();
    journal.sync_through(seq).map(|()| seq)
}

/// Synced commits, syncs of a flush and rotations, with a sync that fails.
fn syncs_meet(failing_sync: Option<u64>) {
    explore(move || {
        let world = Arc::new(World::new(failing_sync));
        assert!(commit(&world.journal, false).is_ok());
        let writers = [false, true].map(|sync| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let kinds = [sync, true].map(|sync| match sync {
                    true => promised(&world, |journal| commit(journal, true)),
                    false => commit(&world.journal, false).err().map(|error| error.kind()),
                });
                assert!(kinds[0].is_none() || kinds[1].is_some(), "{kinds:?}: it went on after a failure");
                kinds
            })
        });
        let flushes = [(); 2].map(|()| promised(&world, sync_visible));
        assert!(flushes[0].is_none() || flushes[1].is_some(), "{flushes:?}: it went on after a failure");
        let kinds = writers.into_iter().flat_map(|writer| writer.join().unwrap()).chain(flushes);
        for kind in kinds.flatten() {
            let is_explained = failing_sync.is_some() && matches!(kind, Kind::Io | Kind::Poisoned);
            assert!(is_explained, "{kind:?}");
        }
    });
}

#[test]
fn synced_commits_meet_the_syncs_of_a_flush() {
    syncs_meet(None);
}

/// Finds a poison that is set behind the lock: a sync that comes in between may look successful.
#[test]
fn a_failed_sync_meets_the_syncs_of_a_flush() {
    syncs_meet(Some(0));
    syncs_meet(Some(1));
}
