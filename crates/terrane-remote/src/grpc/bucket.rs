//! A bucket on another machine.
//!
//! A connection is made by the first call, and made again after it broke. Each call has a time limit, which
//! the server gets, and says which version of the protocol and which bucket it means: a server that was
//! started again with another directory is refused, and not taken for an empty database.

pub(super) mod answers;
mod endpoint;
mod many;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt, stream};
use terrane_base::env::Env;
use terrane_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use terrane_base::{Error, Kind, Result};
use tokio::sync::OnceCell;
use tonic::metadata::AsciiMetadataValue;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};

use self::endpoint::endpoint;
use self::many::Creations;
use super::messages::create_answer::Outcome;
use super::messages::storage_client::StorageClient;
use super::messages::{
    ByteRange, CreatePart, DeleteRequest, HelloRequest, ListRequest, ObjectHead, ReadPart, ReadRequest,
};
use super::ranges::{self, Requests};
use super::tls::TlsFiles;
use super::token::Token;
use super::wire::{self, Transport};
use crate::bucket::tasks::{self, Tasks};
use crate::bucket::{self, Bucket, Create, Listed, Pending, names};

/// Reads of one call that are under way at once.
const REQUESTS_AT_ONCE: usize = 4;
/// Bytes of a tail by which the time limit of its read grows, at most.
const TAIL_BYTES_MAX: u64 = 8 << 20;
/// Bytes by which a time limit grows, at most.
const TIMED_BYTES_MAX: u64 = 64 << 30;
/// Settings of a client: how it proves its identity to a server.
#[derive(Clone, Debug, Default)]
pub struct GrpcBucketSettings {
    /// The token that the server wants.
    pub token: Option<Token>,
    /// The files of `grpcs://`.
    pub tls: TlsFiles,
}

impl GrpcBucketSettings {
    /// The settings of the environment: see [`Token::of_environment`] and [`TlsFiles::of_environment`].
    ///
    /// # Errors
    /// Those of [`Token::of_environment`].
    pub fn of_environment() -> Result<GrpcBucketSettings> {
        Ok(GrpcBucketSettings { token: Token::of_environment()?, tls: TlsFiles::of_environment() })
    }
}

/// The bucket behind a [`Server`](super::Server).
pub struct GrpcBucket {
    client: Arc<Client>,
    creations: Creations,
    tasks: Tasks,
}

impl GrpcBucket {
    /// The bucket of `grpc://HOST:PORT`, or, encrypted, `grpcs://HOST:PORT`. Nothing is sent before the first
    /// call.
    ///
    /// # Errors
    /// `Invalid` if the address is not valid, or a file of a certificate cannot be used; `Io` if the
    /// operating system refuses threads.
    pub fn new(url: &str, settings: GrpcBucketSettings, env: Env) -> Result<GrpcBucket> {
        let endpoint = endpoint(url, &settings.tls)?;
        let tasks = Tasks::start(url)?;
        // The channel starts a task.
        let inside = tasks.runtime().enter();
        let channel = endpoint.connect_lazy();
        drop(inside);
        let service = StorageClient::new(channel)
            .max_decoding_message_size(wire::MESSAGE_BYTES_MAX)
            .max_encoding_message_size(wire::MESSAGE_BYTES_MAX);
        let token = settings.token.map(|token| header_value(&token.header())).transpose()?;
        let client = Client::new(url, service, token, env);
        Ok(GrpcBucket { client: Arc::new(client), creations: Creations::default(), tasks })
    }

    /// The bucket with at most this time for a call.
    pub(crate) fn limited(mut self, request_max: Duration) -> GrpcBucket {
        self.tasks.limit_requests(request_max);
        self
    }

    /// Starts a call that moves about so many bytes.
    fn begin<T: Send + 'static, F: Future<Output = Result<T>> + Send + 'static>(
        &self,
        what: &'static str,
        name: &str,
        bytes: u64,
        call: impl FnOnce(Arc<Client>, Call) -> F,
    ) -> Pending<T> {
        let limit = self.tasks.time_limit(bytes.min(TIMED_BYTES_MAX));
        let call = call(Arc::clone(&self.client), Call { what, name: name.to_owned(), limit });
        let (client, name) = (Arc::clone(&self.client), name.to_owned());
        self.tasks.begin(limit, move || tasks::late(what, &client.url, &name, limit), call)
    }
}

