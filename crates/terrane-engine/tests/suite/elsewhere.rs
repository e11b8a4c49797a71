//! A database whose manifest and extents do not lie in its directory: here they lie in another directory of
//! the same device, so that the opening is tested and not a bucket.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the test")]

mod compactor;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::support::{self, DIR, request, small_options};
use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Batch, Error, Functions, Kind, Result, TableId};
use terrane_device::{Disk, MemDisk};
use terrane_engine::{Engine, OpenedParts, Parts, PartsRequest, Upkeep, Viewed};
use terrane_format::manifest::DatabaseId;
use terrane_levels::{Manifest, ManifestLog, ManifestSettings, ManifestSize, State, journal_place};
use terrane_storage::{LocalStore, StoreSettings};

const ELSEWHERE: &str = "/elsewhere";

/// Opens the parts in [`ELSEWHERE`].
#[derive(Debug)]
struct OtherDirectory {
    disk: Arc<dyn Disk>,
    /// The next opening fails before it has an effect.
    fails: AtomicBool,
}

impl Parts for OtherDirectory {
    fn address(&self) -> &str {
        ELSEWHERE
    }

    fn open(&self, request: &PartsRequest<'_>) -> Result<OpenedParts> {
        if self.fails.swap(false, Ordering::Relaxed) {
            return Err(Error::new(Kind::Io, "the other directory cannot be reached"));
        }
        let dir = Path::new(ELSEWHERE);
        let manifest = match (Manifest::open(self.disk.clone(), dir), &request.new) {
            (Err(error), Some(options)) if error.kind() == Kind::NotFound => {
                Manifest::create(self.disk.clone(), dir, request.env, options.clone())?.0
            }
            (opened, _) => opened?.0,
        };
        let store = LocalStore::open(self.disk.clone(), &dir.join("data"), StoreSettings::default())?;
        Ok(OpenedParts {
            manifest: Arc::new(manifest),
            store: Arc::new(store),
            log: None,
            upkeep: None,
            compactor: None,
            requests: None,
        })
    }
}

fn put(engine: &Arc<Engine>, key: &[u8], value: &[u8]) {
    let mut batch = Batch::new();
    batch.put(TableId::DEFAULT, key, value).unwrap();
    engine.write(&batch, true).unwrap();
}

fn get(engine: &Engine, key: &[u8]) -> Option<Vec<u8>> {
    let table = engine.catalog().require("default").unwrap();
    support::get(engine, &table, key).unwrap()
}

struct Fixture {
    disk: MemDisk,
    parts: OtherDirectory,
}

impl Fixture {
    fn new() -> Fixture {
        let disk = MemDisk::new();
        Fixture { parts: Fixture::parts(&disk), disk }
    }

    fn parts(disk: &MemDisk) -> OtherDirectory {
        OtherDirectory { disk: Arc::new(disk.clone()), fails: AtomicBool::new(false) }
    }

    fn open_with(&self, options: &Options) -> Result<Arc<Engine>> {
        Engine::open_elsewhere_on(request(Arc::new(self.disk.clone()), options), &self.parts)
    }

    fn open(&self) -> Arc<Engine> {
        self.open_with(&small_options()).unwrap()
    }

    /// The place as another process finds it after this one was killed.
    fn killed(&self) -> Fixture {
        let disk = self.disk.kill();
        Fixture { parts: Fixture::parts(&disk), disk }
    }
}

#[test]
fn written_rows_are_there_after_a_close_and_after_a_kill() {
    let place = Fixture::new();
    let engine = place.open();
    put(&engine, b"flushed", b"1");
    engine.flush().unwrap();
    put(&engine, b"in the journal", b"2");
    engine.close().unwrap();
    drop(engine);
    let engine = place.open();
    assert_eq!(get(&engine, b"flushed").as_deref(), Some(&b"1"[..]));
    assert_eq!(get(&engine, b"in the journal").as_deref(), Some(&b"2"[..]));
    put(&engine, b"before the kill", b"3");
    let place = place.killed();
    let engine = place.open();
    assert_eq!(get(&engine, b"before the kill").as_deref(), Some(&b"3"[..]));
    assert!(engine.check(&mut |_, _| ()).unwrap().findings.is_empty());
    engine.check_writer().unwrap();
    engine.close().unwrap();
    // The directory has nothing but the journal; the other one no journal.
    let names = place.disk.list(Path::new(DIR)).unwrap();
    assert_eq!(names, ["LOCK", "REMOTE", "journal"]);
    assert!(place.disk.list(&Path::new(ELSEWHERE).join("journal")).unwrap().is_empty());
}

