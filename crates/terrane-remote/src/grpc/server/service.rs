//! The calls of the protocol, on a bucket.

use std::ops::Range;
use std::sync::Arc;
use std::vec::IntoIter;

use bytes::{Bytes, BytesMut};
use terrane_base::{Error, Kind, Result as Outcome};
use tokio::sync::OwnedSemaphorePermit;
use tonic::{Code, Request, Response, Status, Streaming};

use super::counts::{Call, Operation};
use super::identity;
use super::limits::Shared;
use super::many;
use super::sending::{Messages, send};
use crate::bucket::{Bucket, Create, names};
use crate::grpc::messages::create_answer::Outcome as Creation;
use crate::grpc::messages::storage_server::Storage;
use crate::grpc::messages::{
    CreateAnswer, CreateManyAnswer, CreateManyPart, CreatePart, DeleteAnswer, DeleteRequest, HelloAnswer,
    HelloRequest, ListPage, ListRequest, Listed, ObjectHead, ReadPart, ReadRequest,
};
use crate::grpc::wire::{
    self, IDENTITY_BYTES, NAMES_MAX, PART_BYTES, PART_BYTES_MAX, RANGES_MAX, READ_BYTES_MAX,
};

/// Bytes that are read of a tail before its length is known, where there is no room for more.
const TAIL_BYTES_FIRST: u64 = 1 << 20;

#[derive(Clone)]
pub(super) struct Service {
    pub(super) bucket: Arc<dyn Bucket>,
    identity: [u8; IDENTITY_BYTES],
    pub(super) shared: Arc<Shared>,
}

impl Service {
    pub(super) fn new(
        bucket: Arc<dyn Bucket>,
        identity: [u8; IDENTITY_BYTES],
        shared: Arc<Shared>,
    ) -> Service {
        Service { bucket, identity, shared }
    }

