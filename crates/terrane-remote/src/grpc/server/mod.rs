//! The service of a bucket.
//!
//! A call passes, in this order:
//! * `connections.rs`: a limit of connections, and of the time until the first call that is not refused.
//! * `gate.rs`: token, version of the protocol and identity of the bucket, before a message is read.
//! * `service.rs`: the calls. The bucket's blocking calls run on threads of their own; `limits.rs` bounds how
//!   many calls there are, and how many bytes of objects they hold. `sending.rs`: answers that end in time.
//!   `many.rs`: creations of one call, one after the other.
//! * `counts.rs`: what was done, for `page.rs`, which answers Prometheus, and for a log.
//!
//! `identity.rs`: which bucket it is. `requests.rs`: body of a fuzz target.

mod connections;
mod counts;
mod gate;
mod identity;
mod limits;
mod many;
mod page;
pub(super) mod requests;
mod sending;
mod service;

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::{Error, Result};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use self::limits::Shared;
use super::messages::storage_server::{SERVICE_NAME, StorageServer};
use super::tls::{self, TlsFiles};
use super::token::Token;
use super::wire;
use crate::Bucket;

pub use counts::Report;
pub use limits::Limits;

/// Threads that speak with clients. Calls of the bucket have threads of their own.
const THREADS: usize = 2;
/// A connection is tried after so long without a byte, and given up if no answer comes within the same time.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Between two looks whether the bucket has failed.
const HEALTH_EVERY: Duration = Duration::from_secs(1);
/// Bytes that may be under way to us in one call.
const STREAM_WINDOW: u32 = 4 << 20;
/// Most bytes of the headers of a call.
const HEADER_BYTES_MAX: u32 = 16 << 10;

/// Takes each call that has ended.
pub type Log = Arc<dyn Fn(&Report<'_>) + Send + Sync>;

/// How a bucket is served.
#[derive(Clone)]
pub struct ServerSettings {
    /// The address to listen on; port 0 takes one that is free.
    pub listen: SocketAddr,
    /// The address of the page of metrics, if there shall be one.
    pub metrics: Option<SocketAddr>,
    /// The token that clients must show, if they must.
    pub token: Option<Token>,
    /// The files for encrypted connections, if they shall be.
    pub tls: Option<TlsFiles>,
    /// Limits of requests of clients.
    pub limits: Limits,
    /// Takes each call that has ended.
    pub log: Option<Log>,
}

impl ServerSettings {
    /// A service at an address, without token, encryption, metrics and log.
    #[must_use]
    pub fn new(listen: SocketAddr) -> ServerSettings {
        ServerSettings { listen, metrics: None, token: None, tls: None, limits: Limits::default(), log: None }
    }
}

impl fmt::Debug for ServerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSettings").field("listen", &self.listen).finish_non_exhaustive()
    }
}

/// A bucket that is served. Dropping it ends all connections at once, as the end of its process does.
pub struct Server {
    address: SocketAddr,
    metrics: Option<SocketAddr>,
    shared: Arc<Shared>,
    bucket: Arc<dyn Bucket>,
    health: HealthReporter,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
    /// `None` while it is dropped.
    runtime: Option<Runtime>,
}

