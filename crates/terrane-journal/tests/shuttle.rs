//! The commit ring under the schedule explorer: order, completeness, publication, no deadlock, failures.
//!
//! Run with `cargo test -p terrane-journal --features shuttle --test shuttle`. The explorer reports a
//! deadlock by itself. Each test says which break of the code it was seen to find.
#![cfg(feature = "shuttle")]
#![allow(clippy::unwrap_used, reason = "a failed test may say so by a panic")]

#[path = "shuttle/files.rs"]
mod files;
#[path = "shuttle/tickets.rs"]
mod tickets;

use std::sync::Arc;

use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use shuttle::thread;
use terrane_base::{Batch, Error, Kind, Result, SegmentId, SeqNo, TableId};
use terrane_device::{Region, SegmentMemory};
use terrane_journal::{
    Journal, JournalSettings, JournalStart, LiveMemory, Medium, NewSegment, Poison, RingJournal, SealedEnd,
    SegmentInfo,
};

/// Schedules of each kind for each test; `TERRANE_SCHEDULES` sets another number for long runs.
fn schedules() -> usize {
    std::env::var("TERRANE_SCHEDULES").ok().and_then(|text| text.parse().ok()).unwrap_or(3000)
}

/// A medium that checks that one thread at a time uses it, and that fails on demand.
#[derive(Default)]
struct TestMedium {
    next_segment: AtomicU64,
    in_use: AtomicBool,
    persists: AtomicU64,
    /// The persist step that fails, counted from 1.
    fail_persist: u64,
    /// The rotation that fails.
    fail_rotate: u64,
}

impl TestMedium {
    fn alone<T>(&self, f: impl FnOnce() -> T) -> T {
        assert!(!self.in_use.swap(true, Ordering::SeqCst), "two leaders");
        thread::yield_now();
        let result = f();
        self.in_use.store(false, Ordering::SeqCst);
        result
    }
}

impl Medium for TestMedium {
    fn rotate(&self, bytes: usize, _sealed: Option<&SealedEnd>) -> Result<NewSegment> {
        self.alone(|| {
            let id = self.next_segment.fetch_add(1, Ordering::SeqCst) + 1;
            if id == self.fail_rotate {
                return Err(Error::new(Kind::Full, "no segment left"));
            }
            let memory = Arc::new(SegmentMemory { id: SegmentId(id), region: Region::heap(bytes.max(512)) });
            Ok(NewSegment { memory, file: 0 })
        })
    }

    fn write(&self, _segment: &SegmentMemory, _offset: usize, _len: usize) -> Result<()> {
        self.alone(|| Ok(()))
    }

    fn persist(&self) -> Result<()> {
        self.alone(|| {
            let number = self.persists.fetch_add(1, Ordering::SeqCst) + 1;
            if number == self.fail_persist { Err(Error::new(Kind::Io, "persist failed")) } else { Ok(()) }
        })
    }

    fn durable(&self) -> SeqNo {
        SeqNo(0)
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        Vec::new()
    }

    fn live_memory(&self) -> Vec<LiveMemory> {
        Vec::new()
    }

    fn trim(&self, _upto: SegmentId) -> Result<Vec<SegmentId>> {
        Ok(Vec::new())
    }

    fn stop(&self) {}
}

fn journal(medium: TestMedium, settings: &JournalSettings) -> Arc<RingJournal<TestMedium>> {
    let journal = RingJournal::new(medium, Arc::new(Poison::new()), settings, &JournalStart::default());
    Arc::new(journal.unwrap())
}

fn small_ring() -> JournalSettings {
    JournalSettings { ring_slots: 2, ..JournalSettings::default() }
}

fn batch(records: u64) -> Batch {
    let mut batch = Batch::new();
    for number in 0..records {
        batch.put(TableId::DEFAULT, &number.to_be_bytes(), &[7; 30]).unwrap();
    }
    batch
}

fn explore(test: impl Fn() + Send + Sync + 'static) {
    let test = Arc::new(test);
    let random = Arc::clone(&test);
    shuttle::check_random(move || random(), schedules());
    shuttle::check_pct(move || test(), schedules(), 4);
}

/// The first and last number of one commit.
type Seen = Arc<Mutex<Vec<(u64, u64)>>>;

/// Commits batches of `records`; checks that each is indexed once, with its own bytes, before it is visible.
fn commit_checked(journal: &RingJournal<TestMedium>, records: u64, sync: bool, seen: &Seen) -> Result<SeqNo> {
    let batch = batch(records);
    let mut calls = 0;
    let committed = journal.commit(&batch, sync, &mut |placed| {
        calls += 1;
        // SAFETY: the range is published to this thread.
        #[expect(unsafe_code, reason = "reads placed records")]
        let bytes = unsafe { placed.segment.region.slice(placed.offset, placed.len) };
        assert_eq!(bytes, batch.bytes());
        assert!(journal.visible() < placed.first_seq, "visible before it is indexed");
        thread::yield_now();
        seen.lock().unwrap().push((placed.first_seq.0, placed.first_seq.0 + records - 1));
    });
    if let Ok(last) = committed {
        assert_eq!(calls, 1);
        assert!(journal.visible() >= last, "acknowledged before it is visible");
    }
    committed
}

