//! Limits of connections and calls, counters, and the end of a server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use terrane_base::env::{Clock, Env, SleepClock};
use terrane_base::{Kind, Result};
use terrane_remote::Listed;
use terrane_remote::bucket::{Bucket, Create, MemoryBucket, Pending, RetryingBucket};
use terrane_remote::grpc::{Server, ServerSettings, Token};

use super::{LONG, connect_with, retrying_grpc, start};
use crate::support::{connect, env, memory, refused, serve};

#[test]
fn a_connection_beyond_the_limit_is_closed() {
    let server = start(memory(&env().1), |settings| settings.limits.connections_max = 1);
    let first = connect(server.address());
    first.create("db/a", b"x").expect("created");
    let mut second = TcpStream::connect(server.address()).expect("connects");
    // An end or a reset: the server says nothing.
    let mut said = Vec::new();
    drop(second.read_to_end(&mut said));
    assert!(said.is_empty());
    assert!(server.metrics_text().contains("refused_total{reason=\"connections\"} 1"));
    assert_eq!(first.get("db/a", 9).expect("it has its connection"), "x");
}

#[test]
fn a_connection_on_which_no_token_was_shown_ends() {
    let server = start(memory(&env().1), |settings| {
        settings.limits.first_call_time_max = Duration::from_millis(20);
        settings.token = Some(Token::new("the-right-one").expect("plain"));
    });
    // On a busy machine a connection may end before its call comes: it is tried again.
    let without = retrying_grpc(connect_with(&server, None));
    refused(without.get("db/a", 9), Kind::Invalid);
    let is_open = || !server.metrics_text().contains("terrane_service_connections 0\n");
    for _ in 0..LONG.as_millis() {
        if !is_open() {
            break;
        }
        Env::real().clock.sleep(Duration::from_millis(1));
    }
    assert!(!is_open(), "it keeps others from theirs");
    let with = retrying_grpc(connect_with(&server, Some("the-right-one")));
    with.create("db/a", b"x").expect("created");
    assert!(is_open(), "this one may stay");
}

/// A bucket whose creations wait until a test lets them go on.
#[derive(Debug)]
struct Gated {
    inner: Arc<MemoryBucket>,
    gate: Arc<Mutex<()>>,
    begun: Arc<AtomicUsize>,
    tails: Arc<AtomicUsize>,
    /// It has one call for many creations.
    is_grouped: bool,
    /// How long a list takes.
    list_time: Option<(Arc<SleepClock>, Duration)>,
}

impl Bucket for Gated {
    fn url(&self) -> &str {
        self.inner.url()
    }

    fn syncs_groups(&self) -> bool {
        self.is_grouped
    }

    fn begin_create(&self, name: &str, parts: Vec<Bytes>) -> Pending<Create> {
        if name.starts_with("db/") {
            self.begun.fetch_add(1, Ordering::SeqCst);
            drop(self.gate.lock().expect("no panic"));
        }
        self.inner.begin_create(name, parts)
    }

    fn begin_get_ranges(&self, name: &str, ranges: Vec<std::ops::Range<u64>>) -> Pending<Vec<Bytes>> {
        self.inner.begin_get_ranges(name, ranges)
    }

    fn get_tail(&self, name: &str, bytes_max: u64) -> Result<Bytes> {
        self.tails.fetch_add(1, Ordering::SeqCst);
        self.inner.get_tail(name, bytes_max)
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>> {
        if let Some((clock, time)) = &self.list_time {
            clock.sleep(*time);
        }
        self.inner.list(folder, after)
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        self.inner.delete(names)
    }
}

impl Gated {
    fn new() -> Gated {
        let (gate, begun, tails) = Default::default();
        Gated { inner: memory(&env().1), gate, begun, tails, is_grouped: false, list_time: None }
    }

