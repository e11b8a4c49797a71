//! The suite: [`suite`] opens an engine, has it do everything, and opens it again.

use std::collections::BTreeMap;
use std::path::Path;

use terrane_bench::engine::{
    Ask, Control, Direction, Engine, EngineCounters, EngineOptions, Request, Session, Write,
};
use terrane_bench::{Error, Result};

/// Where an engine may differ.
#[derive(Clone, Copy)]
pub(crate) struct Promises {
    pub(crate) name: &'static str,
    pub(crate) sync: bool,
    pub(crate) backward: bool,
    pub(crate) reopen: bool,
    /// The longest value that its default settings take here.
    pub(crate) value_bytes_max: u64,
    /// True if an empty value is a value.
    pub(crate) empty_values: bool,
    pub(crate) range_deletes: bool,
    /// True if it has synced writes in flight.
    pub(crate) in_flight: bool,
}

pub(crate) const FULL: Promises = Promises {
    name: "",
    sync: true,
    backward: true,
    reopen: true,
    value_bytes_max: 300 << 10,
    empty_values: true,
    range_deletes: false,
    in_flight: false,
};

pub(crate) fn options(directory: &Path, promises: Promises) -> EngineOptions {
    EngineOptions {
        directory: directory.to_owned(),
        memory_bytes: 64 << 20,
        tables: 3,
        direct_io: false,
        background_threads: 0,
        records: 20_000,
        data_bytes: 4 << 20,
        value_bytes_max: promises.value_bytes_max,
        level_fanout: 8,
        filter_bits_per_key: 10,
        options: BTreeMap::new(),
        library: None,
    }
}

pub(crate) fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

pub(crate) fn value(number: u64) -> Vec<u8> {
    (0..20 + number % 90).map(|byte| (number.wrapping_mul(31) + byte) as u8).collect()
}

fn put(session: &mut dyn Session, table: u32, key: &[u8], value: &[u8]) {
    session.write(table, &[Write::Put(key, value)], false).expect("put");
}

pub(crate) fn get(session: &mut dyn Session, table: u32, key: &[u8]) -> Option<Vec<u8>> {
    let mut seen = None;
    let found = session
        .get(table, key, &mut |at, value| {
            assert_eq!(at, key, "the visitor sees the key that was asked for");
            seen = Some(value.to_vec());
        })
        .expect("get");
    assert_eq!(found, seen.is_some(), "the answer says what the visitor saw");
    seen
}

fn scan(session: &mut dyn Session, table: u32, start: u64, rows: u64, direction: Direction) -> Vec<u64> {
    let mut seen = Vec::new();
    let count = session
        .scan(table, &key(start), rows, direction, &mut |at, bytes| {
            let number = u64::from_be_bytes(at.try_into().expect("8-byte keys"));
            assert_eq!(bytes, value(number), "value of {number} in a scan");
            seen.push(number);
        })
        .expect("scan");
    assert_eq!(count as usize, seen.len());
    seen
}

/// Even numbers below 4000, written in a scattered order by batches of many sizes.
pub(crate) fn load(session: &mut dyn Session, table: u32) {
    let numbers: Vec<u64> = (0..2000).map(|index| index * 1_217 % 2000 * 2).collect();
    for chunk in numbers.chunks(37) {
        let rows: Vec<_> = chunk.iter().map(|number| (key(*number), value(*number))).collect();
        let writes: Vec<_> = rows.iter().map(|(key, value)| Write::Put(key, value)).collect();
        session.write(table, &writes, false).expect("batch");
    }
}

fn points(session: &mut dyn Session, promises: Promises) {
    assert_eq!(get(session, 0, b"missing"), None);
    put(session, 0, b"point", b"first value");
    assert_eq!(get(session, 0, b"point").as_deref(), Some(&b"first value"[..]));
    put(session, 0, b"point", b"second, longer value");
    assert_eq!(get(session, 0, b"point").as_deref(), Some(&b"second, longer value"[..]));
    assert_eq!(get(session, 1, b"point"), None, "tables are apart");
    if promises.empty_values {
        put(session, 0, b"point", b"");
        assert_eq!(get(session, 0, b"point").as_deref(), Some(&b""[..]));
    }
    session.write(0, &[Write::Delete(b"point")], false).expect("delete");
    assert_eq!(get(session, 0, b"point"), None);
    session.write(0, &[Write::Delete(b"never there")], false).expect("deleting an absent key");
    session.write(0, &[], false).expect("an empty batch");
    let writes = [Write::Put(b"batch", b"one"), Write::Put(b"batch", b"two"), Write::Delete(b"batch")];
    session.write(0, &writes[..2], false).expect("batch");
    assert_eq!(get(session, 0, b"batch").as_deref(), Some(&b"two"[..]), "a batch is applied in order");
    session.write(0, &writes, false).expect("batch");
    assert_eq!(get(session, 0, b"batch"), None, "a batch is applied in order");
}

