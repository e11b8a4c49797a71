//! Body of the fuzz target for what a client sends behind the gate.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use prost::Message;
use terrane_base::env::Env;
use tonic::{Code, Response, Status, Streaming};

use super::ServerSettings;
use super::limits::Shared;
use super::service::Service;
use crate::bucket::{Bucket, MemoryBucket, names};
use crate::grpc::fuzzing::{block_on, messages, stream_of};
use crate::grpc::messages::create_answer::Outcome;
use crate::grpc::messages::storage_client::StorageClient;
use crate::grpc::messages::storage_server::StorageServer;
use crate::grpc::messages::{
    ByteRange, CreateManyPart, CreatePart, DeleteRequest, ListRequest, ObjectHead, ReadRequest,
};
use crate::grpc::wire;

type Client = StorageClient<StorageServer<Service>>;

const OBJECT: &str = "db/a";
const OBJECT_BYTES_MAX: u64 = 64 << 10;

/// One call: the first byte says which, the rest is its message, or its messages (`messages`).
///
/// # Panics
/// If a call is refused without its kind, creates an object that is not whole, or answers with more than was
/// asked for.
pub fn request(bytes: &[u8]) {
    let Some((call, rest)) = bytes.split_first() else { return };
    let bucket = Arc::new(MemoryBucket::new(Env::real().clock));
    bucket.create(OBJECT, &[7; 3000]).expect("a bucket without faults");
    let mut settings = ServerSettings::new(([127, 0, 0, 1], 0).into());
    settings.limits.object_bytes_max = OBJECT_BYTES_MAX;
    let shared = Arc::new(Shared::new(&settings, Env::real()));
    let service = Service::new(bucket.clone(), [7; wire::IDENTITY_BYTES], shared);
    let client = StorageClient::new(StorageServer::new(service));
    let outcome = match call % 5 {
        0 => block_on(create(client, messages(rest))),
        1 => ReadRequest::decode(rest).map_or(Ok(()), |message| block_on(read(client, message))),
        2 => ListRequest::decode(rest).map_or(Ok(()), |message| block_on(list(client, message))),
        3 => DeleteRequest::decode(rest).map_or(Ok(()), |message| block_on(delete(client, message))),
        _ => block_on(create_many(client, messages(rest))),
    };
    if let Err(status) = outcome {
        // A stream of creations may end in the middle of one.
        let is_cut = status.code() == Code::Cancelled && call % 5 == 4;
        assert!(is_cut || wire::kind(&status).is_some(), "a refusal names its kind: {status:?}");
    }
}

async fn create(mut client: Client, parts: Vec<CreatePart>) -> Result<(), Status> {
    let answer = client.create(stream::iter(parts.clone())).await?.into_inner();
    assert_ne!(answer.outcome(), Outcome::Unspecified, "the answer says what happened");
    let head = parts[0].head.as_ref().expect("a creation without a name is refused");
    let whole: Vec<u8> = parts.iter().flat_map(|part| part.data.iter().copied()).collect();
    assert!(whole.len() as u64 == head.bytes && head.bytes <= OBJECT_BYTES_MAX, "its size was checked");
    assert_eq!(crc32c::crc32c(&whole), head.crc32c, "its checksum was checked");
    assert!(names::check(&head.name).is_ok() && !head.name.starts_with(".terrane/"), "{:?}", head.name);
    Ok(())
}

async fn create_many(mut client: Client, parts: Vec<CreateManyPart>) -> Result<(), Status> {
    let mut answers = client.create_many(stream::iter(parts.clone())).await?.into_inner();
    let mut ended = 0;
    loop {
        let Some(answer) = answers.message().await? else { return Ok(()) };
        ended += 1;
        assert_eq!(answer.creation, ended, "in the order of the creations");
        assert_eq!(answer.outcome() == Outcome::Unspecified, !answer.kind.is_empty(), "one of both");
        let own: Vec<_> = parts.iter().filter(|part| part.creation == ended).collect();
        let head = own[0].head.as_ref().expect("a creation names its object");
        if answer.outcome() != Outcome::Unspecified {
            // A creation ends with its last byte. A message of it that comes later is refused, and its answer
            // may be here by then.
            let mut whole = Vec::new();
            for message in &own {
                if (whole.len() as u64) < head.bytes {
                    whole.extend_from_slice(&message.data);
                }
            }
            assert!(whole.len() as u64 == head.bytes && crc32c::crc32c(&whole) == head.crc32c, "as it says");
            assert!(
                names::check(&head.name).is_ok() && !head.name.starts_with(".terrane/"),
                "{:?}",
                head.name
            );
        }
    }
}

