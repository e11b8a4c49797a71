//! Locks and window together: transactions beside plain writers, on a journal that is a list.

use std::ops::Bound;
use std::sync::Arc;

use shuttle::sync::Mutex;
use shuttle::thread;
use terrane_base::{SeqNo, TableId};

use crate::locks::conflict_window::{ConflictWindow, Footprint};
use crate::locks::key_range::KeyRange;
use crate::locks::lock_table::{LockMode, LockTable, Owner};
use crate::read::scan::Bounds;
use crate::{ENDLESS, explore, key, lock_wait, surroundings};

/// Commits in the order of their numbers, which begin at 1: the keys that each wrote.
#[derive(Default)]
struct Journal(Mutex<Vec<Vec<u8>>>);

impl Journal {
    fn visible(&self) -> SeqNo {
        SeqNo(self.0.lock().unwrap().len() as u64)
    }

    /// Commits; `check` sees what was committed before.
    fn commit(&self, keys: &[u8], check: impl FnOnce(&[Vec<u8>])) -> SeqNo {
        let mut commits = self.0.lock().unwrap();
        check(&commits);
        commits.push(keys.to_vec());
        SeqNo(commits.len() as u64)
    }
}

struct World {
    locks: LockTable,
    window: ConflictWindow,
    journal: Journal,
}

/// The operations of one owner: the keys that it reads and writes, each of one letter, and the range that it
/// scans.
#[derive(Clone, Copy)]
struct Plan {
    reads: &'static [u8],
    scans: Option<(u8, u8)>,
    writes: &'static [u8],
    prepares: bool,
}

const NOTHING: Plan = Plan { reads: &[], scans: None, writes: &[], prepares: false };

fn footprint(plan: &Plan) -> Footprint {
    let range = |(lower, upper): (u8, u8)| KeyRange {
        table: TableId(1),
        bounds: Bounds {
            lower: Bound::Included(vec![lower]),
            upper: Bound::Included(vec![upper]),
            ..Bounds::all()
        },
    };
    Footprint {
        writes: plan.writes.iter().map(|&name| key(name)).collect(),
        ranges: plan.scans.into_iter().map(range).collect(),
        ..Footprint::default()
    }
}

/// Nothing that the plan has read was written after its snapshot.
fn assert_unchanged(plan: &Plan, since: SeqNo, commits: &[Vec<u8>]) {
    for changed in commits[since.0 as usize..].iter().flatten() {
        let scanned = plan.scans.is_some_and(|(lower, upper)| (lower..=upper).contains(changed));
        assert!(
            !plan.reads.contains(changed) && !scanned,
            "{changed} was changed after {since}: {commits:?}"
        );
        assert!(!plan.writes.contains(changed), "{changed} is overwritten after {since}: {commits:?}");
    }
}

impl World {
    /// As the engine commits, with all of its locks. `since`: what a transaction sees; `None` for a plain
    /// write. Returns whether it committed.
    fn commit(&self, owner: Owner, plan: &Plan, since: Option<SeqNo>) -> bool {
        let around = surroundings();
        let mut wanted: Vec<_> = plan.reads.iter().map(|&name| (name, LockMode::Shared)).collect();
        wanted.retain(|(name, _)| !plan.writes.contains(name));
        wanted.extend(plan.writes.iter().map(|&name| (name, LockMode::Exclusive)));
        wanted.sort_unstable();
        for &(name, mode) in &wanted {
            self.locks.acquire(owner, &key(name), mode, &lock_wait(&around, ENDLESS)).unwrap();
        }
        let footprint = footprint(plan);
        let flight =
            self.window.enter(&footprint, plan.prepares, None, &lock_wait(&around, ENDLESS)).unwrap();
        let is_valid = since.is_none_or(|since| {
            let mut look = self.window.look();
            let keys = plan.reads.iter().chain(plan.writes);
            keys.into_iter().all(|&name| look.key(&key(name), since).is_ok())
                && footprint.ranges.iter().all(|range| look.range(range, since).is_ok())
        });
        let seq = is_valid.then(|| {
            thread::yield_now();
            if plan.prepares {
                self.window.resume(flight, None, &lock_wait(&around, ENDLESS)).unwrap();
            }
            self.journal.commit(plan.writes, |commits| {
                if let Some(since) = since.filter(|_| !plan.prepares) {
                    assert_unchanged(plan, since, commits);
                }
            })
        });
        thread::yield_now();
        self.window.leave(flight, seq);
        let held: Vec<_> = wanted.iter().map(|&(name, _)| key(name)).collect();
        self.locks.release(owner, &held);
        is_valid
    }

