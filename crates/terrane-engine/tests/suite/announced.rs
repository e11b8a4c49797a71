//! Ingests that the journal announces, and that succeed or fail: views, readers of changes and openings agree
//! on the result, after a crash at any call, and whichever call fails.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a step that fails ends the test, and one is about threads"
)]

use crate::support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use parking_lot::Mutex;
use support::gate::GateDisk;
use support::{DIR, open, small_options};
use terrane_base::env::{Clock, Env};
use terrane_base::options::Options;
use terrane_base::{Batch, Functions, Kind, Result, SeqNo, TableId};
use terrane_device::{Call, Disk, Failure, Fault, FaultyDisk, MemDisk, OpenMode};
use terrane_engine::{Bounds, ChangeKind, Engine, Feed, FeedOptions, Ingested, Viewed};

const ROWS: u64 = 50;

fn options() -> Options {
    let mut options = small_options();
    options.set("history_bytes", "1MiB").unwrap();
    options
}

fn put(engine: &Engine, key: &[u8]) {
    let mut batch = Batch::new();
    batch.put(TableId::DEFAULT, key, b"v").unwrap();
    engine.write(&batch, true).unwrap();
}

fn load(engine: &Arc<Engine>) -> Result<Ingested> {
    let table = engine.catalog().require("default")?;
    let mut loader = engine.begin_load(&table)?;
    (0..ROWS).try_for_each(|number| loader.put(&number.to_be_bytes(), b"loaded"))?;
    loader.finish()
}

/// Returns whether the loaded rows are there, and whether the row `later` is.
fn holds(engine: &Arc<Engine>) -> (bool, bool) {
    let table = engine.catalog().require("default").unwrap();
    let rows: Vec<_> = engine.range(&table, Bounds::all(), engine.visible()).collect::<Result<_>>().unwrap();
    let loaded = rows.iter().filter(|(_, value)| value == b"loaded").count() as u64;
    assert!(loaded == 0 || loaded == ROWS, "a part came in");
    (loaded == ROWS, rows.iter().any(|(key, _)| key == b"later"))
}

/// Returns whether a reader of changes gets the ingest, once, and whether it gets the row `later`.
fn changes_of(feed: &mut Feed) -> Result<(bool, bool)> {
    let (mut ingests, mut is_later) = (0, false);
    while let Some(batch) = feed.try_next()? {
        for change in batch.changes() {
            ingests += u64::from(change.kind == ChangeKind::Ingest);
            is_later |= matches!(change.kind, ChangeKind::Put { key: b"later", .. });
        }
    }
    assert!(ingests <= 1);
    Ok((ingests == 1, is_later))
}

fn follow(disk: &MemDisk) -> Arc<Engine> {
    viewed(disk.clone()).engine
}

fn viewed(disk: impl Disk + 'static) -> Viewed {
    let disk: Arc<dyn Disk> = Arc::new(disk);
    Viewed::of(&disk, Path::new(DIR), &options(), &Env::real(), &Functions::default(), None).unwrap()
}

/// The results of readers in another process: a view, and a reader of changes. A lock stands for a primary
/// that lives.
fn beside(disk: &MemDisk, mark: SeqNo) -> (bool, bool) {
    let lock = disk.lock(&Path::new(DIR).join("LOCK")).unwrap();
    let view = follow(disk);
    drop(lock);
    let seen = holds(&view);
    assert_eq!(seen.0, view.visible() >= mark, "a view has the commit, but not what came in by it");
    let feed = Feed::beside(Arc::new(disk.clone()), Path::new(DIR), Env::real(), SeqNo(1));
    assert_eq!(changes_of(&mut feed.unwrap()).unwrap(), seen, "a reader of changes differs from a view");
    seen
}