fn big_values(session: &mut dyn Session, promises: Promises) {
    let big: Vec<u8> = (0..promises.value_bytes_max).map(|byte| (byte * 7 % 251) as u8).collect();
    put(session, 2, b"big", &big);
    assert_eq!(get(session, 2, b"big"), Some(big));
    session.write(2, &[Write::Delete(b"big")], false).expect("delete");
}

fn multi_gets(session: &mut dyn Session) {
    let numbers = [10, 11, 3998, 0, 10, 4001];
    let keys = numbers.map(key);
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let mut seen = Vec::new();
    let mut visit = |at: &[u8], bytes: &[u8]| {
        let number = u64::from_be_bytes(at.try_into().expect("8-byte keys"));
        assert_eq!(bytes, value(number), "value of {number} in a multi-get");
        seen.push(number);
    };
    assert_eq!(session.multi_get(1, &keys, &mut visit).expect("multi-get"), 4);
    assert_eq!(session.multi_get(1, &[], &mut visit).expect("an empty multi-get"), 0);
    seen.sort_unstable();
    assert_eq!(seen, [0, 10, 10, 3998]);
}

/// Requests that are done together, over two tables: those about one key take effect in their order.
fn requests(session: &mut dyn Session) {
    let request = |table, key, ask| Request { table, key, ask };
    let mut asked = vec![
        request(1, b"r1", Ask::Get),
        request(1, b"r1", Ask::Put(b"one")),
        request(1, b"r1", Ask::Get),
        request(2, b"r1", Ask::Put(b"another table")),
        request(1, b"r1", Ask::Put(b"two")),
        request(1, b"r1", Ask::Get),
        request(1, b"r2", Ask::Put(b"in vain")),
        request(1, b"r2", Ask::Delete),
        request(1, b"r2", Ask::Get),
        request(2, b"r1", Ask::Get),
    ];
    asked.extend([request(2, b"r1", Ask::Delete), request(1, b"r1", Ask::Delete)]);
    let mut seen = Vec::new();
    session
        .requests(&asked, false, &mut |key, value| {
            assert_eq!(key, b"r1");
            seen.push(value.to_vec());
        })
        .expect("requests");
    seen.sort();
    assert_eq!(seen, [&b"another table"[..], b"one", b"two"]);
    session.requests(&[], false, &mut |_, _| panic!("nothing was asked")).expect("no requests");
    let absent = [request(1, b"r1", Ask::Get), request(2, b"r1", Ask::Get)];
    session.requests(&absent, false, &mut |_, _| panic!("deleted")).expect("requests");
}

fn scans(session: &mut dyn Session, promises: Promises) {
    let forward = Direction::Forward;
    assert_eq!(scan(session, 1, 100, 3, forward), [100, 102, 104], "a start that is a key");
    assert_eq!(scan(session, 1, 101, 3, forward), [102, 104, 106], "a start between keys");
    assert_eq!(scan(session, 1, 3996, 9, forward), [3996, 3998], "the end comes first");
    assert_eq!(scan(session, 1, 5000, 9, forward), [0; 0], "a start behind the end");
    assert_eq!(scan(session, 1, 100, 0, forward), [0; 0], "no rows");
    assert_eq!(scan(session, 1, 0, 5000, forward), (0..2000).map(|n| n * 2).collect::<Vec<_>>());
    let mut stopped = 0;
    let mut seen = Vec::new();
    let all = session.scan_all(1, forward, &mut |at, _| {
        seen.push(u64::from_be_bytes(at.try_into().expect("8-byte keys")));
        true
    });
    assert_eq!(all.expect("scan all"), 2000);
    assert!(seen.is_sorted() && seen.len() == 2000);
    let few = session.scan_all(1, forward, &mut |_, _| {
        stopped += 1;
        stopped < 7
    });
    assert_eq!((few.expect("scan all"), stopped), (7, 7), "the visitor stops it");
    backward_scans(session, promises);
}