    /// Runs a call of the bucket on a thread that may block. It keeps `held` to its end, also if the client
    /// leaves.
    async fn on_bucket<T: Send + 'static>(
        &self,
        held: impl Send + 'static,
        call: impl FnOnce(&dyn Bucket) -> Outcome<T> + Send + 'static,
    ) -> Result<T, Status> {
        let bucket = Arc::clone(&self.bucket);
        let run = move || {
            let outcome = call(&*bucket);
            drop(held);
            outcome
        };
        match tokio::task::spawn_blocking(run).await {
            Ok(outcome) => outcome.map_err(|error| wire::status(&error)),
            Err(_) => Err(wire::refusal(Code::Internal, Kind::Io, "the call of the bucket did not end")),
        }
    }

    async fn create_within(
        &self,
        call: &mut Call,
        mut parts: Streaming<CreatePart>,
    ) -> Result<CreateAnswer, Status> {
        let first = next(&mut parts).await?.ok_or_else(|| invalid("a creation without a message"))?;
        let head =
            first.head.ok_or_else(|| invalid("a creation whose first message does not name its object"))?;
        call.object.clone_from(&head.name);
        check_own(&head.name)?;
        let limit = self.shared.limits.object_bytes_max;
        if head.bytes == 0 || head.bytes > limit {
            return Err(invalid(format!("an object of {} bytes: it may have 1 to {limit}", head.bytes)));
        }
        let room = self.shared.room(head.bytes).await?;
        let mut body = Body::default();
        body.add(&head, first.data)?;
        while let Some(part) = next(&mut parts).await? {
            if part.head.is_some() || part.data.is_empty() {
                return Err(invalid("a further message of a creation without bytes, or with a name"));
            }
            body.add(&head, part.data)?;
        }
        call.bytes = body.bytes;
        let data = body.whole(&head)?;
        let name = head.name;
        let held = (room, call.permit());
        let creation = self.on_bucket(held, move |bucket| bucket.begin_create(&name, data).wait());
        let created =
            if terrane_base::planted!(AcknowledgeUncreated) { Create::Created } else { creation.await? };
        let outcome = match created {
            Create::Created => Creation::Created,
            Create::AlreadyExists => Creation::AlreadyExists,
        };
        Ok(CreateAnswer { outcome: outcome.into() })
    }

    async fn ranges(
        &self,
        call: &Call,
        name: String,
        ranges: Vec<Range<u64>>,
    ) -> Result<(Vec<Bytes>, OwnedSemaphorePermit), Status> {
        let bytes = ranges.iter().map(|range| range.end - range.start).sum();
        let room = self.shared.room(bytes).await?;
        let permit = call.permit();
        let read = move |bucket: &dyn Bucket| {
            let count = ranges.len();
            let read = bucket.begin_get_ranges(&name, ranges).wait()?;
            debug_assert_eq!(read.len(), count, "one result for each range");
            Ok((read, room))
        };
        self.on_bucket(permit, read).await
    }

    /// The last bytes of an object. How many there are is unknown: if there is no room for as many as may be,
    /// room for few is waited for, and a longer tail is read again as soon as there is room for it.
    async fn tail(
        &self,
        call: &Call,
        name: String,
        bytes_max: u64,
    ) -> Result<(Vec<Bytes>, OwnedSemaphorePermit), Status> {
        let limit = self.shared.limits.object_bytes_max;
        // One byte more shows an object of which a part would be taken for the whole.
        let most = bytes_max.min(limit + 1);
        let few = most.min(TAIL_BYTES_FIRST);
        let (asked, room) = match self.shared.room_now(most) {
            Some(room) => (most, room),
            None => (few, self.shared.room(few).await?),
        };
        let (mut bytes, mut room) = self.tail_within(call, name.clone(), asked, room).await?;
        if bytes.len() as u64 == asked && asked < most {
            drop((bytes, room));
            room = self.shared.room(most).await?;
            (bytes, room) = self.tail_within(call, name, most, room).await?;
        }
        if bytes.len() as u64 > limit {
            return Err(invalid(format!("the object has more than the {limit} bytes that the server reads")));
        }
        self.shared.shrink(&mut room, bytes.len() as u64);
        Ok((vec![bytes], room))
    }

    async fn tail_within(
        &self,
        call: &Call,
        name: String,
        bytes_max: u64,
        room: OwnedSemaphorePermit,
    ) -> Result<(Bytes, OwnedSemaphorePermit), Status> {
        let read = move |bucket: &dyn Bucket| {
            let tail = bucket.get_tail(&name, bytes_max)?;
            debug_assert!(tail.len() as u64 <= bytes_max, "at most the room that is left");
            Ok((tail, room))
        };
        self.on_bucket(call.permit(), read).await
    }

    async fn read_within(
        &self,
        call: &mut Call,
        request: ReadRequest,
    ) -> Result<(Vec<Bytes>, OwnedSemaphorePermit), Status> {
        call.object.clone_from(&request.name);
        names::check(&request.name).map_err(|error| wire::status(&error))?;
        if request.ranges.is_empty() {
            return self.tail(call, request.name, request.tail_bytes).await;
        }
        let is_right = |range: &Range<u64>| range.start <= range.end;
        let ranges: Vec<Range<u64>> = request.ranges.iter().map(|range| range.start..range.end).collect();
        let bytes =
            ranges.iter().fold(0u64, |all, range| all.saturating_add(range.end.saturating_sub(range.start)));
        let is_within = ranges.len() <= RANGES_MAX && bytes <= READ_BYTES_MAX && request.tail_bytes == 0;
        if !is_within || !ranges.iter().all(is_right) {
            let text =
                format!("a read of other than 1 to {RANGES_MAX} ranges of {READ_BYTES_MAX} bytes in all");
            return Err(invalid(text));
        }
        self.ranges(call, request.name, ranges).await
    }

    async fn list_within(
        &self,
        call: &mut Call,
        request: ListRequest,
    ) -> Result<(Pages, OwnedSemaphorePermit), Status> {
        call.object.clone_from(&request.folder);
        let room = self.shared.room_for_list().await?;
        let permit = call.permit();
        let list = move |bucket: &dyn Bucket| {
            let after = Some(request.after.as_str()).filter(|after| !after.is_empty());
            after.map_or(Ok(()), names::check)?;
            Ok((bucket.list(&request.folder, after)?, room))
        };
        let (listed, room) = self.on_bucket(permit, list).await?;
        Ok((Pages { rest: listed.into_iter(), is_ended: false }, room))
    }

    async fn delete_within(&self, call: &mut Call, names: Vec<String>) -> Result<DeleteAnswer, Status> {
        if names.is_empty() || names.len() > NAMES_MAX {
            return Err(invalid(format!(
                "a deletion of {} objects: 1 to {NAMES_MAX} are possible",
                names.len()
            )));
        }
        call.object.clone_from(&names[0]);
        names.iter().try_for_each(|name| check_own(name))?;
        self.on_bucket(call.permit(), move |bucket| bucket.delete(&names)).await?;
        Ok(DeleteAnswer {})
    }
}