/// The messages of an answer.
async fn drained<T>(answer: Response<Streaming<T>>) -> Result<Vec<T>, Status> {
    let (mut messages, mut stream) = (Vec::new(), answer.into_inner());
    while let Some(message) = stream.message().await? {
        messages.push(message);
    }
    Ok(messages)
}

async fn read(mut client: Client, message: ReadRequest) -> Result<(), Status> {
    let ranges: u64 =
        message.ranges.iter().map(|range| range.end.saturating_sub(range.start)).fold(0, u64::saturating_add);
    let asked = if message.ranges.is_empty() { message.tail_bytes } else { ranges };
    let parts = drained(client.read(message).await?).await?;
    let bytes: u64 = parts.iter().map(|part| part.data.len() as u64).sum();
    assert!(!parts.is_empty() && bytes <= asked, "an answer of {bytes} bytes, and {asked} were asked for");
    for part in &parts {
        assert!(part.bytes_all == bytes && part.data.len() <= wire::PART_BYTES_MAX, "as the protocol says");
        wire::check_part(part).expect("the checksum is right");
    }
    Ok(())
}

async fn list(mut client: Client, message: ListRequest) -> Result<(), Status> {
    let pages = drained(client.list(message).await?).await?;
    assert!(pages.last().is_some_and(|page| page.is_last), "the last page says so");
    assert!(pages.iter().flat_map(|page| &page.objects).all(|object| object.name == OBJECT));
    Ok(())
}

async fn delete(mut client: Client, message: DeleteRequest) -> Result<(), Status> {
    client.delete(message).await.map(drop)
}

/// Corpus of [`request`].
#[must_use]
pub fn request_seeds() -> Vec<(String, Vec<u8>)> {
    let data = Bytes::from_static(b"abcdef");
    let head = ObjectHead { name: "db/b".to_owned(), bytes: 6, crc32c: crc32c::crc32c(&data) };
    let first = CreatePart { head: Some(head.clone()), data: Bytes::new() };
    let part = |data| CreatePart { head: None, data };
    let short = CreatePart { head: Some(ObjectHead { bytes: 7, ..head.clone() }), data: data.clone() };
    let reserved = ObjectHead { name: ".terrane/identity".to_owned(), ..head };
    let reserved = CreatePart { head: Some(reserved), data: data.clone() };
    let create = |parts: &[CreatePart]| [&[0][..], &stream_of(parts)].concat();
    let read = |ranges: &[(u64, u64)], tail_bytes| {
        let ranges = ranges.iter().map(|(start, end)| ByteRange { start: *start, end: *end }).collect();
        let message = ReadRequest { name: OBJECT.to_owned(), ranges, tail_bytes };
        [&[1][..], &message.encode_to_vec()].concat()
    };
    let list = |after: &str| {
        let message = ListRequest { folder: "db".to_owned(), after: after.to_owned() };
        [&[2][..], &message.encode_to_vec()].concat()
    };
    let delete = DeleteRequest { names: vec![OBJECT.to_owned(), "db/none".to_owned()] };
    let of = |creation, name: Option<&str>, data: &'static [u8]| CreateManyPart {
        creation,
        head: name.map(|name| ObjectHead {
            name: name.to_owned(),
            bytes: 6,
            crc32c: crc32c::crc32c(b"abcdef"),
        }),
        data: Bytes::from_static(data),
    };
    let many = |parts: &[CreateManyPart]| [&[4][..], &stream_of(parts)].concat();
    let seeds = [
        ("create", create(&[first, part(data.slice(..2)), part(data.slice(2..))])),
        ("create-short", create(&[short])),
        ("create-reserved", create(&[reserved])),
        ("read", read(&[(0, 10), (2999, 3000), (5, 5)], 0)),
        ("read-beyond", read(&[(0, u64::MAX)], 0)),
        ("tail", read(&[], 100)),
        ("tail-all", read(&[], u64::MAX)),
        ("list", list("")),
        ("list-behind", list(OBJECT)),
        ("delete", [&[3][..], &delete.encode_to_vec()].concat()),
        (
            "create-many",
            many(&[of(1, Some("db/b"), b"ab"), of(1, None, b"cdef"), of(2, Some("db/a"), b"abcdef")]),
        ),
        (
            "create-many-reserved",
            many(&[of(1, Some(".terrane/a"), b"abcdef"), of(2, Some("db/c"), b"abcdef")]),
        ),
        ("create-many-order", many(&[of(2, Some("db/b"), b"abcdef")])),
    ];
    seeds.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}
