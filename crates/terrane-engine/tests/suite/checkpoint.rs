//! Checkpoints: each is a complete database of one moment, beside any other work and after any failure.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the test")]

#[path = "checkpoint/of_readers.rs"]
mod of_readers;
use crate::support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use support::{DIR, get, open, part_of_cuts, rows, small_options};
use terrane_base::env::Env;
use terrane_base::options::{JournalMode, Options};
use terrane_base::{Batch, Functions, Kind, Result};
use terrane_device::{Call, Disk, Failure, Fault, FaultyDisk, MemDisk, PosixDisk};
use terrane_engine::{Checkpoint, Engine, Row, Viewed};

const COPY: &str = "/copies/one";

fn open_at(disk: impl Disk + 'static, dir: &str, options: &Options) -> Result<Arc<Engine>> {
    Engine::open_on(Arc::new(disk), Path::new(dir), options, Env::real())
}

/// Opens what must exist.
fn reopen(disk: impl Disk + 'static, dir: &str) -> Result<Arc<Engine>> {
    open_at(disk, dir, &Options { create_if_missing: false, ..small_options() })
}

fn checkpoint(engine: &Engine, dir: &str) -> Result<Checkpoint> {
    engine.checkpoint(Path::new(dir))
}

/// Sets `count` keys in both tables, each pair in one batch.
fn write(engine: &Engine, from: u64, count: u64, fill: u8) -> Result<()> {
    let tables = [engine.catalog().require("default")?.id, engine.catalog().require("other")?.id];
    for number in from..from + count {
        let mut batch = Batch::new();
        for table in tables {
            batch.put(table, &number.to_be_bytes(), &[fill; 300])?;
        }
        engine.write(&batch, false)?;
    }
    Ok(())
}

/// An engine with two tables, records in levels and in memory.
fn filled(disk: impl Disk + 'static, options: &Options) -> Result<Arc<Engine>> {
    let engine = open(disk, options)?;
    engine.create_table("other", &[])?;
    write(&engine, 0, 300, 1)?;
    engine.flush()?;
    write(&engine, 200, 200, 2)?;
    Ok(engine)
}

fn all_rows(engine: &Arc<Engine>) -> Vec<Vec<Row>> {
    engine.catalog().all().iter().map(|table| rows(engine, table).unwrap()).collect()
}