/// The ranges that were indexed are consecutive from 1; returns the last number.
fn check_consecutive(seen: &Seen) -> u64 {
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_unstable();
    seen.iter().fold(0, |last, &(first, end)| {
        assert_eq!(first, last + 1, "numbers are consecutive: {seen:?}");
        end
    })
}

fn spawn_committers(journal: &Arc<RingJournal<TestMedium>>, seen: &Seen) -> Vec<thread::JoinHandle<()>> {
    (0..3)
        .map(|number| {
            let (journal, seen) = (Arc::clone(journal), Arc::clone(seen));
            thread::spawn(move || {
                for round in 0..2 {
                    commit_checked(&journal, number + 1, (number + round) % 3 == 0, &seen).unwrap();
                }
            })
        })
        .collect()
}

#[test]
fn commits_are_ordered_and_complete() {
    for slots in [2, 8] {
        explore(move || {
            let settings = JournalSettings { ring_slots: slots, ..JournalSettings::default() };
            let (journal, seen) = (journal(TestMedium::default(), &settings), Seen::default());
            for committer in spawn_committers(&journal, &seen) {
                committer.join().unwrap();
            }
            assert_eq!(check_consecutive(&seen), 12);
            assert_eq!(journal.visible(), SeqNo(12));
        });
    }
}

#[test]
fn owners_copy_in_parallel() {
    explore(|| {
        let settings = JournalSettings { parallel_copy_bytes: 1, ..JournalSettings::default() };
        let (journal, seen) = (journal(TestMedium::default(), &settings), Seen::default());
        for committer in spawn_committers(&journal, &seen) {
            committer.join().unwrap();
        }
        assert_eq!(check_consecutive(&seen), 12);
    });
}

#[test]
fn groups_are_bounded_by_bytes() {
    explore(|| {
        let settings = JournalSettings { group_bytes_max: 1, ..JournalSettings::default() };
        let (journal, seen) = (journal(TestMedium::default(), &settings), Seen::default());
        for committer in spawn_committers(&journal, &seen) {
            committer.join().unwrap();
        }
        assert_eq!(check_consecutive(&seen), 12);
    });
}

#[test]
fn a_failed_persist_step_ends_everything() {
    explore(|| {
        let medium = TestMedium { fail_persist: 2, ..TestMedium::default() };
        let (journal, seen) = (journal(medium, &small_ring()), Seen::default());
        let committers: Vec<_> = (0..3u64)
            .map(|number| {
                let (journal, seen) = (Arc::clone(&journal), Arc::clone(&seen));
                thread::spawn(move || {
                    let mut failed = false;
                    for round in 0..3 {
                        match commit_checked(&journal, 1, (number + round).is_multiple_of(2), &seen) {
                            Ok(_) => assert!(!failed, "acknowledged after a failure"),
                            Err(error) => {
                                assert!(matches!(error.kind(), Kind::Io | Kind::Poisoned));
                                failed = true;
                            }
                        }
                    }
                })
            })
            .collect();
        for committer in committers {
            committer.join().unwrap();
        }
        let failed = journal.medium().persists.load(Ordering::SeqCst) >= 2;
        assert_eq!(
            SeqNo(check_consecutive(&seen)),
            journal.visible(),
            "what failed is neither indexed nor visible"
        );
        assert_eq!(failed, journal.sync().is_err(), "a failure is kept");
    });
}

#[test]
fn a_full_medium_fails_its_group_only() {
    explore(|| {
        let medium = TestMedium { fail_rotate: 2, ..TestMedium::default() };
        let (journal, seen) = (journal(medium, &small_ring()), Seen::default());
        let committers: Vec<_> = (0..3)
            .map(|_| {
                let (journal, seen) = (Arc::clone(&journal), Arc::clone(&seen));
                thread::spawn(move || {
                    let results = [(); 2].map(|()| commit_checked(&journal, 5, false, &seen));
                    results
                        .iter()
                        .filter(|result| result.as_ref().is_err_and(|e| e.kind() == Kind::Full))
                        .count()
                })
            })
            .collect();
        let refused: usize = committers.into_iter().map(|committer| committer.join().unwrap()).sum();
        assert!(refused >= 1, "the second rotation was refused");
        assert_eq!(SeqNo(check_consecutive(&seen)), journal.visible());
        commit_checked(&journal, 5, true, &seen).unwrap();
    });
}

#[test]
fn no_record_is_numbered_between_groups() {
    explore(|| pause_among_commits(&small_ring()));
}

