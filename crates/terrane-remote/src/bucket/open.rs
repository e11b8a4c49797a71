//! The bucket of an address.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::{Error, Result};
use terrane_device::{Disk, PosixDisk};

use super::retry::ATTEMPTS_MIN;
use super::{Bucket, DirectoryBucket, MemoryBucket, RetryLimits, RetryingBucket};

/// Opens the bucket of an address, with repeated requests:
/// * `s3://NAME`, with the feature `s3`; see there for the variables of the environment;
/// * `grpc://HOST:PORT` with the feature `grpc`, or, encrypted, `grpcs://HOST:PORT` with the feature `tls`;
///   the environment has the token and the certificates;
/// * `file:///DIRECTORY`;
/// * `memory:`, which is new and empty each time.
///
/// # Errors
/// `Invalid` if there is no such kind of address, or something that it needs is missing; `Io`.
pub fn open(url: &str, env: &Env) -> Result<Arc<dyn Bucket>> {
    open_with(url, env, BucketSettings::default())
}

/// How the requests of a bucket are made, and how long a caller waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketSettings {
    /// How long a request that fails is repeated.
    pub limits: RetryLimits,
    /// Attempts that are made in any case.
    pub attempts_min: u32,
    /// The longest time of one attempt, whatever it moves.
    pub request_max: Duration,
    /// True if a short read of S3 that takes longer than almost all others is asked for a second time: one of
    /// 20 at most.
    pub hedged_reads: bool,
}

impl Default for BucketSettings {
    /// Those of a database at work: the limits' default, and reads are hedged.
    fn default() -> Self {
        let limits = RetryLimits::default();
        BucketSettings { limits, attempts_min: ATTEMPTS_MIN, request_max: Duration::MAX, hedged_reads: true }
    }
}

/// As [`open`], with other settings.
///
/// # Errors
/// As [`open`].
pub fn open_with(url: &str, env: &Env, settings: BucketSettings) -> Result<Arc<dyn Bucket>> {
    let BucketSettings { request_max, hedged_reads, .. } = settings;
    let inner: Arc<dyn Bucket> = match url.split_once(':') {
        Some(("memory", "")) => Arc::new(MemoryBucket::new(Arc::clone(&env.clock))),
        Some(("file", rest)) => Arc::new(DirectoryBucket::open(directory(url, rest)?, env.clone())?),
        Some(("s3", _)) => s3(url, request_max, hedged_reads)?,
        Some(("grpc" | "grpcs", _)) => grpc(url, env, request_max)?,
        _ => {
            let message =
                format!("address {url:?}: use s3://NAME, grpc://HOST:PORT, file:///DIRECTORY or memory:");
            return Err(Error::invalid(message));
        }
    };
    Ok(Arc::new(RetryingBucket::with_settings(inner, settings, env.clone())))
}

/// Returns true if the address is that of a directory which does not exist: opening would make it, and a
/// reader makes nothing.
pub(crate) fn is_absent(url: &str) -> bool {
    let rest = url.strip_prefix("file:").and_then(|rest| directory(url, rest).ok());
    let exists = |path: &Path| PosixDisk::new().exists(path).unwrap_or(true);
    rest.is_some_and(|path| !exists(path))
}

fn directory<'u>(url: &str, rest: &'u str) -> Result<&'u Path> {
    match rest.strip_prefix("//") {
        Some(path) if path.starts_with('/') && path.len() > 1 => Ok(Path::new(path)),
        _ => Err(Error::invalid(format!("address {url:?}: use file:// and the whole path of a directory"))),
    }
}

#[cfg(feature = "s3")]
fn s3(url: &str, request_max: Duration, hedges: bool) -> Result<Arc<dyn Bucket>> {
    Ok(Arc::new(super::s3::open(url)?.limited(request_max).with_hedged_reads(hedges)))
}

#[cfg(not(feature = "s3"))]
fn s3(url: &str, _: Duration, _: bool) -> Result<Arc<dyn Bucket>> {
    let message = format!("address {url:?}: this program was built without S3; build it with the feature s3");
    Err(Error::invalid(message))
}

#[cfg(feature = "grpc")]
fn grpc(url: &str, env: &Env, request_max: Duration) -> Result<Arc<dyn Bucket>> {
    let settings = crate::grpc::GrpcBucketSettings::of_environment()?;
    Ok(Arc::new(crate::grpc::GrpcBucket::new(url, settings, env.clone())?.limited(request_max)))
}

#[cfg(not(feature = "grpc"))]
fn grpc(url: &str, _: &Env, _: Duration) -> Result<Arc<dyn Bucket>> {
    let message =
        format!("address {url:?}: this program was built without gRPC; build it with the feature grpc");
    Err(Error::invalid(message))
}
