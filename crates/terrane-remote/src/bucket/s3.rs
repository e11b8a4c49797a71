//! S3, and object stores that speak its protocol.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::{ClientOptions, RetryConfig};
use terrane_base::{Error, Result};

use super::ClientBucket;

/// The bucket of `s3://NAME`. Endpoint, region and keys come from the environment: `AWS_ENDPOINT_URL`,
/// `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`. An endpoint without
/// encryption needs `AWS_ALLOW_HTTP=true`.
///
/// # Errors
/// `Invalid`, naming the missing variable; `Io`.
pub(super) fn open(url: &str) -> Result<ClientBucket> {
    let allow_http = variable("AWS_ALLOW_HTTP").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let endpoint = variable("AWS_ENDPOINT_URL").or_else(|| variable("AWS_ENDPOINT"));
    if let Some(endpoint) = endpoint.filter(|endpoint| !allow_http && endpoint.starts_with("http:")) {
        let message =
            format!("cannot open {url}: {endpoint} has no encryption; set AWS_ALLOW_HTTP=true if it may");
        return Err(Error::invalid(message));
    }
    // The client repeats nothing: a repeated creation could not be distinguished from that of another writer.
    let retry = RetryConfig { max_retries: 0, retry_timeout: Duration::ZERO, ..RetryConfig::default() };
    let options = ClientOptions::new().with_connect_timeout(Duration::from_secs(5)).with_timeout_disabled();
    let client = AmazonS3Builder::from_env()
        .with_client_options(options.with_allow_http(allow_http))
        .with_url(url)
        .with_retry(retry)
        .build()
        .map_err(|why| Error::invalid(format!("cannot open {url}: {why}")))?;
    ClientBucket::new(Arc::new(client), url)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
