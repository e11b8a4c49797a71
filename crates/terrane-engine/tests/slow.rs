//! The log of slow operations and the spans of background jobs, as a subscriber of `tracing` sees them. A
//! program of its own: the subscriber is that of the whole process.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "suite/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use support::{DIR, small_options};
use terrane_base::env::{Clock, Env};
use terrane_base::options::Options;
use terrane_base::{Batch, TableId};
use terrane_device::MemDisk;
use terrane_engine::{Bounds, Engine, PinnedRange, ReadMode, Snapshot};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Every look at the clock takes a microsecond, so that everything takes time without anybody waiting.
#[derive(Debug)]
struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn now(&self) -> Duration {
        Duration::from_micros(self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn wall(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, duration: Duration) {
        self.0.fetch_add(duration.as_micros() as u64, Ordering::Relaxed);
        std::thread::yield_now();
    }
}

type Fields = BTreeMap<&'static str, String>;

/// Keeps events and spans of the engine.
#[derive(Clone, Default)]
struct Keeper {
    events: Arc<Mutex<Vec<Fields>>>,
    spans: Arc<Mutex<Vec<Fields>>>,
}

struct Collect(Fields);

impl Visit for Collect {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("terrane::")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Collect(Fields::new());
        span.record(&mut fields);
        let mut spans = self.spans.lock().unwrap();
        spans.push(fields.0);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Collect(Fields::new());
        event.record(&mut fields);
        self.events.lock().unwrap().push(fields.0);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

impl Keeper {
    fn of(&self, operation: &str) -> Vec<Fields> {
        let events = self.events.lock().unwrap();
        events
            .iter()
            .filter(|fields| fields.get("operation").is_some_and(|is| is == operation))
            .cloned()
            .collect()
    }
}

fn number(fields: &Fields, name: &str) -> u64 {
    fields.get(name).unwrap_or_else(|| panic!("no {name} in {fields:?}")).parse().unwrap()
}

/// Writes, flushes, reads and scans a little.
fn use_engine(options: &Options) -> u64 {
    let env = Env { clock: Arc::new(Ticks(AtomicU64::new(0))), ..Env::real() };
    let engine = Engine::open_on(Arc::new(MemDisk::new()), Path::new(DIR), options, env).unwrap();
    let table = engine.catalog().require("default").unwrap();
    let mut batch = Batch::new();
    (0..100u32).for_each(|key| batch.put(TableId::DEFAULT, &key.to_be_bytes(), &[7; 100]).unwrap());
    engine.write(&batch, true).unwrap();
    engine.flush().unwrap();
    let (key, mut value) = (7u32.to_be_bytes(), Vec::new());
    assert!(engine.get(&table, &key, ReadMode::default(), &mut value).unwrap());
    let pin = Arc::new(Snapshot::new(engine.clone()));
    assert_eq!(PinnedRange::new(&table, Bounds::all(), pin).count(), 100);
    engine.close().unwrap();
    engine.stats().slow_operations
}

#[test]
fn slow_operations_are_logged_with_the_parts_of_their_time() {
    let keeper = Keeper::default();
    tracing::subscriber::set_global_default(keeper.clone()).unwrap();
    assert_eq!(use_engine(&small_options()), 0, "every option is off");
    assert!(keeper.of("write").is_empty() && keeper.of("read").is_empty() && keeper.of("flush").is_empty());
    let spans = keeper.spans.lock().unwrap().clone();
    let is_flush = |fields: &Fields| fields["work"] == "flush" && fields["table"] == "default";
    assert!(spans.iter().any(is_flush), "jobs have spans all the same: {spans:?}");

    let never = 3_600_000_000;
    let mut options = small_options();
    (options.diagnostics.slow_read_micros, options.diagnostics.slow_write_micros) = (never, never);
    (options.diagnostics.slow_scan_micros, options.diagnostics.slow_job_micros) = (never, never);
    assert_eq!(use_engine(&options), 0, "nothing is that slow");

    (options.diagnostics.slow_read_micros, options.diagnostics.slow_write_micros) = (1, 1);
    (options.diagnostics.slow_scan_micros, options.diagnostics.slow_job_micros) = (1, 1);
    let logged = use_engine(&options);
    let [writes, reads, scans, flushes] =
        ["write", "read", "scan", "flush"].map(|operation| keeper.of(operation));
    assert_eq!((writes.len(), reads.len()), (1, 1));
    assert!(logged >= (writes.len() + reads.len() + scans.len() + flushes.len()) as u64);
    let write = &writes[0];
    assert_eq!((number(write, "records"), number(write, "held_back_micros")), (100, 0));
    assert!(number(write, "persist_micros") > 0, "it was synced: {write:?}");
    let parts = ["held_back_micros", "persist_micros", "ring_micros", "other_micros"];
    let sum: u64 = parts.into_iter().map(|name| number(write, name)).sum();
    assert_eq!(sum, number(write, "micros"), "the parts are the whole: {write:?}");
    let read = &reads[0];
    assert_eq!((&*read["table"], number(read, "keys")), ("default", 1));
    assert!(number(read, "device_read_micros") > 0, "nothing was cached: {read:?}");
    assert!(scans.len() >= 100, "each step counts");
    assert!(number(&flushes[0], "bytes_written") > 0);
}
