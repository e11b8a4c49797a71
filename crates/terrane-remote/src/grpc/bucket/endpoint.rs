//! How the server of an address is reached.

use std::time::Duration;

use terrane_base::{Error, Result};
use tonic::transport::Endpoint;

use crate::grpc::tls::{self, TlsFiles};

/// How long a connection may take.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// A connection is tried after so long without a byte, and broken if no answer comes within the same time.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// Bytes that may be under way to us in one answer, and in all.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// How the server of an address is reached.
pub(super) fn endpoint(url: &str, files: &TlsFiles) -> Result<Endpoint> {
    let wrong = || Error::invalid(format!("address {url:?}: use grpc://HOST:PORT or grpcs://HOST:PORT"));
    let (scheme, place) = url.split_once("://").ok_or_else(wrong)?;
    let (host, port) = place.rsplit_once(':').ok_or_else(wrong)?;
    let is_plain = !host.is_empty() && !host.contains(['/', '@', '?', '#']);
    if !is_plain || port.parse::<u16>().is_err() {
        return Err(wrong());
    }
    let http = match scheme {
        "grpc" => "http",
        "grpcs" => "https",
        _ => return Err(wrong()),
    };
    let endpoint = Endpoint::from_shared(format!("{http}://{place}")).map_err(|_| wrong())?;
    let endpoint = endpoint
        .connect_timeout(CONNECT_TIME_MAX)
        .tcp_nodelay(true)
        .tcp_keepalive(Some(KEEP_ALIVE))
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    if scheme == "grpcs" { tls::client(endpoint, files, host.trim_matches(['[', ']'])) } else { Ok(endpoint) }
}
