//! Creations of one call: objects one after the other, as long as the client likes.
//!
//! One task receives whole objects, another one gives them to the bucket: objects that came while the bucket
//! worked go to it together, begun in the order of the creations, so that a bucket which syncs groups syncs
//! once. Answers go in that order. The bytes that the call holds are bounded, and if its client does not take
//! them in time the call ends. A creation that cannot be made has its error in its answer; an order of
//! messages that the protocol does not allow ends the call.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use terrane_base::Kind;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tonic::{Status, Streaming};

use super::counts::{Call, Operation};
use super::sending::Messages;
use super::service::{Body, Service, check_own, invalid, next};
use crate::Create;
use crate::bucket::names;
use crate::grpc::messages::create_answer::Outcome;
use crate::grpc::messages::{CreateManyAnswer, CreateManyPart, ObjectHead};
use crate::grpc::wire::{self, PART_BYTES_MAX};

/// Most bytes of an object: longer ones have calls of their own, so that short ones do not wait for them.
pub(super) const OBJECT_BYTES_MAX: u64 = 8 << 20;
/// Most bytes of objects that one call holds.
const CALL_BYTES_MAX: usize = 32 << 20;
/// Most objects that wait for the bucket, and most that go to it together.
const OBJECTS_MAX: usize = 64;

type Answers = mpsc::Sender<Result<CreateManyAnswer, Status>>;

/// A creation that was received.
struct Received {
    creation: u64,
    name: String,
    bytes: u64,
    /// Its bytes, or why it is not made.
    data: Result<Vec<Bytes>, Status>,
    came: Duration,
    _room: Option<Room>,
}

type Room = (OwnedSemaphorePermit, OwnedSemaphorePermit);

/// Begins a call; returns its answers.
pub(super) fn begin(
    service: Service,
    call: Call,
    parts: Streaming<CreateManyPart>,
) -> Messages<CreateManyAnswer> {
    let (answers, receiver) = mpsc::channel(OBJECTS_MAX);
    tokio::spawn(run(service, call, parts, answers));
    Box::pin(stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|answer| (answer, receiver))
    }))
}

async fn run(service: Service, call: Call, parts: Streaming<CreateManyPart>, answers: Answers) {
    let (sender, creations) = mpsc::channel(OBJECTS_MAX);
    let receiving = Receiving {
        service: service.clone(),
        parts,
        creations: sender,
        bytes: Arc::new(Semaphore::new(CALL_BYTES_MAX)),
        last: 0,
    };
    let (received, created) = tokio::join!(receiving.run(), create(&service, &call, creations, &answers));
    let ended = received.and(created);
    if let Err(status) = &ended {
        // The client may have left, or read nothing.
        drop(answers.send_timeout(Err(status.clone()), service.shared.limits.call_time_max).await);
    }
    drop(call.end(ended));
}

/// The half that receives.
struct Receiving {
    service: Service,
    parts: Streaming<CreateManyPart>,
    creations: mpsc::Sender<Received>,
    bytes: Arc<Semaphore>,
    /// The number of the last creation.
    last: u64,
}

impl Receiving {
    /// Receives until the client or the server ends.
    async fn run(mut self) -> Result<(), Status> {
        let mut ending = self.service.shared.ending.subscribe();
        let limit = self.service.shared.limits.call_time_max;
        loop {
            let first = tokio::select! {
                first = first_of(&mut self.parts) => first?,
                // The client begins another call when it needs one.
                () = tokio::time::sleep(limit) => None,
                _ = ending.wait_for(|is_ending| *is_ending) => None,
                // The other half has ended.
                () = self.creations.closed() => None,
            };
            let Some(first) = first else { return Ok(()) };
            let creations = self.creations.clone();
            let received = tokio::select! {
                received = self.receive(first) => received?,
                // What stops in the middle of an object would hold room for ever.
                () = tokio::time::sleep(limit) => {
                    return Err(Status::deadline_exceeded("a creation did not come in time"));
                }
                // What has no answer the client tries again.
                _ = ending.wait_for(|is_ending| *is_ending) => return Ok(()),
                () = creations.closed() => return Ok(()),
            };
            if creations.send(received).await.is_err() {
                return Ok(());
            }
        }
    }

    /// The creation that begins with a message.
    async fn receive(&mut self, first: CreateManyPart) -> Result<Received, Status> {
        let creation = first.creation;
        if creation != self.last + 1 {
            return Err(invalid(format!("creation {creation} behind creation {}", self.last)));
        }
        self.last = creation;
        let named = first.head.as_ref().map_or(0, |head| head.name.len());
        if named > names::NAME_BYTES_MAX {
            return Err(invalid(format!(
                "a name of {named} bytes: at most {} are possible",
                names::NAME_BYTES_MAX
            )));
        }
        let head =
            first.head.ok_or_else(|| invalid("a creation whose first message does not name its object"))?;
        let came = self.service.shared.env.clock.now();
        let (data, room) = match check(&head, self.service.shared.limits.object_bytes_max) {
            Ok(()) => {
                let room = self.room(head.bytes).await?;
                (self.body(&head, first.data).await?, Some(room))
            }
            // Its bytes are passed over.
            Err(status) => {
                self.pass_over(&head, first.data.len() as u64).await?;
                (Err(status), None)
            }
        };
        Ok(Received { creation, name: head.name, bytes: head.bytes, data, came, _room: room })
    }

    async fn room(&self, bytes: u64) -> Result<Room, Status> {
        let bytes_own = u32::try_from(bytes).unwrap_or(u32::MAX).min(CALL_BYTES_MAX as u32);
        let own = Arc::clone(&self.bytes).acquire_many_owned(bytes_own).await;
        let own = own.map_err(|_| Status::internal("a semaphore that is never closed"))?;
        Ok((own, self.service.shared.room(bytes).await?))
    }