fn backward_scans(session: &mut dyn Session, promises: Promises) {
    let backward = Direction::Backward;
    if !promises.backward {
        let refused = session.scan(1, &key(100), 3, backward, &mut |_, _| {});
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
        let refused = session.scan_all(1, backward, &mut |_, _| true);
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
        return;
    }
    assert_eq!(scan(session, 1, 100, 3, backward), [100, 98, 96], "a start that is a key");
    assert_eq!(scan(session, 1, 101, 3, backward), [100, 98, 96], "a start between keys");
    assert_eq!(scan(session, 1, 2, 9, backward), [2, 0], "the beginning comes first");
    assert_eq!(scan(session, 1, 9999, 1, backward), [3998], "a start behind the end");
    let mut seen = Vec::new();
    let all = session.scan_all(1, backward, &mut |at, _| {
        seen.push(u64::from_be_bytes(at.try_into().expect("8-byte keys")));
        true
    });
    assert_eq!(all.expect("scan all"), 2000);
    assert!(seen.iter().rev().is_sorted());
}

fn syncs(session: &mut dyn Session, promises: Promises) {
    let synced = session.write(0, &[Write::Put(b"synced", b"yes")], true);
    if promises.sync {
        synced.expect("a write with sync");
        session
            .write(0, &[Write::Put(b"synced", b"no"), Write::Put(b"again", b"y")], false)
            .expect("without again");
        session
            .write(0, &[Write::Put(b"synced", b"yes"), Write::Delete(b"again")], true)
            .expect("a batch with sync");
        assert_eq!(get(session, 0, b"synced").as_deref(), Some(&b"yes"[..]));
    } else {
        assert!(matches!(synced, Err(Error::Unsupported { .. })), "{synced:?}");
    }
}

/// Synced writes in flight take effect in their order and end in it.
fn writes_in_flight(session: &mut dyn Session, promises: Promises) {
    let begun = session.begin_write(0, &[Write::Put(b"in flight", b"0")]);
    if !promises.in_flight {
        assert!(matches!(begun, Err(Error::Unsupported { .. })), "{begun:?}");
        return assert_eq!(session.finish_writes(true).expect("nothing was begun"), 0);
    }
    begun.expect("a write in flight");
    for number in 1..50u8 {
        let value = [b'0' + number];
        let writes =
            [Write::Put(b"in flight", &value), Write::Put(b"beside", b"y"), Write::Delete(b"beside")];
        session.begin_write(0, &writes).expect("a batch in flight");
        assert_eq!(get(session, 0, b"in flight").as_deref(), Some(&value[..]), "a later one is read");
    }
    assert_eq!(get(session, 0, b"beside"), None);
    let mut finished = session.finish_writes(false).expect("those that are on disk");
    while finished < 50 {
        let more = session.finish_writes(true).expect("a sync");
        assert!(more > 0, "a wait brings one to its end");
        finished += more;
    }
    assert_eq!((finished, session.finish_writes(true).expect("none is left")), (50, 0));
    session.write(0, &[Write::Delete(b"in flight")], true).expect("delete");
}

/// A range of keys goes at once, its end stays, and rows written afterwards are there.
fn range_deletes(session: &mut dyn Session, promises: Promises) {
    for name in [&b"range a"[..], b"range b", b"range c"] {
        put(session, 0, name, b"there");
    }
    let removed = session.delete_range(0, b"range a", b"range c", false);
    if !promises.range_deletes {
        return assert!(matches!(removed, Err(Error::Unsupported { .. })), "{removed:?}");
    }
    removed.expect("delete a range");
    assert_eq!((get(session, 0, b"range a"), get(session, 0, b"range b")), (None, None));
    assert!(get(session, 0, b"range c").is_some());
    put(session, 0, b"range b", b"again");
    assert!(get(session, 0, b"range b").is_some());
    session.delete_range(0, b"range ", b"range d", true).expect("delete a range with sync");
    assert_eq!((get(session, 0, b"range b"), get(session, 0, b"range c")), (None, None));
}