/// Every invariant holds, and both tables have the same rows.
fn check(engine: &Arc<Engine>) -> Vec<Row> {
    let report = engine.check(&mut |_, _| ()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let mut all = all_rows(engine);
    assert_eq!(all.len(), 2);
    assert!(all[0] == all[1], "a batch over two tables is whole or not there");
    all.pop().unwrap()
}

fn journals() -> [Options; 2] {
    [small_options(), Options { journal: JournalMode::Off, ..small_options() }]
}

#[test]
fn a_checkpoint_is_a_database_of_its_own() {
    for options in journals() {
        for can_link in [true, false] {
            let disk = MemDisk::new();
            if !can_link {
                disk.forbid_links();
            }
            let engine = filled(disk.clone(), &options).unwrap();
            let expected = check(&engine);
            let made = checkpoint(&engine, COPY).unwrap();
            assert_eq!((made.files_linked > 0, made.bytes_copied > 0), (can_link, !can_link));
            assert_eq!(made.last_seq, engine.visible());
            assert!(made.journal_bytes > 0);
            let copy = reopen(disk.clone(), COPY).unwrap();
            assert!(check(&copy) == expected);
            assert_eq!(copy.visible(), engine.visible());
            // Each goes its way: overwrites everything, and flushes it over what they share.
            write(&engine, 0, 400, 3).unwrap();
            write(&copy, 100, 400, 4).unwrap();
            for engine in [&engine, &copy] {
                engine.flush().unwrap();
                engine.wait_until_quiescent().unwrap();
                check(engine);
                engine.close().unwrap();
            }
            let (engine, copy) = (reopen(disk.clone(), DIR).unwrap(), reopen(disk.clone(), COPY).unwrap());
            assert!(check(&engine).iter().all(|(_, value)| value[0] == 3));
            let fills: Vec<u8> = check(&copy).iter().map(|(_, value)| value[0]).collect();
            assert_eq!((fills[..100].to_vec(), fills[100..].to_vec()), (vec![1; 100], vec![4; 400]));
            let id = |dir: &str| {
                let (_, state) =
                    terrane_levels::Manifest::open_read_only(Arc::new(disk.clone()), Path::new(dir)).unwrap();
                state.database
            };
            assert_ne!(id(DIR), id(COPY));
        }
    }
}

#[test]
fn checkpoints_of_a_checkpoint_and_of_an_empty_database() {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    let made = checkpoint(&engine, COPY).unwrap();
    assert_eq!((made.files_linked, made.journal_bytes), (0, 0));
    let copy = reopen(disk.clone(), COPY).unwrap();
    copy.create_table("other", &[]).unwrap();
    write(&copy, 0, 50, 7).unwrap();
    copy.flush().unwrap();
    checkpoint(&copy, "/copies/two").unwrap();
    let second = reopen(disk.clone(), "/copies/two").unwrap();
    assert_eq!(check(&second).len(), 50);
    write(&second, 0, 50, 8).unwrap();
    checkpoint(&second, "/copies/three").unwrap();
    let third = reopen(disk, "/copies/three").unwrap();
    assert!(check(&third).iter().all(|(_, value)| value[0] == 8));
    assert!(check(&copy).iter().all(|(_, value)| value[0] == 7));
}

#[test]
fn a_checkpoint_is_of_one_moment_beside_writers_and_background() {
    for options in journals() {
        let disk = MemDisk::new();
        let engine = filled(disk.clone(), &options).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0u64.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    write(&engine, round * 13 % 900, 20, (round % 250) as u8).unwrap();
                    // The last record of a round says how far it is.
                    write(&engine, 1000, 1, (round % 250) as u8).unwrap();
                    if round % 16 == 0 {
                        engine.flush().unwrap();
                    }
                }
            });
            // Also where something below fails, or the writer would be waited for without end.
            let _over = Over(&is_over);
            for turn in 0..12 {
                let dir = format!("/copies/{turn}");
                let before = engine.visible();
                let made = checkpoint(&engine, &dir).unwrap();
                assert!(before <= made.last_seq, "{before} {}", made.last_seq);
                let copy = reopen(disk.clone(), &dir).unwrap();
                assert_eq!(copy.visible(), made.last_seq);
                check(&copy);
                write(&copy, 0, 100, 255).unwrap();
                copy.flush().unwrap();
                check(&copy);
                copy.close().unwrap();
            }
        });
        check(&engine);
    }
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_cut_at_any_call_leaves_a_whole_checkpoint_or_none_and_the_source_as_it_was() {
    let (first, step) = part_of_cuts();
    let mut cut_after = first;
    for can_link in [true, false] {
        loop {
            let memory = MemDisk::new();
            if !can_link {
                memory.forbid_links();
            }
            let engine = filled(memory.clone(), &small_options()).unwrap();
            engine.wait_until_quiescent().unwrap();
            let expected = check(&engine);
            engine.close().unwrap();
            drop(engine);
            let disk = FaultyDisk::new(Arc::new(memory.clone()));
            let engine = reopen(disk.clone(), DIR).unwrap();
            disk.cut_after(cut_after);
            let made = checkpoint(&engine, COPY);
            let is_cut = disk.is_cut();
            disk.cut();
            let _ = engine.close();
            // It may also have met a call of the background behind the last one of the checkpoint.
            assert!(is_cut || made.is_ok(), "at {cut_after}: {made:?}");
            for seed in 0..3 {
                let after = if seed == 0 { memory.kill() } else { memory.crash(seed) };
                let source = reopen(after.clone(), DIR).unwrap();
                assert!(check(&source) == expected, "the source, cut at {cut_after}");
                let is_there = after.exists(Path::new(COPY)).unwrap();
                assert!(is_there || made.is_err(), "one that was made is there, cut at {cut_after}");
                if is_there {
                    check_copy(&after, COPY, &expected);
                } else {
                    checkpoint(&source, COPY).unwrap_or_else(|e| panic!("again, at {cut_after}: {e}"));
                    check_copy(&after, COPY, &expected);
                }
                write(&source, 0, 400, 9).unwrap();
                source.flush().unwrap();
                source.close().unwrap();
                check_copy(&after, COPY, &expected);
            }
            if !is_cut {
                break;
            }
            cut_after += step;
        }
        assert!(cut_after > 10, "{cut_after} calls");
        cut_after = first;
    }
}

#[test]
fn a_call_that_fails_leaves_nothing_behind() {
    let memory = MemDisk::new();
    let disk = FaultyDisk::new(Arc::new(memory.clone()));
    let engine = filled(disk.clone(), &small_options()).unwrap();
    let mut failed = 0;
    for call in Call::ALL {
        let mut made = None;
        for skip in 0..60 {
            let dir = format!("/copies/{call:?}{skip}");
            let part = if call == Call::Link { "" } else { "copies" };
            disk.fail(Fault::new(call, Failure::Full).on(part).after(skip));
            let result = checkpoint(&engine, &dir);
            disk.heal();
            if result.is_ok() {
                made = Some(dir);
                break;
            }
            failed += 1;
            let names = disk.list(Path::new("/copies")).unwrap_or_default();
            let is_last_sync = names.iter().any(|name| dir.ends_with(name));
            assert!(!is_last_sync || call == Call::SyncDir, "{call:?} {skip}: {names:?}");
            assert!(!names.iter().any(|name| name.contains("unfinished")), "{call:?} {skip}: {names:?}");
        }
        check_copy(&memory, &made.unwrap(), &check(&engine));
        write(&engine, failed, 30, 5).unwrap();
        engine.flush().unwrap();
    }
    assert!(failed > 20, "{failed} calls failed");
    check(&engine);
    engine.close().unwrap();
}