    /// The next message of the creation that was begun.
    async fn further(&mut self) -> Result<Bytes, Status> {
        let part = next(&mut self.parts).await?;
        let part = part.ok_or_else(|| Status::cancelled("the client ended in the middle of an object"))?;
        let is_further = part.creation == self.last && part.head.is_none() && !part.data.is_empty();
        if !is_further || part.data.len() > PART_BYTES_MAX {
            return Err(invalid(
                "a further message of a creation without bytes, with a name, or of another one",
            ));
        }
        Ok(part.data)
    }

    /// The bytes of an object. The inner error is its own; the outer one ends the call.
    async fn body(&mut self, head: &ObjectHead, first: Bytes) -> Result<Result<Vec<Bytes>, Status>, Status> {
        let mut body = Body::default();
        body.add(head, first)?;
        while body.bytes < head.bytes {
            let data = self.further().await?;
            body.add(head, data)?;
        }
        Ok(body.whole(head))
    }

    async fn pass_over(&mut self, head: &ObjectHead, first: u64) -> Result<(), Status> {
        let mut passed = first;
        while passed < head.bytes {
            passed += self.further().await?.len() as u64;
        }
        if passed == head.bytes {
            Ok(())
        } else {
            Err(invalid("a creation has more bytes than its header announces"))
        }
    }
}

/// The first message of a creation; `None` if the client ended the call, or left: what it sent has its
/// answers, or fails at them.
async fn first_of(parts: &mut Streaming<CreateManyPart>) -> Result<Option<CreateManyPart>, Status> {
    match next(parts).await {
        // An error of the connection has one below it; those of messages have none.
        Err(status) if std::error::Error::source(&status).is_some() => Ok(None),
        first => first,
    }
}

/// Checks what a creation says.
fn check(head: &ObjectHead, object_bytes_max: u64) -> Result<(), Status> {
    check_own(&head.name)?;
    let limit = OBJECT_BYTES_MAX.min(object_bytes_max);
    if head.bytes == 0 || head.bytes > limit {
        return Err(invalid(format!("an object of {} bytes: here it may have 1 to {limit}", head.bytes)));
    }
    Ok(())
}

/// The half that creates, until nothing more is received.
async fn create(
    service: &Service,
    call: &Call,
    mut creations: mpsc::Receiver<Received>,
    answers: &Answers,
) -> Result<(), Status> {
    let limit = service.shared.limits.call_time_max;
    let mut batch = Vec::new();
    while creations.recv_many(&mut batch, OBJECTS_MAX).await > 0 {
        let (bucket, taken, permit) =
            (Arc::clone(&service.bucket), std::mem::take(&mut batch), call.permit());
        let run = move || {
            let created = create_all(&*bucket, taken);
            drop(permit);
            created
        };
        let ended = tokio::task::spawn_blocking(run).await;
        let ended = ended.map_err(|_| Status::internal("the call of the bucket did not end"))?;
        let is_crowded = service.bucket.is_crowded();
        for Ended { creation, name, bytes, came, outcome } in ended {
            let answer = answer(creation, &outcome, is_crowded);
            let text = outcome.as_ref().map_or_else(|status| status.message(), |_| "");
            let kind = outcome.as_ref().map_or_else(wire::kind, |_| None).map_or("ok", Kind::as_str);
            call.note(Operation::Create, (&name, bytes), came, (kind, text));
            if answers.send_timeout(Ok(answer), limit).await.is_err() {
                return Err(Status::deadline_exceeded("the client left, or took no answer"));
            }
        }
    }
    Ok(())
}

/// A creation that has its outcome.
struct Ended {
    creation: u64,
    name: String,
    bytes: u64,
    came: Duration,
    outcome: Result<Create, Status>,
}

/// Begins all creations, then waits for all.
fn create_all(bucket: &dyn crate::Bucket, creations: Vec<Received>) -> Vec<Ended> {
    let begin = |received: Received| {
        let Received { creation, name, bytes, data, came, _room } = received;
        let pending = data.map(|data| bucket.begin_create(&name, data));
        (Ended { creation, name, bytes, came, outcome: Ok(Create::Created) }, pending, _room)
    };
    let begun: Vec<_> = creations.into_iter().map(begin).collect();
    let end = |(ended, pending, room): (Ended, Result<crate::Pending<Create>, Status>, Option<Room>)| {
        let outcome = pending.and_then(|pending| {
            if terrane_base::planted!(AcknowledgeUncreated) {
                return Ok(Create::Created);
            }
            pending.wait().map_err(|error| wire::status(&error))
        });
        drop(room);
        Ended { outcome, ..ended }
    };
    begun.into_iter().map(end).collect()
}

fn answer(creation: u64, outcome: &Result<Create, Status>, is_crowded: bool) -> CreateManyAnswer {
    let (created, kind, text) = match outcome {
        Ok(Create::Created) => (Outcome::Created, "", ""),
        Ok(Create::AlreadyExists) => (Outcome::AlreadyExists, "", ""),
        Err(status) => {
            // A status without a kind says nothing about what happened.
            let kind = wire::kind(status).unwrap_or(Kind::Io);
            (Outcome::Unspecified, kind.as_str(), status.message())
        }
    };
    debug_assert_eq!(kind.is_empty(), outcome.is_ok(), "an error has a kind");
    CreateManyAnswer {
        creation,
        outcome: created.into(),
        kind: kind.to_owned(),
        text: text.to_owned(),
        is_crowded,
    }
}