#[test]
fn an_operation_that_needs_all_in_one_directory_is_refused_by_name() {
    let place = Fixture::new();
    let engine = place.open();
    put(&engine, b"k", b"v");
    let refused = engine.checkpoint(Path::new("/copy")).unwrap_err();
    assert_eq!(refused.kind(), Kind::Invalid);
    assert!(refused.message().contains("a checkpoint") && refused.message().contains(ELSEWHERE), "{refused}");
    assert!(!place.disk.exists(Path::new("/copy")).unwrap());
    engine.close().unwrap();
    let read_only = place.open_with(&Options { read_only: true, ..small_options() });
    let refused = read_only.err().expect("refused");
    assert!(refused.kind() == Kind::Invalid && refused.message().contains("read_only"), "{refused}");

    let disk: Arc<dyn Disk> = Arc::new(place.disk.clone());
    let dir = Path::new(DIR);
    let options = small_options();
    let reading = Options { read_only: true, ..small_options() };
    let as_a_whole = [
        Engine::open_on(disk.clone(), dir, &options, Env::real()).err(),
        Engine::open_on(disk.clone(), dir, &reading, Env::real()).err(),
        Viewed::of(&disk, dir, &options, &Env::real(), &Functions::default(), None).err(),
        terrane_engine::repair_on(&disk, dir, Path::new("/repaired"), &options, Env::real()).err(),
    ];
    for refused in as_a_whole.map(|refused| refused.expect("a journal is not a database")) {
        assert_eq!(refused.kind(), Kind::Invalid, "{refused}");
        assert!(refused.message().contains(ELSEWHERE), "the error says where the rest is: {refused}");
    }
    assert_eq!(get(&place.open(), b"k").as_deref(), Some(&b"v"[..]), "and nothing was harmed");
}

#[test]
fn a_directory_with_something_else_is_not_a_place_for_the_journal() {
    let place = Fixture::new();
    let engine = support::open(place.disk.clone(), &small_options()).unwrap();
    engine.close().unwrap();
    let refused = place.open_with(&small_options()).err().expect("a database is there");
    assert!(refused.kind() == Kind::Invalid && refused.message().contains("of its own"), "{refused}");
    assert!(!place.disk.exists(Path::new(ELSEWHERE)).unwrap(), "nothing was made");
}

/// The ids of the journal as the directory has them.
fn ids(place: &Fixture) -> (u128, u128) {
    let mark = journal_place::read(&place.disk, Path::new(DIR)).unwrap().unwrap();
    (mark.journal, mark.before)
}

#[test]
fn each_opening_gives_the_journal_an_id_and_a_failed_one_forgets_none() {
    let place = Fixture::new();
    place.open().close().unwrap();
    let (first, confirmed) = ids(&place);
    assert_eq!(first, confirmed, "the opening came to its end");
    place.parts.fails.store(true, Ordering::Relaxed);
    place.open_with(&small_options()).err().expect("the parts cannot be opened");
    let (second, before) = ids(&place);
    assert!(second != first && before == first, "the manifest may have either id");
    place.parts.fails.store(true, Ordering::Relaxed);
    place.open_with(&small_options()).err().expect("the parts cannot be opened");
    assert_eq!(ids(&place), (second, first), "no id is drawn while one is open");
    place.open().close().unwrap();
    assert_eq!(ids(&place), (second, second));
}

/// A medium that keeps nothing and counts how often the writer looks whether it was replaced.
#[derive(Debug)]
struct CountingLog {
    size: ManifestSize,
    number: u64,
    looks: Arc<AtomicU64>,
}

impl ManifestLog for CountingLog {
    fn number(&self) -> u64 {
        self.number
    }

    fn size(&self) -> ManifestSize {
        self.size
    }

