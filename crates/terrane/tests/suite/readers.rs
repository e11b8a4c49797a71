//! The list of live readers: their kinds, what each keeps alive, and their greatest age.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use terrane::{
    Compression, Db, Diagnostics, Env, Follower, Functions, JobEnded, Kind, Listener, LiveReader,
    MemoryDevice, Options, ReaderKind, Table, TransactionOptions,
};
use terrane_base::env::Clock;
use terrane_device::PosixDisk;

/// The real clock, set forward by hand.
#[derive(Debug)]
struct Hand {
    real: Arc<dyn Clock>,
    ahead_ms: AtomicU64,
    looks: AtomicU64,
}

impl Hand {
    fn new() -> Arc<Hand> {
        Arc::new(Hand { real: Env::real().clock, ahead_ms: AtomicU64::new(0), looks: AtomicU64::new(0) })
    }
}

impl Clock for Hand {
    fn now(&self) -> Duration {
        // Every look takes a microsecond, so that everything takes time.
        let looks = Duration::from_micros(self.looks.fetch_add(1, Ordering::SeqCst));
        self.real.now() + looks + Duration::from_millis(self.ahead_ms.load(Ordering::SeqCst))
    }

    fn wall(&self) -> Duration {
        self.real.wall()
    }

    fn sleep(&self, duration: Duration) {
        self.real.sleep(duration);
    }
}

const HOUR: u64 = 60 * 60 * 1000;

struct World {
    _dir: tempfile::TempDir,
    hand: Arc<Hand>,
    db: Db,
}

impl World {
    /// A database whose readers may be an hour old.
    fn new() -> World {
        World::with(Options { reader_age_max_ms: HOUR, ..Options::default() })
    }

    fn with(options: Options) -> World {
        let dir = tempfile::tempdir().unwrap();
        let hand = Hand::new();
        let options = Options { memory_bytes: 16 << 20, ..options };
        let env = Env { clock: hand.clone(), ..Env::real() };
        let db = Db::open_in(dir.path().join("db"), &options, env).unwrap();
        World { _dir: dir, hand, db }
    }

    fn table(&self) -> &Table {
        self.db.default_table()
    }

    fn fill(&self, value: &[u8]) {
        (0..1000u32).for_each(|key| self.db.put(key.to_be_bytes(), value).unwrap());
    }

    fn pass(&self, millis: u64) {
        self.hand.ahead_ms.fetch_add(millis, Ordering::SeqCst);
        // Where readers may have any age, that of a scan counts from the last look at the clock; this is one.
        let _ = self.db.stats();
    }

    /// Moves everything into the levels, without versions that no reader sees.
    fn move_to_levels(&self) {
        self.db.flush().unwrap();
        self.db.compact_range(self.table(), ..).unwrap();
    }

    fn reader(&self, kind: ReaderKind) -> LiveReader {
        self.db.live_readers().into_iter().find(|reader| reader.origin.kind == kind).unwrap()
    }

    /// Waits until the background has taken away what old readers pin.
    fn until_expired(&self, count: u64) {
        let is_so = || self.db.stats().readers_expired >= count;
        until(&*self.hand.real, &format!("{count} readers have expired"), is_so);
    }
}

/// Not a figure: a condition that fails after as many looks, a millisecond and more apart, never holds.
const LOOKS_MAX: u32 = 200_000;

/// Looks until it is so; a failure says what did not come.
fn until(clock: &dyn Clock, what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..LOOKS_MAX {
        if is_so() {
            return;
        }
        clock.sleep(Duration::from_millis(1));
    }
    panic!("{what}: it never comes to that");
}

