//! Asynchronous requests for callers that wait.
//!
//! Requests are tasks of a runtime that the bucket owns; callers wait with a lock and a condition variable,
//! so a call may come from any thread, also from one that runs another runtime. Every request has a time
//! limit.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::sync::{Condvar, Mutex};
use terrane_base::{Error, Kind, Result};
use tokio::runtime::{Builder, Runtime};

use super::{Pending, names};

/// Threads of the runtime: they only wait for the network and encrypt.
const THREADS: usize = 2;
/// Time limit of a request, beside that for its bytes.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(20);
/// Bytes for which a request has another second.
const BYTES_PER_SECOND_MIN: u64 = 1 << 20;

/// The time limit of a request that moves so many bytes, unless the bucket has a shorter one.
pub(crate) fn time_limit(bytes: u64) -> Duration {
    REQUEST_TIME_MAX + Duration::from_secs(bytes / BYTES_PER_SECOND_MIN)
}

/// The error of a request without an answer.
#[cold]
pub(crate) fn late(what: &str, url: &str, name: &str, limit: Duration) -> Error {
    let message =
        format!("cannot {what} {}: no answer within {} s", names::place(url, name), limit.as_secs());
    Error::new(Kind::Io, message)
}

/// The runtime of one bucket.
pub(crate) struct Tasks {
    /// `None` while it is dropped.
    runtime: Option<Runtime>,
    /// The longest time of a request, whatever it moves.
    request_max: Duration,
}

impl Tasks {
    /// Starts the threads of the bucket `url`.
    pub(crate) fn start(url: &str) -> Result<Tasks> {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(THREADS).thread_name("terrane-bucket").enable_all().build();
        let runtime = runtime.map_err(|why| Error::io(format!("cannot start the threads of {url}"), why))?;
        Ok(Tasks { runtime: Some(runtime), request_max: Duration::MAX })
    }

    /// Gives each request at most this time: for a caller that wants to know soon whether there is an answer.
    #[cfg(any(feature = "grpc", feature = "s3"))]
    pub(crate) fn limit_requests(&mut self, request_max: Duration) {
        assert!(!request_max.is_zero(), "a request has time");
        self.request_max = request_max;
    }

    /// The time limit of a request of this bucket that moves so many bytes.
    pub(crate) fn time_limit(&self, bytes: u64) -> Duration {
        time_limit(bytes).min(self.request_max)
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is there until the drop")
    }

    /// Starts a request, which is given up with the error `late` behind `limit`.
    pub(crate) fn begin<T: Send + 'static>(
        &self,
        limit: Duration,
        late: impl FnOnce() -> Error + Send + 'static,
        request: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Pending<T> {
        debug_assert!(!limit.is_zero(), "a request has time");
        let answer = Arc::new(Answer::default());
        let sender = Sender(Arc::clone(&answer));
        self.runtime().spawn(async move {
            let outcome = tokio::time::timeout(limit, request).await;
            sender.0.put(outcome.unwrap_or_else(|_| Err(late())));
        });
        Pending::new(move || answer.wait())
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        // A drop that waits is refused on a thread that runs tasks.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Where a task puts what the caller waits for.
#[derive(Debug)]
struct Answer<T> {
    outcome: Mutex<Option<Result<T>>>,
    came: Condvar,
}

impl<T> Default for Answer<T> {
    fn default() -> Self {
        Answer { outcome: Mutex::new(None), came: Condvar::new() }
    }
}

impl<T> Answer<T> {
    fn put(&self, outcome: Result<T>) {
        self.outcome.lock().get_or_insert(outcome);
        self.came.notify_all();
    }

    fn wait(&self) -> Result<T> {
        let mut outcome = self.outcome.lock();
        loop {
            match outcome.take() {
                Some(outcome) => return outcome,
                None => self.came.wait(&mut outcome),
            }
        }
    }
}

/// The task's end: a task that ends without an outcome, as the runtime does, leaves an error.
struct Sender<T>(Arc<Answer<T>>);

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut outcome = self.0.outcome.lock();
        if outcome.is_none() {
            let message = "the request was dropped: its bucket is closed";
            *outcome = Some(Err(Error::new(Kind::Cancelled, message)));
        }
        self.0.came.notify_all();
    }
}
