//! The lock table: exclusion, deadlocks, upgrades, timeouts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shuttle::thread;

use crate::locks::lock_table::{LockMode, LockTable, Owner, Refusal};
use crate::locks::wait_graph::Edge;
use crate::{ENDLESS, explore, key, lock_wait, surroundings};

const KEYS: usize = 3;

/// The holders of each lock, as the holders themselves report.
#[derive(Default)]
struct Room {
    alone: [AtomicU64; KEYS],
    shared: [AtomicU64; KEYS],
}

impl Room {
    fn enter(&self, name: usize, mode: LockMode) {
        match mode {
            LockMode::Exclusive => {
                assert_eq!(self.alone[name].fetch_add(1, Ordering::SeqCst), 0, "alone with {name}");
                assert_eq!(self.shared[name].load(Ordering::SeqCst), 0, "alone with {name}");
            }
            LockMode::Shared => {
                self.shared[name].fetch_add(1, Ordering::SeqCst);
                assert_eq!(self.alone[name].load(Ordering::SeqCst), 0, "not beside an exclusive holder");
            }
        }
    }

    fn leave(&self, name: usize, mode: LockMode) {
        match mode {
            LockMode::Exclusive => self.alone[name].fetch_sub(1, Ordering::SeqCst),
            LockMode::Shared => self.shared[name].fetch_sub(1, Ordering::SeqCst),
        };
    }
}

/// Takes the locks one after the other, gives all up. How it was refused, if it was.
fn take(
    table: &LockTable,
    room: &Room,
    owner: Owner,
    wanted: &[(usize, LockMode)],
    readings: u64,
) -> Result<(), Refusal> {
    let around = surroundings();
    let (mut held, mut done) = (Vec::new(), Ok(()));
    for &(name, mode) in wanted {
        done = table.acquire(owner, &key(name as u8), mode, &lock_wait(&around, readings));
        if done.is_err() {
            break;
        }
        room.enter(name, mode);
        held.push((name, mode));
        thread::yield_now();
    }
    for (name, mode) in held.drain(..) {
        room.leave(name, mode);
        table.release(owner, [&key(name as u8)]);
    }
    done
}

/// A cycle names each of its members once, and begins with the owner that was refused.
fn assert_circle(edges: &[Edge], refused: Owner) {
    assert_eq!(edges[0].waiter, refused);
    for (edge, next) in edges.iter().zip(edges.iter().cycle().skip(1)) {
        assert_eq!(edge.holder, next.waiter);
    }
    let mut waiters: Vec<_> = edges.iter().map(|edge| edge.waiter).collect();
    waiters.sort_unstable();
    waiters.dedup();
    assert_eq!(waiters.len(), edges.len(), "{edges:?}");
}

/// Runs owners beside each other; returns how each ended.
fn run(plans: &[Vec<(usize, LockMode)>], readings: &[u64]) -> Vec<Result<(), Refusal>> {
    let (table, room) = (Arc::new(LockTable::new()), Arc::new(Room::default()));
    let threads: Vec<_> = plans
        .iter()
        .zip(readings)
        .enumerate()
        .map(|(index, (plan, &readings))| {
            let (table, room, plan) = (table.clone(), room.clone(), plan.clone());
            thread::spawn(move || take(&table, &room, index as Owner + 1, &plan, readings))
        })
        .collect();
    let ends: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    for (index, end) in ends.iter().enumerate() {
        if let Err(Refusal::Deadlock(edges)) = end {
            assert_circle(edges, index as Owner + 1);
        }
    }
    // Nothing is left behind: one owner can lock everything at once.
    let all: Vec<_> = (0..KEYS).map(|name| (name, LockMode::Exclusive)).collect();
    assert_eq!(take(&table, &room, 99, &all, 0), Ok(()));
    ends
}

use LockMode::{Exclusive, Shared};

#[test]
fn every_deadlock_is_found_and_one_owner_goes_on() {
    explore(|| {
        let plans: Vec<_> =
            (0..KEYS).map(|own| vec![(own, Exclusive), ((own + 1) % KEYS, Exclusive)]).collect();
        let ends = run(&plans, &[ENDLESS; KEYS]);
        assert!(ends.iter().any(Result::is_ok), "{ends:?}");
    });
}

#[test]
fn owners_that_lock_in_one_order_get_no_deadlock() {
    explore(|| {
        let plan = vec![(0, Shared), (1, Exclusive), (2, Shared)];
        let other = vec![(0, Exclusive), (2, Exclusive)];
        let ends = run(&[plan.clone(), plan, other], &[ENDLESS; 3]);
        assert!(ends.iter().all(Result::is_ok), "{ends:?}");
    });
}

/// Two owners that share a lock and both want it exclusively block each other; one of them gets it.
#[test]
fn of_two_upgrades_one_is_refused() {
    explore(|| {
        let upgrade = vec![(0, Shared), (0, Exclusive)];
        let (table, owners) = (Arc::new(LockTable::new()), [1, 2]);
        let threads = owners.map(|owner| {
            let (table, plan) = (table.clone(), upgrade.clone());
            thread::spawn(move || {
                let around = surroundings();
                let taken = plan.iter().try_for_each(|(name, mode)| {
                    table.acquire(owner, &key(*name as u8), *mode, &lock_wait(&around, ENDLESS))
                });
                table.release(owner, [&key(0)]);
                taken
            })
        });
        let ends = threads.map(|thread| thread.join().unwrap());
        assert!(ends.iter().any(Result::is_ok), "{ends:?}");
        assert!(
            ends.iter().flat_map(|end| end.as_ref().err()).all(|end| matches!(end, Refusal::Deadlock(_)))
        );
    });
}

/// An owner that gives up wakes the owners behind it, which would wait for ever otherwise.
#[test]
fn an_owner_that_times_out_blocks_no_other_owner() {
    explore(|| {
        let plans = [
            vec![(0, Shared), (1, Shared)],
            vec![(0, Exclusive)],
            vec![(0, Shared), (1, Exclusive)],
            vec![(1, Exclusive)],
        ];
        let ends = run(&plans, &[ENDLESS, 1, ENDLESS, 2]);
        for waiter in [0, 2] {
            assert_eq!(ends[waiter], Ok(()));
        }
        for hasty in [1, 3] {
            assert!(matches!(ends[hasty], Ok(()) | Err(Refusal::TimedOut(_))), "{ends:?}");
        }
    });
}