#[tonic::async_trait]
impl Storage for Service {
    async fn hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloAnswer>, Status> {
        let call = self.shared.begin(Operation::Hello, &request)?;
        let streamed = if self.bucket.syncs_groups() { many::OBJECT_BYTES_MAX } else { 0 };
        let answer = HelloAnswer {
            program: wire::PROGRAM.to_owned(),
            identity: Bytes::copy_from_slice(&self.identity),
            object_bytes_max: self.shared.limits.object_bytes_max,
            protocol: wire::PROTOCOL,
            streamed_bytes_max: streamed.min(self.shared.limits.object_bytes_max),
        };
        call.end(Ok(Response::new(answer)))
    }

    async fn create(
        &self,
        request: Request<Streaming<CreatePart>>,
    ) -> Result<Response<CreateAnswer>, Status> {
        let mut call = self.shared.begin(Operation::Create, &request)?;
        let created = self.create_within(&mut call, request.into_inner()).await;
        call.end(created).map(Response::new)
    }

    type CreateManyStream = Messages<CreateManyAnswer>;

    async fn create_many(
        &self,
        request: Request<Streaming<CreateManyPart>>,
    ) -> Result<Response<Messages<CreateManyAnswer>>, Status> {
        let call = self.shared.begin(Operation::CreateMany, &request)?;
        Ok(Response::new(many::begin(self.clone(), call, request.into_inner())))
    }

    type ReadStream = Messages<ReadPart>;

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Messages<ReadPart>>, Status> {
        let mut call = self.shared.begin(Operation::Read, &request)?;
        let (bytes, room) = match self.read_within(&mut call, request.into_inner()).await {
            Ok(read) => read,
            Err(status) => return call.end(Err(status)),
        };
        let all = bytes.iter().map(|bytes| bytes.len() as u64).sum();
        call.bytes = all;
        // An answer without a byte has a message, too, or it could not be distinguished from one that was
        // cut.
        let empty = (all == 0).then(|| wire::read_part(Bytes::new(), 0));
        let parts = bytes.into_iter().flat_map(|bytes| wire::pieces(bytes, PART_BYTES));
        let parts = parts.map(move |piece| wire::read_part(piece, all)).chain(empty);
        Ok(Response::new(send(call, parts, room)))
    }

    type ListStream = Messages<ListPage>;

