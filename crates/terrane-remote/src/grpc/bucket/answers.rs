//! Body of the fuzz target for what a server answers.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use prost::Message;
use terrane_base::Kind;
use terrane_base::env::Env;
use tonic::metadata::AsciiMetadataValue;
use tonic::{Request, Response, Status, Streaming};

use super::many::{CreationStream, exchange};
use super::{Call, Client};
use crate::grpc::fuzzing::{block_on, messages, stream_of};
use crate::grpc::messages::storage_client::StorageClient;
use crate::grpc::messages::storage_server::{Storage, StorageServer};
use crate::grpc::messages::{
    ByteRange, CreateAnswer, CreateManyAnswer, CreateManyPart, CreatePart, DeleteAnswer, DeleteRequest,
    HelloAnswer, HelloRequest, ListPage, ListRequest, Listed, ReadPart, ReadRequest,
};
use crate::grpc::wire;

/// A bit of the first byte: the checksums of the answer are set right.
const REPAIRED: u8 = 0x80;
/// A server that does not know the call of creations.
const OLD: u8 = 7;
/// A server that has as many such calls as it takes.
const BUSY: u8 = 8;
/// Bytes that are asked for.
const ASKED: u64 = 1000;

/// A server that answers with the bytes of an input.
struct Hostile {
    call: u8,
    answer: Bytes,
}

impl Hostile {
    /// The answer, if it is a message.
    fn message<M: Message + Default>(&self) -> Result<Response<M>, Status> {
        let message = M::decode(self.answer.clone());
        message.map(Response::new).map_err(|why| Status::internal(why.to_string()))
    }
}

type Answers<M> = Pin<Box<dyn Stream<Item = Result<M, Status>> + Send>>;

fn answers<M: Send + 'static>(messages: Vec<M>) -> Response<Answers<M>> {
    Response::new(Box::pin(stream::iter(messages.into_iter().map(Ok))))
}

#[tonic::async_trait]
impl Storage for Hostile {
    async fn hello(&self, _: Request<HelloRequest>) -> Result<Response<HelloAnswer>, Status> {
        if self.call == 0 { self.message() } else { Ok(Response::new(right_hello())) }
    }

    async fn create(&self, _: Request<Streaming<CreatePart>>) -> Result<Response<CreateAnswer>, Status> {
        self.message()
    }

    type CreateManyStream = Answers<CreateManyAnswer>;

    async fn create_many(
        &self,
        _: Request<Streaming<CreateManyPart>>,
    ) -> Result<Response<Answers<CreateManyAnswer>>, Status> {
        if self.call == OLD {
            return Err(Status::unimplemented("what is that?"));
        }
        if self.call == BUSY {
            return Err(wire::refusal(
                tonic::Code::ResourceExhausted,
                Kind::Busy,
                "there are as many as can be",
            ));
        }
        Ok(answers(messages(&self.answer)))
    }

    type ReadStream = Answers<ReadPart>;

    async fn read(&self, _: Request<ReadRequest>) -> Result<Response<Answers<ReadPart>>, Status> {
        let mut parts: Vec<ReadPart> = messages(&self.answer);
        for part in parts.iter_mut().filter(|_| self.call & REPAIRED != 0) {
            part.crc32c = crc32c::crc32c(&part.data);
        }
        Ok(answers(parts))
    }

    type ListStream = Answers<ListPage>;

    async fn list(&self, _: Request<ListRequest>) -> Result<Response<Answers<ListPage>>, Status> {
        Ok(answers(messages(&self.answer)))
    }

    async fn delete(&self, _: Request<DeleteRequest>) -> Result<Response<DeleteAnswer>, Status> {
        self.message()
    }
}

fn right_hello() -> HelloAnswer {
    HelloAnswer {
        program: "9.8.7".to_owned(),
        identity: Bytes::from_static(&[7; wire::IDENTITY_BYTES]),
        object_bytes_max: 1 << 20,
        streamed_bytes_max: 1 << 20,
        protocol: wire::PROTOCOL,
    }
}

/// A client of a server that answers so, and a call.
fn client_of(call: u8, answer: &[u8]) -> (Client<StorageServer<Hostile>>, Call) {
    let hostile = Hostile { call, answer: Bytes::copy_from_slice(answer) };
    let service = StorageClient::new(StorageServer::new(hostile));
    let client = Client::new("grpc://host:1", service, None, Env::real());
    (client, Call { what: "try", name: "db".to_owned(), limit: Duration::from_secs(3600) })
}

/// One answer: the first byte says of which call, the rest is its message, or its messages (`messages`).
///
/// # Panics
/// If the client takes more bytes than it asked for, or a listed name that it did not ask for, or if its
/// error says that a call had no effect although the answer does not.
pub fn answer(bytes: &[u8]) {
    let Some((call, rest)) = bytes.split_first() else { return };
    let (client, what) = client_of(*call, rest);
    let outcome = block_on(async {
        match call & !REPAIRED {
            0 => {
                client.known(&what).await.map(|known| assert_eq!(known.identity.as_encoded_bytes().len(), 32))
            }
            1 => client.create(&what, vec![Bytes::from_static(b"x")], 1).await.map(drop),
            2 => {
                let pieces = vec![ByteRange { start: 5, end: 5 + ASKED }];
                let read = client.read_ranges(&what, pieces).await;
                read.map(|bytes| assert_eq!(bytes.len() as u64, ASKED, "all that was asked for"))
            }
            3 => {
                let read = client.read_tail(&what, ASKED).await;
                read.map(|bytes| assert!(bytes.len() as u64 <= ASKED, "at most the requested bytes"))
            }
            4 => client.list(&what, "db/b".to_owned()).await.map(|listed| {
                let is_right = |name: &str| name.starts_with("db/") && name > "db/b";
                assert!(listed.iter().all(|object| is_right(&object.name)), "{listed:?}");
            }),
            5 => client.delete(&what, &["db/a".to_owned()]).await,
            _ => streamed(&client).await,
        }
    });
    if let Err(error) = outcome {
        // The first answer names the version of the protocol, before anything was asked.
        let is_refused = [(0, Kind::Invalid), (BUSY, Kind::Busy)].contains(&(*call, error.kind()));
        assert!(error.kind() == Kind::Io || is_refused, "{error}");
    }
}