    fn transact(&self, owner: Owner, plan: &Plan) -> bool {
        let (since, ()) = self.window.register(|| (self.journal.visible(), ()));
        thread::yield_now();
        let is_committed = self.commit(owner, plan, Some(since));
        self.window.unregister(since);
        is_committed
    }
}

/// Runs plain writes and transactions beside each other. Returns how many transactions committed.
fn run(plain: &[Plan], transactions: &[Plan]) -> usize {
    let world = Arc::new(World {
        locks: LockTable::new(),
        window: ConflictWindow::new(1 << 20),
        journal: Journal::default(),
    });
    // As the watch has it: transactions live before the first write that is noted.
    let (alive, ()) = world.window.register(|| (world.journal.visible(), ()));
    let plans = plain.iter().map(|plan| (*plan, false)).chain(transactions.iter().map(|plan| (*plan, true)));
    let threads: Vec<_> = plans
        .enumerate()
        .map(|(index, (plan, is_transaction))| {
            let (world, owner) = (world.clone(), index as Owner + 1);
            thread::spawn(move || match is_transaction {
                true => world.transact(owner, &plan),
                false => {
                    assert!(world.commit(owner, &plan, None));
                    false
                }
            })
        })
        .collect();
    let committed = threads.into_iter().map(|thread| thread.join().unwrap());
    let committed = committed.filter(|is_committed| *is_committed).count();
    world.window.unregister(alive);
    assert_eq!(world.window.bytes(), 0, "what all see is cut");
    committed
}

#[test]
fn no_transaction_commits_over_what_it_has_not_seen() {
    explore(|| {
        let plain = Plan { writes: b"b", ..NOTHING };
        let reads = Plan { reads: b"b", writes: b"a", ..NOTHING };
        let writes = Plan { writes: b"b", ..NOTHING };
        run(&[plain], &[reads, writes]);
    });
}

#[test]
fn ranges_are_as_they_were_scanned() {
    explore(|| {
        let plain = Plan { writes: b"b", ..NOTHING };
        let scans = Plan { scans: Some((b'a', b'c')), writes: b"x", ..NOTHING };
        let back = Plan { scans: Some((b'x', b'z')), writes: b"a", ..NOTHING };
        let committed = run(&[plain], &[scans, back]);
        assert!(committed <= 2);
    });
}

/// Of two that each scan what the other writes one at most commits, if both began before.
#[test]
fn two_that_scan_what_the_other_writes_do_not_wait_for_each_other() {
    explore(|| {
        let one = Plan { scans: Some((b'a', b'b')), writes: b"x", ..NOTHING };
        let two = Plan { scans: Some((b'x', b'y')), writes: b"a", ..NOTHING };
        run(&[], &[one, two, one]);
    });
}

/// A prepared transaction commits later; until then no other writer may change the ranges that it scanned.
#[test]
fn a_prepared_commit_runs_beside_others() {
    explore(|| {
        let prepared = Plan { scans: Some((b'a', b'b')), writes: b"x", prepares: true, ..NOTHING };
        let plain = Plan { writes: b"a", ..NOTHING };
        let scans = Plan { scans: Some((b'x', b'z')), writes: b"q", ..NOTHING };
        run(&[plain], &[prepared, scans]);
    });
}