impl fmt::Debug for GrpcBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcBucket").field("url", &self.client.url).finish_non_exhaustive()
    }
}

impl Bucket for GrpcBucket {
    fn url(&self) -> &str {
        &self.client.url
    }

    fn is_crowded(&self) -> bool {
        // Relaxed: see where it is stored.
        self.client.is_crowded.load(Ordering::Relaxed)
    }

    fn begin_create(&self, name: &str, parts: Vec<Bytes>) -> Pending<Create> {
        if let Err(error) = names::check(name).and_then(|()| bucket::check_parts(name, &parts)) {
            return Pending::ready(Err(error));
        }
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        let runtime = self.tasks.runtime().handle();
        self.begin("create", name, bytes, |client, call| {
            let streamed = self.creations.begin(&client, runtime, (name, &parts, bytes));
            async move {
                match streamed {
                    Some(creation) => creation.outcome(&client.url, &call.name).await,
                    None => client.create(&call, parts, bytes).await,
                }
            }
        })
    }

    fn begin_get_ranges(&self, name: &str, ranges: Vec<Range<u64>>) -> Pending<Vec<Bytes>> {
        let backward = ranges.iter().find(|range| range.start > range.end);
        let backward = backward.map(|range| bucket::check_range(self.url(), name, range, range.end));
        if let Err(error) = backward.unwrap_or(Ok(())).and_then(|()| names::check(name)) {
            return Pending::ready(Err(error));
        }
        let bytes = ranges.iter().fold(0u64, |all, range| all.saturating_add(range.end - range.start));
        self.begin("read", name, bytes, |client, call| async move {
            let requests =
                stream::iter(Requests::new(&ranges)).map(|pieces| client.read_ranges(&call, pieces));
            let answers: Vec<Bytes> = requests.buffered(REQUESTS_AT_ONCE).try_collect().await?;
            Ok(ranges::cut(&ranges, answers))
        })
    }

    fn get_tail(&self, name: &str, bytes_max: u64) -> Result<Bytes> {
        names::check(name)?;
        let timed = bytes_max.min(TAIL_BYTES_MAX);
        let tail = |client: Arc<Client>, call| async move { client.read_tail(&call, bytes_max).await };
        self.begin("read", name, timed, tail).wait()
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>> {
        names::check(folder)?;
        after.map_or(Ok(()), names::check)?;
        let (timed, after) = (names::LISTED_MAX as u64 * 64, after.unwrap_or_default().to_owned());
        self.begin("list", folder, timed, |client, call| async move { client.list(&call, after).await })
            .wait()
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        names.iter().try_for_each(|name| names::check(name))?;
        let Some(first) = names.first() else { return Ok(()) };
        let (timed, all) = ((names.len() as u64) << 14, names.to_vec());
        self.begin("delete", first, timed, |client, call| async move { client.delete(&call, &all).await })
            .wait()
    }
}

/// Description of a call, for messages and for the server.
struct Call {
    what: &'static str,
    name: String,
    limit: Duration,
}

/// The first answer of the server.
struct Known {
    /// The header that names the bucket.
    identity: AsciiMetadataValue,
    object_bytes_max: u64,
    /// Most bytes of an object of the call that lasts; 0 if the server has no such call.
    streamed_bytes_max: u64,
}

/// `C` carries the calls; fuzz targets have another one than a connection.
struct Client<C = Channel> {
    url: String,
    service: StorageClient<C>,
    token: Option<AsciiMetadataValue>,
    env: Env,
    known: OnceCell<Known>,
    /// True if the last answer to a creation of the stream said that the bucket is crowded.
    is_crowded: AtomicBool,
    /// Until when no such call is begun, in microseconds of the clock: the server refused one.
    no_stream_until: AtomicU64,
}

impl<C> Client<C> {
    fn new(url: &str, service: StorageClient<C>, token: Option<AsciiMetadataValue>, env: Env) -> Client<C> {
        let (known, is_crowded, no_stream_until) = Default::default();
        Client { url: url.to_owned(), service, token, env, known, is_crowded, no_stream_until }
    }
}

impl<C: Transport> Client<C> {
    fn error(&self, call: &Call, status: &Status) -> Error {
        wire::error(status, call.what, &names::place(&self.url, &call.name))
    }