impl Server {
    /// Serves `bucket` until it is stopped or dropped.
    ///
    /// # Errors
    /// `Io` naming the address that cannot be listened on; `Invalid` for limits that contradict each other
    /// and for files of certificates; those of the bucket, whose identity is read or created.
    pub fn start(bucket: Arc<dyn Bucket>, settings: &ServerSettings, env: &Env) -> Result<Server> {
        settings.limits.check()?;
        let listener = listen(settings.listen)?;
        let page = settings.metrics.map(listen).transpose()?;
        let transport = transport(settings, bucket.syncs_groups())?;
        let identity = identity::of(&*bucket, &*env.random)?;
        let runtime = runtime(&settings.limits)?;
        let inside = runtime.enter();
        let of =
            |listener: &TcpListener| listener.local_addr().map_err(|why| Error::io("a bound address", why));
        let (address, metrics) = (of(&listener)?, page.as_ref().map(of).transpose()?);
        let shared = Arc::new(Shared::new(settings, env.clone()));
        let (health, health_service) = tonic_health::server::health_reporter();
        let service = service::Service::new(Arc::clone(&bucket), identity, Arc::clone(&shared));
        let storage = StorageServer::new(service)
            .max_decoding_message_size(wire::MESSAGE_BYTES_MAX)
            .max_encoding_message_size(wire::MESSAGE_BYTES_MAX);
        let gate =
            gate::Gate::new(storage, health_service, Arc::clone(&shared), settings.token.clone(), identity);
        let connections = connections::incoming(tokio_listener(listener)?, Arc::clone(&shared));
        let (stop, stopped) = oneshot::channel::<()>();
        let until = async move { drop(stopped.await) };
        let served = transport.serve_with_incoming_shutdown(gate, connections, until);
        // It ends without an error: connections that fail end alone.
        let served = runtime.spawn(async move { drop(served.await) });
        if let Some(page) = page {
            runtime.spawn(page::serve(tokio_listener(page)?, Arc::clone(&shared), Arc::clone(&bucket)));
        }
        runtime.spawn(tell_health(health.clone(), Arc::clone(&bucket)));
        drop(inside);
        Ok(Server { address, metrics, shared, bucket, health, stop, served, runtime: Some(runtime) })
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the page of metrics.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// The metrics, as the page has them: text for Prometheus.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        self.shared.metrics_text(self.bucket.is_failed())
    }

    /// Ends in good order: takes no new connection and no new call, answers those that run, and ends what has
    /// not ended within `limit`. Returns true if every call was answered. Not for a thread that runs tasks.
    #[must_use]
    pub fn stop(mut self, limit: Duration) -> bool {
        let Some(runtime) = self.runtime.take() else { return true };
        // Calls that last as long as their client likes end by these.
        self.shared.ending.send_replace(true);
        runtime.block_on(self.health.clear_service_status(SERVICE_NAME));
        runtime.block_on(self.health.clear_service_status(""));
        let stop = std::mem::replace(&mut self.stop, oneshot::channel().0);
        drop(stop);
        let served = &mut self.served;
        let is_answered = runtime.block_on(async { tokio::time::timeout(limit, served).await.is_ok() });
        runtime.shutdown_timeout(if is_answered { limit } else { Duration::ZERO });
        is_answered
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Tells the health of the service: it serves as long as the bucket creates objects.
async fn tell_health(health: HealthReporter, bucket: Arc<dyn Bucket>) {
    health.set_service_status(SERVICE_NAME, ServingStatus::Serving).await;
    while !bucket.is_failed() {
        tokio::time::sleep(HEALTH_EVERY).await;
    }
    for service in [SERVICE_NAME, ""] {
        health.set_service_status(service, ServingStatus::NotServing).await;
    }
}

fn runtime(limits: &Limits) -> Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder
        .worker_threads(THREADS)
        .max_blocking_threads(limits.threads)
        .thread_name("terrane-serve")
        .enable_all();
    builder.build().map_err(|why| Error::io("cannot start the threads of the service", why))
}

fn listen(address: SocketAddr) -> Result<TcpListener> {
    let bound =
        TcpListener::bind(address).and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    bound.map_err(|why| Error::io(format!("cannot listen on {address}"), why))
}

/// The listener for the runtime that is entered.
fn tokio_listener(listener: TcpListener) -> Result<tokio::net::TcpListener> {
    tokio::net::TcpListener::from_std(listener).map_err(|why| Error::io("cannot wait for connections", why))
}

fn transport(settings: &ServerSettings, is_streamed: bool) -> Result<tonic::transport::Server> {
    let limits = &settings.limits;
    // The limit does not count the call of many creations.
    let streams = u32::try_from(limits.calls_max).unwrap_or(u32::MAX).min(1024) + u32::from(is_streamed);
    let window = limits.connection_window();
    let transport = tonic::transport::Server::builder()
        .timeout(limits.call_time_max)
        .max_concurrent_streams(streams)
        // Half of the connection's: calls that bring no object go on while one waits for room.
        .initial_stream_window_size(STREAM_WINDOW.min(window / 2))
        .initial_connection_window_size(window)
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE))
        .http2_max_header_list_size(HEADER_BYTES_MAX);
    match &settings.tls {
        None => Ok(transport),
        Some(files) => tls::server(transport, files),
    }
}
