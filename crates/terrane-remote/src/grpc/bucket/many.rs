//! Creations by one call that lasts: for objects that are many and small, a message each instead of a call.
//!
//! The call is begun by the first creation, and again by the first one after it broke. Creations go in the
//! order in which they were begun, and have their answers in that order. The creations under way are bounded:
//! a creation beyond that, or of a long object, has a call of its own. When the call ends, the outcomes of
//! creations without an answer are unknown; a creation whose time is over ends the call, since no later
//! answer would come either.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::Ordering;
use terrane_base::{Error, Kind, Result};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, oneshot};
use tonic::Code;

use super::{Call, Client, Known};
use crate::bucket::{Create, names, tasks};
use crate::grpc::messages::create_answer::Outcome;
use crate::grpc::messages::{CreateManyAnswer, CreateManyPart, ObjectHead};
use crate::grpc::wire::{self, Transport};

/// Most creations under way.
const CREATIONS_MAX: usize = 32;
/// Most bytes of objects under way.
const BYTES_MAX: u64 = 32 << 20;

/// How long creations have calls of their own behind a refusal: by a server that does not know the call, and
/// by one that has too many.
const OLDER_TIME: Duration = Duration::from_secs(300);
const BUSY_TIME: Duration = Duration::from_secs(5);

/// The content of an answer: the outcome, or the kind and the text of an error.
type Answered = std::result::Result<Create, (Kind, String)>;

/// The call that lasts, if it was begun.
#[derive(Debug, Default)]
pub(super) struct Creations {
    current: Mutex<Option<Arc<CreationStream>>>,
}

/// A call that was begun.
#[derive(Debug)]
pub(super) struct CreationStream {
    state: Mutex<State>,
    /// Signalled when a creation took too long.
    given_up: Notify,
}

#[derive(Debug)]
struct State {
    /// `None` once the call has ended.
    sender: Option<mpsc::UnboundedSender<CreateManyPart>>,
    /// The number of the next creation.
    next: u64,
    waiting: VecDeque<Waiting>,
    /// Bytes of the objects that wait for an answer.
    bytes: u64,
}

#[derive(Debug)]
struct Waiting {
    creation: u64,
    bytes: u64,
    answered: oneshot::Sender<Answered>,
}

/// A creation under way.
pub(super) struct Creation {
    call: Arc<CreationStream>,
    answered: oneshot::Receiver<Answered>,
    is_ended: bool,
}

impl<C> Client<C> {
    /// The server's description of itself, if an object of this size may go by the stream.
    pub(super) fn streaming(&self, bytes: u64) -> Option<&Known> {
        // Relaxed: see where it is stored.
        let is_refused =
            self.env.clock.now().as_micros() < self.no_stream_until.load(Ordering::Relaxed).into();
        let known = self.known.get().filter(|_| !is_refused);
        known.filter(|known| bytes <= known.streamed_bytes_max)
    }

    /// Each creation has a call of its own for this time.
    fn stream_nothing_for(&self, time: Duration) {
        debug_assert!(!time.is_zero(), "the next creation would be refused as well");
        let until = self.env.clock.now() + time;
        // Relaxed: only calls are spared.
        self.no_stream_until.store(until.as_micros() as u64, Ordering::Relaxed);
    }
}

impl Creations {
    /// Begins a creation; `None` if it has to have a call of its own.
    pub(super) fn begin(
        &self,
        client: &Arc<Client>,
        runtime: &Handle,
        (name, parts, bytes): (&str, &[Bytes], u64),
    ) -> Option<Creation> {
        let known = client.streaming(bytes)?;
        let mut current = self.current.lock();
        let call = match &*current {
            Some(call) if !call.is_ended() => Arc::clone(call),
            _ => {
                let (call, receiver) = CreationStream::new();
                runtime.spawn(run(Arc::clone(client), known.identity.clone(), receiver, Arc::clone(&call)));
                Arc::clone(current.insert(call))
            }
        };
        drop(current);
        let answered = call.push(name, parts, bytes)?;
        Some(Creation { call, answered, is_ended: false })
    }
}

impl CreationStream {
    pub(super) fn new() -> (Arc<CreationStream>, mpsc::UnboundedReceiver<CreateManyPart>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let state = State { sender: Some(sender), next: 1, waiting: VecDeque::new(), bytes: 0 };
        (Arc::new(CreationStream { state: Mutex::new(state), given_up: Notify::new() }), receiver)
    }

    fn is_ended(&self) -> bool {
        self.state.lock().sender.is_none()
    }

    /// Sends an object behind those of before; `None` if too much is under way, or the call has ended.
    pub(super) fn push(
        &self,
        name: &str,
        parts: &[Bytes],
        bytes: u64,
    ) -> Option<oneshot::Receiver<Answered>> {
        let mut state = self.state.lock();
        if state.waiting.len() >= CREATIONS_MAX || state.bytes + bytes > BYTES_MAX {
            return None;
        }
        let (creation, sender) = (state.next, state.sender.as_ref()?);
        let crc32c = parts.iter().fold(0, |crc, part| crc32c::crc32c_append(crc, part));
        let mut head = Some(ObjectHead { name: name.to_owned(), bytes, crc32c });
        for data in parts.iter().flat_map(|part| wire::pieces(part.clone(), wire::PART_BYTES)) {
            // An error says that the call has ended: its end gives this creation its outcome, too.
            drop(sender.send(CreateManyPart { creation, head: head.take(), data }));
        }
        assert!(head.is_none(), "an object has a byte");
        let (answered, receiver) = oneshot::channel();
        state.waiting.push_back(Waiting { creation, bytes, answered });
        (state.next, state.bytes) = (creation + 1, state.bytes + bytes);
        Some(receiver)
    }

