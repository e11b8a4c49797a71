//! Messages of a wrong client and of a wrong server.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use terrane_base::Kind;
use terrane_base::env::Env;
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use super::messages::storage_client::StorageClient;
use super::messages::{
    ByteRange, CreateManyPart, CreatePart, DeleteRequest, HelloRequest, ListRequest, ObjectHead, ReadRequest,
};
use super::{Server, ServerSettings, wire};
use crate::bucket::{Bucket, MemoryBucket};

/// A server of a bucket in memory, and a client without any rule.
struct Raw {
    bucket: Arc<MemoryBucket>,
    server: Server,
    runtime: tokio::runtime::Runtime,
    client: StorageClient<Channel>,
    identity: String,
}

/// A bucket whose creations wait until a test lets them go on.
#[derive(Debug)]
struct Closed {
    inner: Arc<MemoryBucket>,
    gate: Arc<terrane_base::sync::Mutex<()>>,
}

impl Bucket for Closed {
    fn url(&self) -> &str {
        self.inner.url()
    }

    fn syncs_groups(&self) -> bool {
        true
    }

    fn begin_create(&self, name: &str, parts: Vec<Bytes>) -> crate::Pending<crate::Create> {
        drop(self.gate.lock());
        self.inner.begin_create(name, parts)
    }

    fn begin_get_ranges(&self, name: &str, ranges: Vec<std::ops::Range<u64>>) -> crate::Pending<Vec<Bytes>> {
        self.inner.begin_get_ranges(name, ranges)
    }

    fn get_tail(&self, name: &str, bytes_max: u64) -> terrane_base::Result<Bytes> {
        self.inner.get_tail(name, bytes_max)
    }

    fn list(&self, folder: &str, after: Option<&str>) -> terrane_base::Result<Vec<crate::Listed>> {
        self.inner.list(folder, after)
    }

    fn delete(&self, names: &[String]) -> terrane_base::Result<()> {
        self.inner.delete(names)
    }
}

impl Raw {
    fn new() -> Raw {
        Raw::behind(Arc::default())
    }

    /// Creations wait until the gate is open.
    fn behind(gate: Arc<terrane_base::sync::Mutex<()>>) -> Raw {
        let env = Env::real();
        let bucket = Arc::new(MemoryBucket::new(env.clock.clone()));
        let closed = Arc::new(Closed { inner: Arc::clone(&bucket), gate });
        let mut settings = ServerSettings::new(([127, 0, 0, 1], 0).into());
        settings.limits.object_bytes_max = 4 << 20;
        let server = Server::start(closed, &settings, &env).expect("starts");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("starts");
        let inside = runtime.enter();
        let address = format!("http://{}", server.address());
        let client = StorageClient::new(Endpoint::from_shared(address).expect("an address").connect_lazy());
        drop(inside);
        let identity = wire::hex(&bucket.get(".terrane/identity", 16).expect("it has one"));
        Raw { bucket, server, runtime, client, identity }
    }

