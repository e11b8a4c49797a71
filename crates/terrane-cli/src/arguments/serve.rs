//! Arguments of `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

pub(super) const HELP: &str = "\
Examples:
  terrane serve storage --directory /srv/bucket
  TERRANE_TOKEN_FILE=token terrane serve storage --directory /srv/bucket --listen 0.0.0.0:7070 --metrics 127.0.0.1:9070

A database lies there if the file of its deployment says so: [storage] url = \"grpc://HOST:7070\". SIGINT and SIGTERM end the
service in good order: what runs is answered, nothing new is taken. Calls that fail are lines on standard error.

The token comes from TERRANE_TOKEN, or from the file that TERRANE_TOKEN_FILE names; clients show theirs from the same
variables. Nothing but the loopback is listened on unless --listen says so.
";

/// `serve`.
#[derive(Clone, Debug, Args)]
pub struct Serve {
    /// The part
    #[command(subcommand)]
    pub part: Part,
}

/// The parts.
#[derive(Clone, Debug, Subcommand)]
pub enum Part {
    /// Serve a bucket: extents and manifests of any number of databases, in a directory
    Storage(Storage),
}

/// `serve storage`.
#[derive(Clone, Debug, Args)]
pub struct Storage {
    /// Directory of the bucket; made if it is missing
    #[arg(long)]
    pub directory: PathBuf,
    /// Address and port to listen on; port 0 takes one that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7070")]
    pub listen: SocketAddr,
    /// Address and port of the page /metrics for Prometheus
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
    /// File with the token that clients must show, instead of TERRANE_TOKEN
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Most bytes of an object
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    pub object_bytes: u64,
    /// Most bytes of objects that all calls hold at once
    #[arg(long, value_name = "BYTES", default_value_t = 512 << 20)]
    pub bytes_in_flight: u64,
    /// Most calls at once; further ones are refused, and tried again by their clients
    #[arg(long, value_name = "COUNT", default_value_t = 256)]
    pub calls: usize,
    /// Most connections
    #[arg(long, value_name = "COUNT", default_value_t = 256)]
    pub connections: usize,
    /// Seconds that calls may go on after a signal
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub stop_time: Duration,
    /// Certificate of the server in PEM, for encrypted connections; needs a build with the feature tls
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_certificate: Option<PathBuf>,
    /// Key of the certificate in PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,
    /// Certificate in PEM of the authority that signs those of clients; then each client must show one
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_authority: Option<PathBuf>,
}

/// A time of up to an hour.
fn seconds(typed: &str) -> Result<Duration, String> {
    let number: Option<u64> = typed.parse().ok().filter(|number| *number <= 3600);
    number.map(Duration::from_secs).ok_or_else(|| "expected whole seconds from 0 to 3600".to_owned())
}
