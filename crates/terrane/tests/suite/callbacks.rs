//! Callbacks that call the database: a change, or a wait for the background, is refused at once on every
//! thread; reads are answered.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and polls until a given moment"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Barrier, Mutex};

use terrane::{
    Batch, CompactionContext, CompactionFilter, Db, Durability, Env, Error, FilterDecision, Functions,
    IngestOptions, JournalMode, KeyOrder, KeyOrders, Kind, Listener, MemoryDevice, MergeOperator,
    MergeOperators, Options, PrefixExtractor, PrefixExtractors, Result, Table, TableOptions,
    TransactionOptions,
};
use terrane_base::callback;
use terrane_base::env::{Joiner, Spawn};

/// The answers, by callback, thread (`own` for one of the database's) and call; `None` is not an error.
type Answers = BTreeMap<(&'static str, &'static str, &'static str), Vec<Option<Kind>>>;

/// The database that callbacks meddle with, once there is one.
#[derive(Debug, Default)]
struct Meddler {
    db: Mutex<Option<Db>>,
    answers: Mutex<Answers>,
}

impl Meddler {
    /// Tries everything, on a table without functions.
    fn meddle(&self, callback: &'static str) {
        let Some(db) = self.db.lock().unwrap().clone() else { return };
        let plain = db.table("plain").unwrap();
        let mut batch = Batch::new();
        batch.put(&plain, b"other", b"value").unwrap();
        let is_own = std::thread::current().name().is_some_and(|name| name.starts_with("terrane-"));
        let thread = if is_own { "own" } else { "user" };
        let note = |call, answer: Result<()>| {
            let mut answers = self.answers.lock().unwrap();
            answers.entry((callback, thread, call)).or_default().push(answer.err().map(|error| error.kind()));
        };
        note("put", plain.put(b"other", b"value"));
        note("write", db.write(&batch, Durability::Synced).map(drop));
        note("try_write", db.try_write(&batch, Durability::Buffered).map(drop));
        note("transaction", db.transaction(&TransactionOptions::default()).map(drop));
        note("flush", db.flush());
        note("flush_to_run", db.flush_to_run(&plain));
        note("compact_range", db.compact_range(&plain, ..));
        note("compact_level", db.compact_level(&plain, 0));
        note("wait_until_quiescent", db.wait_until_quiescent());
        note("ingest", db.ingest(&[(&plain, "/nowhere")], IngestOptions::default()).map(drop));
        note("bulk_load", db.bulk_load(&plain, [(b"k", b"v")]).map(drop));
        note("create_table", db.create_table("more", &TableOptions::new()).map(drop));
        note("drop_table", db.drop_table("plain"));
        note("checkpoint", db.checkpoint("/nowhere").map(drop));
        note("sync", db.sync());
        note("close", db.clone().close());
        // Reads of all kinds.
        assert_eq!(plain.get(b"k").unwrap().as_deref(), Some(&b"v"[..]), "{callback}");
        let (snapshot, mut cursor) = (db.snapshot(), plain.cursor());
        assert_eq!(snapshot.get(&plain, b"k").unwrap().as_deref(), Some(&b"v"[..]), "{callback}");
        assert_eq!(plain.multi_get(&["k", "none"]).unwrap().iter().flatten().count(), 1, "{callback}");
        assert_eq!(plain.iter().count(), 1, "{callback}");
        cursor.seek_first().unwrap();
        assert!(cursor.row().is_some(), "{callback}");
    }
}

/// Every kind of callback.
#[derive(Debug)]
struct Meddling(Arc<Meddler>);

impl MergeOperator for Meddling {
    fn name(&self) -> &str {
        "meddling"
    }

    fn full(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]], out: &mut Vec<u8>) -> Result<()> {
        self.0.meddle("operator");
        out.extend_from_slice(operands.last().unwrap());
        Ok(())
    }
}

impl KeyOrder for Meddling {
    fn name(&self) -> &str {
        "meddling"
    }

    fn encode(&self, key: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.0.meddle("order");
        out.extend_from_slice(key);
        Ok(())
    }

    fn decode(&self, encoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.0.meddle("order");
        out.extend_from_slice(encoded);
        Ok(())
    }
}

impl PrefixExtractor for Meddling {
    fn name(&self) -> &str {
        "meddling"
    }

    fn prefix_len(&self, key: &[u8]) -> Option<usize> {
        self.0.meddle("extractor");
        Some(key.len().min(1))
    }
}

impl CompactionFilter for Meddling {
    fn name(&self) -> &str {
        "meddling"
    }

    fn filter(&self, _: &[u8], _: &[u8]) -> FilterDecision {
        self.0.meddle("filter");
        FilterDecision::Keep
    }

    fn for_compaction(&self, _: CompactionContext) -> Option<Arc<dyn CompactionFilter>> {
        self.0.meddle("factory");
        None
    }

    fn sees_all(&self) -> bool {
        true
    }
}

fn meddled(db: &Db) -> Table {
    let own = TableOptions::new().set("merge_operator", "meddling").unwrap();
    let own = own.set("key_order", "meddling").unwrap().set("prefix_extractor", "meddling").unwrap();
    db.create_table("meddled", &own).unwrap()
}