/// The database in `dir` is whole and has these rows.
fn check_copy(disk: &MemDisk, dir: &str, expected: &[Row]) {
    let copy = reopen(disk.clone(), dir).unwrap();
    assert!(check(&copy) == expected, "{dir}");
    copy.close().unwrap();
}

#[test]
fn impossible_places_are_refused() {
    let disk = MemDisk::new();
    let engine = filled(disk.clone(), &small_options()).unwrap();
    let kind = |made: Result<Checkpoint>| made.unwrap_err().kind();
    assert_eq!(kind(checkpoint(&engine, DIR)), Kind::Invalid);
    assert_eq!(kind(checkpoint(&engine, "/db/inside")), Kind::Invalid);
    assert_eq!(kind(checkpoint(&engine, "/")), Kind::Invalid);
    checkpoint(&engine, COPY).unwrap();
    assert_eq!(kind(checkpoint(&engine, COPY)), Kind::Invalid);
    let other = Path::new("/copies/two.unfinished");
    disk.create_dir(&other.join("mine")).unwrap();
    let error = checkpoint(&engine, "/copies/two").unwrap_err();
    assert!(error.to_string().contains("mine"), "{error}");
    assert!(disk.exists(&other.join("mine")).unwrap());
    let taken = Path::new("/copies/three.unfinished");
    disk.create_dir(taken).unwrap();
    let lock = disk.lock(&taken.join("LOCK")).unwrap();
    assert_eq!(kind(checkpoint(&engine, "/copies/three")), Kind::Busy);
    drop(lock);
    checkpoint(&engine, "/copies/three").unwrap();
    engine.close().unwrap();
    assert_eq!(kind(checkpoint(&engine, "/copies/four")), Kind::Cancelled);
    let reader = open_at(disk, DIR, &Options { read_only: true, ..small_options() }).unwrap();
    assert_eq!(kind(checkpoint(&reader, DIR)), Kind::Invalid);
    reader.close().unwrap();
    assert_eq!(kind(checkpoint(&reader, "/copies/four")), Kind::Cancelled);
}

#[test]
fn on_real_files_linked_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    let options = small_options();
    let engine = Engine::open_on(Arc::new(PosixDisk::new()), &from, &options, Env::real()).unwrap();
    engine.create_table("other", &[]).unwrap();
    write(&engine, 0, 500, 1).unwrap();
    engine.flush().unwrap();
    let made = engine.checkpoint(&to).unwrap();
    assert!(made.files_linked > 0 && made.bytes_copied == 0);
    let expected = check(&engine);
    engine.close().unwrap();
    drop(engine);
    std::fs::remove_dir_all(&from).unwrap();
    let copy = Engine::open(&to, &options, Env::real()).unwrap();
    assert!(check(&copy) == expected);
    write(&copy, 0, 500, 2).unwrap();
    copy.flush().unwrap();
    assert_eq!(
        get(&copy, &copy.catalog().require("other").unwrap(), &7u64.to_be_bytes()).unwrap(),
        Some(vec![2; 300])
    );
}

#[test]
fn no_name_leads_a_checkpoint_into_the_database() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("db");
    let engine = open_at(PosixDisk::new(), dir.to_str().unwrap(), &small_options()).unwrap();
    PosixDisk::new().create_dir(&root.path().join("beside/below")).unwrap();
    std::os::unix::fs::symlink(&dir, root.path().join("link")).unwrap();
    std::os::unix::fs::symlink(dir.join("data"), root.path().join("beside/data")).unwrap();
    for inside in ["db/x", "link/x", "beside/../db/x", "beside/data/../x", "new/../link/a/b", "db"] {
        let error = engine.checkpoint(&root.path().join(inside)).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid, "{inside}: {error}");
        assert!(error.to_string().contains("within the database"), "{inside}: {error}");
    }
    // The device of a view answers for the device beneath it.
    let disk: Arc<dyn Disk> = Arc::new(PosixDisk::new());
    let view = Viewed::of(&disk, &dir, &small_options(), &Env::real(), &Functions::default(), None);
    let view = view.unwrap().engine;
    for inside in ["db/x", "link/x", "beside/data/../x"] {
        let error = view.checkpoint(&root.path().join(inside)).unwrap_err();
        assert!(error.to_string().contains("within the database"), "a view, {inside}: {error}");
    }
    drop(view);
    assert!(!root.path().join("new").exists(), "nothing was made");
    for outside in ["db/../one", "link/../two", "beside/below/../three", "db-four"] {
        engine.checkpoint(&root.path().join(outside)).unwrap();
    }
    for made in ["one", "two", "beside/three", "db-four"] {
        assert!(root.path().join(made).join("CURRENT").exists(), "{made}");
    }
    engine.close().unwrap();
}