#[test]
fn readers_are_listed_with_what_they_keep() {
    let world = World::with(Options::default());
    world.fill(b"old");
    world.move_to_levels();
    let line = line!() + 1;
    let snapshot = world.db.snapshot_labelled("report");
    world.pass(HOUR);
    let scan = world.table().iter();
    let transaction = world.db.transaction(&TransactionOptions::default()).unwrap();
    let kinds: Vec<_> = world.db.live_readers().iter().map(|reader| reader.origin.kind).collect();
    assert_eq!(kinds, [ReaderKind::Snapshot, ReaderKind::Scan, ReaderKind::Transaction], "oldest first");
    let first = world.reader(ReaderKind::Snapshot);
    assert_eq!(first.origin.label.as_deref(), Some("report"));
    assert!(first.origin.place.file().ends_with("readers.rs") && first.origin.place.line() == line);
    assert!(world.reader(ReaderKind::Transaction).origin.place.file().ends_with("readers.rs"));
    assert!(first.age >= Duration::from_millis(HOUR) && !first.is_expired);
    assert_eq!((first.seq, first.records_since, first.extent_bytes), (snapshot.seq(), 0, 0));
    assert_eq!(world.reader(ReaderKind::Scan).tables, ["default"]);

    // Extents that are rewritten while a scan reads them stay, and the list counts them; the snapshot has no
    // scan, so it holds no extent.
    world.fill(b"new");
    let stored = world.db.shape().tables[0].levels.iter().map(|level| level.bytes).sum::<u64>();
    world.move_to_levels();
    let held = world.reader(ReaderKind::Scan);
    assert_eq!((held.extent_bytes, held.records_since), (stored, 1000));
    assert_eq!(world.reader(ReaderKind::Snapshot).extent_bytes, 0);
    let of_snapshot = snapshot.iter(world.table());
    assert_eq!(world.reader(ReaderKind::Snapshot).tables, ["default"]);
    assert!(world.db.stats().reader_age_micros >= HOUR * 1000);
    drop((of_snapshot, scan, transaction));
    assert_eq!(world.db.stats().readers_live, 1);
    assert_eq!(snapshot.get(world.table(), 0u32.to_be_bytes()).unwrap().as_deref(), Some(&b"old"[..]));
    drop(snapshot);
    assert!(world.db.live_readers().is_empty());
}

#[test]
fn memory_that_a_scan_holds_is_counted() {
    let world = World::with(Options::default());
    world.fill(b"value");
    let mut cursor = world.table().cursor();
    assert_eq!(world.reader(ReaderKind::Scan).memory_bytes, 0, "the table has it, too");
    let in_memory =
        world.db.statistics().table("default").unwrap().get("table_memory_bytes").unwrap().number();
    world.db.flush().unwrap();
    let held = world.reader(ReaderKind::Scan).memory_bytes;
    assert!(held > 0 && held <= in_memory, "{held} of {in_memory}");
    cursor.refresh();
    assert_eq!(world.reader(ReaderKind::Scan).memory_bytes, 0);
}

#[test]
fn a_reader_that_is_too_old_is_refused() {
    let world = World::new();
    let key = 7u32.to_be_bytes();
    world.fill(b"old");
    world.move_to_levels();
    let snapshot = world.db.snapshot_labelled("report");
    let transaction = world.db.transaction(&TransactionOptions::default()).unwrap();
    let (mut iter, mut of_snapshot) = (world.table().iter(), snapshot.iter(world.table()));
    let (mut cursor, mut young) = (world.table().cursor(), world.table().cursor());
    assert!(iter.next().is_some() && of_snapshot.next_back().is_some());
    cursor.seek_first().unwrap();
    world.fill(b"new");
    world.pass(HOUR / 2);
    young.refresh();
    assert_eq!(snapshot.get(world.table(), key).unwrap().as_deref(), Some(&b"old"[..]), "not yet");
    world.pass(HOUR / 2);
    world.until_expired(4);
    // Nothing keeps the old versions any more.
    world.move_to_levels();

    let error = snapshot.get(world.table(), key).unwrap_err();
    assert_eq!(error.kind(), Kind::TooOld);
    let text = error.to_string();
    assert!(
        text.contains("\"report\"") && text.contains("readers.rs") && text.contains("reader_age_max_ms"),
        "{text}"
    );
    assert_eq!(snapshot.multi_get(world.table(), &[&key]).unwrap_err().kind(), Kind::TooOld);
    assert_eq!(transaction.get(world.table(), key).unwrap_err().kind(), Kind::TooOld);
    for iter in [&mut iter, &mut of_snapshot] {
        assert_eq!(iter.next().unwrap().unwrap_err().kind(), Kind::TooOld);
        assert!(iter.next().is_none(), "after an error it ends");
    }
    assert_eq!(cursor.next().unwrap_err().kind(), Kind::TooOld);
    assert!(cursor.row().is_none());
    assert!(world.db.live_readers().iter().filter(|reader| reader.is_expired).count() == 4);

    // A refreshed one was young enough; and refreshed is as good as new.
    young.seek(key).unwrap();
    assert!(young.row().is_some());
    cursor.refresh();
    cursor.seek(key).unwrap();
    assert_eq!(cursor.row().map(|(_, value)| value), Some(&b"new"[..]));
    assert!(world.db.snapshot().get(world.table(), key).unwrap().is_some());
}

