//! A bucket on another machine: the conformance suite of buckets, ends of the server, refusals, hostile
//! bytes.

mod cuts;
mod limits;
mod streams;
#[cfg(feature = "tls")]
mod tls;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use terrane_base::env::Env;
use terrane_base::{Kind, Rng};
use terrane_remote::bucket::faulty::{Fault, FaultyBucket};
use terrane_remote::bucket::{Bucket, Create, RetryLimits, RetryingBucket};
use terrane_remote::grpc::{GrpcBucket, GrpcBucketSettings, Limits, Server, ServerSettings, Token};
use terrane_storage::conformance;

use crate::databases::{Fixture, check, put};
use crate::proxy::Proxy;
use crate::stores::openings;
use crate::support::{connect, env, memory, refused, serve};

/// Long enough for any event to come: no test waits for it.
const LONG: Duration = Duration::from_secs(60);

fn start(bucket: Arc<dyn Bucket>, change: impl FnOnce(&mut ServerSettings)) -> Server {
    let mut settings = ServerSettings::new(([127, 0, 0, 1], 0).into());
    change(&mut settings);
    Server::start(bucket, &settings, &Env::real()).expect("starts")
}

fn connect_with(server: &Server, token: Option<&str>) -> GrpcBucket {
    let token = token.map(|token| Token::new(token).expect("plain"));
    let settings = GrpcBucketSettings { token, ..GrpcBucketSettings::default() };
    GrpcBucket::new(&format!("grpc://{}", server.address()), settings, Env::real()).expect("an address")
}

/// A bucket that is tried again at once, as a database does it later.
fn retrying_grpc(inner: GrpcBucket) -> RetryingBucket {
    let pause = Duration::from_millis(1);
    let limits = RetryLimits { pause_min: pause, pause_max: 8 * pause, deadline: LONG };
    RetryingBucket::new(Arc::new(inner), limits, Env::real())
}

#[test]
fn a_bucket_that_is_served_keeps_the_contract_of_stores() {
    conformance::keeps_the_contract(|| {
        let server = serve(memory(&env().1));
        let open = openings(Arc::new(connect(server.address())));
        move || {
            assert!(!server.metrics_text().is_empty(), "it runs as long as the store");
            open()
        }
    });
}

#[test]
fn long_objects_and_long_lists_go_in_messages_of_a_bounded_length() {
    let server = serve(memory(&env().1));
    // On a busy machine a request may take longer than its time.
    let bucket = retrying_grpc(connect(server.address()));
    let block: Bytes = (0..5_000_001u32).map(|at| (at ^ (at >> 9)) as u8).collect();
    let parts = vec![block.slice(..3), Bytes::new(), block.slice(3..2_000_000), block.slice(2_000_000..)];
    assert_eq!(bucket.begin_create("db/long", parts).wait().expect("created"), Create::Created);
    assert!(bucket.get("db/long", 6_000_000).expect("whole") == block);
    assert!(bucket.get_tail("db/long", 1 << 20).expect("a tail") == block.slice(block.len() - (1 << 20)..));
    let ranges = vec![10..4_999_999, 0..5_000_001, 7..7, 2_000_000..5_000_001];
    let read = bucket.begin_get_ranges("db/long", ranges.clone()).wait().expect("reads");
    for (range, read) in ranges.iter().zip(read) {
        assert!(read == block.slice(range.start as usize..range.end as usize), "{range:?}");
    }
    let names: Vec<String> = (0..2500).map(|number| format!("db/list/{number:06}")).collect();
    let begun: Vec<_> =
        names.iter().map(|name| bucket.begin_create(name, vec![Bytes::from_static(b"x")])).collect();
    for pending in begun {
        assert_eq!(pending.wait().expect("created"), Create::Created);
    }
    let listed: Vec<String> =
        bucket.list("db/list", None).expect("lists").into_iter().map(|object| object.name).collect();
    assert_eq!(listed, names);
    bucket.delete(&names).expect("deleted");
    assert_eq!(bucket.list("db/list", None).expect("lists"), []);
}

#[test]
fn a_database_outlives_ends_of_its_server() {
    let served = memory(&env().1);
    let mut server = Some(serve(served.clone()));
    let proxy = Proxy::new(server.as_ref().expect("it runs").address());
    let place = Fixture::new(Arc::new(retrying_grpc(connect(proxy.address()))));
    let db = place.open("a");
    for turn in 0..6 {
        put(&db, turn * 100..turn * 100 + 150, turn);
        let ended = server.take().expect("it runs");
        if turn % 2 == 0 {
            drop(ended);
        } else {
            assert!(ended.stop(LONG), "nothing hangs");
        }
        // The flush begins without a server, and waits until there is one.
        std::thread::scope(|scope| {
            let flush = scope.spawn(|| db.flush());
            let next = serve(served.clone());
            proxy.set_target(next.address());
            server = Some(next);
            flush.join().expect("no panic").expect("the bucket is there again");
        });
        check(&db, turn * 100..turn * 100 + 150, turn);
    }
    db.close().expect("closes");
    let db = place.open("a");
    for turn in 0..6 {
        check(&db, turn * 100..turn * 100 + 100, turn);
    }
    check(&db, 600..650, 5);
}