/// Opens it for writing: by then everything is decided, as it looked before.
fn reopened(disk: &MemDisk, mark: SeqNo, is_there: bool) {
    let engine = open(disk.clone(), &options()).unwrap();
    assert_eq!(holds(&engine).0, is_there, "an opening differs from a view");
    put(&engine, b"later");
    for _ in 0..2 {
        let mut feed = Feed::open(engine.clone(), SeqNo(1), FeedOptions::new()).unwrap();
        assert_eq!(changes_of(&mut feed).unwrap(), (is_there, true));
        let view = follow(disk);
        assert!(view.visible() >= mark);
        assert_eq!(holds(&view), (is_there, true));
        let feed = Feed::beside(Arc::new(disk.clone()), Path::new(DIR), Env::real(), SeqNo(1));
        assert_eq!(changes_of(&mut feed.unwrap()).unwrap(), (is_there, true));
        // The same of history.
        engine.flush().unwrap();
        engine.wait_until_quiescent().unwrap();
    }
    engine.close().unwrap();
}

#[test]
fn readers_of_changes_get_an_announced_ingest_if_it_succeeded() {
    let disk = GateDisk::new(MemDisk::new());
    let engine = open(disk.clone(), &options()).unwrap();
    put(&engine, b"first");
    let mark = SeqNo(engine.visible().0 + 1);
    let images: Arc<Mutex<Vec<MemDisk>>> = Arc::default();
    let taken = images.clone();
    disk.look_after(
        1,
        Box::new(move |disk| {
            let mut taken = taken.lock();
            let seed = taken.len() as u64;
            taken.extend([disk.kill(), disk.crash(seed)]);
            1
        }),
    );
    assert_eq!(load(&engine).unwrap().seq, mark);
    disk.look_away();
    engine.close().unwrap();
    let (mut there, mut open_marks) = (0, 0);
    let images = std::mem::take(&mut *images.lock());
    for image in &images {
        let (is_there, _) = beside(image, mark);
        let disk: Arc<dyn Disk> = Arc::new(image.clone());
        let last = terrane_engine::last_commit(&disk, Path::new(DIR), &Env::real()).unwrap();
        there += usize::from(is_there);
        open_marks += usize::from(!is_there && last >= mark);
        reopened(image, mark, is_there);
    }
    assert!(there > 0 && open_marks > 0, "{there} and {open_marks} of {}", images.len());
}

/// A primary whose load met `fault` of the manifest, and the number that it was announced under.
fn failed(fault: &Fault, kind: Kind) -> (MemDisk, FaultyDisk, Arc<Engine>, SeqNo) {
    for _ in 0..1000 {
        let disk = MemDisk::new();
        let faulty = FaultyDisk::new(Arc::new(disk.clone()));
        let engine = open(faulty.clone(), &options()).unwrap();
        put(&engine, b"first");
        let mark = SeqNo(engine.visible().0 + 1);
        faulty.fail(fault.clone().on("MANIFEST"));
        match load(&engine) {
            Err(error) if engine.visible() == mark => {
                assert_eq!(error.kind(), kind, "{error}");
                return (disk, faulty, engine, mark);
            }
            // The preparation of a segment met it.
            Ok(_) | Err(_) => {}
        }
    }
    panic!("no load met it");
}

#[test]
fn readers_of_changes_do_not_see_a_refused_ingest() {
    for is_lasting in [false, true] {
        let fault = Fault::new(Call::Write, Failure::Full);
        let fault = if is_lasting { fault.lasting() } else { fault };
        let (disk, faulty, engine, mark) = failed(&fault, Kind::Full);
        put(&engine, b"later");
        let mut feed = Feed::open(engine.clone(), SeqNo(1), FeedOptions::new()).unwrap();
        assert_eq!(changes_of(&mut feed).unwrap(), (false, true));
        // While the manifest cannot say that the mark is void, readers in other processes stop in front of
        // it.
        let view = follow(&disk);
        assert_eq!((view.visible() < mark, holds(&view)), (is_lasting, (false, !is_lasting)));
        // Where no process writes it is void, as at the next opening, and hides no later commit.
        let dead = follow(&disk.kill());
        assert_eq!((dead.visible() > mark, holds(&dead)), (true, (false, true)));
        faulty.heal();
        let copy = Path::new("/copy");
        engine.checkpoint(copy).unwrap();
        let copied = Engine::open_on(Arc::new(disk.clone()), copy, &options(), Env::real()).unwrap();
        let mut feed = Feed::open(copied.clone(), SeqNo(1), FeedOptions::new()).unwrap();
        assert_eq!(changes_of(&mut feed).unwrap(), (false, true), "as it was in the source");
        copied.close().unwrap();
        load(&engine).unwrap();
        let mut feed = Feed::open(engine.clone(), SeqNo(mark.0), FeedOptions::new()).unwrap();
        assert_eq!(changes_of(&mut feed).unwrap(), (true, true));
        assert_eq!(holds(&follow(&disk)), (true, true));
        engine.close().unwrap();
        reopened(&disk, mark, true);
    }
}