    /// Waits until so many creations have begun.
    fn wait(begun: &AtomicUsize, count: usize) {
        let has_begun = (0..LONG.as_millis()).any(|_| {
            Env::real().clock.sleep(Duration::from_millis(1));
            begun.load(Ordering::SeqCst) >= count
        });
        assert!(has_begun, "creations begin");
    }
}

#[test]
fn a_long_tail_is_read_once_where_there_is_room_for_it() {
    let gated = Gated::new();
    let tails = Arc::clone(&gated.tails);
    let long = vec![7; (2 << 20) + 1];
    gated.inner.create("db/a", &long).expect("created");
    let server = serve(Arc::new(gated));
    let bucket = connect(server.address());
    let before = tails.load(Ordering::SeqCst);
    assert!(bucket.get("db/a", 4 << 20).expect("reads") == long);
    assert_eq!(tails.load(Ordering::SeqCst) - before, 1, "one read of the bucket");
    assert!(server.metrics_text().contains("terrane_service_bytes_in_flight 0"), "the room was given back");
}

#[test]
fn an_answer_has_the_time_that_its_call_has_left() {
    let (env, clock) = env();
    let limit = Duration::from_secs(300);
    for (took, kind) in [(limit / 2, None), (limit, Some(Kind::Io))] {
        let slow = Gated { list_time: Some((clock.clone(), took)), ..Gated::new() };
        let mut settings = ServerSettings::new(([127, 0, 0, 1], 0).into());
        settings.limits.call_time_max = limit;
        let server = Server::start(Arc::new(slow), &settings, &env).expect("starts");
        let listed = connect(server.address()).list("db", None);
        assert_eq!(listed.err().map(|error| error.kind()), kind, "a list of {took:?}");
    }
}

#[test]
fn calls_beyond_the_limit_are_refused_as_busy_and_counted() {
    let gated = Gated::new();
    let (gate, begun) = (Arc::clone(&gated.gate), Arc::clone(&gated.begun));
    let reports: Arc<Mutex<Vec<String>>> = Arc::default();
    let (rows, inner) = (Arc::clone(&reports), Arc::clone(&gated.inner));
    let server = start(Arc::new(gated), |settings| {
        settings.limits.calls_max = 2;
        settings.metrics = Some(([127, 0, 0, 1], 0).into());
        settings.log = Some(Arc::new(move |report| {
            let trace = report.trace.map_or(0, str::len);
            let line = format!("{} {} {} {trace}", report.operation, report.object, report.outcome);
            rows.lock().expect("no panic").push(line);
        }));
    });
    let bucket = connect(server.address());
    bucket.list("db", None).expect("it knows the bucket");
    let closed = gate.lock().expect("no panic");
    let running: Vec<_> = ["db/a", "db/b"]
        .map(|name| bucket.begin_create(name, vec![Bytes::from_static(b"x")]))
        .into_iter()
        .collect();
    Gated::wait(&begun, 2);
    // One connection has at most as many calls under way as the server takes: its further ones wait.
    let other = connect(server.address());
    let message = refused(other.create("db/c", b"x"), Kind::Busy);
    assert!(message.contains("2 calls under way"), "{message}");
    drop(closed);
    for pending in running {
        assert_eq!(pending.wait().expect("created"), Create::Created);
    }
    refused(inner.get("db/c", 9), Kind::NotFound);
    refused(bucket.get("db/c", 9), Kind::NotFound);
    let mut reports = reports.lock().expect("no panic").clone();
    reports.sort();
    assert_eq!(
        reports,
        ["create db/a ok 55", "create db/b ok 55", "hello  ok 55", "list db ok 55", "read db/c not found 55"]
    );
    let page = page(&server, "/metrics");
    for line in [
        "terrane_service_calls_total{operation=\"create\",outcome=\"ok\"} 2",
        "terrane_service_bytes_total{operation=\"create\",outcome=\"ok\"} 2",
        "terrane_service_calls_total{operation=\"read\",outcome=\"not found\"} 1",
        "terrane_service_refused_total{reason=\"calls\"} 1",
        "terrane_service_bytes_in_flight 0",
    ] {
        assert!(page.contains(line), "{line} in {page}");
    }
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(self::page(&server, "/other").starts_with("HTTP/1.1 404 "));
}

/// The answer of the page of metrics.
fn page(server: &Server, path: &str) -> String {
    let mut stream = TcpStream::connect(server.metrics_address().expect("it has one")).expect("connects");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("answered");
    text
}

#[test]
fn a_call_of_creations_keeps_no_other_call_away() {
    let server = start(crate::support::object_log(), |settings| settings.limits.calls_max = 1);
    let bucket = connect(server.address());
    bucket.list("db", None).expect("it knows the bucket");
    for number in 0..3 {
        // The call lasts, and the limit does not count it.
        bucket.create(&format!("db/{number}"), b"x").expect("created");
        assert_eq!(bucket.list("db", None).expect("there is a call for it").len(), number + 1);
    }
    assert!(!server.metrics_text().contains("reason=\"calls\""), "none was refused");
    // One for each connection.
    let other = connect(server.address());
    other.list("db", None).expect("it knows the bucket");
    other.create("db/3", b"x").expect("created");
    bucket.create("db/4", b"x").expect("created");
}

/// Creations that wait for room are not read. What they send must not take all that may be under way on their
/// connection: trims go by it, too.
#[test]
fn creations_that_wait_for_room_keep_no_other_call_of_their_connection_away() {
    let gated = Gated { is_grouped: true, ..Gated::new() };
    let (gate, begun) = (Arc::clone(&gated.gate), Arc::clone(&gated.begun));
    let server = start(Arc::new(gated), |settings| {
        settings.limits.object_bytes_max = 8 << 20;
        settings.limits.bytes_in_flight_max = 16 << 20;
    });
    // On a busy machine a request may take longer than its time.
    let [first, second] = [(), ()].map(|()| retrying_grpc(connect(server.address())));
    first.list("db", None).expect("it knows the bucket");
    second.list("db", None).expect("it knows the bucket");
    let closed = gate.lock().expect("no panic");
    let begin = |bucket: &RetryingBucket, name: &str, len: usize| {
        bucket.begin_create(name, vec![vec![7; len].into()])
    };
    let mut running = vec![begin(&first, "db/a", 8 << 20), begin(&first, "db/b", 8 << 20)];
    Gated::wait(&begun, 1);
    let is_full = || server.metrics_text().contains("terrane_service_bytes_in_flight 16777216\n");
    let is_taken = (0..LONG.as_millis()).any(|_| {
        Env::real().clock.sleep(Duration::from_millis(1));
        is_full()
    });
    assert!(is_taken, "the first client takes all the room");
    // Much more than may be under way on a connection.
    running.extend((0..20).map(|number| begin(&second, &format!("db/{number}"), 100_000)));
    for _ in 0..50 {
        assert_eq!(second.list("db", None).expect("it has its part of the connection").len(), 0);
        second.delete(&["db/none".to_owned()]).expect("deletes");
    }
    drop(closed);
    for pending in running {
        assert_eq!(pending.wait().expect("there is room again"), Create::Created);
    }
}

#[test]
fn a_call_of_creations_ends_when_nothing_comes_and_is_begun_again() {
    let server = start(crate::support::object_log(), |settings| {
        settings.limits.call_time_max = Duration::from_secs(1);
    });
    let bucket = retrying_grpc(connect(server.address()));
    bucket.list("db", None).expect("it knows the bucket");
    for number in 1..3u32 {
        bucket.create(&format!("db/{number}"), b"x").expect("created");
        let ended = |text: &str| {
            let rows = text.lines().filter(|line| line.contains("calls_total{operation=\"create-many\""));
            rows.filter_map(|row| row.rsplit(' ').next()?.parse::<u32>().ok()).sum::<u32>()
        };
        let looks = (0..LONG.as_millis()).take_while(|_| {
            Env::real().clock.sleep(Duration::from_millis(1));
            ended(&server.metrics_text()) < number
        });
        assert!((looks.count() as u128) < LONG.as_millis(), "the call {number} ended");
    }
}

#[test]
fn a_stop_answers_what_runs() {
    let gated = Gated::new();
    let (gate, begun, inner) = (Arc::clone(&gated.gate), Arc::clone(&gated.begun), Arc::clone(&gated.inner));
    let server = serve(Arc::new(gated));
    let address = server.address();
    let bucket = connect(address);
    let closed = gate.lock().expect("no panic");
    let running = bucket.begin_create("db/a", vec![Bytes::from_static(b"x")]);
    Gated::wait(&begun, 1);
    std::thread::scope(|scope| {
        let stop = scope.spawn(move || server.stop(LONG));
        // The address is free as soon as no new connection is taken.
        let is_free = (0..LONG.as_millis()).any(|_| {
            Env::real().clock.sleep(Duration::from_millis(1));
            TcpStream::connect(address).is_err()
        });
        assert!(is_free, "a service that stops takes no connection");
        drop(closed);
        assert_eq!(running.wait().expect("it is answered"), Create::Created);
        assert!(stop.join().expect("no panic"), "everything was answered");
    });
    assert_eq!(inner.get("db/a", 9).expect("it is there"), "x");
    refused(bucket.create("db/b", b"x"), Kind::Io);
}

#[test]
fn a_stop_ends_although_a_call_does_not() {
    let gated = Gated::new();
    let (gate, begun) = (Arc::clone(&gated.gate), Arc::clone(&gated.begun));
    let server = serve(Arc::new(gated));
    let bucket = connect(server.address());
    let closed = gate.lock().expect("no panic");
    let running = bucket.begin_create("db/a", vec![Bytes::from_static(b"x")]);
    Gated::wait(&begun, 1);
    assert!(!server.stop(Duration::from_millis(1)), "a call was left");
    refused(running.wait(), Kind::Io);
    drop(closed);
}
