//! Followers: every view shows one moment of the primary and does not change, whatever the primary does with
//! its files.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the test")]

mod races;

use crate::support;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use support::{DIR, get, number_from_env, open, small_options};
use terrane_base::env::{Clock, Env};
use terrane_base::options::{Experiments, Options};
use terrane_base::{Batch, Functions, Kind, Result, Rng, SegmentId, SeqNo};
use terrane_device::{Call, Disk, Failure, Fault, FaultyDisk, MemDisk, PosixDisk};
use terrane_engine::{Bounds, Engine, Row, Viewed, last_commit};
use terrane_journal::segment_in_file;

fn follow(disk: impl Disk + 'static, dir: &Path, previous: Option<&Arc<Engine>>) -> Result<Arc<Engine>> {
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let options = small_options();
    Ok(Viewed::of(&disk, dir, &options, &Env::real(), &Functions::default(), previous)?.engine)
}

/// Sets `count` keys in both tables, each pair in one batch.
fn write(engine: &Engine, from: u64, count: u64, fill: u64) {
    let tables = ["default", "other"].map(|name| engine.catalog().require(name).unwrap().id);
    for number in from..from + count {
        let mut batch = Batch::new();
        for table in tables {
            batch.put(table, &number.to_be_bytes(), &fill.to_be_bytes().repeat(40)).unwrap();
        }
        engine.write(&batch, false).unwrap();
    }
}

/// The rows that have been written when `fills` says for each key, from 0 on, what was set last.
fn expected_rows(fills: impl IntoIterator<Item = u64>) -> Vec<Row> {
    let row = |(number, fill): (u64, u64)| (number.to_be_bytes().to_vec(), fill.to_be_bytes().repeat(40));
    (0..).zip(fills).map(row).collect()
}

/// Every row of both tables, which have the same ones.
fn all_rows(engine: &Arc<Engine>) -> Result<Vec<Row>> {
    let rows = |name: &str| -> Result<Vec<Row>> {
        let table = engine.catalog().require(name)?;
        // No view has as many: a view that reads rows written meanwhile may find no end.
        engine.range(&table, Bounds::all(), engine.visible()).take(10_000).collect()
    };
    let (one, other) = (rows("default")?, rows("other")?);
    assert!(one == other, "a batch over two tables is whole or not there");
    Ok(one)
}

fn primary(disk: impl Disk + 'static) -> Arc<Engine> {
    primary_with(disk, &small_options())
}

fn primary_with(disk: impl Disk + 'static, options: &Options) -> Arc<Engine> {
    let engine = open(disk, options).unwrap();
    engine.create_table("other", &[]).unwrap();
    engine
}

#[test]
fn a_view_has_what_the_primary_had_and_the_next_one_more() {
    let disk = MemDisk::new();
    let engine = primary(disk.clone());
    let dir = Path::new(DIR);
    write(&engine, 0, 300, 1);
    engine.flush().unwrap();
    engine.wait_until_quiescent().unwrap();
    // No merge, since it would remove extents of the view: that is another test.
    engine.set_background_paused(true);
    write(&engine, 200, 200, 2);
    let view = follow(disk.clone(), dir, None).unwrap();
    assert!(all_rows(&view).unwrap() == all_rows(&engine).unwrap());
    // Neither lacks what both might.
    let fills = (0..400).map(|number| if number < 200 { 1 } else { 2 });
    assert!(all_rows(&engine).unwrap() == expected_rows(fills));
    assert_eq!(view.visible(), engine.visible());
    write(&engine, 350, 100, 3);
    engine.create_table("third", &[]).unwrap();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    assert_eq!(last_commit(&shared, dir, &Env::real()).unwrap(), engine.visible());
    assert_eq!(view.visible(), SeqNo(engine.visible().0 - 200));
    let next = follow(disk.clone(), dir, Some(&view)).unwrap();
    assert!(all_rows(&next).unwrap() == all_rows(&engine).unwrap());
    assert!(next.catalog().require("third").is_ok() && view.catalog().require("third").is_err());
    engine.drop_table("third").unwrap();
    assert!(follow(disk.clone(), dir, Some(&next)).unwrap().catalog().require("third").is_err());
    // Neither changes anything.
    for refused in
        [view.flush(), view.sync(), view.put(view.catalog().require("other").unwrap().id, b"k", b"v", false)]
    {
        assert_eq!(refused.unwrap_err().kind(), Kind::Invalid);
    }
    engine.close().unwrap();
    assert!(all_rows(&follow(disk, dir, Some(&next)).unwrap()).is_ok(), "also when the primary is gone");
}