#[test]
fn a_forgotten_scan_holds_nothing_once_it_is_too_old() {
    let (compression, compression_last) = (Compression::None, Compression::None);
    let world =
        World::with(Options { reader_age_max_ms: HOUR, compression, compression_last, ..Options::default() });
    world.fill(&[7; 1000]);
    world.move_to_levels();
    let mut iter = world.table().iter();
    assert!(iter.next().is_some());
    world.table().delete_range([0], [255]).unwrap();
    world.move_to_levels();
    let held = world.reader(ReaderKind::Scan).extent_bytes;
    assert!(held > 500_000, "{held}");
    let before = world.db.stats().store_live_bytes;
    world.pass(2 * HOUR);
    world.until_expired(1);
    // The iterator is still there, and no call has used it.
    let is_given_back = || world.db.stats().store_live_bytes + held / 2 <= before;
    until(&*world.hand.real, "what the iterator held is given back", is_given_back);
    let holds_nothing = || world.reader(ReaderKind::Scan).extent_bytes == 0;
    until(&*world.hand.real, "the iterator holds nothing", holds_nothing);
    assert!(world.reader(ReaderKind::Scan).is_expired);
    assert_eq!(iter.next_back().unwrap().unwrap_err().kind(), Kind::TooOld);
}

#[test]
fn without_the_option_readers_may_be_of_any_age() {
    let world = World::with(Options::default());
    world.fill(b"old");
    let (snapshot, mut iter) = (world.db.snapshot(), world.table().iter());
    world.pass(24 * 365 * HOUR);
    world.fill(b"new");
    world.move_to_levels();
    assert_eq!(snapshot.get(world.table(), 0u32.to_be_bytes()).unwrap().as_deref(), Some(&b"old"[..]));
    assert!(iter.all(|row| row.unwrap().1 == b"old"));
    assert_eq!(world.db.stats().readers_expired, 0);
}

#[test]
fn many_short_readers_of_many_threads_come_and_go() {
    const THREADS: u64 = 4;
    let world = World::with(Options::default());
    world.fill(b"old");
    let (done, cursors) = (AtomicU64::new(0), Barrier::new(THREADS as usize + 1));
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let (world, done, cursors) = (&world, &done, &cursors);
            scope.spawn(move || {
                let mut cursor = world.table().cursor();
                cursors.wait();
                cursors.wait();
                for round in 0..2000u32 {
                    let snapshot = world.db.snapshot_labelled(&format!("{number}"));
                    let key = (round % 1000).to_be_bytes();
                    let (first, second) =
                        (snapshot.iter(world.table()), world.table().range(key.as_slice()..));
                    // Of two scans of one snapshot either may be the last to go.
                    let mut of_snapshot = snapshot.cursor(world.table());
                    drop(snapshot);
                    world.db.put(key, b"new").unwrap();
                    of_snapshot.refresh();
                    cursor.refresh();
                    cursor.seek(key).unwrap();
                    assert!(
                        cursor.row().is_some() && first.take(2).count() == 2 && second.take(1).count() == 1
                    );
                    if round % 100 == number as u32 {
                        world.db.flush().unwrap();
                    }
                }
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        // One look at least while there is something to see, however late this thread is.
        cursors.wait();
        let live = world.db.live_readers().len() as u64;
        cursors.wait();
        assert_eq!(live, THREADS);
        let mut seen = std::collections::HashMap::new();
        while done.load(Ordering::SeqCst) < THREADS {
            for reader in world.db.live_readers() {
                let place = (reader.origin.place.line(), reader.origin.label.clone());
                let before = seen.insert(reader.id, place.clone());
                assert!(before.is_none_or(|before| before == place), "a number is given once");
                assert!(reader.tables.iter().all(|table| table == "default") && reader.tables.len() <= 2);
            }
        }
    });
    assert!(world.db.live_readers().is_empty());
    assert_eq!(world.db.stats().readers_live, 0);
    // Nothing is pinned, so hidden versions are dropped.
    world.move_to_levels();
    assert_eq!(world.db.shape().tables[0].levels.iter().map(|level| level.entries).sum::<u64>(), 1000);
}

