//! Whether a call may begin, by its headers, before a message is read; and to which service it goes.
//!
//! The health service is open to all: its caller is often a load balancer without a token. Where the server
//! wants a token, a connection on which none was shown ends all the same: see `connections.rs`.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use terrane_base::Kind;
use tonic::body::Body;
use tonic::codegen::Service as Tower;
use tonic::codegen::http::{HeaderMap, Request, Response};
use tonic::{Code, Status};

use super::connections::Peer;
use super::counts::Refusal;
use super::limits::Shared;
use super::service::Service;
use crate::grpc::messages::storage_server::StorageServer;
use crate::grpc::token::Token;
use crate::grpc::wire::{self, IDENTITY_BYTES};

const HEALTH: &str = "/grpc.health.v1.Health/";
const HELLO: &str = "/terrane.storage.v1.Storage/Hello";

/// Sends calls to the service of the bucket, or to that of the health, `H`.
#[derive(Clone)]
pub(super) struct Gate<H> {
    storage: StorageServer<Service>,
    health: H,
    rules: Arc<Rules>,
}

struct Rules {
    shared: Arc<Shared>,
    token: Option<Token>,
    identity: String,
}

impl<H> Gate<H> {
    pub(super) fn new(
        storage: StorageServer<Service>,
        health: H,
        shared: Arc<Shared>,
        token: Option<Token>,
        identity: [u8; IDENTITY_BYTES],
    ) -> Gate<H> {
        let rules = Rules { shared, token, identity: wire::hex(&identity) };
        Gate { storage, health, rules: Arc::new(rules) }
    }
}

impl Rules {
    fn check(&self, path: &str, headers: &HeaderMap) -> Result<(), Status> {
        let checked = self.check_token(headers).map_err(|status| (Refusal::Token, status));
        let checked =
            checked.and_then(|()| check_version(headers).map_err(|status| (Refusal::Version, status)));
        let checked = checked.and_then(|()| match path {
            HELLO => Ok(()),
            _ => self.check_bucket(headers).map_err(|status| (Refusal::Bucket, status)),
        });
        checked.map_err(|(why, status)| {
            self.shared.counts.refuse(why);
            status
        })
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), Status> {
        let shown = headers.get("authorization").map(|value| value.as_bytes());
        match &self.token {
            Some(token) if !token.is_shown_by(shown) && !terrane_base::planted!(IgnoreToken) => {
                let what = if shown.is_some() { "a wrong token" } else { "no token" };
                let text = format!(
                    "the call has {what}: set TERRANE_TOKEN, or TERRANE_TOKEN_FILE, to the token of the server"
                );
                Err(wire::refusal(Code::Unauthenticated, Kind::Invalid, text))
            }
            _ => Ok(()),
        }
    }

    fn check_bucket(&self, headers: &HeaderMap) -> Result<(), Status> {
        let meant = text(headers, wire::BUCKET_HEADER).unwrap_or("none");
        if meant == self.identity || terrane_base::planted!(IgnoreBucketIdentity) {
            return Ok(());
        }
        let text = format!(
            "the call is for bucket {meant}, and this is bucket {}: the server was started again with another \
             directory; start it with the right one, or open the database again if this is right",
            self.identity
        );
        Err(wire::refusal(Code::FailedPrecondition, Kind::Invalid, text))
    }
}

fn check_version(headers: &HeaderMap) -> Result<(), Status> {
    let spoken = text(headers, wire::PROTOCOL_HEADER).unwrap_or("none");
    if spoken == wire::PROTOCOL.to_string() {
        return Ok(());
    }
    let program = text(headers, wire::PROGRAM_HEADER).unwrap_or("unknown");
    let text = format!(
        "the client (terrane {program}) speaks version {spoken} of the storage protocol, this server (terrane \
         {}) version {}: upgrade the older one",
        wire::PROGRAM,
        wire::PROTOCOL
    );
    Err(wire::refusal(Code::FailedPrecondition, Kind::Invalid, text))
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl<H> Tower<Request<Body>> for Gate<H>
where
    H: Tower<Request<Body>, Response = Response<Body>, Error = Infallible>,
    H::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Both services are always ready: they bound their calls themselves.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        let path = request.uri().path();
        let is_health = path.starts_with(HEALTH);
        let checked = if is_health { Ok(()) } else { self.rules.check(path, request.headers()) };
        // A client that has not shown the token keeps no connection from those that have it.
        let may_stay = checked.is_ok() && (!is_health || self.rules.token.is_none());
        if let Some(peer) = request.extensions().get::<Peer>().filter(|_| may_stay) {
            peer.called();
        }
        match checked {
            Ok(()) if is_health => Box::pin(self.health.call(request)),
            Ok(()) => Box::pin(self.storage.call(request)),
            Err(status) => Box::pin(std::future::ready(Ok(status.into_http()))),
        }
    }
}