#[test]
fn a_follower_writes_nothing_and_takes_no_lock() {
    let memory = MemDisk::new();
    let engine = primary(memory.clone());
    write(&engine, 0, 300, 1);
    engine.flush().unwrap();
    engine.wait_until_quiescent().unwrap();
    // No merge, since it would remove extents of the view: that is another test.
    engine.set_background_paused(true);
    write(&engine, 0, 30, 2);
    let disk = FaultyDisk::new(Arc::new(memory.clone()));
    for call in Call::ALL.into_iter().filter(|call| call.changes()) {
        disk.fail(Fault::new(call, Failure::Broken).lasting());
    }
    let view = follow(disk.clone(), Path::new(DIR), None).unwrap();
    assert!(all_rows(&view).unwrap() == all_rows(&engine).unwrap());
    let fills = (0..300).map(|number| if number < 30 { 2 } else { 1 });
    assert!(all_rows(&engine).unwrap() == expected_rows(fills));
    view.close().unwrap();
    assert_eq!(follow(memory, Path::new("/nowhere"), None).err().unwrap().kind(), Kind::NotFound);
}

/// A clock at whose first look a writer opens the database: after the look at the lock, before the journal of
/// the view is read.
struct WriterComes {
    env: Env,
    disk: MemDisk,
    writer: Mutex<Option<Arc<Engine>>>,
}

impl std::fmt::Debug for WriterComes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WriterComes")
    }
}

impl Clock for WriterComes {
    fn now(&self) -> Duration {
        let mut writer = self.writer.lock().unwrap();
        if writer.is_none() {
            let engine = open(self.disk.clone(), &small_options()).unwrap();
            engine.set_background_paused(true);
            *writer = Some(engine);
        }
        self.env.clock.now()
    }

    fn wall(&self) -> Duration {
        self.env.clock.wall()
    }

    fn sleep(&self, duration: Duration) {
        self.env.clock.sleep(duration);
    }
}

#[test]
fn a_writer_that_comes_while_a_view_is_made_is_noticed() {
    let disk = MemDisk::new();
    let engine = primary(disk.clone());
    write(&engine, 0, 100, 1);
    engine.close().unwrap();
    drop(engine);
    let clock = Arc::new(WriterComes { env: Env::real(), disk: disk.clone(), writer: Mutex::new(None) });
    let env = Env { clock: clock.clone(), ..Env::real() };
    let shared: Arc<dyn Disk> = Arc::new(disk);
    let of = |env: &Env| {
        Viewed::of(&shared, Path::new(DIR), &small_options(), env, &Functions::default(), None).unwrap()
    };
    let beside = of(&env);
    assert!(beside.writer.is_some_and(|busy| busy.kind() == Kind::Busy));
    assert_eq!(beside.attempts, 2);
    assert!(all_rows(&beside.engine).unwrap() == expected_rows([1; 100]));
    let writer = clock.writer.lock().unwrap().clone().unwrap();
    write(&writer, 0, 100, 2);
    writer.close().unwrap();
    let alone = of(&Env::real());
    assert!(alone.writer.is_none() && alone.attempts == 1);
    assert!(all_rows(&alone.engine).unwrap() == expected_rows([2; 100]));
}

#[test]
fn a_view_stays_while_segments_are_written_and_used_again() {
    let disk = MemDisk::new();
    // Files of segments are used again, and not removed at each rest.
    let experiments = Experiments { idle_reclaim: false, ..Experiments::default() };
    let engine = primary_with(disk.clone(), &Options { experiments, ..small_options() });
    // As many fill a memtable: were it flushed first, the view would have extents, which are given up, and no
    // segments.
    engine.set_background_paused(true);
    write(&engine, 0, 200, 1);
    let view = follow(disk.clone(), Path::new(DIR), None).unwrap();
    engine.set_background_paused(false);
    let expected = all_rows(&view).unwrap();
    assert_eq!(expected.len(), 200);
    let journal = Path::new(DIR).join("journal");
    let used = || {
        let names = disk.list(&journal).unwrap().into_iter();
        let id =
            |name: &str| segment_in_file(&disk, &journal.join(name)).ok().flatten().map(|header| header.id);
        names.map(|name| (id(&name), name)).collect::<Vec<_>>()
    };
    let before = used();
    let is_reused = |now: &[(Option<SegmentId>, String)]| {
        let mut had = before.iter().filter(|(id, _)| id.is_some());
        had.any(|(id, name)| now.iter().any(|(new, at)| at == name && new != id))
    };
    // Flushed, trimmed, and the files of the segments taken for others.
    let mut round = 1;
    while round < 12 || !is_reused(&used()) {
        round += 1;
        assert!(round < 250, "no file is used again");
        write(&engine, 0, 400, round);
        engine.flush().unwrap();
        engine.wait_until_quiescent().unwrap();
    }
    assert!(all_rows(&view).unwrap() == expected);
    let next = follow(disk, Path::new(DIR), Some(&view)).unwrap();
    assert!(all_rows(&next).unwrap() == all_rows(&engine).unwrap());
    assert!(all_rows(&engine).unwrap() == expected_rows([round; 400]));
    assert!(all_rows(&view).unwrap() == expected);
}