#[test]
fn a_view_of_a_follower_has_readers_that_expire_and_slow_reads() {
    let dir = tempfile::tempdir().unwrap();
    let primary = Db::open(dir.path().join("data")).unwrap();
    (0..1000u32).for_each(|key| primary.put(key.to_be_bytes(), b"value").unwrap());
    let hand = Hand::new();
    let env = Env { clock: hand.clone(), ..Env::real() };
    let diagnostics = Diagnostics { slow_read_micros: 1, slow_scan_micros: 1, ..Diagnostics::default() };
    let options =
        Options { memory_bytes: 16 << 20, reader_age_max_ms: HOUR, diagnostics, ..Options::default() };
    let disk = Arc::new(PosixDisk::new());
    let follower =
        Follower::open(disk, dir.path().join("data"), &options, Functions::default(), env).unwrap();
    let view = follower.view();
    let table = view.default_table();
    let (snapshot, mut iter, mut cursor) = (view.snapshot(), table.iter(), table.cursor());
    assert!(snapshot.get(table, [0; 4]).unwrap().is_some() && iter.next().is_some());
    cursor.seek_first().unwrap();
    assert!(view.stats().slow_operations >= 3, "each took a look at the clock");
    assert_eq!(view.live_readers().len(), 3);
    assert!(primary.live_readers().is_empty(), "a view has readers of its own");
    let heard = Arc::new(Flushes::default());
    view.add_listener(heard.clone()).unwrap();

    // A view has no background: a reader finds by itself that it is too old.
    hand.ahead_ms.fetch_add(2 * HOUR, Ordering::SeqCst);
    assert_eq!(snapshot.get(table, [0; 4]).unwrap_err().kind(), Kind::TooOld);
    assert_eq!(iter.next().unwrap().unwrap_err().kind(), Kind::TooOld);
    assert_eq!(cursor.next().unwrap_err().kind(), Kind::TooOld);
    assert_eq!(view.stats().readers_expired, 3);
    cursor.refresh();
    cursor.seek_first().unwrap();
    primary.put(b"more", b"value").unwrap();
    follower.catch_up().unwrap();
    assert!(follower.view().snapshot().get(follower.view().default_table(), b"more").unwrap().is_some());
    drop((snapshot, iter, cursor));
    assert!(view.live_readers().is_empty());
    view.close().unwrap();
    assert_eq!(heard.0.load(Ordering::SeqCst), 0, "a view flushes nothing");
}

/// Counts flushes.
#[derive(Default)]
struct Flushes(AtomicU64);

impl Listener for Flushes {
    fn flush_ended(&self, _job: &JobEnded) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_database_in_memory_has_readers_listeners_and_slow_operations() {
    let hand = Hand::new();
    let env = Env { clock: hand.clone(), ..Env::real() };
    let diagnostics = Diagnostics { slow_write_micros: 1, ..Diagnostics::default() };
    let options = Options { reader_age_max_ms: HOUR, diagnostics, ..Options::in_memory() };
    let db = Db::open_on(MemoryDevice::new(64 << 20).disk(), "/data", &options, env).unwrap();
    let heard = Arc::new(Flushes::default());
    db.add_listener(heard.clone()).unwrap();
    db.put(b"k", b"old").unwrap();
    assert!(db.stats().slow_operations > 0, "it took a look at the clock");
    let (snapshot, iter) = (db.snapshot(), db.default_table().iter());
    db.put(b"k", b"new").unwrap();
    db.flush().unwrap();
    hand.ahead_ms.fetch_add(2 * HOUR, Ordering::SeqCst);
    until(&*hand.real, "two readers have expired", || db.stats().readers_expired >= 2);
    assert_eq!(snapshot.get(db.default_table(), b"k").unwrap_err().kind(), Kind::TooOld);
    assert!(iter.last().unwrap().is_err());
    db.close().unwrap();
    assert!(heard.0.load(Ordering::SeqCst) > 0, "a close waits until listeners got every event");
}
