//! The whole engine under chosen schedules: background workers, callers that read and write, and callers of
//! maintenance are threads, and at every lock, condition variable, published atomic variable and call of the
//! device a seed chooses which of them runs next.
//!
//! * `controller`: one thread at a time. [`strategy`]: which one. `world`: clock, randomness and threads.
//! * `history`: the operations of the callers, drawn from a seed. `caller`, `transactions`, `other_ops`,
//!   `bulk`: do them and compare every answer.
//! * [`campaign`]: many histories under many schedules, and the repetition of one. [`arguments`]: those of
//!   the command for it. [`programs`]: runs small programs, such as those of the tests with known faults.
//!
//! [`mod@crate::run`] runs background work in whole steps on the thread that waits for it. This module finds
//! what that cannot: errors when the work of two threads meets in the middle.

pub mod arguments;
mod bulk;
mod caller;
pub mod campaign;
mod controller;
mod history;
mod other_ops;
pub mod programs;
pub mod strategy;
mod transactions;
mod world;

use std::sync::Arc;

use terrane_base::env::Env;
use terrane_device::{Disk, MemDisk};

/// The handles of the world that callers use.
#[derive(Clone)]
struct Doors {
    world: Arc<world::World>,
    disk: MemDisk,
    /// The operations that were done.
    log: Arc<parking_lot::Mutex<Log>>,
    /// True if a caller has begun to close the database.
    is_closing: Arc<std::sync::atomic::AtomicBool>,
}

/// The operations of the callers of one schedule.
#[derive(Clone, Debug, Default)]
struct Log {
    /// The operations that were begun, in order.
    begun: Vec<String>,
    /// How often each kind of operation was done, and how often it was refused because of what another caller
    /// did.
    kinds: std::collections::BTreeMap<String, [u64; 2]>,
}

impl Doors {
    fn env(&self) -> Env {
        self.world.env()
    }

    fn disk(&self) -> Arc<dyn Disk> {
        Arc::new(self.disk.clone())
    }

    fn begin_close(&self) {
        self.is_closing.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    fn is_closing(&self) -> bool {
        self.is_closing.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn note(&self, caller: usize, op: &history::Op) {
        self.log.lock().begun.push(format!("caller {caller}: {op}"));
    }

    fn count(&self, op: &history::Op, is_refused: bool) {
        let kind = op.kind();
        let mut log = self.log.lock();
        log.kinds.entry(kind).or_default()[usize::from(is_refused)] += 1;
    }
}
