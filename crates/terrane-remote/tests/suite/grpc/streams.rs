//! Creations by one call that lasts.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use terrane_base::Kind;
use terrane_base::env::Env;
use terrane_device::{self as device, Call, Disk, Failure, FaultyDisk, MemDisk};
use terrane_remote::bucket::faulty::{Fault, FaultyBucket};
use terrane_remote::bucket::{Bucket, Create, LogBucket, LogSettings};
use terrane_remote::grpc::{Limits, Server, ServerSettings};

use super::{LONG, connect_with, retrying_grpc, start};
use crate::proxy::Proxy;
use crate::support::{connect, object_log, pattern, refused, serve};

/// How many calls of an operation have ended well.
fn ended(server: &Server, operation: &str) -> u64 {
    let start = format!("terrane_service_calls_total{{operation=\"{operation}\",outcome=\"ok\"}} ");
    let text = server.metrics_text();
    text.lines()
        .find_map(|line| line.strip_prefix(&start))
        .map_or(0, |count| count.parse().expect("a number"))
}

fn name(number: usize) -> String {
    format!("db/{number:04}")
}

#[test]
fn many_creations_need_one_call() {
    let served = object_log();
    let lasting: Arc<Mutex<Vec<String>>> = Arc::default();
    let reported = Arc::clone(&lasting);
    let server = start(Arc::clone(&served), |settings| {
        settings.log = Some(Arc::new(move |report| {
            if report.operation == "create-many" {
                reported.lock().expect("no panic").push(report.outcome.to_owned());
            }
        }));
    });
    let bucket = connect(server.address());
    bucket.list("db", None).expect("it knows the bucket");
    for round in 0..10 {
        let begun: Vec<_> = (round * 20..round * 20 + 20)
            .map(|number| {
                // Some of several messages.
                let len = if number % 50 == 7 { 1_300_000 } else { 1 + number };
                let parts =
                    vec![Bytes::new(), pattern(len, number as u64).into(), Bytes::from_static(b"end")];
                bucket.begin_create(&name(number), parts)
            })
            .collect();
        for pending in begun {
            assert_eq!(pending.wait().expect("created"), Create::Created);
        }
    }
    for number in 0..200 {
        let len = if number % 50 == 7 { 1_300_000 } else { 1 + number };
        let read = bucket.get(&name(number), 2 << 20).expect("there");
        assert!(read == [&pattern(len, number as u64)[..], b"end"].concat(), "object {number}");
    }
    assert_eq!(bucket.create(&name(3), b"other").expect("an answer"), Create::AlreadyExists);
    assert_eq!(ended(&server, "create"), 201, "each is counted");
    assert_eq!(ended(&server, "create-many"), 0, "it lasts");
    assert!(server.stop(LONG), "a stop ends the call");
    assert_eq!(*lasting.lock().expect("no panic"), ["ok"], "one call");
    refused(bucket.create("db/late", b"x"), Kind::Io);
}

/// A creation of the call that lasts has that call's trace, one of its own another one.
#[test]
fn objects_beyond_the_limit_of_a_stream_have_calls_of_their_own() {
    let traces: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let reported = Arc::clone(&traces);
    let server = start(object_log(), |settings| {
        settings.limits = Limits { object_bytes_max: 32 << 20, ..Limits::default() };
        settings.log = Some(Arc::new(move |report| {
            if report.operation == "create" {
                let row = (report.object.to_owned(), report.trace.unwrap_or_default().to_owned());
                reported.lock().expect("no panic").push(row);
            }
        }));
    });
    let bucket = connect(server.address());
    bucket.list("db", None).expect("it knows the bucket");
    let long: Bytes = pattern(9 << 20, 1).into();
    let begin = |number: usize, len: usize| bucket.begin_create(&name(number), vec![long.slice(..len)]);
    let lens = [9 << 20, 7 << 20, 7 << 20, 7 << 20, 7 << 20, 7 << 20, 100];
    let begun: Vec<_> = lens.iter().enumerate().map(|(number, len)| begin(number, *len)).collect();
    let many: Vec<_> = (10..150).map(|number| begin(number, 10)).collect();
    for pending in begun.into_iter().chain(many) {
        assert_eq!(pending.wait().expect("created"), Create::Created);
    }
    for (number, len) in lens.iter().enumerate() {
        assert!(bucket.get(&name(number), 9 << 20).expect("there") == long.slice(..*len), "object {number}");
    }
    assert_eq!(ended(&server, "create"), 147);
    let traces = traces.lock().expect("no panic");
    let trace =
        |number: usize| &traces.iter().find(|(object, _)| *object == name(number)).expect("reported").1;
    let lasting = trace(1);
    assert_ne!(trace(0), lasting, "an object of 9 MiB has a call of its own");
    // The others go by one call or have one each.
    let streamed = traces.iter().filter(|(_, trace)| trace == lasting).count();
    let mut own: Vec<&String> = traces.iter().map(|(_, trace)| trace).filter(|own| *own != lasting).collect();
    own.sort_unstable();
    own.dedup();
    assert_eq!(streamed + own.len(), 147, "{streamed} by one call");
    assert!(streamed > 4, "{streamed} by one call");
}