#[test]
fn no_callback_can_change_what_it_is_a_part_of_and_each_can_read() {
    let dir = tempfile::tempdir().unwrap();
    let meddler = Arc::new(Meddler::default());
    let own = || Arc::new(Meddling(meddler.clone()));
    let functions = Functions {
        operators: MergeOperators::new().with(own()).unwrap(),
        orders: KeyOrders::new().with(own()).unwrap(),
        extractors: PrefixExtractors::new().with(own()).unwrap(),
    };
    let options = Options { memory_bytes: 32 << 20, ..Options::default() };
    let db = Db::open_with_functions(dir.path().join("db"), &options, functions).unwrap();
    db.table_or_create("plain").unwrap().put(b"k", b"v").unwrap();
    let table = meddled(&db);
    table.set_compaction_filter(Some(own()));
    // From here on they meddle.
    *meddler.db.lock().unwrap() = Some(db.clone());
    for number in 0..4u8 {
        table.put([number], b"base").unwrap();
        table.merge([number], b"operand").unwrap();
    }
    assert_eq!(table.get([1]).unwrap().as_deref(), Some(&b"operand"[..]));
    assert_eq!(table.iter().count(), 4);
    db.flush().unwrap();
    table.merge([1], b"again").unwrap();
    db.compact_range(&table, ..).unwrap();
    assert_eq!(table.get([1]).unwrap().as_deref(), Some(&b"again"[..]));
    *meddler.db.lock().unwrap() = None;

    let answers = std::mem::take(&mut *meddler.answers.lock().unwrap());
    let places = [
        ("extractor", "own"),
        ("factory", "own"),
        ("filter", "own"),
        ("operator", "own"),
        ("operator", "user"),
        ("order", "own"),
        ("order", "user"),
    ];
    for (callback, thread) in places {
        let calls = answers.keys().filter(|(of, on, _)| (*of, *on) == (callback, thread)).count();
        assert_eq!(calls, 16, "{callback} on a thread of {thread}");
    }
    for (place, kinds) in answers {
        assert!(kinds.iter().all(|kind| *kind == Some(Kind::Invalid)), "{place:?}: {kinds:?}");
    }
    // Nothing was changed, and all goes on.
    assert_eq!(db.table("plain").unwrap().iter().count(), 1);
    db.put(b"k", b"v").unwrap();
    db.close().unwrap();
}

/// Makes the filter of a compaction, and gives it the last handle of the database.
#[derive(Debug)]
struct HandsOver {
    table: Mutex<Option<Table>>,
    /// The caller comes to it when it has no handle any more.
    gate: Barrier,
    in_a_call: bool,
}

impl CompactionFilter for HandsOver {
    fn name(&self) -> &str {
        "hands-over"
    }

    fn filter(&self, _: &[u8], _: &[u8]) -> FilterDecision {
        FilterDecision::Keep
    }

    fn for_compaction(&self, _: CompactionContext) -> Option<Arc<dyn CompactionFilter>> {
        let table = self.table.lock().unwrap().take()?;
        self.gate.wait();
        Some(Arc::new(LetsGo { table: Mutex::new(Some(table)), in_a_call: self.in_a_call }))
    }

    fn sees_all(&self) -> bool {
        true
    }
}

/// Lets the handle go when it is called, or with itself when the compaction has ended.
#[derive(Debug)]
struct LetsGo {
    table: Mutex<Option<Table>>,
    in_a_call: bool,
}

impl CompactionFilter for LetsGo {
    fn name(&self) -> &str {
        "lets-go"
    }

    fn filter(&self, _: &[u8], _: &[u8]) -> FilterDecision {
        if self.in_a_call {
            drop(self.table.lock().unwrap().take());
        }
        FilterDecision::Keep
    }

    fn sees_all(&self) -> bool {
        true
    }
}

/// Opens the database as soon as its close has ended, which has flushed.
#[track_caller]
fn open_once_closed(path: &Path, options: &Options) -> Db {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(120);
    let db = loop {
        match Db::open_with(path, options) {
            Err(error) if error.kind() == Kind::Busy => {
                assert!(std::time::Instant::now() < end, "it is still open: {error}");
                std::thread::yield_now();
            }
            opened => break opened.unwrap(),
        }
    };
    assert_eq!(db.stats().records_recovered, 0, "it was not closed in good order");
    db
}

#[test]
fn a_database_whose_last_handle_a_compaction_drops_is_closed() {
    for in_a_call in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        // One thread does the compaction and the flush of the close.
        let mut options = Options { memory_bytes: 32 << 20, overflow_runs_max: 2, ..Options::default() };
        options.background_threads = 1;
        let db = Db::open_with(&path, &options).unwrap();
        let manual = TableOptions::new().set("auto_compaction", "false").unwrap();
        let table = db.create_table("t", &manual).unwrap();
        for round in 0..6u8 {
            (0..10u8).for_each(|key| table.put([key], [round]).unwrap());
            db.flush().unwrap();
        }
        table.put([10], [5]).unwrap();
        let held = Mutex::new(Some(table.clone()));
        let hands_over = Arc::new(HandsOver { table: held, gate: Barrier::new(2), in_a_call });
        table.set_compaction_filter(Some(hands_over.clone()));
        table.set_option("auto_compaction", "true").unwrap();
        drop((db, table));
        hands_over.gate.wait();
        // No thread waits for itself, and the close flushes.
        let rows = open_once_closed(&path, &options).table("t").unwrap().iter().map(Result::unwrap);
        assert!(rows.eq((0..=10u8).map(|key| (vec![key], vec![5]))), "in a call: {in_a_call}");
    }
}