    /// An answer outside the protocol: the outcome of the call is unknown.
    #[cold]
    fn wrong(&self, call: &Call, why: &str) -> Error {
        let place = names::place(&self.url, &call.name);
        Error::new(Kind::Io, format!("cannot {} {place}: the server's answer is wrong: {why}", call.what))
    }

    /// A request with the headers of every call.
    fn request<T>(&self, call: &Call, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(call.limit);
        let random = || self.env.random.next_u64();
        // The lowest bit keeps ids from being zero, which means none.
        let trace = format!("00-{:016x}{:016x}-{:016x}-01", random(), random() | 1, random() | 1);
        debug_assert!(wire::is_trace(&trace), "{trace}");
        let headers = request.metadata_mut();
        headers.insert(wire::PROTOCOL_HEADER, wire::PROTOCOL.into());
        headers.insert(wire::PROGRAM_HEADER, AsciiMetadataValue::from_static(wire::PROGRAM));
        if let Ok(trace) = AsciiMetadataValue::try_from(trace) {
            headers.insert(wire::TRACE_HEADER, trace);
        }
        if let Some(token) = &self.token {
            headers.insert("authorization", token.clone());
        }
        request
    }

    /// A request that names the bucket; before the first one the server says which it is.
    async fn request_known<T>(&self, call: &Call, message: T) -> Result<Request<T>> {
        let known = self.known(call).await?;
        let mut request = self.request(call, message);
        request.metadata_mut().insert(wire::BUCKET_HEADER, known.identity.clone());
        Ok(request)
    }

    async fn known(&self, call: &Call) -> Result<&Known> {
        self.known.get_or_try_init(|| self.hello(call)).await
    }

    async fn hello(&self, call: &Call) -> Result<Known> {
        let answer = self.service.clone().hello(self.request(call, HelloRequest {})).await;
        let answer = answer.map_err(|status| self.error(call, &status))?.into_inner();
        if answer.protocol != wire::PROTOCOL {
            let message = format!(
                "{}: the server (terrane {}) speaks version {} of the storage protocol, this program (terrane \
                 {}) version {}: upgrade the older one",
                self.url,
                answer.program,
                answer.protocol,
                wire::PROGRAM,
                wire::PROTOCOL
            );
            return Err(Error::invalid(message));
        }
        if answer.identity.len() != wire::IDENTITY_BYTES {
            return Err(self.wrong(call, "it names no bucket"));
        }
        Ok(Known {
            identity: header_value(&wire::hex(&answer.identity))?,
            object_bytes_max: answer.object_bytes_max,
            streamed_bytes_max: answer.streamed_bytes_max.min(answer.object_bytes_max),
        })
    }

    async fn create(&self, call: &Call, parts: Vec<Bytes>, bytes: u64) -> Result<Create> {
        let limit = self.known(call).await?.object_bytes_max;
        if bytes > limit {
            let place = names::place(&self.url, &call.name);
            let message = format!(
                "cannot create {place}: {bytes} bytes, and the server takes {limit}: raise its --object-bytes, \
                 or lower object_bytes of the deployment"
            );
            return Err(Error::invalid(message));
        }
        debug_assert!(bytes > 0, "an object has a byte");
        let crc32c = parts.iter().fold(0, |crc, part| crc32c::crc32c_append(crc, part));
        let head = ObjectHead { name: call.name.clone(), bytes, crc32c };
        let first = CreatePart { head: Some(head), data: Bytes::new() };
        let data = parts.into_iter().flat_map(|part| wire::pieces(part, wire::PART_BYTES));
        let data = data.map(|data| CreatePart { head: None, data });
        let request = self.request_known(call, stream::iter(std::iter::once(first).chain(data))).await?;
        let answer = self.service.clone().create(request).await;
        let answer = answer.map_err(|status| self.error(call, &status))?;
        match answer.into_inner().outcome() {
            Outcome::Created => Ok(Create::Created),
            Outcome::AlreadyExists => Ok(Create::AlreadyExists),
            Outcome::Unspecified => Err(self.wrong(call, "it does not say whether the object was created")),
        }
    }

