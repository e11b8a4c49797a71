//! Answers of many messages. The rest of one is given up at the deadline of its call, so a client that stops
//! reading does not hold memory for ever.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, stream};
use terrane_base::sync::Mutex;
use tokio::task::AbortHandle;
use tonic::Status;

use super::counts::Call;

/// The messages of an answer.
pub(super) type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

struct Rest<I, H> {
    messages: I,
    call: Call,
    _held: H,
}

struct Timed<I, H> {
    rest: Arc<Mutex<Option<Rest<I, H>>>>,
    timer: AbortHandle,
}

impl<I, H> Drop for Timed<I, H> {
    fn drop(&mut self) {
        self.timer.abort();
    }
}

/// Sends messages, and holds `held` until the last one was sent, the client left, or the time of the call has
/// passed.
pub(super) fn send<T, I, H>(call: Call, messages: I, held: H) -> Messages<T>
where
    T: Send + 'static,
    I: Iterator<Item = T> + Send + 'static,
    H: Send + 'static,
{
    let limit = call.time_left();
    // Without time left nothing is sent.
    let rest = (!limit.is_zero()).then_some(Rest { messages, call, _held: held });
    let rest = Arc::new(Mutex::new(rest));
    let timed = Arc::clone(&rest);
    let timer = tokio::spawn(async move {
        tokio::time::sleep(limit).await;
        drop(timed.lock().take());
    });
    let timed = Timed { rest, timer: timer.abort_handle() };
    Box::pin(stream::unfold(Some(timed), |timed| async move {
        let timed = timed?;
        let next = next(&timed);
        next.map(|next| if next.is_ok() { (next, Some(timed)) } else { (next, None) })
    }))
}

fn next<T, I: Iterator<Item = T>, H>(timed: &Timed<I, H>) -> Option<Result<T, Status>> {
    let mut rest = timed.rest.lock();
    let Some(found) = rest.as_mut() else {
        return Some(Err(Status::deadline_exceeded("the answer was not read in time")));
    };
    let next = found.messages.next();
    if next.is_none()
        && let Some(rest) = rest.take()
    {
        drop(rest.call.end(Ok(())));
    }
    next.map(Ok)
}
