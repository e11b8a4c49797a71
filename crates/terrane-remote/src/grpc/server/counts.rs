//! Counts of calls: one row for each operation and outcome.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::Kind;
use terrane_base::sync::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;

use super::connections::Peer;
use super::limits::Shared;
use crate::grpc::wire;

/// The outcome of a call that its client left, or that took too long.
const CUT: &str = "cut";

/// The operation of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Hello,
    Create,
    CreateMany,
    Read,
    List,
    Delete,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Hello => "hello",
            Operation::Create => "create",
            Operation::CreateMany => "create-many",
            Operation::Read => "read",
            Operation::List => "list",
            Operation::Delete => "delete",
        }
    }
}

/// Why a client was refused before its call began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Refusal {
    Connections,
    Calls,
    Token,
    Version,
    Bucket,
}

impl Refusal {
    fn name(self) -> &'static str {
        match self {
            Refusal::Connections => "connections",
            Refusal::Calls => "calls",
            Refusal::Token => "token",
            Refusal::Version => "version",
            Refusal::Bucket => "bucket",
        }
    }
}

/// A call that has ended, for a log.
#[derive(Clone, Copy, Debug)]
pub struct Report<'c> {
    /// The operation: `hello`, `create`, `create-many`, `read`, `list` or `delete`. Each creation of a
    /// `create-many` is a `create`, too.
    pub operation: &'static str,
    /// The object, the folder, or the first of the objects.
    pub object: &'c str,
    /// The client.
    pub peer: Option<SocketAddr>,
    /// The trace that the client named: `traceparent` of W3C Trace Context.
    pub trace: Option<&'c str>,
    /// Bytes of objects that came and went.
    pub bytes: u64,
    /// How long it took.
    pub took: Duration,
    /// `ok`, the kind of the error, or `cut` if the client left or the call took too long.
    pub outcome: &'c str,
    /// The text of the error; empty if there was none.
    pub text: &'c str,
}

impl Report<'_> {
    /// Says whether it is about more than a wrong name: something that an operator should look at.
    #[must_use]
    pub fn is_trouble(&self) -> bool {
        self.outcome != "ok" && self.outcome != Kind::NotFound.as_str()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    calls: u64,
    bytes: u64,
    micros: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    rows: Mutex<BTreeMap<(Operation, &'static str), Row>>,
    refused: Mutex<BTreeMap<Refusal, u64>>,
}

impl Counts {
    fn add(&self, operation: Operation, outcome: &'static str, bytes: u64, took: Duration) {
        debug_assert!(!outcome.is_empty(), "a label has a text");
        let mut rows = self.rows.lock();
        let row = rows.entry((operation, outcome)).or_default();
        row.calls += 1;
        row.bytes += bytes;
        row.micros += took.as_micros() as u64;
    }

    pub(super) fn refuse(&self, why: Refusal) {
        *self.refused.lock().entry(why).or_default() += 1;
    }

    /// The text for Prometheus.
    pub(super) fn text(&self, (connections, calls): (usize, usize), bytes: u64, is_failed: bool) -> String {
        let mut text = String::new();
        let mut gauge = |name: &str, about: &str, value: u64| {
            let _ = writeln!(
                text,
                "# HELP terrane_service_{name} {about}\n# TYPE terrane_service_{name} gauge\nterrane_service_{name} {value}"
            );
        };
        gauge("connections", "Connections of clients.", connections as u64);
        gauge("calls_running", "Calls that have not ended.", calls as u64);
        gauge("bytes_in_flight", "Bytes of objects that calls may hold now.", bytes);
        let about = "1 if the bucket creates and deletes nothing more until the service is started again.";
        gauge("bucket_failed", about, is_failed.into());
        let rows = self.rows.lock().clone();
        let mut counter = |name: &str, about: &str, shown: &dyn Fn(&Row) -> String| {
            let _ = writeln!(
                text,
                "# HELP terrane_service_{name} {about}\n# TYPE terrane_service_{name} counter"
            );
            for ((operation, outcome), row) in &rows {
                let labels = format!("operation=\"{}\",outcome=\"{outcome}\"", operation.name());
                let _ = writeln!(text, "terrane_service_{name}{{{labels}}} {}", shown(row));
            }
        };
        counter("calls_total", "Calls that have ended.", &|row| row.calls.to_string());
        counter("bytes_total", "Bytes of objects that came or went.", &|row| row.bytes.to_string());
        counter("call_seconds_total", "Time that these calls took.", &|row| {
            format!("{}.{:06}", row.micros / 1_000_000, row.micros % 1_000_000)
        });
        text.push_str(
            "# HELP terrane_service_refused_total Calls and connections that were refused at once.\n",
        );
        text.push_str("# TYPE terrane_service_refused_total counter\n");
        for (why, count) in &*self.refused.lock() {
            let _ = writeln!(text, "terrane_service_refused_total{{reason=\"{}\"}} {count}", why.name());
        }
        text
    }
}

/// A call under way. It counts when it ends, or when it is dropped.
pub(super) struct Call {
    shared: Arc<Shared>,
    operation: Operation,
    permit: Arc<OwnedSemaphorePermit>,
    peer: Option<SocketAddr>,
    trace: Option<String>,
    start: Duration,
    is_ended: bool,
    pub(super) object: String,
    pub(super) bytes: u64,
}

impl Call {
    pub(super) fn new<T>(
        shared: Arc<Shared>,
        operation: Operation,
        permit: OwnedSemaphorePermit,
        request: &tonic::Request<T>,
    ) -> Call {
        Call {
            start: shared.env.clock.now(),
            peer: request.extensions().get::<Peer>().map(Peer::address),
            trace: wire::trace(request.metadata()),
            shared,
            operation,
            permit: Arc::new(permit),
            is_ended: false,
            object: String::new(),
            bytes: 0,
        }
    }

    /// The permit that a thread keeps while it works for this call: the client may have left.
    pub(super) fn permit(&self) -> Arc<OwnedSemaphorePermit> {
        Arc::clone(&self.permit)
    }

    /// The rest of its time.
    pub(super) fn time_left(&self) -> Duration {
        debug_assert!(!self.is_ended, "an answer is sent before its call ends");
        let took = self.shared.env.clock.now().saturating_sub(self.start);
        self.shared.limits.call_time_max.saturating_sub(took)
    }

    /// Ends the call.
    pub(super) fn end<T>(mut self, outcome: Result<T, Status>) -> Result<T, Status> {
        match &outcome {
            Ok(_) => self.record("ok", ""),
            Err(status) => {
                let kind = wire::kind(status).map_or(CUT, Kind::as_str);
                self.record(kind, status.message());
            }
        }
        outcome
    }

    fn record(&mut self, outcome: &'static str, text: &str) {
        assert!(!self.is_ended, "a call ends once");
        self.is_ended = true;
        self.note(self.operation, (&self.object, self.bytes), self.start, (outcome, text));
    }

    /// Counts an operation that began at `start`, and gives it to the log.
    pub(super) fn note(
        &self,
        operation: Operation,
        (object, bytes): (&str, u64),
        start: Duration,
        (outcome, text): (&'static str, &str),
    ) {
        let took = self.shared.env.clock.now().saturating_sub(start);
        self.shared.counts.add(operation, outcome, bytes, took);
        if let Some(log) = &self.shared.log {
            log(&Report {
                operation: operation.name(),
                object,
                peer: self.peer,
                trace: self.trace.as_deref(),
                bytes,
                took,
                outcome,
                text,
            });
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.is_ended {
            self.record(CUT, "the client left, or the call took too long");
        }
    }
}