    async fn read_ranges(&self, call: &Call, pieces: Vec<ByteRange>) -> Result<Bytes> {
        let wanted = ranges::bytes_of(&pieces);
        let message = ReadRequest { name: call.name.clone(), ranges: pieces, tail_bytes: 0 };
        let bytes = self.read(call, message, wanted).await?;
        if bytes.len() as u64 != wanted {
            return Err(self.wrong(call, "it has fewer bytes than were asked for"));
        }
        Ok(bytes)
    }

    async fn read_tail(&self, call: &Call, bytes_max: u64) -> Result<Bytes> {
        let message = ReadRequest { name: call.name.clone(), ranges: Vec::new(), tail_bytes: bytes_max };
        self.read(call, message, bytes_max).await
    }

    /// Reads, and accepts no byte beyond `bytes_max`.
    async fn read(&self, call: &Call, message: ReadRequest, bytes_max: u64) -> Result<Bytes> {
        let request = self.request_known(call, message).await?;
        let answer = self.service.clone().read(request).await.map_err(|status| self.error(call, &status))?;
        self.whole(call, answer.into_inner(), bytes_max).await
    }

    async fn whole(&self, call: &Call, mut parts: Streaming<ReadPart>, bytes_max: u64) -> Result<Bytes> {
        let (mut bytes, mut all) = (BytesMut::new(), None);
        while let Some(part) = parts.message().await.map_err(|status| self.error(call, &status))? {
            wire::check_part(&part).map_err(|status| self.error(call, &status))?;
            bytes.extend_from_slice(&part.data);
            let is_fitting = *all.get_or_insert(part.bytes_all) == part.bytes_all
                && bytes.len() as u64 <= part.bytes_all
                && part.bytes_all <= bytes_max;
            if !is_fitting {
                return Err(self.wrong(call, "it has other bytes than were asked for"));
            }
        }
        // A stream that was cut may look like one that ended.
        if all != Some(bytes.len() as u64) && !terrane_base::planted!(AcceptCutAnswer) {
            return Err(self.wrong(call, "it ends before its last byte"));
        }
        debug_assert!(bytes.len() as u64 <= bytes_max, "checked with each part");
        Ok(bytes.freeze())
    }

    async fn list(&self, call: &Call, after: String) -> Result<Vec<Listed>> {
        let start = format!("{}/", call.name);
        let message = ListRequest { folder: call.name.clone(), after: after.clone() };
        let request = self.request_known(call, message).await?;
        let pages = self.service.clone().list(request).await.map_err(|status| self.error(call, &status))?;
        let (mut pages, mut listed, mut is_whole) = (pages.into_inner(), Vec::<Listed>::new(), false);
        while let Some(page) = pages.message().await.map_err(|status| self.error(call, &status))? {
            for object in page.objects {
                let before = listed.last().map_or(after.as_str(), |last| last.name.as_str());
                let follows = object.name.starts_with(&start) && object.name.as_str() > before;
                if is_whole || !follows || names::check(&object.name).is_err() {
                    return Err(self.wrong(call, "a list that is not one of this folder, in order"));
                }
                let modified = Duration::from_micros(object.modified_micros);
                listed.push(Listed { name: object.name, bytes: object.bytes, modified });
                bucket::check_listed(&self.url, &call.name, listed.len())?;
            }
            is_whole |= page.is_last;
        }
        debug_assert!(listed.is_sorted_by(|a, b| a.name < b.name), "each follows the one before");
        if is_whole { Ok(listed) } else { Err(self.wrong(call, "a list that ends before its last page")) }
    }

    async fn delete(&self, call: &Call, all: &[String]) -> Result<()> {
        for some in all.chunks(wire::NAMES_MAX) {
            let request = self.request_known(call, DeleteRequest { names: some.to_vec() }).await?;
            self.service.clone().delete(request).await.map_err(|status| self.error(call, &status))?;
        }
        Ok(())
    }
}

fn header_value(text: &str) -> Result<AsciiMetadataValue> {
    AsciiMetadataValue::try_from(text).map_err(|_| Error::invalid("a header that is not ASCII text"))
}