/// A client whose creations all have their answers ends the call by leaving: that is not trouble.
#[test]
fn a_client_that_leaves_between_creations_is_not_trouble() {
    let calls: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let reported = Arc::clone(&calls);
    let server = start(object_log(), |settings| {
        settings.log = Some(Arc::new(move |report| {
            if report.operation == "create-many" {
                let row = (report.outcome.to_owned(), report.text.to_owned());
                reported.lock().expect("no panic").push(row);
            }
        }));
    });
    let proxy = Proxy::new(server.address());
    for turn in 0..2 {
        let bucket = connect(proxy.address());
        bucket.list("db", None).expect("it knows the bucket");
        bucket.create(&name(turn), b"x").expect("created");
        if turn == 0 {
            drop(bucket);
        } else {
            // A machine that is lost says no goodbye.
            proxy.sever();
        }
        let has_ended = || calls.lock().expect("no panic").len() > turn;
        let looks = (0..LONG.as_millis()).take_while(|_| {
            Env::real().clock.sleep(Duration::from_millis(1));
            !has_ended()
        });
        assert!((looks.count() as u128) < LONG.as_millis(), "the call ends with its client");
    }
    let calls = calls.lock().expect("no panic");
    assert!(calls.iter().all(|(outcome, _)| outcome == "ok"), "{calls:?}");
}

#[test]
fn errors_of_single_creations_come_with_their_kinds() {
    let faulty = Arc::new(FaultyBucket::new(object_log()));
    let server = serve(faulty.clone());
    let bucket = connect(server.address());
    bucket.list("db", None).expect("it knows the bucket");
    bucket.create("db/a", b"x").expect("created");
    for (fault, kind) in [(Fault::Before, Kind::Io), (Fault::Refused, Kind::Invalid)] {
        faulty.fail(faulty.calls(), fault);
        let message = refused(bucket.create("db/b", b"x"), kind);
        assert!(message.contains("db/b") && message.contains("injected"), "{message}");
    }
    bucket.create("db/b", b"x").expect("the call goes on");
    faulty.fail(faulty.calls(), Fault::After);
    assert_eq!(
        retrying_grpc(connect(server.address())).create("db/c", b"x").expect("found"),
        Create::Created
    );
}

#[test]
fn a_token_is_wanted_and_another_bucket_is_refused() {
    let token = terrane_remote::grpc::Token::new("the-right-one").expect("plain");
    let first = start(object_log(), |settings| settings.token = Some(token.clone()));
    let proxy = Proxy::new(first.address());
    let with = terrane_remote::grpc::GrpcBucketSettings { token: Some(token.clone()), ..Default::default() };
    let bucket =
        terrane_remote::grpc::GrpcBucket::new(&format!("grpc://{}", proxy.address()), with, Env::real());
    let bucket = bucket.expect("an address");
    bucket.list("db", None).expect("it knows the bucket");
    bucket.create("db/a", b"x").expect("created");
    refused(connect_with(&first, None).create("db/a", b"x"), Kind::Invalid);
    let other = object_log();
    let second = start(Arc::clone(&other), |settings| settings.token = Some(token));
    proxy.set_target(second.address());
    proxy.sever();
    drop(first);
    let message = loop {
        // Calls on the connection that is ending fail, however long it takes; the next one makes a new one.
        match bucket.create("db/b", b"x") {
            Err(error) if error.kind() == Kind::Io => {}
            outcome => break refused(outcome, Kind::Invalid),
        }
    };
    assert!(message.contains("another directory"), "{message}");
    refused(other.get("db/b", 9), Kind::NotFound);
}