    fn append(&mut self, payload: &[u8]) -> Result<()> {
        self.number += 1;
        self.size.edits += 1;
        self.size.edit_bytes += payload.len() as u64;
        Ok(())
    }

    fn roll(&mut self, _: &State) -> Result<()> {
        self.number += 1;
        self.size = ManifestSize { edits: 0, edit_bytes: 0, ..self.size };
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Parts with a manifest that keeps nothing, and this upkeep.
struct WithUpkeep {
    disk: Arc<dyn Disk>,
    looks: Arc<AtomicU64>,
    upkeep: std::sync::Mutex<Option<Upkeep>>,
}

impl std::fmt::Debug for WithUpkeep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WithUpkeep").finish_non_exhaustive()
    }
}

impl WithUpkeep {
    fn new(upkeep: impl FnMut() + Send + 'static) -> WithUpkeep {
        let upkeep = std::sync::Mutex::new(Some(Box::new(upkeep) as Upkeep));
        WithUpkeep { disk: Arc::new(MemDisk::new()), looks: Arc::default(), upkeep }
    }

    fn open(&self) -> Arc<Engine> {
        Engine::open_elsewhere_on(request(self.disk.clone(), &small_options()), self).unwrap()
    }
}

impl Parts for WithUpkeep {
    fn address(&self) -> &str {
        ELSEWHERE
    }

    fn open(&self, request: &PartsRequest<'_>) -> Result<OpenedParts> {
        let state = State::new(DatabaseId(1), request.new.clone().unwrap())?;
        let size = ManifestSize { file: 1, snapshot_bytes: 1, edit_bytes: 0, edits: 0 };
        let log = CountingLog { size, number: 1, looks: self.looks.clone() };
        let manifest = Manifest::on(Box::new(log), &state, ManifestSettings::default());
        let data = Path::new(ELSEWHERE).join("data");
        self.disk.create_dir(Path::new(ELSEWHERE))?;
        self.disk.create_dir(&data)?;
        let store = LocalStore::open(self.disk.clone(), &data, StoreSettings::default())?;
        let upkeep = Some((Duration::from_millis(1), self.upkeep.lock().unwrap().take().unwrap()));
        Ok(OpenedParts {
            manifest: Arc::new(manifest),
            store: Arc::new(store),
            log: None,
            upkeep,
            compactor: None,
            requests: None,
        })
    }
}

#[test]
fn upkeep_that_takes_long_does_not_delay_the_look_for_another_writer() {
    let (begun, began) = mpsc::channel();
    let (released, release) = mpsc::channel::<()>();
    let parts = WithUpkeep::new(move || {
        let _ = begun.send(());
        let _ = release.recv();
    });
    let engine = parts.open();
    began.recv().unwrap();
    let (looks, clock) = (&parts.looks, Env::real().clock);
    let before = looks.load(Ordering::Relaxed);
    // Not a figure: what has not come after as many looks never comes.
    let goes_on = (0..100_000).any(|_| {
        clock.sleep(Duration::from_millis(1));
        looks.load(Ordering::Relaxed) > before + 2
    });
    drop(released);
    assert!(goes_on, "the writer looks while upkeep is at work");
    engine.close().unwrap();
}

/// It may drop the last handle, or close the database itself.
#[test]
fn upkeep_is_done_on_a_thread_of_the_background_which_can_close_the_database() {
    let (asked, ask) = mpsc::channel::<Arc<Engine>>();
    let (answer, answered) = mpsc::channel();
    let parts = WithUpkeep::new(move || {
        if let Ok(engine) = ask.try_recv() {
            let is_own = engine.is_on_own_thread();
            let _ = answer.send((is_own, engine.put(TableId::DEFAULT, b"k", b"v", false), engine.close()));
        }
    });
    let engine = parts.open();
    assert!(!engine.is_on_own_thread());
    asked.send(engine.clone()).unwrap();
    let (is_own, put, closed) = answered.recv().expect("the thread does not wait for itself");
    assert!(is_own, "a thread of the background");
    assert_eq!(put.unwrap_err().kind(), Kind::Invalid, "it could wait for itself");
    closed.unwrap();
    assert!(engine.is_closing());
}
