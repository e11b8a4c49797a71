//! Parts on other machines, over gRPC (feature `grpc`).
//!
//! The protocol is `proto/storage.proto`; what its calls must keep is in `docs/format/storage-service.md`.
//!
//! * [`GrpcBucket`]: the client, a [`Bucket`](crate::Bucket). [`server`]: the service of a bucket.
//! * [`Token`]: what a client shows. `wire.rs`: headers, errors and checksums. `messages.rs`: the generated
//!   code. `fuzzing.rs`: bodies of fuzz targets.

mod bucket;
pub(crate) mod fuzzing;
#[cfg(test)]
mod hostile;
mod messages;
mod ranges;
pub mod server;
mod tls;
mod token;
mod wire;

pub use bucket::{GrpcBucket, GrpcBucketSettings};
pub use server::{Limits, Report, Server, ServerSettings};
pub use tls::TlsFiles;
pub use token::Token;
pub use wire::PROTOCOL;
