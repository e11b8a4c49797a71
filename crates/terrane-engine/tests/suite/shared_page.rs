//! The page of metrics that a writer shares: its content, that it disturbs nothing, and the reports of old,
//! missing and wrong ones.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a step that fails ends the test")]

use crate::support;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use support::until;
use terrane_base::env::{Clock, Env};
use terrane_base::options::{Diagnostics, Options};
use terrane_base::{Batch, Kind, Result, TableId};
use terrane_device::{Call, Disk, DiskLock, Failure, Fault, FaultyDisk, MemDisk, PosixDisk};
use terrane_engine::{
    Engine, MetricsPage, Origin, PageWriterState, ReaderKind, SharedMetrics, Snapshot, Viewed,
    read_metrics_page,
};

fn options(metrics_page_ms: u64) -> Options {
    let diagnostics = Diagnostics { metrics_page_ms, ..Diagnostics::default() };
    Options { memory_bytes: 16 << 20, diagnostics, ..Options::default() }
}

fn open(disk: Arc<dyn Disk>, dir: &Path, options: &Options) -> Arc<Engine> {
    Engine::open_on(disk, dir, options, Env::real()).unwrap()
}

fn page(dir: &Path) -> Result<SharedMetrics> {
    read_metrics_page(&PosixDisk::new(), dir, &Env::real())
}

fn put(engine: &Engine, key: &[u8]) {
    let mut batch = Batch::new();
    batch.put(TableId::DEFAULT, key, b"value").unwrap();
    engine.write(&batch, false).unwrap();
}

#[test]
fn a_page_shows_what_its_writer_counts_and_goes_with_a_close() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("db");
    let engine = open(Arc::new(PosixDisk::new()), &dir, &options(100));
    put(&engine, b"a");
    put(&engine, b"b");
    let origin = Origin { label: Some("report".to_owned()), ..Origin::here(ReaderKind::Snapshot) };
    let reader = Snapshot::from(engine.clone(), origin);
    until("a page with both records and the reader", || {
        page(&dir).is_ok_and(|shared| {
            let has_reader = shared.page.readers.iter().any(|reader| reader.label == "report");
            shared.page.metric("records_written") == Some(2) && has_reader
        })
    });
    let SharedMetrics { page: shared, writer, .. } = page(&dir).unwrap();
    assert!(writer != PageWriterState::Gone && shared.process == std::process::id());
    assert_eq!((shared.interval_ms, shared.table_count, shared.reader_count), (100, 1, 1));
    assert_eq!(shared.metric("memory_limit_bytes"), Some(16 << 20));
    assert_eq!(shared.tables[0].name, "default");
    assert_eq!(shared.table_metric(&shared.tables[0], "table_memory_entries"), Some(2));
    assert_eq!(shared.histogram("flush_micros").unwrap().buckets.len(), 32);
    let reader_of = &shared.readers[0];
    assert!(reader_of.kind == "snapshot" && reader_of.place.contains("shared_page.rs"), "{reader_of:?}");
    let number = shared.number;
    until("the next page", || page(&dir).is_ok_and(|shared| shared.page.number > number));
    drop(reader);
    engine.close().unwrap();
    assert!(!dir.join("METRICS").exists());
    let error = page(&dir).unwrap_err();
    assert!(error.kind() == Kind::NotFound && error.message().contains("no process has"), "{error}");
    let error = page(place.path()).unwrap_err();
    assert!(error.kind() == Kind::NotFound && error.message().contains("no database"), "{error}");
}

#[test]
fn without_the_option_and_in_memory_no_page_is_shared() {
    let place = tempfile::tempdir().unwrap();
    let engine = open(Arc::new(PosixDisk::new()), place.path(), &options(0));
    let error = page(place.path()).unwrap_err();
    let me = std::process::id().to_string();
    for part in ["metrics_page_ms=0", &me] {
        assert!(error.kind() == Kind::Busy && error.message().contains(part), "{error}");
    }
    engine.close().unwrap();
    // A device of one process: the thread would have nothing to do.
    let disk = Arc::new(FaultyDisk::new(Arc::new(MemDisk::new())));
    assert!(!disk.is_public() && FaultyDisk::new(Arc::new(PosixDisk::new())).is_public());
}