#[test]
fn a_log_that_failed_says_so_and_loses_nothing_of_clients_that_try_again() {
    let (disk, dir) = (MemDisk::new(), Path::new("/log"));
    let faulty = FaultyDisk::new(Arc::new(disk.clone()));
    let open = |disk: Arc<dyn Disk>| -> Arc<LogBucket> {
        Arc::new(LogBucket::open(disk, dir, LogSettings::default(), Env::real()).expect("opens"))
    };
    let first = serve(open(Arc::new(faulty.clone())));
    let proxy = Proxy::new(first.address());
    let bucket = retrying_grpc(connect(proxy.address()));
    bucket.create("db/a", b"a").expect("created");
    assert!(first.metrics_text().contains("terrane_service_bucket_failed 0\n"));
    assert!(is_healthy(first.address()));
    faulty.fail(device::Fault::new(Call::Sync, Failure::Broken));
    disk.fail_sync(&dir.join("00000000000000000001.log"));
    let pending: Vec<_> = ["db/b", "db/c", "db/d"]
        .map(|name| bucket.begin_create(name, vec![Bytes::from_static(b"own")]))
        .into_iter()
        .collect();
    // The first attempts fail, and the service says that it takes no creation.
    let is_reported = |server: &Server| server.metrics_text().contains("terrane_service_bucket_failed 1\n");
    let clock = Env::real().clock;
    let looks = (0..LONG.as_millis()).take_while(|_| {
        clock.sleep(Duration::from_millis(1));
        !is_reported(&first) || is_healthy(first.address())
    });
    assert!((looks.count() as u128) < LONG.as_millis(), "the service says that it failed");
    drop(first);
    let killed = disk.kill();
    let second = serve(open(Arc::new(killed.clone())));
    proxy.set_target(second.address());
    proxy.sever();
    for pending in pending {
        assert_eq!(pending.wait().expect("it is tried again"), Create::Created);
    }
    let crashed = open(Arc::new(killed.crash(1)));
    for name in ["db/b", "db/c", "db/d"] {
        assert_eq!(crashed.get(name, 9).expect("it was acknowledged"), "own");
    }
}

/// The answer of the health service of the service at an address.
fn is_healthy(address: std::net::SocketAddr) -> bool {
    use tonic_health::pb::health_client::HealthClient;
    use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("starts");
    let asked = HealthCheckRequest { service: "terrane.storage.v1.Storage".to_owned() };
    let answer = runtime.block_on(async {
        let endpoint =
            tonic::transport::Endpoint::from_shared(format!("http://{address}")).expect("an address");
        HealthClient::new(endpoint.connect_lazy()).check(asked).await
    });
    answer.expect("an answer").into_inner().status() == ServingStatus::Serving
}

#[test]
fn a_log_of_many_objects_asks_writers_to_trim() {
    let settings = LogSettings { objects_max: 10, ..LogSettings::default() };
    let log = LogBucket::open(Arc::new(MemDisk::new()), Path::new("/log"), settings, Env::real());
    let server = serve(Arc::new(log.expect("opens")));
    let bucket = retrying_grpc(connect(server.address()));
    bucket.list("db", None).expect("it knows the bucket");
    for number in 0..4 {
        bucket.create(&name(number), b"x").expect("created");
        // The identity of the server is an object, too.
        assert_eq!(bucket.is_crowded(), number >= 3, "object {number}");
    }
    bucket.delete(&[name(0)]).expect("deleted");
    bucket.delete(&[name(1)]).expect("deleted");
    bucket.create(&name(9), b"x").expect("created");
    assert!(!bucket.is_crowded(), "as the last answer said");
}

#[test]
fn ends_of_servers_under_load_lose_nothing_that_was_acknowledged() {
    let served = object_log();
    let mut server = Some(serve(Arc::clone(&served)));
    let proxy = Proxy::new(server.as_ref().expect("it runs").address());
    let bucket = retrying_grpc(connect(proxy.address()));
    bucket.list("db", None).expect("it knows the bucket");
    for turn in 0..12 {
        std::thread::scope(|scope| {
            let create = |thread: usize| {
                let bucket = &bucket;
                move || {
                    for at in 0..40 {
                        let name = format!("db/{turn}/{thread}/{at}");
                        let created = bucket.create(&name, name.as_bytes()).expect("it is tried again");
                        assert_eq!(created, Create::Created, "{name}");
                    }
                }
            };
            let threads: Vec<_> = (0..4).map(|thread| scope.spawn(create(thread))).collect();
            let ending = server.take().expect("it runs");
            if turn % 2 == 0 {
                drop(ending);
            } else {
                // What has no answer within the time is tried again.
                let _ = ending.stop(Duration::from_millis(50));
            }
            let next = Server::start(
                Arc::clone(&served),
                &ServerSettings::new(([127, 0, 0, 1], 0).into()),
                &Env::real(),
            );
            let next = next.expect("starts");
            proxy.set_target(next.address());
            server = Some(next);
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        });
    }
    for (turn, thread, at) in
        (0..12).flat_map(|turn| (0..4).flat_map(move |t| (0..40).map(move |at| (turn, t, at))))
    {
        let name = format!("db/{turn}/{thread}/{at}");
        assert_eq!(served.get(&name, 100).expect("it was acknowledged"), name);
    }
}