/// A view takes a database whose lock it cannot see for one that a process may write: it stops in front of
/// extents that may still come in.
#[test]
fn a_view_that_cannot_see_the_lock_is_made_as_beside_a_writer() {
    let fault = Fault::new(Call::Write, Failure::Full).lasting();
    let (disk, faulty, engine, mark) = failed(&fault, Kind::Full);
    put(&engine, b"later");
    let lock = Path::new(DIR).join("LOCK");
    // As of a file system without locks.
    let unlockable = FaultyDisk::new(Arc::new(disk.clone()));
    unlockable.fail(Fault::new(Call::Lock, Failure::Broken).lasting());
    let refused = viewed(unlockable.clone());
    let calls = unlockable.count(Call::Lock);
    // As a file that the reader may not open, or that was removed while the writer has it.
    disk.remove(&lock).unwrap();
    for view in [refused, viewed(disk.clone())] {
        assert_eq!((view.engine.visible() < mark, holds(&view.engine)), (true, (false, false)));
        let why = view.writer.expect("a writer is not ruled out").to_string();
        assert!(why.contains("LOCK") && why.contains("no writer out"), "{why}");
    }
    assert_eq!(calls, 1, "an attempt looks once");
    faulty.heal();
    engine.close().unwrap();
    // Where it sees the lock, it has the rest.
    disk.open(&lock, OpenMode::Create, false).unwrap();
    let alone = viewed(disk);
    assert!(alone.writer.is_none() && alone.engine.visible() > mark);
    assert_eq!(holds(&alone.engine), (false, true));
}

/// A reader has an undecided mark, and the segment of that mark is trimmed meanwhile: it gets an error,
/// because the manifest no longer lists the void marks of that segment.
#[test]
fn void_marks_of_a_trimmed_segment_are_an_error_for_readers() {
    let fault = Fault::new(Call::Write, Failure::Full).lasting();
    let (disk, faulty, engine, mark) = failed(&fault, Kind::Full);
    let mut feed = Feed::beside(Arc::new(disk), Path::new(DIR), Env::real(), SeqNo(1)).unwrap();
    assert!(feed.try_next().unwrap().is_some(), "the row before it");
    assert!(feed.try_next().unwrap().is_none(), "it is not decided");
    faulty.heal();
    // Background work that met the full device before it healed reports that to the next caller.
    let healed = |step: &dyn Fn() -> terrane_base::Result<()>| {
        let refused = (0..100).map_while(|_| step().err()).inspect(|_| std::thread::yield_now());
        let errors: Vec<_> = refused.collect();
        assert!(errors.iter().all(|error| error.kind() == Kind::Full), "{errors:?}");
        assert!(errors.len() < 100, "the device healed: {errors:?}");
    };
    let is_given_up = || {
        (0..100u64).for_each(|key| {
            healed(&|| engine.put(TableId::DEFAULT, &key.to_be_bytes(), &[7; 10_000], false).map(drop));
        });
        healed(&|| engine.flush());
        healed(&|| engine.wait_until_quiescent());
        Feed::open(engine.clone(), SeqNo(1), FeedOptions::new()).is_err()
    };
    assert!((0..50).any(|_| is_given_up()), "history is never given up");
    assert_eq!(feed.try_next().unwrap_err().kind(), Kind::Gone);
    assert_eq!(feed.position(), mark, "it stays in front");
    engine.close().unwrap();
}