/// The page of a database that is closed by now.
fn last_page() -> MetricsPage {
    let place = tempfile::tempdir().unwrap();
    let engine = open(Arc::new(PosixDisk::new()), place.path(), &options(100));
    until("a page", || page(place.path()).is_ok());
    let last = page(place.path()).unwrap().page;
    engine.close().unwrap();
    last
}

#[test]
fn an_old_page_says_whether_its_writer_is_gone() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    let off = options(0);
    open(Arc::new(PosixDisk::new()), dir, &off).close().unwrap();
    let old = MetricsPage { written_micros: 1_700_000_000_000_000, ..last_page() };
    std::fs::write(dir.join("METRICS"), old.encode()).unwrap();
    let shared = page(dir).unwrap();
    assert_eq!((shared.writer, &shared.page), (PageWriterState::Gone, &old));
    assert!(shared.age.as_secs() > 3600);
    let engine = open(Arc::new(PosixDisk::new()), dir, &off);
    assert_eq!(page(dir).unwrap_err().kind(), Kind::Busy, "the opening removed it");
    // A page of the future comes of a clock that was set back: its writer may be gone.
    let future = MetricsPage { written_micros: u64::MAX, ..old.clone() };
    for page_of_it in [&old, &future] {
        std::fs::write(dir.join("METRICS"), page_of_it.encode()).unwrap();
        assert_eq!(page(dir).unwrap().writer, PageWriterState::Silent);
    }
    engine.close().unwrap();
    std::fs::write(dir.join("METRICS"), future.encode()).unwrap();
    assert_eq!(page(dir).unwrap().writer, PageWriterState::Gone);
    let seconds_ahead = |seconds: u64| Env::real().clock.wall().as_micros() as u64 + seconds * 1_000_000;
    let nearly = MetricsPage { written_micros: seconds_ahead(1), interval_ms: 60_000, ..old };
    std::fs::write(dir.join("METRICS"), nearly.encode()).unwrap();
    assert_eq!(page(dir).unwrap().writer, PageWriterState::Writing);
}

/// The clock of an opening: while it sleeps, the command that looks at the lock lets it go.
#[derive(Debug)]
struct LetsGo(Arc<dyn Clock>, Mutex<Option<Box<dyn DiskLock>>>);

impl Clock for LetsGo {
    fn now(&self) -> Duration {
        self.0.now()
    }

    fn wall(&self) -> Duration {
        self.0.wall()
    }

    fn sleep(&self, duration: Duration) {
        drop(self.1.lock().unwrap().take());
        self.0.sleep(duration);
    }
}

#[test]
fn an_opening_waits_for_a_command_that_looks_at_the_lock_and_not_for_a_reader() {
    let place = tempfile::tempdir().unwrap();
    let (dir, disk) = (place.path(), PosixDisk::new());
    open(Arc::new(PosixDisk::new()), dir, &options(0)).close().unwrap();
    let looking = disk.lock_shared(&dir.join("LOCK")).unwrap();
    assert!(looking.is_some(), "there is a lock to hold");
    let real = Env::real();
    let env = Env { clock: Arc::new(LetsGo(real.clock.clone(), Mutex::new(looking))), ..real };
    Engine::open_on(Arc::new(PosixDisk::new()), dir, &options(0), env).unwrap().close().unwrap();
    let _reading = disk.lock_shared(&dir.join("LOCK")).unwrap();
    let refused = Engine::open_on(Arc::new(PosixDisk::new()), dir, &options(0), Env::real()).map(drop);
    assert_eq!(refused.map_err(|error| error.kind()), Err(Kind::Busy));
}