    async fn list(&self, request: Request<ListRequest>) -> Result<Response<Messages<ListPage>>, Status> {
        let mut call = self.shared.begin(Operation::List, &request)?;
        match self.list_within(&mut call, request.into_inner()).await {
            Ok((pages, room)) => Ok(Response::new(send(call, pages, room))),
            Err(status) => call.end(Err(status)),
        }
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Result<Response<DeleteAnswer>, Status> {
        let mut call = self.shared.begin(Operation::Delete, &request)?;
        let deleted = self.delete_within(&mut call, request.into_inner().names).await;
        call.end(deleted).map(Response::new)
    }
}

/// The next message of a creation. A stream that ends otherwise than by its end creates nothing.
pub(super) async fn next<T>(parts: &mut Streaming<T>) -> Result<Option<T>, Status> {
    parts.message().await.map_err(|status| match status.code() {
        Code::OutOfRange => invalid(format!("a message that is too long: {}", status.message())),
        _ => status,
    })
}

/// The bytes of an object that is received, in blocks of their own: a message of few bytes may keep a long
/// buffer.
#[derive(Default)]
pub(super) struct Body {
    full: Vec<Bytes>,
    last: BytesMut,
    pub(super) bytes: u64,
    crc32c: u32,
}

impl Body {
    pub(super) fn add(&mut self, head: &ObjectHead, data: Bytes) -> Result<(), Status> {
        self.bytes += data.len() as u64;
        if data.len() > PART_BYTES_MAX || self.bytes > head.bytes {
            return Err(invalid(format!(
                "a creation of {} bytes has more, or a message of more than {PART_BYTES_MAX}",
                head.bytes
            )));
        }
        self.crc32c = crc32c::crc32c_append(self.crc32c, &data);
        if self.last.len() + data.len() > PART_BYTES_MAX {
            self.full.push(self.last.split().freeze());
        }
        if data.len() >= PART_BYTES_MAX / 2 {
            self.full.push(self.last.split().freeze());
            self.full.push(data);
        } else {
            self.last.extend_from_slice(&data);
        }
        debug_assert!(self.last.len() <= PART_BYTES_MAX, "the bytes of an unfinished block are bounded");
        Ok(())
    }

    pub(super) fn whole(mut self, head: &ObjectHead) -> Result<Vec<Bytes>, Status> {
        if self.bytes != head.bytes && !terrane_base::planted!(AcceptShortObject) {
            return Err(invalid(format!("a creation of {} bytes ended after {}", head.bytes, self.bytes)));
        }
        if self.crc32c != head.crc32c {
            let text = "the checksum of the object is wrong: its bytes were changed between client and server; try again";
            return Err(wire::refusal(Code::Aborted, Kind::Busy, text));
        }
        self.full.push(self.last.freeze());
        self.full.retain(|block| !block.is_empty());
        let bytes: u64 = self.full.iter().map(|block| block.len() as u64).sum();
        assert_eq!(bytes, head.bytes, "the blocks are the object");
        Ok(self.full)
    }
}

/// The pages of a list. The last one says so, and there is always one.
struct Pages {
    rest: IntoIter<crate::Listed>,
    is_ended: bool,
}

impl Iterator for Pages {
    type Item = ListPage;

    fn next(&mut self) -> Option<ListPage> {
        if self.is_ended {
            return None;
        }
        let objects = self.rest.by_ref().take(NAMES_MAX).map(|object| Listed {
            name: object.name,
            bytes: object.bytes,
            modified_micros: u64::try_from(object.modified.as_micros()).unwrap_or(u64::MAX),
        });
        let objects: Vec<Listed> = objects.collect();
        let objects_len = objects.len();
        self.is_ended = self.rest.len() == 0;
        debug_assert!(self.is_ended || objects_len == NAMES_MAX, "only the last page is short");
        Some(ListPage { objects, is_last: self.is_ended })
    }
}

pub(super) fn invalid(text: impl Into<String>) -> Status {
    wire::refusal(Code::InvalidArgument, Kind::Invalid, text)
}

/// Checks the name of an object that a client creates or deletes.
pub(super) fn check_own(name: &str) -> Result<(), Status> {
    let checked = names::check(name).and_then(|()| {
        if !identity::is_reserved(name) {
            return Ok(());
        }
        Err(Error::invalid(format!("object name {name:?}: the folder {} is the server's", identity::FOLDER)))
    });
    checked.map_err(|error| wire::status(&error))
}
