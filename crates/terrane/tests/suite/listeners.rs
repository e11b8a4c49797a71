//! Listeners: the events that they get, and that they block no other thread.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may panic and wait")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use terrane::{
    Checkpoint, Db, Durability, Env, JobBegan, JobEnded, Kind, Listener, Options, StallBegan, StallCause,
    StallEnded, TableOptions, WorkFailed,
};
use terrane_base::env::{Clock, SleepClock};

/// Not a figure: a condition that fails after as many looks, a millisecond and more apart, never holds.
const LOOKS_MAX: u32 = 200_000;

/// Looks until it is so; a failure says what did not come.
fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..LOOKS_MAX {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("{what}: it never comes to that");
}

/// Writes down what it hears.
#[derive(Default)]
struct Recorder(Mutex<Vec<String>>);

impl Recorder {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    fn heard(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Waits until something that begins so was heard.
    fn until(&self, start: &str) -> String {
        let find = || self.heard().into_iter().find(|text| text.starts_with(start));
        until(&format!("{start:?} is heard"), || find().is_some());
        find().unwrap()
    }
}

impl Listener for Recorder {
    fn flush_began(&self, job: &JobBegan) {
        self.note(format!("flush began {}", job.table));
    }

    fn flush_ended(&self, job: &JobEnded) {
        self.note(format!("flush ended {} {} {}", job.table, job.bytes_written > 0, job.error.is_none()));
    }

    fn compaction_began(&self, job: &JobBegan) {
        self.note(format!("compaction began {}", job.table));
    }

    fn compaction_ended(&self, job: &JobEnded) {
        self.note(format!("compaction ended {} {}", job.table, job.bytes_read > 0));
    }

    fn stall_began(&self, stall: &StallBegan) {
        self.note(format!("stall began {:?} {}", stall.cause, stall.pressure > 0.0));
    }

    fn stall_ended(&self, stall: &StallEnded) {
        self.note(format!("stall ended {}", !stall.held_back.is_zero()));
    }

    fn work_failed(&self, failure: &WorkFailed) {
        self.note(format!("failed {} {:?}", failure.work, failure.error.kind()));
    }

    fn table_created(&self, name: &str) {
        self.note(format!("created {name}"));
    }

    fn table_dropped(&self, name: &str) {
        self.note(format!("dropped {name}"));
    }

    fn checkpoint_made(&self, checkpoint: &Checkpoint) {
        self.note(format!("checkpoint {}", checkpoint.path.file_name().unwrap().display()));
    }
}

fn small() -> Options {
    Options { memory_bytes: 16 << 20, ..Options::default() }
}

#[test]
fn listeners_hear_what_happens_in_its_order() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path().join("data"), &small()).unwrap();
    let recorder = Arc::new(Recorder::default());
    db.add_listener(recorder.clone()).unwrap();
    let users = db.create_table("users", &TableOptions::new()).unwrap();
    for round in 0..2u8 {
        users.put(b"k", [round]).unwrap();
        db.flush().unwrap();
    }
    db.wait_until_quiescent().unwrap();
    db.pause_background();
    users.put(b"k", b"in a run").unwrap();
    db.flush_to_run(&users).unwrap();
    db.compact_level(&users, 0).unwrap();
    db.resume_background();
    db.checkpoint(dir.path().join("copy")).unwrap();
    db.drop_table("users").unwrap();
    assert!(db.create_table("default", &TableOptions::new()).is_err());
    db.close().unwrap();
    // A close waits until listeners got every event. The event that a job ended comes a moment after its
    // result, for which the caller waited: so events of one kind are in order, and those of another kind may
    // come between them. Compactions of the background's own may, too.
    let heard = recorder.heard();
    let of = |kinds: &[&str]| -> Vec<&str> {
        let is_of = |text: &&String| kinds.iter().any(|kind| text.starts_with(kind));
        heard.iter().filter(is_of).map(String::as_str).collect()
    };
    let flush = ["flush began users", "flush ended users true true"];
    assert_eq!(of(&["flush"]), [flush, flush, flush].concat());
    let compactions = of(&["compaction"]);
    assert!(compactions.starts_with(&["compaction began users"]), "{heard:?}");
    assert_eq!(compactions.last(), Some(&"compaction ended users true"));
    assert_eq!(
        of(&["created", "checkpoint", "dropped"]),
        ["created users", "checkpoint copy", "dropped users"]
    );
    assert_eq!(heard[..2], ["created users", "flush began users"]);
}

/// Panics whenever a flush has ended.
struct Panics;

impl Listener for Panics {
    fn flush_ended(&self, _job: &JobEnded) {
        panic!("a listener that panics on purpose");
    }
}