/// An owner that let the pausing thread go first, before it copied for the group that this thread waited for,
/// stood still for ever.
#[test]
fn owners_copy_while_a_thread_pauses() {
    explore(|| {
        pause_among_commits(&JournalSettings { parallel_copy_bytes: 1, ..JournalSettings::default() })
    });
}

fn pause_among_commits(settings: &JournalSettings) {
    let (journal, seen) = (journal(TestMedium::default(), settings), Seen::default());
    let mut committers = spawn_committers(&journal, &seen);
    committers.truncate(2);
    for _ in 0..2 {
        let mut boundary = SeqNo(0);
        journal.between_groups(&mut |next| {
            assert!(!journal.medium().in_use.load(Ordering::SeqCst), "a group is being formed");
            boundary = next;
            thread::yield_now();
            assert!(seen.lock().unwrap().iter().all(|&(_, last)| last < next.0), "numbered meanwhile");
        });
        let last = commit_checked(&journal, 1, false, &seen).unwrap();
        assert!(last >= boundary, "a later record is behind the boundary");
    }
    for committer in committers {
        committer.join().unwrap();
    }
    check_consecutive(&seen);
}

#[test]
fn sync_and_close_meet_commits() {
    explore(|| {
        let (journal, seen) = (journal(TestMedium::default(), &small_ring()), Seen::default());
        let committers: Vec<_> = (0..2)
            .map(|_| {
                let (journal, seen) = (Arc::clone(&journal), Arc::clone(&seen));
                thread::spawn(move || {
                    let mut last = SeqNo(0);
                    while let Ok(seq) = commit_checked(&journal, 1, false, &seen) {
                        last = seq;
                        if seq.0 > 6 {
                            break;
                        }
                    }
                    (last, journal.sync().map_err(|error| error.kind()))
                })
            })
            .collect();
        let closed = journal.close().unwrap();
        for committer in committers {
            let (last, synced) = committer.join().unwrap();
            assert!(last <= closed && matches!(synced, Ok(()) | Err(Kind::Cancelled)));
        }
        assert_eq!(SeqNo(check_consecutive(&seen)), closed);
        assert_eq!(journal.visible(), closed);
    });
}

/// Copies by owners, persist steps, the smallest ring, threads that pause it, look and close, and a medium
/// that fails, all at once: what stood still before lay between two of them.
fn meet(fail_persist: u64, fail_rotate: u64, closes: bool) {
    explore(move || {
        let medium = TestMedium { fail_persist, fail_rotate, ..TestMedium::default() };
        let settings = JournalSettings { parallel_copy_bytes: 1, ..small_ring() };
        let (journal, seen) = (journal(medium, &settings), Seen::default());
        let committers: Vec<_> = (0..3u64)
            .map(|number| {
                let (journal, seen) = (Arc::clone(&journal), Arc::clone(&seen));
                thread::spawn(move || {
                    for round in 0..2 {
                        let sync = (number + round).is_multiple_of(2);
                        let outcome =
                            commit_checked(&journal, 1 + 4 * number, sync, &seen).map_err(|e| e.kind());
                        assert!(may_be(outcome.err(), fail_persist, fail_rotate, closes), "{outcome:?}");
                    }
                })
            })
            .collect();
        let pausing = thread::spawn({
            let journal = Arc::clone(&journal);
            move || {
                journal.between_groups(&mut |_| thread::yield_now());
                journal.remove_spares().unwrap();
            }
        });
        journal.between_groups(&mut |next| assert!(journal.visible() < next));
        let ended = if closes { journal.close().map(|_| ()) } else { journal.sync() };
        let ended = ended.map_err(|error| error.kind());
        assert!(may_be(ended.err(), fail_persist, fail_rotate, false), "{ended:?}");
        for thread in committers.into_iter().chain([pausing]) {
            thread.join().unwrap();
        }
        assert_eq!(
            SeqNo(check_consecutive(&seen)),
            journal.visible(),
            "what failed is neither indexed nor visible"
        );
    });
}

/// Returns true if there is a reason for this outcome.
fn may_be(failed: Option<Kind>, fail_persist: u64, fail_rotate: u64, closes: bool) -> bool {
    match failed {
        None => true,
        Some(Kind::Io | Kind::Poisoned) => fail_persist > 0,
        Some(Kind::Full) => fail_rotate > 0,
        Some(Kind::Cancelled) => closes,
        Some(_) => false,
    }
}

#[test]
fn copies_pauses_and_persist_steps_meet() {
    meet(0, 0, false);
}

#[test]
fn a_failed_persist_step_meets_copies_and_pauses() {
    meet(2, 0, false);
}

#[test]
fn a_full_medium_meets_copies_and_pauses() {
    meet(0, 2, false);
}

#[test]
fn a_close_meets_copies_and_pauses() {
    meet(0, 0, true);
}