/// Drops a table when it is called.
#[derive(Debug, Default)]
struct Drops(Mutex<Option<Table>>);

impl MergeOperator for Drops {
    fn name(&self) -> &str {
        "drops"
    }

    fn full(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]], out: &mut Vec<u8>) -> Result<()> {
        drop(self.0.lock().unwrap().take());
        out.extend_from_slice(operands.last().unwrap());
        Ok(())
    }
}

#[test]
fn a_database_whose_last_handle_a_read_of_another_database_drops_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dropped");
    let options = Options { memory_bytes: 32 << 20, ..Options::default() };
    let table = Db::open_with(&path, &options).unwrap().default_table().clone();
    table.put("k", "v").unwrap();
    let operator = Arc::new(Drops(Mutex::new(Some(table))));
    let operators = MergeOperators::new().with(operator.clone()).unwrap();
    let functions = Functions { operators, ..Functions::default() };
    let reading = Db::open_with_functions(dir.path().join("read"), &options, functions).unwrap();
    let own = TableOptions::new().set("merge_operator", "drops").unwrap();
    let read = reading.create_table("t", &own).unwrap();
    read.merge("k", "w").unwrap();
    assert_eq!(read.get("k").unwrap().unwrap(), "w");
    assert!(operator.0.lock().unwrap().is_none(), "it was dropped");
    assert_eq!(open_once_closed(&path, &options).get("k").unwrap().unwrap(), "v");
}

/// A ticket keeps no database open: what its callback holds does, until it was called.
#[test]
fn a_database_whose_last_handle_the_callback_of_a_ticket_drops_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let options = Options { memory_bytes: 32 << 20, ..Options::default() };
    let db = Db::open_with(&path, &options).unwrap();
    let mut batch = Batch::new();
    batch.put(db.default_table(), "k", "v").unwrap();
    let ticket = db.write_async(&batch, Durability::Synced).unwrap();
    ticket.on_done(move |outcome| {
        outcome.unwrap();
        drop(db);
    });
    assert_eq!(open_once_closed(&path, &options).get("k").unwrap().unwrap(), "v");
}

/// The real threads, but for the one that closes.
#[derive(Debug)]
struct RefusesTheClose(Arc<dyn Spawn>);

impl Spawn for RefusesTheClose {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Joiner>> {
        if name == "terrane-close" {
            Err(Error::invalid("no thread is left"))
        } else {
            self.0.spawn(name, body)
        }
    }

    fn parallelism(&self) -> usize {
        self.0.parallelism()
    }
}

/// Hears nothing.
struct Silent;

impl Listener for Silent {}

#[test]
fn a_worker_closes_a_database_where_the_system_refuses_a_thread_for_it() {
    // With the journal off only a flush keeps the row.
    let both = |case| [JournalMode::File, JournalMode::Off].map(|journal| (case, journal));
    for ((background_threads, read_only), journal) in [(1, false), (2, false), (1, true)].map(both).concat() {
        let device = MemoryDevice::new(64 << 20);
        let options = Options { memory_bytes: 32 << 20, background_threads, journal, ..Options::default() };
        let open = |options: &Options| {
            let env = Env { spawn: Arc::new(RefusesTheClose(Env::real().spawn)), ..Env::real() };
            Db::open_on(device.disk(), "/data", options, env)
        };
        open(&options).unwrap().put("before", "v").unwrap();
        let db = open(&Options { read_only, ..options.clone() }).unwrap();
        assert_eq!(db.put("k", "v").is_ok(), !read_only);
        let listener = Arc::new(Silent);
        db.add_listener(listener.clone()).unwrap();
        callback::call(|| drop(db)).unwrap();
        let case = format!("{background_threads} workers, read-only: {read_only}, journal {journal:?}");
        let end = std::time::Instant::now() + std::time::Duration::from_secs(120);
        let mut db = open(&options);
        while db.as_ref().is_err_and(|error| error.kind() == Kind::Busy) || Arc::strong_count(&listener) > 1 {
            assert!(std::time::Instant::now() < end, "{case}: it was not closed: {:?}", db.err());
            std::thread::yield_now();
            if db.is_err() {
                db = open(&options);
            }
        }
        let db = db.unwrap();
        assert_eq!(db.contains("k").unwrap(), !read_only, "{case}");
        let is_kept = background_threads == 1 && journal == JournalMode::File;
        assert!(is_kept || db.stats().records_recovered == 0, "{case}: a worker can flush");
    }
}