    /// A request with these headers.
    fn request<T>(&self, message: T, headers: &[(&'static str, &str)]) -> Request<T> {
        let mut request = Request::new(message);
        for (name, value) in headers {
            let value = AsciiMetadataValue::try_from(*value).expect("plain");
            request.metadata_mut().insert(AsciiMetadataKey::from_static(name), value);
        }
        request
    }

    /// A request with the headers that are right.
    fn right<T>(&self, message: T) -> Request<T> {
        let protocol = wire::PROTOCOL.to_string();
        self.request(message, &[(wire::PROTOCOL_HEADER, &protocol), (wire::BUCKET_HEADER, &self.identity)])
    }

    fn create(&self, parts: Vec<CreatePart>) -> Result<i32, Status> {
        let call = async { self.client.clone().create(self.right(stream::iter(parts))).await };
        self.runtime.block_on(call).map(|answer| answer.into_inner().outcome)
    }

    /// Outcome and kind of each answer, and the status of the call.
    fn create_many(&self, parts: Vec<CreateManyPart>) -> (Vec<(i32, String)>, Result<(), Status>) {
        let mut ended = Vec::new();
        let call = async {
            let answers = self.client.clone().create_many(self.right(stream::iter(parts))).await;
            let mut answers = answers.expect("the call begins").into_inner();
            while let Some(answer) = answers.message().await? {
                assert_eq!(answer.creation, ended.len() as u64 + 1, "in the order of the creations");
                ended.push((answer.outcome, answer.kind));
            }
            Ok(())
        };
        let outcome = self.runtime.block_on(call);
        (ended, outcome)
    }

    fn read(&self, message: ReadRequest) -> Result<(), Status> {
        let call = async { self.client.clone().read(self.right(message)).await };
        self.runtime.block_on(call).map(|_| ())
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: Result<T, Status>, part: &str) {
    let status = outcome.expect_err(part);
    assert_eq!(wire::kind(&status), Some(Kind::Invalid), "{status:?}");
    assert!(status.message().contains(part), "{part}: {status:?}");
}

fn head(name: &str, bytes: u64, content: &[u8]) -> CreatePart {
    let head = ObjectHead { name: name.to_owned(), bytes, crc32c: crc32c::crc32c(content) };
    CreatePart { head: Some(head), data: Bytes::new() }
}

fn data(content: &[u8]) -> CreatePart {
    CreatePart { head: None, data: Bytes::copy_from_slice(content) }
}

#[test]
fn a_creation_of_other_messages_than_the_protocol_has_creates_nothing() {
    let raw = Raw::new();
    refused(raw.create(vec![]), "without a message");
    refused(raw.create(vec![data(b"abc")]), "does not name");
    refused(raw.create(vec![head("db//a", 3, b"abc"), data(b"abc")]), "db//a");
    refused(raw.create(vec![head(".terrane/identity", 3, b"abc"), data(b"abc")]), "the server's");
    refused(raw.create(vec![head("db/a", 0, b"")]), "0 bytes");
    refused(raw.create(vec![head("db/a", (4 << 20) + 1, b"")]), "4194305 bytes");
    refused(raw.create(vec![head("db/a", u64::MAX, b"")]), "may have 1 to");
    refused(raw.create(vec![head("db/a", 3, b"abc"), data(b"ab")]), "ended after 2");
    refused(raw.create(vec![head("db/a", 3, b"abc"), data(b"abcd")]), "has more");
    refused(raw.create(vec![head("db/a", 3, b"abc"), data(b"abc"), data(b"")]), "without bytes");
    refused(raw.create(vec![head("db/a", 3, b"abc"), head("db/b", 3, b"abc")]), "with a name");
    let long = vec![7; wire::PART_BYTES_MAX + 1];
    refused(raw.create(vec![head("db/a", long.len() as u64, &long), data(&long)]), "a message of more than");
    let longer = vec![7; wire::MESSAGE_BYTES_MAX + 1];
    refused(raw.create(vec![head("db/a", longer.len() as u64, &longer), data(&longer)]), "too long");
    let changed = raw.create(vec![head("db/a", 3, b"abd"), data(b"abc")]).expect_err("a wrong checksum");
    assert_eq!(wire::kind(&changed), Some(Kind::Busy), "it may be tried again: {changed:?}");
    assert_eq!(raw.bucket.list("db", None).expect("lists"), []);
    let pieces = [head("db/a", 3, b"abc"), data(b"a"), data(b"b"), data(b"c")];
    assert_eq!(raw.create(pieces.to_vec()).expect("created"), 1);
    assert_eq!(raw.bucket.get("db/a", 9).expect("is there"), "abc");
}

/// A message of a creation: the first one has a name.
fn part(creation: u64, head: Option<(&str, u64)>, content: &[u8]) -> CreateManyPart {
    let crc32c = crc32c::crc32c(content);
    let head = head.map(|(name, bytes)| ObjectHead { name: name.to_owned(), bytes, crc32c });
    CreateManyPart { creation, head, data: Bytes::copy_from_slice(content) }
}

#[test]
fn a_wrong_order_of_messages_ends_the_call_of_creations() {
    let long = vec![7; wire::PART_BYTES_MAX + 1];
    for (wrong, what) in [
        (vec![part(2, Some(("db/b", 1)), b"x")], "creation 2 behind creation 0"),
        (vec![part(1, None, b"x")], "does not name"),
        (vec![part(1, Some(("db/b", 3)), b"x"), part(2, None, b"xy")], "of another one"),
        (vec![part(1, Some(("db/b", 3)), b"x"), part(1, None, b"")], "without bytes"),
        (vec![part(1, Some(("db/b", 3)), b"x"), part(1, Some(("db/b", 3)), b"xy")], "with a name"),
        (vec![part(1, Some(("db/b", 1)), b"xy")], "has more"),
        (vec![part(1, Some(("db/b", 2)), b"x"), part(1, None, b"xy")], "has more"),
        (vec![part(1, Some(("db/b", long.len() as u64)), &long)], "a message of more than"),
        (vec![part(1, Some(("../b", 2)), b"xyz")], "more bytes than its header announces"),
        // Names as long as a message: the server keeps none.
        (vec![part(1, Some((&"b".repeat(1025), 1)), b"x")], "a name of 1025 bytes"),
    ] {
        let raw = Raw::new();
        let (ended, outcome) = raw.create_many(wrong);
        refused(outcome, what);
        assert_eq!((ended, raw.bucket.list("db", None).expect("lists")), (vec![], vec![]), "{what}");
    }
    let raw = Raw::new();
    let (ended, outcome) = raw.create_many(vec![part(1, Some(("db/b", 3)), b"x")]);
    assert_eq!((ended, outcome.expect_err("it ends early").code()), (vec![], Code::Cancelled));
}

/// A client that sends more than a client of this program does.
#[test]
fn bytes_held_for_a_stream_of_creations_are_bounded() {
    const MIB: usize = 1 << 20;
    const HELD: usize = 32 * MIB;
    let gate = Arc::new(terrane_base::sync::Mutex::new(()));
    let raw = Raw::behind(Arc::clone(&gate));
    let held = || -> usize {
        let text = raw.server.metrics_text();
        let line = text.lines().find_map(|line| line.strip_prefix("terrane_service_bytes_in_flight "));
        line.expect("a gauge").parse().expect("a number")
    };
    let content = vec![7; MIB];
    let names: Vec<String> = (0..100).map(|number| format!("db/{number:02}")).collect();
    let parts = (1..).zip(&names).map(|(creation, name)| part(creation, Some((name, MIB as u64)), &content));
    let (closed, clock) = (gate.lock(), Env::real().clock);
    let request = raw.right(stream::iter(parts.collect::<Vec<_>>()));
    let mut client = raw.client.clone();
    let created = raw.runtime.spawn(async move {
        let mut answers = client.create_many(request).await?.into_inner();
        let mut count = 0;
        while answers.message().await?.is_some() {
            count += 1;
        }
        Ok::<u32, Status>(count)
    });
    let is_held = (0..60_000).any(|_| {
        clock.sleep(std::time::Duration::from_millis(1));
        held() >= HELD
    });
    assert!(is_held, "it takes as much as it may hold");
    // As long as it would take to take all.
    for _ in 0..300 {
        assert_eq!(held(), HELD, "nothing further is taken");
        clock.sleep(std::time::Duration::from_millis(1));
    }
    drop(closed);
    let count = raw.runtime.block_on(created).expect("no panic").expect("the call ends as its client asked");
    assert_eq!(count, 100);
}

/// Its calls do not end. Those of other clients are refused, but not what they create.
#[test]
fn a_client_that_has_all_calls_of_creations_keeps_no_creation_of_others_away() {
    let raw = Raw::new();
    let begin = |number: usize| {
        let parts = vec![part(1, Some((&format!("db/{number}"), 1)), b"x")];
        let parts = futures_util::StreamExt::chain(stream::iter(parts), stream::pending());
        let begun = async {
            let mut answers = raw.client.clone().create_many(raw.right(parts)).await?.into_inner();
            answers.message().await.map(|answer| (answers, answer.is_some()))
        };
        raw.runtime.block_on(begun).expect("there is a call for it")
    };
    let all = super::Limits::default().connections_max;
    let held: Vec<_> = (0..all).map(begin).collect();
    assert!(held.iter().all(|(_, is_created)| *is_created));
    let url = format!("grpc://{}", raw.server.address());
    let other = super::GrpcBucket::new(&url, super::GrpcBucketSettings::default(), Env::real());
    let limits = crate::bucket::RetryLimits::default();
    let other = crate::bucket::RetryingBucket::new(Arc::new(other.expect("an address")), limits, Env::real());
    assert_eq!(other.list("db", None).expect("it knows the bucket").len(), all);
    assert_eq!(other.create("db/other", b"x").expect("by a call of its own"), crate::Create::Created);
    let text = raw.server.metrics_text();
    assert!(text.contains("refused_total{reason=\"calls\"} 1\n"), "the other one asked for a call: {text}");
}

#[test]
fn a_stop_ends_a_call_in_the_middle_of_a_creation() {
    let raw = Raw::new();
    let parts = vec![part(1, Some(("db/a", 1)), b"x"), part(2, Some(("db/b", 3)), b"x")];
    // The client says nothing more, and does not end the call.
    let parts = futures_util::StreamExt::chain(stream::iter(parts), stream::pending());
    let mut answers = raw
        .runtime
        .block_on(async { raw.client.clone().create_many(raw.right(parts)).await })
        .expect("the call begins")
        .into_inner();
    let first = raw.runtime.block_on(answers.message()).expect("no error").expect("an answer");
    assert_eq!(first.creation, 1);
    let Raw { bucket, server, runtime, .. } = raw;
    let limit = std::time::Duration::from_secs(60);
    assert!(server.stop(limit), "a stop does not wait for what may never come");
    let end = runtime.block_on(answers.message());
    assert!(end.is_err() || end.is_ok_and(|answer| answer.is_none()), "the call ends");
    assert_eq!(bucket.list("db", None).expect("lists").len(), 1, "a half is not an object");
}

#[test]
fn a_creation_that_cannot_be_made_leaves_the_others_of_its_call() {
    let raw = Raw::new();
    let changed = CreateManyPart { data: Bytes::from_static(b"abd"), ..part(5, Some(("db/e", 3)), b"abc") };
    let parts = vec![
        part(1, Some(("db/a", 3)), b"abc"),
        part(2, Some(("db//b", 4)), b"ab"),
        part(2, None, b"cd"),
        part(3, Some((".terrane/identity", 1)), b"x"),
        part(4, Some(("db/a", 1)), b"x"),
        changed,
        part(6, Some(("db/f", 0)), b""),
        part(7, Some(("db/g", 4)), b"ab"),
        part(7, None, b"cd"),
    ];
    // The checksum of an object in two messages is that of all.
    let mut parts = parts;
    parts[7].head.as_mut().expect("it names its object").crc32c = crc32c::crc32c(b"abcd");
    let (ended, outcome) = raw.create_many(parts);
    outcome.expect("the call ends as its client asked");
    let kinds: Vec<(i32, &str)> = ended.iter().map(|(outcome, kind)| (*outcome, kind.as_str())).collect();
    let invalid = (0, Kind::Invalid.as_str());
    assert_eq!(kinds, [(1, ""), invalid, invalid, (2, ""), (0, Kind::Busy.as_str()), invalid, (1, "")]);
    assert_eq!(raw.bucket.get("db/a", 9).expect("there"), "abc");
    assert_eq!(raw.bucket.get("db/g", 9).expect("there"), "abcd");
    assert_eq!(raw.bucket.list("db", None).expect("lists").len(), 2);
}

#[test]
fn other_calls_beyond_the_limits_are_refused() {
    let raw = Raw::new();
    raw.bucket.create("db/a", b"abc").expect("created");
    let ranges = |ranges: Vec<ByteRange>| ReadRequest { name: "db/a".to_owned(), ranges, tail_bytes: 0 };
    let range = |start, end| ByteRange { start, end };
    refused(raw.read(ranges(vec![range(2, 1)])), "other than");
    refused(raw.read(ranges(vec![range(0, 1); wire::RANGES_MAX + 1])), "other than");
    refused(raw.read(ranges(vec![range(0, wire::READ_BYTES_MAX + 1)])), "other than");
    refused(raw.read(ranges(vec![range(0, u64::MAX), range(0, u64::MAX)])), "other than");
    refused(raw.read(ReadRequest { tail_bytes: 1, ..ranges(vec![range(0, 1)]) }), "other than");
    refused(raw.read(ReadRequest { name: "../a".to_owned(), ..ranges(vec![]) }), "../a");
    let delete = |names: Vec<String>| {
        let call = async { raw.client.clone().delete(raw.right(DeleteRequest { names })).await };
        raw.runtime.block_on(call).map(|_| ())
    };
    refused(delete(vec![]), "0 objects");
    refused(delete(vec!["db/a".to_owned(); wire::NAMES_MAX + 1]), "1001 objects");
    refused(delete(vec![".terrane/identity".to_owned()]), "the server's");
    let list = ListRequest { folder: "db".to_owned(), after: "db//".to_owned() };
    let call = async { raw.client.clone().list(raw.right(list)).await };
    refused(raw.runtime.block_on(call).map(|_| ()), "db//");
    assert_eq!(raw.bucket.get("db/a", 9).expect("is there"), "abc");
}

#[test]
fn another_version_of_the_protocol_is_refused_by_both_numbers() {
    let raw = Raw::new();
    for spoken in ["", "0", "2", "11", "x"] {
        let headers = [(wire::PROTOCOL_HEADER, spoken), (wire::PROGRAM_HEADER, "9.8.7")];
        let call = async { raw.client.clone().hello(raw.request(HelloRequest {}, &headers)).await };
        let outcome = raw.runtime.block_on(call).map(|_| ());
        let status = outcome.clone().expect_err(spoken);
        assert_eq!(status.code(), Code::FailedPrecondition);
        refused(outcome.clone(), &format!("(terrane 9.8.7) speaks version {spoken}"));
        refused(outcome, &format!("{}) version {}", wire::PROGRAM, wire::PROTOCOL));
    }
    let call = async { raw.client.clone().hello(raw.request(HelloRequest {}, &[])).await };
    refused(raw.runtime.block_on(call).map(|_| ()), "version none");
    assert!(raw.server.metrics_text().contains("refused_total{reason=\"version\"}"));
}