#[test]
fn a_file_that_is_not_a_page_is_an_error_that_names_it() {
    let place = tempfile::tempdir().unwrap();
    let (dir, path) = (place.path(), place.path().join("METRICS"));
    open(Arc::new(PosixDisk::new()), dir, &options(0)).close().unwrap();
    let whole = last_page().encode();
    let changed = [&whole[..100], b"?", &whole[101..]].concat();
    for bytes in
        [&b""[..], b"x", b"terrpage", &[0; 4096], &[0xff; 100_000], &whole[..whole.len() - 1], &changed]
    {
        std::fs::write(&path, bytes).unwrap();
        let error = page(dir).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt, "{error}");
        assert!(error.to_string().contains("METRICS"), "{error}");
    }
    let later = [&whole[..8], &[9], &whole[9..]].concat();
    std::fs::write(&path, later).unwrap();
    assert_eq!(page(dir).unwrap_err().kind(), Kind::Invalid);
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("CURRENT", &path).unwrap();
    assert_eq!(page(dir).unwrap_err().kind(), Kind::Invalid, "links are not followed");
}

#[test]
fn a_page_that_cannot_be_written_is_counted_and_harms_nothing() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    let disk = Arc::new(FaultyDisk::new(Arc::new(PosixDisk::new())));
    disk.fail(Fault::new(Call::Write, Failure::Full).on("METRICS").lasting());
    let engine = open(disk.clone(), dir, &options(100));
    until("two failures", || engine.stats().metrics_page_errors >= 2);
    put(&engine, b"a");
    assert_eq!(engine.stats().background_errors, 0);
    disk.heal();
    until("a page", || page(dir).is_ok_and(|shared| shared.page.metric("metrics_page_errors") >= Some(2)));
    engine.close().unwrap();
    assert!(!dir.join("METRICS").exists());
}

#[test]
fn copies_checks_followers_and_later_openings_pass_a_page_by() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("db");
    let disk: Arc<dyn Disk> = Arc::new(PosixDisk::new());
    let engine = open(disk.clone(), &dir, &options(100));
    put(&engine, b"a");
    until("a page", || page(&dir).is_ok());
    assert!(engine.check(&mut |_, _| {}).unwrap().findings.is_empty());
    engine.checkpoint(&place.path().join("copy")).unwrap();
    assert!(!place.path().join("copy/METRICS").exists());
    let functions = terrane_base::Functions::default();
    let view = Viewed::of(&disk, &dir, &options(100), &Env::real(), &functions, None).unwrap();
    view.engine.close().unwrap();
    assert!(page(&dir).is_ok(), "a view shares nothing and takes nothing away");
    // As a crash leaves it: the next opening finds it, and so does a creation where nothing else is left.
    let left = std::fs::read(dir.join("METRICS")).unwrap();
    engine.close().unwrap();
    std::fs::write(dir.join("METRICS"), &left).unwrap();
    for read_only in [true, false] {
        let engine = open(disk.clone(), &dir, &Options { read_only, ..options(0) });
        assert!(engine.check(&mut |_, _| {}).unwrap().findings.is_empty());
        engine.close().unwrap();
        assert_eq!(
            dir.join("METRICS").exists(),
            read_only,
            "an opening for writing removes what a crash left"
        );
    }
    let rest = place.path().join("rest");
    std::fs::create_dir(&rest).unwrap();
    std::fs::write(rest.join("METRICS"), &left).unwrap();
    open(disk.clone(), &rest, &options(0)).close().unwrap();
    let foreign = place.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("METRICS"), "cpu 12").unwrap();
    let error = Engine::open_on(disk, &foreign, &options(0), Env::real()).map(drop).unwrap_err();
    assert!(error.kind() == Kind::Invalid && error.message().contains("METRICS"), "{error}");
}