#[test]
fn another_bucket_behind_the_same_address_is_refused() {
    let first = serve(memory(&env().1));
    let proxy = Proxy::new(first.address());
    let bucket = connect(proxy.address());
    bucket.create("db/a", b"x").expect("created");
    let other = memory(&env().1);
    let second = serve(other.clone());
    proxy.set_target(second.address());
    proxy.sever();
    drop(first);
    let message = loop {
        // A call on the connection that is ending fails; the next one makes a new connection.
        match bucket.create("db/b", b"x") {
            Err(error) if error.kind() == Kind::Io => {}
            outcome => break refused(outcome, Kind::Invalid),
        }
    };
    assert!(message.contains("another directory"), "{message}");
    refused(other.get("db/b", 9), Kind::NotFound);
    assert!(
        second.metrics_text().contains("refused_total{reason=\"bucket\"} 1"),
        "{}",
        second.metrics_text()
    );
}

#[test]
fn a_call_without_the_token_is_refused() {
    let served = memory(&env().1);
    let token = Token::new("the-right-one").expect("plain");
    let server = start(served.clone(), |settings| settings.token = Some(token));
    for wrong in [None, Some("the-right-on"), Some("the-right-onE")] {
        let bucket = connect_with(&server, wrong);
        let message = refused(bucket.create("db/a", b"x"), Kind::Invalid);
        assert!(message.contains("TERRANE_TOKEN") && !message.contains("the-right-one"), "{message}");
        refused(bucket.get("db/a", 9), Kind::Invalid);
        refused(bucket.list("db", None), Kind::Invalid);
        refused(bucket.delete(&["db/a".to_owned()]), Kind::Invalid);
    }
    assert_eq!(served.list("db", None).expect("lists"), []);
    assert_eq!(
        connect_with(&server, Some("the-right-one")).create("db/a", b"x").expect("created"),
        Create::Created
    );
}

#[test]
fn a_creation_is_acknowledged_behind_the_answer_of_the_bucket() {
    let served = memory(&env().1);
    let faulty = Arc::new(FaultyBucket::new(served.clone()));
    let server = serve(faulty.clone());
    let bucket = connect(server.address());
    bucket.list("db", None).expect("it knows the bucket");
    faulty.fail(faulty.calls(), Fault::Before);
    refused(bucket.create("db/a", b"x"), Kind::Io);
    assert_eq!(bucket.create("db/a", b"x").expect("the bucket is there again"), Create::Created);
    assert_eq!(served.get("db/a", 9).expect("it is there"), "x");
    assert_eq!(bucket.create("db/a", b"y").expect("an answer"), Create::AlreadyExists);
}

#[test]
fn an_object_above_the_limit_is_refused_before_it_is_sent() {
    let limits = Limits { object_bytes_max: 1000, ..Limits::default() };
    let server = start(memory(&env().1), |settings| settings.limits = limits);
    let bucket = connect(server.address());
    bucket.create("db/a", &[1; 1000]).expect("created");
    let message = refused(bucket.create("db/b", &[1; 1001]), Kind::Invalid);
    assert!(message.contains("1000") && message.contains("--object-bytes"), "{message}");
    for wrong in [
        Limits { object_bytes_max: 0, ..limits },
        Limits { calls_max: 0, ..limits },
        Limits { threads: 2 << 20, ..limits },
        Limits { bytes_in_flight_max: 999, ..limits },
    ] {
        let settings = ServerSettings { limits: wrong, ..ServerSettings::new(([127, 0, 0, 1], 0).into()) };
        refused(Server::start(memory(&env().1), &settings, &Env::real()), Kind::Invalid);
    }
}

#[test]
fn an_address_that_is_taken_is_named() {
    let server = serve(memory(&env().1));
    let settings = ServerSettings::new(server.address());
    let message = refused(Server::start(memory(&env().1), &settings, &Env::real()), Kind::Io);
    assert!(message.contains(&server.address().to_string()), "{message}");
    for url in ["grpc://", "grpc://host", "grpc://host:port", "grpc://a/b:1", "http://host:1", "grpc://:1"] {
        let opened = GrpcBucket::new(url, GrpcBucketSettings::default(), Env::real());
        assert!(refused(opened, Kind::Invalid).contains(url));
    }
}

#[test]
fn a_server_that_is_not_there_is_an_error_that_may_pass() {
    // A port that is the system's, and that nothing listens on.
    let address = "127.0.0.1:1";
    let bucket = connect(address.parse().expect("an address"));
    let message = refused(bucket.get("db/a", 9), Kind::Io);
    assert!(message.contains(&format!("grpc://{address}/db/a")), "{message}");
}

#[test]
fn hostile_bytes_end_their_connection_only() {
    let server = start(memory(&env().1), |settings| {
        settings.limits.first_call_time_max = Duration::from_millis(20);
    });
    // On a busy machine a connection may end before its call comes: another one is made. Once a call has
    // come, the connection stays.
    let mut connections = (0..100).map(|_| connect(server.address()));
    let good = connections.find(|bucket| bucket.create("db/a", b"x").is_ok()).expect("a call comes in time");
    let preface: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    let mut rng = Rng::new(7);
    for turn in 0..40 {
        let noise: Vec<u8> = (0..rng.index(300)).map(|_| rng.next_u64() as u8).collect();
        let bytes = match turn % 4 {
            0 => noise,
            1 => [preface, &noise].concat(),
            2 => [preface, settings, &noise].concat(),
            // Nothing at all, or half of a greeting, for as long as the server likes.
            _ => preface[..rng.index(24)].to_vec(),
        };
        let mut stream = TcpStream::connect(server.address()).expect("connects");
        // The server may end first.
        drop(stream.write_all(&bytes));
        if turn % 4 != 3 {
            drop(stream.shutdown(Shutdown::Write));
        }
        // What matters is that it ends.
        drop(stream.read_to_end(&mut Vec::new()));
    }
    assert_eq!(good.get("db/a", 9).expect("the others go on"), "x");
}