#[test]
fn extents_that_the_primary_removed_are_refused_and_never_read_wrongly() {
    let disk = MemDisk::new();
    let engine = primary(disk.clone());
    write(&engine, 0, 400, 1);
    engine.flush().unwrap();
    engine.wait_until_quiescent().unwrap();
    let view = follow(disk.clone(), Path::new(DIR), None).unwrap();
    let (mut right, mut behind) = (0, 0);
    // Slots are freed and used again, with extents of the same keys, however late a merge by itself would
    // come.
    for round in 2..30 {
        write(&engine, 0, 400, round);
        for table in ["default", "other"].map(|name| engine.catalog().require(name).unwrap()) {
            engine.compact_range(&table, &Bounds::all()).unwrap();
        }
        engine.wait_until_quiescent().unwrap();
        let table = view.catalog().require("default").unwrap();
        // More in each round: what the view has read before may be in its cache.
        for number in 0..400 * (round - 1) / 28 {
            match get(&view, &table, &number.to_be_bytes()) {
                Ok(found) => {
                    assert_eq!(found, Some(1u64.to_be_bytes().repeat(40)), "{number} in round {round}");
                    right += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Gone, "{error}");
                    behind += 1;
                }
            }
        }
    }
    match all_rows(&view) {
        Ok(rows) => assert!(rows.iter().all(|(_, value)| value[7] == 1)),
        Err(error) => assert_eq!(error.kind(), Kind::Gone, "{error}"),
    }
    assert!(behind > 100, "{right} right, {behind} behind");
    let next = follow(disk.clone(), Path::new(DIR), Some(&view)).unwrap();
    assert!(all_rows(&next).unwrap() == all_rows(&engine).unwrap());
    // Damage is reported as `Corrupt`: the primary has not removed the extent.
    engine.close().unwrap();
    let damaged = disk.kill();
    let is_found = (0..200).any(|seed| {
        damaged.rot(seed, &|path| path.ends_with(".ext")).unwrap();
        let read = all_rows(&follow(damaged.clone(), Path::new(DIR), None).unwrap());
        read.is_err_and(|error| error.kind() == Kind::Corrupt)
    });
    assert!(is_found, "one of 200 flipped bits is in an extent");
}

/// A primary of many keys that all count up, in both tables, on real files; and a reader beside it.
#[test]
fn beside_a_primary_that_writes_flushes_and_compacts() {
    let seed = number_from_env("TERRANE_FOLLOW_SEED", 1);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("primary");
    let options = Options { read_only: false, ..small_options() };
    let engine = Engine::open(&path, &options, Env::real()).unwrap();
    engine.create_table("other", &[]).unwrap();
    let (is_over, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        scope.spawn(|| {
            let mut numbers = Rng::new(seed);
            while !is_over.load(Ordering::Relaxed) {
                let round = rounds.load(Ordering::Relaxed) + 1;
                // Key 0 first: a reader that sees another key of a round sees key 0 of it.
                write(&engine, 0, 300, round);
                rounds.store(round, Ordering::Relaxed);
                match numbers.below(4) {
                    0 => engine.flush().unwrap(),
                    1 => engine.sync().unwrap(),
                    _ => {}
                }
            }
        });
        let mut view: Option<Arc<Engine>> = None;
        let (mut caught_up, mut behind) = (0, 0);
        while caught_up < 60 {
            let done = rounds.load(Ordering::Relaxed);
            match follow(PosixDisk::new(), &path, view.as_ref()) {
                Ok(next) => {
                    caught_up += 1;
                    check_view(&next, done, &mut behind);
                    if let Some(before) = &view {
                        assert!(before.visible() <= next.visible());
                        check_view(before, 0, &mut behind);
                    }
                    view = Some(next);
                }
                Err(error) => assert_eq!(error.kind(), Kind::Busy, "seed {seed}: {error}"),
            }
        }
    });
    engine.close().unwrap();
    let last = follow(PosixDisk::new(), &path, None).unwrap();
    assert!(all_rows(&last).unwrap() == all_rows(&engine).unwrap());
}

/// Every key is of one round or, behind some key, of the one before: a prefix of the commits. And at least
/// `done` rounds are there.
fn check_view(view: &Arc<Engine>, done: u64, behind: &mut u64) {
    match all_rows(view) {
        Ok(rows) => {
            let rounds: Vec<u64> =
                rows.iter().map(|(_, value)| u64::from_be_bytes(*value.first_chunk().unwrap())).collect();
            assert!(done == 0 || rounds.len() == 300, "{}", rounds.len());
            let is_prefix = rounds.windows(2).all(|pair| pair[0] >= pair[1]);
            let is_tight = rounds.first().zip(rounds.last()).is_none_or(|(first, last)| first - last <= 1);
            assert!(is_prefix && is_tight, "{rounds:?}");
            assert!(
                rounds.last().copied().unwrap_or(0) >= done,
                "{done} rounds were done, the view has {rounds:?}"
            );
        }
        Err(error) => {
            assert_eq!(error.kind(), Kind::Gone, "{error}");
            *behind += 1;
        }
    }
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