#[test]
fn a_panicking_listener_does_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path().join("data"), &small()).unwrap();
    let recorder = Arc::new(Recorder::default());
    db.add_listener(Arc::new(Panics)).unwrap();
    db.add_listener(recorder.clone()).unwrap();
    for round in 0..3u8 {
        db.put(b"k", [round]).unwrap();
        db.flush().unwrap();
        recorder.until("flush ended");
    }
    assert!(db.background_errors().is_empty());
    let stats = db.clone();
    db.close().unwrap();
    assert_eq!(stats.stats().listener_panics, 3);
    assert_eq!(recorder.heard().iter().filter(|text| text.starts_with("flush ended")).count(), 3);
}

/// Does with the database what a listener must not do, and reads it, which it may.
struct Meddles(Db, Mutex<Vec<Kind>>);

impl Listener for Meddles {
    fn flush_ended(&self, _job: &JobEnded) {
        let db = &self.0;
        assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
        let mut batch = terrane::Batch::new();
        batch.put(db.default_table(), b"k", b"other").unwrap();
        let kinds = [
            db.put(b"k", b"other").unwrap_err().kind(),
            db.try_write(&batch, Durability::Buffered).unwrap_err().kind(),
            db.flush().unwrap_err().kind(),
            db.create_table("t", &TableOptions::new()).unwrap_err().kind(),
        ];
        self.1.lock().unwrap().extend(kinds);
    }

    fn table_created(&self, _name: &str) {
        // It must not wait for the thread that it is on.
        self.0.clone().close().unwrap();
    }
}

#[test]
fn a_listener_cannot_change_the_database_and_may_close_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path().join("data"), &small()).unwrap();
    let meddles = Arc::new(Meddles(db.clone(), Mutex::default()));
    db.add_listener(meddles.clone()).unwrap();
    db.put(b"k", b"v").unwrap();
    db.flush().unwrap();
    until("the listener gets the flush", || !meddles.1.lock().unwrap().is_empty());
    assert_eq!(*meddles.1.lock().unwrap(), [Kind::Invalid; 4]);
    assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    db.create_table("last", &TableOptions::new()).unwrap();
    until("the listener closes", || db.put(b"k", b"v").is_err());
    assert_eq!(db.put(b"k", b"v").unwrap_err().kind(), Kind::Cancelled);
    assert_eq!(db.add_listener(Arc::new(Panics)).unwrap_err().kind(), Kind::Cancelled);
}

/// Closes its database when a table is created.
struct Closes(Db);

impl Listener for Closes {
    fn table_created(&self, _name: &str) {
        self.0.clone().close().unwrap();
    }
}

/// The close flushes, which no other call of a listener may.
#[test]
fn a_listener_that_closes_without_a_journal_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = small();
    options.set("journal", "off").unwrap();
    let db = Db::open_with(dir.path().join("data"), &options).unwrap();
    db.add_listener(Arc::new(Closes(db.clone()))).unwrap();
    db.put(b"k", b"v").unwrap();
    db.create_table("last", &TableOptions::new()).unwrap();
    until("the listener closes", || db.put(b"late", b"v").is_err());
    // The close ends after the first refusal.
    let reopened = Mutex::new(None);
    until("the database can be opened again", || {
        *reopened.lock().unwrap() = Db::open_with(dir.path().join("data"), &options).ok();
        reopened.lock().unwrap().is_some()
    });
    let db = reopened.into_inner().unwrap().unwrap();
    assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn stalls_have_a_beginning_a_cause_and_an_end() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { overflow_runs_max: 2, ..small() };
    // The time that a slow machine takes for a write must pay for none of it.
    let clock = Arc::new(SleepClock::default());
    let env = Env { clock: clock.clone(), ..Env::real() };
    let db = Db::open_in(dir.path().join("data"), &options, env).unwrap();
    let recorder = Arc::new(Recorder::default());
    db.add_listener(recorder.clone()).unwrap();
    db.pause_background();
    for run in 0..6u8 {
        db.put(b"k", [run]).unwrap();
        db.flush_to_run(db.default_table()).unwrap();
    }
    let began = format!("stall began {:?} true", StallCause::Backlog("default".to_owned()));
    for number in 0..100_000u32 {
        db.put(number.to_be_bytes(), [7; 1000]).unwrap();
        if db.stats().stalls > 0 {
            break;
        }
    }
    recorder.until(&began);
    assert!(db.stats().stalls > 0);
    db.resume_background();
    db.wait_until_quiescent().unwrap();
    // A stall is over when no write was held back for a while.
    until("the stall ends", || {
        clock.sleep(Duration::from_millis(10));
        recorder.heard().iter().any(|text| text.starts_with("stall ended"))
    });
    assert_eq!(recorder.until("stall ended"), "stall ended true");
    db.close().unwrap();
}