    /// Takes an answer; false if it is outside the protocol.
    fn take(&self, answer: &CreateManyAnswer) -> bool {
        let mut state = self.state.lock();
        let is_next = state.waiting.front().is_some_and(|first| first.creation == answer.creation);
        // What waits has its outcome by the end of the call.
        let Some(waiting) = is_next.then(|| state.waiting.pop_front()).flatten() else { return false };
        state.bytes -= waiting.bytes;
        let answered = match (answer.outcome(), wire::kind_of(&answer.kind)) {
            (Outcome::Created, None) if answer.kind.is_empty() => Ok(Create::Created),
            (Outcome::AlreadyExists, None) if answer.kind.is_empty() => Ok(Create::AlreadyExists),
            (Outcome::Unspecified, Some(kind)) => Err((kind, format!("the server answers: {}", answer.text))),
            _ => Err((Kind::Io, "the server's answer is wrong: it has no outcome".to_owned())),
        };
        // Its caller may have given up.
        drop(waiting.answered.send(answered));
        true
    }

    /// Ends the call: what has no answer fails so.
    pub(super) fn end(&self, kind: Kind, text: &str) {
        let mut state = self.state.lock();
        state.sender = None;
        state.bytes = 0;
        for waiting in state.waiting.drain(..) {
            let is_lie = terrane_base::planted!(CreateByBrokenCall);
            let answered = if is_lie { Ok(Create::Created) } else { Err((kind, text.to_owned())) };
            drop(waiting.answered.send(answered));
        }
    }
}

impl Creation {
    /// Waits for the outcome.
    pub(super) async fn outcome(mut self, url: &str, name: &str) -> Result<Create> {
        let answered = (&mut self.answered).await;
        self.is_ended = true;
        let lost = || Err((Kind::Io, "the call of creations ended".to_owned()));
        answered.unwrap_or_else(|_| lost()).map_err(|(kind, text)| {
            Error::new(kind, format!("cannot create {}: {text}", names::place(url, name)))
        })
    }
}

impl Drop for Creation {
    fn drop(&mut self) {
        if !self.is_ended {
            self.call.given_up.notify_one();
        }
    }
}

/// Carries the call to its end.
async fn run(
    client: Arc<Client>,
    identity: tonic::metadata::AsciiMetadataValue,
    parts: mpsc::UnboundedReceiver<CreateManyPart>,
    call: Arc<CreationStream>,
) {
    let (kind, text) = tokio::select! {
        ended = exchange(&client, identity, parts, &call) => ended,
        () = call.given_up.notified() => (Kind::Io, "a creation before it had no answer in time".to_owned()),
    };
    call.end(kind, &text);
}

/// Sends the messages and takes the answers until the call ends; returns why.
pub(super) async fn exchange<C: Transport>(
    client: &Client<C>,
    identity: tonic::metadata::AsciiMetadataValue,
    parts: mpsc::UnboundedReceiver<CreateManyPart>,
    creations: &CreationStream,
) -> (Kind, String) {
    let parts =
        stream::unfold(parts, |mut parts| async move { parts.recv().await.map(|part| (part, parts)) });
    // The limit is that of the beginning; each creation has its own.
    let call = Call { what: "create", name: String::new(), limit: tasks::time_limit(0) };
    let mut request = client.request(&call, parts);
    request.metadata_mut().insert(wire::BUCKET_HEADER, identity);
    let mut answers = match client.service.clone().create_many(request).await {
        Ok(answers) => answers.into_inner(),
        // Refused at the gate: no creation began, and the kind of a refusal counts for all of them.
        Err(status) => {
            if status.code() == Code::Unimplemented {
                // An older program serves the bucket now.
                client.stream_nothing_for(OLDER_TIME);
                // Not final: each creation has a call of its own from now on.
                return (Kind::Io, "the server is older now, and has no call of creations".to_owned());
            }
            let error = wire::error(&status, "create objects in", &client.url);
            if error.kind() == Kind::Busy {
                // Other clients have all such calls that the server takes.
                client.stream_nothing_for(BUSY_TIME);
            }
            return (error.kind(), error.to_string());
        }
    };
    loop {
        let text = match answers.message().await {
            Ok(Some(answer)) if creations.take(&answer) => {
                // Relaxed: a look at the last answer.
                client.is_crowded.store(answer.is_crowded, Ordering::Relaxed);
                continue;
            }
            Ok(Some(_)) => "the server's answer is wrong: it is for another creation".to_owned(),
            Ok(None) => "the server ended the call of creations".to_owned(),
            Err(status) => wire::error(&status, "create objects in", &client.url).to_string(),
        };
        // What had no answer may have happened, whatever the server says of the call.
        return (Kind::Io, text);
    }
}
