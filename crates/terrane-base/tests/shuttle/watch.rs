//! A watcher sees every thread that passes.

use std::sync::Arc;

use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;
use terrane_base::watch::Watch;

use crate::explore;

/// The passes that a watcher must see: each pass has a number, and each that begins after the watcher is
/// recorded.
#[derive(Default)]
struct Passed {
    next: AtomicU64,
    noted: Mutex<Vec<u64>>,
}

impl Passed {
    /// Passes as a write does: unseen, or noted by the time that the lock is free again.
    fn pass(&self, watch: &Watch) {
        if let Some(_unseen) = watch.pass() {
            self.next.fetch_add(1, Ordering::SeqCst);
            return;
        }
        {
            let mut noted = self.noted.lock().unwrap();
            let number = self.next.fetch_add(1, Ordering::SeqCst);
            thread::yield_now();
            noted.push(number);
        }
        watch.passed();
    }

    /// Watches for a while, and checks that it saw every pass of that time.
    fn watch(&self, watch: &Watch) {
        watch.begin();
        let first = self.next.load(Ordering::SeqCst);
        thread::yield_now();
        {
            let noted = self.noted.lock().unwrap();
            for number in first..self.next.load(Ordering::SeqCst) {
                assert!(noted.contains(&number), "{number} passed unseen");
            }
        }
        watch.end();
    }
}

/// Finds a watcher that does not wait for passes that began before it (tried).
#[test]
fn no_pass_misses_a_watcher() {
    explore(|| {
        let (watch, passed) = (Arc::new(Watch::new()), Arc::new(Passed::default()));
        let threads: Vec<_> = (0..4)
            .map(|index| {
                let (watch, passed) = (watch.clone(), passed.clone());
                thread::spawn(move || {
                    for _ in 0..2 {
                        if index < 2 { passed.pass(&watch) } else { passed.watch(&watch) }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(watch.live(), 0);
        // The watch ends some time after the last watcher.
        passed.pass(&watch);
        assert!(watch.pass().is_some());
    });
}
