//! Connections that are cut after each number of bytes: no wrong answer, and no creation lost.

use std::sync::Arc;

use terrane_base::Kind;
use terrane_remote::bucket::{Bucket, Create};
use terrane_remote::grpc::Server;

use super::retrying_grpc;
use crate::proxy::{Proxy, Way};
use crate::support::{connect, env, memory, object_log, serve};

/// Creates, reads and lists, and checks that no answer is wrong. Returns whether each call was answered.
fn exchange(bucket: &dyn Bucket, served: &dyn Bucket, number: u64) -> [bool; 3] {
    let (name, content) = (format!("db/cut/{number:06}"), format!("the bytes of {number}"));
    let created = bucket.create(&name, content.as_bytes());
    match &created {
        Ok(created) => assert_eq!(*created, Create::Created, "{name}"),
        Err(error) => assert_eq!(error.kind(), Kind::Io, "what happened is unknown: {error}"),
    }
    let there = served.get(&name, 100);
    match (&created, &there) {
        (_, Ok(bytes)) => assert_eq!(bytes, content.as_bytes(), "all of it or nothing"),
        (Err(_), Err(error)) => assert_eq!(error.kind(), Kind::NotFound, "{error}"),
        (Ok(_), Err(error)) => panic!("a creation that was acknowledged is lost: {error}"),
    }
    let read = bucket.get_tail("db/kept", 100);
    match &read {
        Ok(read) => assert_eq!(read, "a tail of which no byte may be missing"),
        Err(error) => assert_eq!(error.kind(), Kind::Io, "{error}"),
    }
    let listed = bucket.list("db/few", None);
    match &listed {
        Ok(listed) => assert_eq!(listed.len(), 2, "{listed:?}"),
        Err(error) => assert_eq!(error.kind(), Kind::Io, "{error}"),
    }
    [created.is_ok(), read.is_ok(), listed.is_ok()]
}

/// A bucket that is served, behind a proxy, with objects for [`exchange`].
fn behind_a_proxy(served: Arc<dyn Bucket>) -> (Arc<dyn Bucket>, Server, Proxy) {
    for name in ["db/few/1", "db/few/2"] {
        served.create(name, b"x").expect("created");
    }
    served.create("db/kept", b"a tail of which no byte may be missing").expect("created");
    let server = serve(served.clone());
    let proxy = Proxy::new(server.address());
    (served, server, proxy)
}

/// Cuts the connection of an exchange after each number of bytes of one way.
fn cut_everywhere(served: Arc<dyn Bucket>, way: Way) {
    let (served, _server, proxy) = behind_a_proxy(served);
    let bucket = connect(proxy.address());
    let mut numbers = 0..;
    let mut exchange = || exchange(&bucket, &*served, numbers.next().expect("there are enough"));
    while exchange() != [true; 3] {}
    let before = proxy.passed(way);
    assert_eq!(exchange(), [true; 3]);
    let whole = proxy.passed(way) - before;
    assert!(whole > 100, "{whole} bytes");
    let cut = |bytes: u64| {
        proxy.cut(way, bytes);
        u64::from(exchange() != [true; 3])
    };
    let failed: u64 = (0..whole).map(cut).sum();
    assert!(failed > whole / 2, "{failed} of {whole} exchanges were cut");
}

#[test]
fn a_connection_that_is_cut_on_the_way_to_the_server_gives_no_wrong_answer() {
    cut_everywhere(memory(&env().1), Way::ToServer);
    cut_everywhere(object_log(), Way::ToServer);
}

#[test]
fn a_connection_that_is_cut_on_the_way_to_the_client_gives_no_wrong_answer() {
    cut_everywhere(memory(&env().1), Way::ToClient);
    cut_everywhere(object_log(), Way::ToClient);
}

#[test]
fn a_connection_that_is_cut_while_it_begins_gives_no_wrong_answer() {
    let (served, _server, proxy) = behind_a_proxy(memory(&env().1));
    let first = connect(proxy.address());
    assert_eq!(exchange(&first, &*served, 0), [true; 3]);
    drop(first);
    for way in [Way::ToServer, Way::ToClient] {
        let whole = proxy.passed(way);
        for bytes in (0..whole).step_by(61) {
            proxy.cut(way, bytes);
            exchange(&connect(proxy.address()), &*served, whole << 32 | bytes);
        }
        proxy.cut_nothing();
    }
}

#[test]
fn a_creation_whose_connection_is_cut_is_repeated_and_found_to_be_the_own() {
    for served in [memory(&env().1) as Arc<dyn Bucket>, object_log()] {
        is_repeated(served);
    }
}

fn is_repeated(served: Arc<dyn Bucket>) {
    let (served, _server, proxy) = behind_a_proxy(served);
    let bucket = retrying_grpc(connect(proxy.address()));
    bucket.list("db", None).expect("whole");
    for way in [Way::ToServer, Way::ToClient] {
        for bytes in (0..400).step_by(3) {
            let name = format!("db/{way:?}/{bytes}");
            proxy.cut(way, bytes);
            assert_eq!(bucket.create(&name, name.as_bytes()).expect("it ends"), Create::Created, "{name}");
            assert_eq!(served.get(&name, 100).expect("it is there"), name);
        }
        proxy.cut_nothing();
    }
}