/// Three creations by one call: what has no answer of its own has an outcome that is unknown.
async fn streamed(client: &Client<StorageServer<Hostile>>) -> terrane_base::Result<()> {
    let (creations, parts) = CreationStream::new();
    let push = |name: &str| creations.push(name, &[Bytes::from_static(b"x")], 1).expect("there is room");
    let begun = ["db/a", "db/b", "db/c"].map(push);
    let (kind, text) = exchange(client, AsciiMetadataValue::from_static("07"), parts, &creations).await;
    creations.end(kind, &text);
    assert!(creations.push("db/d", &[Bytes::from_static(b"x")], 1).is_none(), "the call has ended");
    for answered in begun {
        // Only a kind that the server names counts.
        drop(answered.await.expect("each creation has an outcome"));
    }
    Err(terrane_base::Error::new(kind, text))
}

/// Corpus of [`answer`].
#[must_use]
pub fn answer_seeds() -> Vec<(String, Vec<u8>)> {
    let with = |call: u8, bytes: Vec<u8>| [&[call][..], &bytes].concat();
    let object = |name: &str| Listed { name: name.to_owned(), bytes: 3, modified_micros: 5 };
    let page = |names: &[&str], is_last| ListPage {
        objects: names.iter().map(|name| object(name)).collect(),
        is_last,
    };
    let parts = |lens: &[usize], all: u64| -> Vec<u8> {
        let part = |len: &usize| wire::read_part(Bytes::from(vec![7; *len]), all);
        stream_of(&lens.iter().map(part).collect::<Vec<_>>())
    };
    let many = |creation, outcome, kind: &str| CreateManyAnswer {
        creation,
        outcome,
        kind: kind.to_owned(),
        text: String::new(),
        is_crowded: creation == 2,
    };
    let later = HelloAnswer { protocol: wire::PROTOCOL + 1, ..right_hello() };
    let seeds = [
        ("hello", with(0, right_hello().encode_to_vec())),
        ("hello-later", with(0, later.encode_to_vec())),
        ("create", with(1, CreateAnswer { outcome: 1 }.encode_to_vec())),
        ("create-none", with(1, CreateAnswer { outcome: 0 }.encode_to_vec())),
        ("read", with(2, parts(&[400, 600], ASKED))),
        ("read-cut", with(2 | REPAIRED, parts(&[400], ASKED))),
        ("read-more", with(2 | REPAIRED, parts(&[400, 601], ASKED))),
        ("tail", with(3 | REPAIRED, parts(&[10], 10))),
        ("tail-empty", with(3, parts(&[0], 0))),
        ("list", with(4, stream_of(&[page(&["db/c", "db/d"], false), page(&["db/e"], true)]))),
        ("list-back", with(4, stream_of(&[page(&["db/c", "db/c"], true)]))),
        ("list-cut", with(4, stream_of(&[page(&["db/c"], false)]))),
        ("create-many", with(6, stream_of(&[many(1, 1, ""), many(2, 2, ""), many(3, 0, "busy")]))),
        ("create-many-other", with(6, stream_of(&[many(1, 1, ""), many(3, 1, "")]))),
        ("create-many-both", with(6, stream_of(&[many(1, 1, "io")]))),
        ("delete", with(5, DeleteAnswer {}.encode_to_vec())),
    ];
    seeds.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_refuses_the_call_of_creations_gets_one_for_each() {
        for (call, is_streamed, kind) in
            [(6, true, Kind::Io), (OLD, false, Kind::Io), (BUSY, false, Kind::Busy)]
        {
            let (client, what) = client_of(call, &[]);
            block_on(client.known(&what)).expect("it says that it knows the call");
            assert!(client.streaming(1).is_some(), "as it says");
            let error = block_on(streamed(&client)).expect_err("nothing was answered");
            assert_eq!(error.kind(), kind, "it is tried again: {error}");
            assert_eq!(client.streaming(1).is_some(), is_streamed, "server {call}");
        }
    }

    #[test]
    fn an_answer_that_ends_early_is_refused() {
        let part = |len: usize| wire::read_part(Bytes::from(vec![7; len]), 500);
        for (parts, is_whole) in
            [(vec![part(400)], false), (vec![part(400), part(100)], true), (vec![], false)]
        {
            let (client, what) = client_of(3, &stream_of(&parts));
            let read = block_on(client.read_tail(&what, ASKED));
            assert_eq!(
                read.map(|bytes| bytes.len()).map_err(|error| error.kind()),
                if is_whole { Ok(500) } else { Err(Kind::Io) }
            );
        }
    }
}
