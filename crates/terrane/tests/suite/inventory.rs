//! Lists of extents and segments, and the events of jobs that listeners get.

use std::sync::{Arc, Mutex, PoisonError};

use tempfile::tempdir;
use terrane::{
    BackupOptions, Backups, Db, ExtentId, JobBegan, JobEnded, JobKind, Kind, Listener, MemtableFrozen,
    Options, Result, TableOptions,
};

/// The events, in order.
#[derive(Default)]
struct Recorder {
    events: Mutex<Vec<Event>>,
    /// Asked to wait for listeners, from one.
    db: Mutex<Option<Db>>,
    refused: Mutex<Option<Kind>>,
}

#[derive(Clone, Debug)]
enum Event {
    Frozen(MemtableFrozen),
    Began(JobBegan),
    Ended(JobEnded),
}

impl Recorder {
    fn push(&self, event: Event) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn jobs(&self) -> Vec<JobEnded> {
        let ended = self.events().into_iter().filter_map(|event| match event {
            Event::Ended(job) => Some(job),
            _ => None,
        });
        ended.collect()
    }
}

impl Listener for Recorder {
    fn memtable_frozen(&self, memtable: &MemtableFrozen) {
        self.push(Event::Frozen(memtable.clone()));
        if let Some(db) = self.db.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let refused = db.wait_for_listeners().expect_err("it would wait for itself");
            *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(refused.kind());
        }
    }

    fn flush_began(&self, job: &JobBegan) {
        self.push(Event::Began(job.clone()));
    }

    fn flush_ended(&self, job: &JobEnded) {
        self.push(Event::Ended(job.clone()));
    }

    fn compaction_began(&self, job: &JobBegan) {
        self.push(Event::Began(job.clone()));
    }

    fn compaction_ended(&self, job: &JobEnded) {
        self.push(Event::Ended(job.clone()));
    }
}

/// Outputs of all jobs without the inputs of all jobs: the extents of the table. Not one job after the other:
/// a compaction may remove an output of a flush that still runs, and end before it.
fn left(jobs: &[JobEnded]) -> Vec<ExtentId> {
    let mut extents: Vec<ExtentId> =
        jobs.iter().flat_map(|job| &job.written).map(|extent| extent.id).collect();
    for removed in jobs.iter().flat_map(|job| &job.removed) {
        let at = extents.iter().position(|id| id == removed).expect("a job wrote what a job removed");
        extents.swap_remove(at);
    }
    extents.sort_unstable();
    extents
}

#[test]
fn jobs_tell_what_they_did_to_extents() -> Result<()> {
    let dir = tempdir().expect("temporary directory");
    let mut options = Options::default();
    options.set("adaptive_shape", "off")?;
    let db = Db::open_with(dir.path().join("data"), &options)?;
    let recorder = Arc::new(Recorder::default());
    *recorder.db.lock().unwrap_or_else(PoisonError::into_inner) = Some(db.clone());
    db.add_listener(recorder.clone())?;
    for round in 0..4_u32 {
        for row in 0..500_u32 {
            let key = format!("{:05}", row * 7 + round);
            db.put(key.as_bytes(), [round as u8; 100])?;
        }
        match round {
            0..3 => db.flush()?,
            _ => db.flush_to_run(db.default_table())?,
        }
    }
    db.compact_range(db.default_table(), ..)?;
    db.wait_until_quiescent()?;
    db.wait_for_listeners()?;
    assert_eq!(*recorder.refused.lock().unwrap_or_else(PoisonError::into_inner), Some(Kind::Invalid));

    let jobs = recorder.jobs();
    let flushed: Vec<_> = jobs.iter().filter_map(|job| job.flushed).collect();
    assert_eq!(flushed.iter().map(|flushed| flushed.entries).sum::<u64>(), 2000);
    assert!(flushed.windows(2).all(|pair| pair[0].seq_max < pair[1].seq_min), "{flushed:?}");
    assert!(flushed.iter().all(|flushed| flushed.bytes > 100 * flushed.entries));
    let extents = db.default_table().extents()?;
    let mut there: Vec<ExtentId> = extents.iter().map(|extent| extent.summary.id).collect();
    there.sort_unstable();
    assert_eq!(left(&jobs), there);
    assert_eq!(extents.iter().map(|extent| extent.summary.entries).sum::<u64>(), 2000);

    let compactions: Vec<_> = jobs.iter().filter(|job| job.work != JobKind::Flush).collect();
    assert!(compactions.iter().all(|job| job.levels.is_some_and(|(from, to)| from <= to)), "{compactions:?}");
    assert!(
        compactions.iter().any(|job| job.levels.is_some_and(|(from, _)| from == 0)),
        "the run was merged"
    );
    let is_input = |job: &JobEnded, id: ExtentId| job.inputs.iter().any(|extent| extent.id == id);
    assert!(compactions.iter().all(|job| job.removed.iter().all(|id| is_input(job, *id))), "{compactions:?}");
    let began = |wanted: u64| {
        recorder
            .events()
            .iter()
            .filter(|event| matches!(event, Event::Began(job) if job.id == wanted))
            .count()
    };
    assert!(jobs.iter().all(|job| job.id > 0 && began(job.id) == 1), "{jobs:?}");
    let frozen = recorder.events().into_iter().filter_map(|event| match event {
        Event::Frozen(memtable) => Some(memtable.entries),
        _ => None,
    });
    assert_eq!(frozen.sum::<u64>(), 2000);
    *recorder.db.lock().unwrap_or_else(PoisonError::into_inner) = None;
    db.close()
}

