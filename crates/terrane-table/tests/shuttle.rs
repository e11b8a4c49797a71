//! The protocol of a swip (load, publish, clear, retire) under explored schedules.
//!
//! `crossbeam_epoch` is not known to the explorer, so the reclaimer here is a model with the weakest promise
//! that `Guard` allows: a retired object is dropped at the very moment when the last guard that was alive at
//! its retirement goes. Any use after that is seen, because a dropped object says so.
//!
//! Run with `cargo test -p terrane-table --features shuttle --test shuttle`.
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]
#![cfg(feature = "shuttle")]
#![expect(unsafe_code, reason = "implements the unsafe trait Guard for the model")]

#[path = "shuttle/cache.rs"]
mod cache;
#[path = "shuttle/rows.rs"]
mod rows;
#[path = "suite/support/mod.rs"]
mod support;

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use shuttle::sync::Mutex;
use shuttle::thread;
use terrane_table::swip::{Guard, Swip};

/// The model's reclaimer.
#[derive(Default)]
struct Reclaimer {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: usize,
    alive: BTreeSet<usize>,
    /// Objects, with the guards that must go before them.
    retired: Vec<(BTreeSet<usize>, Box<dyn Any + Send>)>,
}

struct ModelGuard {
    reclaimer: Arc<Reclaimer>,
    number: usize,
}

impl Reclaimer {
    fn enter(self: &Arc<Self>) -> ModelGuard {
        let mut state = self.state.lock().unwrap();
        state.next += 1;
        let number = state.next;
        state.alive.insert(number);
        ModelGuard { reclaimer: self.clone(), number }
    }
}

// SAFETY: an object is dropped once every guard that was alive at its retirement is gone.
unsafe impl Guard for ModelGuard {
    fn retire<R: Send + 'static>(&self, reference: R) {
        let mut state = self.reclaimer.state.lock().unwrap();
        let alive = state.alive.clone();
        state.retired.push((alive, Box::new(reference)));
    }
}

impl Drop for ModelGuard {
    fn drop(&mut self) {
        let mut state = self.reclaimer.state.lock().unwrap();
        state.alive.remove(&self.number);
        for (awaited, _) in &mut state.retired {
            awaited.remove(&self.number);
        }
        let (free, kept) =
            std::mem::take(&mut state.retired).into_iter().partition(|(awaited, _)| awaited.is_empty());
        state.retired = kept;
        drop(state);
        drop::<Vec<_>>(free);
    }
}

/// Counts lives, and notices a read after its end: the flag lives on in the registry.
struct Object {
    alive: Arc<AtomicUsize>,
}

impl Object {
    fn new(registry: &Registry) -> Arc<Object> {
        registry.made.fetch_add(1, SeqCst);
        let alive = Arc::new(AtomicUsize::new(1));
        registry.flags.lock().unwrap().push(alive.clone());
        Arc::new(Object { alive })
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        assert_eq!(self.alive.swap(0, SeqCst), 1, "dropped once");
    }
}

#[derive(Default)]
struct Registry {
    made: AtomicUsize,
    flags: std::sync::Mutex<Vec<Arc<AtomicUsize>>>,
}

/// The address that a load gave is looked up among the objects' flags, so that a dangling one is not
/// followed.
fn assert_alive(registry: &Registry, flag: *const AtomicUsize) {
    let flags = registry.flags.lock().unwrap();
    let flag = flags.iter().find(|known| Arc::as_ptr(known) == flag).expect("a flag that was made");
    assert_eq!(flag.load(SeqCst), 1, "the object was dropped under a guard");
}

fn explore(readers: usize, publishers: usize, movers: usize, evictors: usize) {
    let check = move || {
        let swip = Arc::new(Swip::<Object>::default());
        let reclaimer = Arc::new(Reclaimer::default());
        let registry = Arc::new(Registry::default());
        let mut threads = Vec::new();
        let roles = [vec!['r'; readers], vec!['p'; publishers], vec!['m'; movers], vec!['e'; evictors]];
        for role in roles.concat() {
            let (swip, reclaimer, registry) = (swip.clone(), reclaimer.clone(), registry.clone());
            threads.push(thread::spawn(move || match role {
                'r' => read(&swip, &reclaimer, &registry),
                'p' => publish(&swip, &registry),
                'm' => replace(&swip, &reclaimer, &registry),
                _ => evict(&swip, &reclaimer),
            }));
        }
        for thread in threads {
            thread.join().unwrap();
        }
        evict(&swip, &reclaimer);
        let left: usize = registry.flags.lock().unwrap().iter().map(|flag| flag.load(SeqCst)).sum();
        assert_eq!(left, 0, "every object is dropped in the end");
    };
    shuttle::check_random(check, 20_000);
    shuttle::check_pct(check, 20_000, 3);
}

fn read(swip: &Swip<Object>, reclaimer: &Arc<Reclaimer>, registry: &Registry) {
    for _ in 0..2 {
        let guard = reclaimer.enter();
        let first = swip.load(&guard).map(|object| Arc::as_ptr(&object.alive));
        thread::yield_now();
        if let Some(flag) = first {
            assert_alive(registry, flag);
        }
        let kept = swip.load_owned(&guard);
        drop(guard);
        thread::yield_now();
        if let Some(kept) = kept {
            assert_alive(registry, Arc::as_ptr(&kept.alive));
        }
    }
}

fn publish(swip: &Swip<Object>, registry: &Registry) {
    for _ in 0..2 {
        if let Err(mine) = swip.publish(Object::new(registry)) {
            assert_alive(registry, Arc::as_ptr(&mine.alive));
        }
    }
}

/// Puts a copy in the place of the published object, as a move in memory does.
fn replace(swip: &Swip<Object>, reclaimer: &Arc<Reclaimer>, registry: &Registry) {
    for _ in 0..2 {
        let guard = reclaimer.enter();
        if let Some(old) = swip.load(&guard) {
            swip.exchange(&guard, old, Object::new(registry));
        }
    }
}

fn evict(swip: &Swip<Object>, reclaimer: &Arc<Reclaimer>) {
    for _ in 0..2 {
        let guard = reclaimer.enter();
        swip.clear(&guard);
    }
}

#[test]
fn one_reader_beside_one_evictor() {
    explore(1, 1, 0, 1);
}

#[test]
fn readers_against_evictors() {
    explore(2, 1, 0, 2);
}

#[test]
fn publishers_race() {
    explore(1, 3, 0, 1);
}

#[test]
fn movers_against_evictors() {
    explore(1, 1, 2, 1);
}