/// After a failed sync it is not known whether the edit is durable: a reader of changes gets an error, and
/// the next opening decides.
#[test]
fn readers_get_an_error_for_an_undecided_ingest() {
    let (disk, _, engine, mark) = failed(&Fault::new(Call::Sync, Failure::Broken), Kind::Poisoned);
    let mut feed = Feed::open(engine.clone(), SeqNo(1), FeedOptions::new()).unwrap();
    assert_eq!(changes_of(&mut feed).unwrap_err().kind(), Kind::Poisoned);
    assert_eq!(feed.position(), mark, "it stays in front");
    assert!(engine.close().is_err());
    drop(engine);
    for seed in 0..8 {
        let image = if seed == 0 { disk.kill() } else { disk.crash(seed) };
        let (is_there, _) = beside(&image, mark);
        reopened(&image, mark, is_there);
    }
}

/// Every look at it takes a while.
#[derive(Debug, Default)]
struct Looks(AtomicU64);

impl Looks {
    const LOOK: Duration = Duration::from_millis(400);

    fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

impl Clock for Looks {
    fn now(&self) -> Duration {
        Looks::LOOK * self.0.fetch_add(1, Ordering::SeqCst) as u32
    }

    fn wall(&self) -> Duration {
        self.now()
    }

    fn sleep(&self, _: Duration) {
        std::thread::yield_now();
    }
}

/// However long the device takes: a writer to the range of an ingest waits a second for locks, and waits for
/// the ingest to its end.
#[test]
fn writers_wait_for_an_ingest() {
    const STOPS_MAX: usize = 300;
    let (disk, clock) = (GateDisk::new(MemDisk::new()), Arc::new(Looks::default()));
    let env = Env { clock: clock.clone(), ..Env::real() };
    let engine = Engine::open_on(Arc::new(disk.clone()), Path::new(DIR), &options(), env).unwrap();
    // The first segment is there: no writer holds its lock until the test lets the device make it.
    put(&engine, b"first");
    let ((event, events), (go, gone)) = (channel(), channel());
    let ended = event.clone();
    disk.look_after(1, Box::new(move |_| u64::from(event.send(true).is_ok() && gone.recv() == Ok(true))));
    let loading = engine.clone();
    let loader = std::thread::spawn(move || {
        // By this clock it does not wait for a writer that holds a lock and has no turn.
        let has_ended =
            |loaded: &Result<Ingested>| !loaded.as_ref().is_err_and(|error| error.kind() == Kind::TimedOut);
        let loaded = (0..100).map(|_| load(&loading)).find(has_ended);
        ended.send(false).unwrap();
        loaded.expect("no writer holds a lock for so long")
    });
    let (mut writers, mut waited) = (Vec::new(), 0);
    while events.recv() == Ok(true) {
        let (writing, number) = (engine.clone(), writers.len() as u64);
        // Within the loaded range, and each its own: none waits for another.
        let key = [(number % ROWS).to_be_bytes(), number.to_be_bytes()].concat();
        let begun = clock.count();
        let writer = std::thread::spawn(move || writing.put(TableId::DEFAULT, &key, b"within", false));
        // Seconds by that clock, if it is a clock that the writer waits by.
        for _ in 0..300 {
            if writer.is_finished() || clock.count() > begun + 20 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        waited += u64::from(!writer.is_finished());
        writers.push(writer);
        go.send(writers.len() < STOPS_MAX).unwrap();
    }
    // Background jobs may still stand at the gate; dropping the sender lets them go on.
    drop(go);
    loader.join().unwrap().unwrap();
    assert!(waited > 0, "no writer had to wait");
    for writer in writers {
        writer.join().unwrap().unwrap();
    }
    engine.close().unwrap();
}