#[test]
fn extents_have_keys_as_users_know_them() -> Result<()> {
    let dir = tempdir().expect("temporary directory");
    let db = Db::open(dir.path().join("data"))?;
    let table = db.create_table("backwards", &TableOptions::new().set("key_order", "reverse")?)?;
    for key in [b"a", b"b", b"c"] {
        table.put(key, b"value")?;
    }
    table.delete(b"d")?;
    assert!(table.extents()?.is_empty(), "all is in memory");
    let memory = table.approximate(..)?;
    assert!(memory.bytes.value > 0 && memory.memory_bytes == memory.bytes);
    db.flush()?;
    let extents = table.extents()?;
    let [extent] = extents.as_slice() else { panic!("{extents:?}") };
    let bounds = (extent.smallest.as_slice(), extent.largest.as_slice());
    assert!(
        bounds == (b"d", b"a") || bounds == (b"c", b"a"),
        "{bounds:?}: a delete without anything below may go"
    );
    let bytes = std::fs::metadata(&extent.file).expect("the data file").len();
    assert!(extent.offset + extent.summary.bytes <= bytes && extent.summary.raw_bytes > 0);
    let stored = table.approximate(..)?;
    assert!(stored.bytes.value > 0 && stored.memory_bytes.value == 0);
    db.drop_table("backwards")?;
    assert_eq!(table.extents().expect_err("it is gone").kind(), Kind::NotFound);
    db.close()
}

#[test]
fn segments_are_listed_with_their_numbers() -> Result<()> {
    let dir = tempdir().expect("temporary directory");
    let db = Db::open(dir.path().join("data"))?;
    db.put(b"k", b"v")?;
    let last = db.snapshot().seq();
    let segments = db.segments();
    assert!(segments.windows(2).all(|pair| pair[0].id < pair[1].id), "{segments:?}");
    let active: Vec<_> = segments.iter().filter(|segment| segment.is_active).collect();
    let [active] = active.as_slice() else { panic!("{segments:?}") };
    assert!(active.first_seq <= last && active.last_seq == last && !active.is_history);
    let bytes = std::fs::metadata(active.file.as_ref().expect("a file")).expect("it is there").len();
    assert!(active.used_bytes > 0 && active.used_bytes <= bytes && bytes == active.file_bytes);
    let id = db.id();
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    let copy = dir.path().join("copy");
    db.checkpoint(&copy)?;
    assert_ne!(Db::open(&copy)?.id(), id);
    db.close()?;
    assert_eq!(Db::open(dir.path().join("data"))?.id(), id);
    Ok(())
}

#[test]
fn a_backup_keeps_its_note() -> Result<()> {
    let dir = tempdir().expect("temporary directory");
    let db = Db::open(dir.path().join("data"))?;
    db.put(b"k", b"v")?;
    let backups = Backups::open(dir.path().join("backups"));
    let go_on = &mut |_: &terrane::BackupProgress| std::ops::ControlFlow::Continue(());
    let made = backups.create_with(&db, &BackupOptions::default().note("before the move"), go_on)?;
    let plain = backups.create(&db)?;
    let listed = backups.list()?.backups;
    assert_eq!(listed, [made, plain]);
    assert_eq!(listed[0].note.as_deref(), Some("before the move"));
    assert_eq!((&listed[1].note, &listed[0].options), (&None, &listed[1].options), "a note is not an option");
    let long = BackupOptions::default().note("n".repeat((64 << 10) + 1));
    let refused = backups.create_with(&db, &long, go_on).expect_err("it is too long");
    assert_eq!(refused.kind(), Kind::Invalid);
    assert_eq!(backups.list()?.backups.len(), 2);
    db.close()
}
