//! Arguments of `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

pub(super) const HELP: &str = "\
Examples:
  terrane serve storage --directory /srv/bucket
  TERRANE_TOKEN_FILE=token terrane serve storage --directory /srv/bucket \\
    --listen 0.0.0.0:7070 --metrics 127.0.0.1:9070
  terrane serve journal --directory /srv/journals --listen 127.0.0.1:7071
  terrane serve compactor app.toml --threads 4 --name spot-17

A database lies in a served bucket if the file of its deployment says so: [storage] url = \
\"grpc://HOST:7070\". SIGINT and SIGTERM end the service in good order: what runs is answered, nothing new \
is taken. Calls that fail are lines on standard error. The token comes from TERRANE_TOKEN, or from the \
file that TERRANE_TOKEN_FILE names; clients show theirs from the same variables. Nothing but the loopback \
is listened on unless --listen says so.

A journal lies in such a service if the file of its deployment says so: [journal] url = \
\"grpc://HOST:7071\". A synced commit is one message there and back and a sync of one file, which all \
commits that came meanwhile share; with a storage service, each is a file. The directory is for one \
process, and has no other files. A log whose device failed writes nothing more until the service is \
started again: its health and the metric terrane_service_bucket_failed say so. Everything else is as for \
storage; both listen on port 7070 unless --listen says otherwise.

A compactor runs compactions of a database whose deployment has [compaction] workers = true, beside its \
writer and any number of other compactors. It needs the bucket that [storage] names and nothing else, \
takes nothing over, and keeps nothing: it may be killed at any time, and the job goes to another one, or \
back to the writer. Each job is a line on standard error. SIGINT and SIGTERM give running jobs back and \
end it.
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
    Storage(Service),
    /// Serve a log of journals: synced commits of any number of databases, in a directory
    Journal(Journal),
    /// Run compactions of a database for its writer on another machine
    Compactor(Compactor),
}

/// `serve compactor`.
#[derive(Clone, Debug, Args)]
pub struct Compactor {
    /// Deployment file of the database; only its part "storage" is used
    pub deployment: PathBuf,
    /// Jobs at once
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: u32,
    /// Bytes of outputs that all jobs hold in memory until they are uploaded, instead of stage_bytes for each
    #[arg(long, value_name = "BYTES")]
    pub memory: Option<u64>,
    /// Name that the writer shows for this worker [default: random]
    #[arg(long)]
    pub name: Option<String>,
    /// Milliseconds between two looks for jobs
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    pub poll: u64,
    /// End when no job came for so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub idle_exit: Option<Duration>,
    /// Run the open jobs, and end when no job is open
    #[arg(long, conflicts_with = "idle_exit")]
    pub once: bool,
}

impl Compactor {
    /// How long a worker looks for jobs in vain before it ends.
    pub fn idle_max(&self) -> Option<Duration> {
        if self.once { Some(Duration::ZERO) } else { self.idle_exit }
    }
}

/// `serve journal`.
#[derive(Clone, Debug, Args)]
pub struct Journal {
    /// As for storage
    #[command(flatten)]
    pub service: Service,
    /// Most objects of all databases, each of about 150 bytes of memory; from half of them on, writers trim
    /// sooner
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1000..=1 << 32), default_value_t = 3_900_000)]
    pub objects: u64,
}

/// `serve storage` and `serve journal`.
#[derive(Clone, Debug, Args)]
pub struct Service {
    /// Directory of the bucket, or of the log; made if it is missing
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