/// Every step does its work or says `Unsupported`; the data stays what it was.
fn controls(engine: &dyn Engine) {
    let steps = [
        Control::Flush,
        Control::WaitUntilQuiescent,
        Control::PauseBackground,
        Control::FlushToRun,
        Control::Compact0,
        Control::Compact1,
        Control::ResumeBackground,
        Control::CompactAll,
        Control::FiltersOff,
        Control::FiltersOn,
        Control::WaitUntilQuiescent,
    ];
    for step in steps {
        match engine.control(step) {
            Ok(()) | Err(Error::Unsupported { .. }) => {}
            Err(error) => panic!("{step:?}: {error}"),
        }
        let mut session = engine.session().expect("session");
        assert_eq!(scan(&mut *session, 1, 1000, 2, Direction::Forward), [1000, 1002], "after {step:?}");
    }
    assert!(engine.control(Control::WaitUntilQuiescent).is_ok(), "waiting is always possible");
}

fn fields(counters: &EngineCounters) -> BTreeMap<String, Option<u64>> {
    let json = serde_json::to_value(counters).expect("counters are plain");
    json.as_object().expect("an object").iter().map(|(name, value)| (name.clone(), value.as_u64())).collect()
}

fn counters_grow(before: &EngineCounters, after: &EngineCounters) {
    let after = fields(after);
    for (name, before) in fields(before) {
        assert!(after[&name] >= before, "{name} went from {before:?} to {:?}", after[&name]);
    }
}

/// The whole suite on an engine opened by `open`.
pub(crate) fn suite(promises: Promises, open: impl Fn(&Path) -> Result<Box<dyn Engine>>) {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = open(directory.path()).expect("open");
    let opened = engine.opened();
    assert!(!opened.version.is_empty());
    assert!(opened.settings.iter().any(|(name, _)| name == "durability"), "{opened:?}");
    println!("{} {}", promises.name, opened.version);
    for (name, value) in &opened.settings {
        println!("  {name} = {value}");
    }
    let mut session = engine.session().expect("session");
    points(&mut *session, promises);
    big_values(&mut *session, promises);
    load(&mut *session, 1);
    let before = engine.counters();
    multi_gets(&mut *session);
    requests(&mut *session);
    scans(&mut *session, promises);
    syncs(&mut *session, promises);
    writes_in_flight(&mut *session, promises);
    range_deletes(&mut *session, promises);
    drop(session);
    threads(&*engine, promises);
    controls(&*engine);
    counters_grow(&before, &engine.counters());
    for row in engine.shape().rows {
        println!("  {row:?}");
    }
    engine.close().expect("close");
    reopened(promises, open(directory.path()));
}

/// Readers and a writer at once: each sees whole values.
fn threads(engine: &dyn Engine, promises: Promises) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = engine.session().expect("session");
            for number in 0..500 {
                let row = key(number);
                session
                    .write(2, &[Write::Put(&row, &value(number))], promises.sync && number % 97 == 0)
                    .expect("put");
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut session = engine.session().expect("session");
                for number in 0..500 {
                    let seen = get(&mut *session, 2, &key(number));
                    assert!(seen.is_none_or(|seen| seen == value(number)), "a torn value of {number}");
                    assert_eq!(get(&mut *session, 1, &key(number * 2)), Some(value(number * 2)));
                }
            });
        }
    });
    let mut session = engine.session().expect("session");
    assert_eq!(get(&mut *session, 2, &key(499)), Some(value(499)));
}

fn reopened(promises: Promises, engine: Result<Box<dyn Engine>>) {
    if !promises.reopen {
        assert!(
            matches!(engine, Err(Error::Unsupported { .. })),
            "reopening must be refused, not start empty"
        );
        return;
    }
    let engine = engine.expect("reopen");
    let mut session = engine.session().expect("session");
    assert_eq!(scan(&mut *session, 1, 0, 5000, Direction::Forward).len(), 2000, "reopened");
    assert_eq!(get(&mut *session, 2, &key(77)), Some(value(77)), "reopened");
    assert_eq!(get(&mut *session, 0, b"synced").as_deref(), Some(&b"yes"[..]), "reopened");
    drop(session);
    engine.close().expect("close");
}
