//! A ticket: one commit whose durability is still to come, and the ways to wait for it.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use terrane_base::sync::Mutex;
use terrane_base::{Result, SeqNo};

use super::{Call, Tickets};

/// Called with the outcome of a ticket.
pub(super) type Callback = Box<dyn FnOnce(Result<SeqNo>) + Send>;

/// State that a ticket and the persister share.
pub(super) struct Cell {
    pub(super) seq: SeqNo,
    progress: Mutex<Progress>,
}

enum Progress {
    Waiting { waker: Option<Waker>, callbacks: Vec<Callback> },
    Done(Result<SeqNo>),
}

impl Cell {
    pub(super) fn new(seq: SeqNo) -> Self {
        Cell { seq, progress: Mutex::new(Progress::Waiting { waker: None, callbacks: Vec::new() }) }
    }

    /// Of a commit that waits for nothing.
    pub(super) fn done(seq: SeqNo) -> Self {
        Cell { seq, progress: Mutex::new(Progress::Done(Ok(seq))) }
    }

    /// Sets the outcome; returns the waker to wake and the callbacks to call.
    pub(super) fn complete(&self, outcome: Result<SeqNo>) -> (Option<Waker>, Vec<Callback>) {
        debug_assert!(outcome.as_ref().map_or(true, |seq| *seq == self.seq), "the outcome of another ticket");
        let before = std::mem::replace(&mut *self.progress.lock(), Progress::Done(outcome));
        assert!(matches!(before, Progress::Waiting { .. }), "ticket {} is completed twice", self.seq);
        match before {
            Progress::Waiting { waker, callbacks } => (waker, callbacks),
            Progress::Done(_) => (None, Vec::new()),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.outcome().is_some()
    }

    fn outcome(&self) -> Option<Result<SeqNo>> {
        match &*self.progress.lock() {
            Progress::Waiting { .. } => None,
            Progress::Done(outcome) => Some(outcome.clone()),
        }
    }
}

/// A commit that is ordered and visible, and whose outcome says when it is durable. It is a [`Future`] that
/// needs no runtime. A dropped ticket does not undo the commit.
///
/// ```
/// # use terrane_base::{Result, SeqNo};
/// # use terrane_journal::Ticket;
/// /// In a task of whatever runtime; other tasks run until the commit is durable.
/// async fn acknowledge(ticket: Ticket) -> Result<String> {
///     let seq = ticket.seq(); // is known at once
///     if !ticket.is_done() {
///         println!("commit {seq} waits for the disk");
///     }
///     ticket.await?;
///     Ok(format!("commit {seq} is durable"))
/// }
/// # let _ = acknowledge(Ticket::done(SeqNo(7)));
/// ```
#[must_use = "a commit is durable only once its ticket says so"]
pub struct Ticket {
    cell: Arc<Cell>,
    /// Gone when the database is closed; every ticket is done by then.
    tickets: Weak<Tickets>,
}

impl Ticket {
    pub(super) fn new(cell: Arc<Cell>, tickets: Weak<Tickets>) -> Ticket {
        Ticket { cell, tickets }
    }

    /// A ticket that is done, of no database.
    pub fn done(seq: SeqNo) -> Ticket {
        Ticket::new(Arc::new(Cell::done(seq)), Weak::new())
    }

    /// The position of the commit in the order of commits. It is known at once.
    #[must_use]
    pub fn seq(&self) -> SeqNo {
        self.cell.seq
    }

    /// Returns true if the outcome is known.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.cell.is_done()
    }

    /// Waits for the outcome, and for that makes durable whatever waits, if no other thread does.
    ///
    /// ```
    /// # use terrane_base::{Result, SeqNo};
    /// # use terrane_journal::Ticket;
    /// /// Replies to clients once their commits are durable: the first wait pays for all of them.
    /// fn reply(tickets: Vec<Ticket>) -> Result<Option<SeqNo>> {
    ///     let mut last = None;
    ///     for ticket in tickets {
    ///         last = Some(ticket.wait()?);
    ///     }
    ///     Ok(last)
    /// }
    /// # let tickets = vec![Ticket::done(SeqNo(6)), Ticket::done(SeqNo(7))];
    /// # assert_eq!(reply(tickets).unwrap(), Some(SeqNo(7)));
    /// ```
    ///
    /// # Errors
    /// `Io` if the device failed, `Poisoned` after an earlier failure: the commit may or may not be there
    /// when the database is opened again.
    pub fn wait(&self) -> Result<SeqNo> {
        if let Some(tickets) = self.tickets.upgrade() {
            tickets.wait(&self.cell);
            debug_assert!(self.is_done(), "the wait ends with the outcome");
        }
        self.cell.outcome().expect("every ticket is done before its database is gone")
    }

    /// Waits for the outcome for about `wait_max` at most; `None` if it is not known by then.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use terrane_base::{Result, SeqNo};
    /// # use terrane_journal::Ticket;
    /// fn log_slow_sync(ticket: &Ticket) -> Result<SeqNo> {
    ///     match ticket.wait_for(Duration::from_millis(100)) {
    ///         Some(outcome) => outcome,
    ///         None => {
    ///             eprintln!("commit {} is not durable after 100 ms", ticket.seq());
    ///             ticket.wait()
    ///         }
    ///     }
    /// }
    /// # assert_eq!(log_slow_sync(&Ticket::done(SeqNo(7))).unwrap(), SeqNo(7));
    /// ```
    pub fn wait_for(&self, wait_max: Duration) -> Option<Result<SeqNo>> {
        if !self.is_done()
            && let Some(tickets) = self.tickets.upgrade()
        {
            tickets.wait_for(&self.cell, wait_max);
        }
        self.cell.outcome()
    }

    /// Calls `callback` with the outcome: at once, on this thread, if it is known, otherwise later on a
    /// thread of the database, one callback after the other. On that thread it may read, but a call that
    /// changes the database or waits for its background is refused with `Invalid`: hand the work to a thread
    /// of your own. A slow callback delays only other callbacks; a panic of one loses only that call.
    ///
    /// ```
    /// # use std::sync::mpsc;
    /// # use terrane_base::{Result, SeqNo};
    /// # use terrane_journal::Ticket;
    /// /// Sends the outcome to the thread that replies to the client.
    /// fn forward(ticket: Ticket, client: u64, replies: mpsc::Sender<(u64, Result<SeqNo>)>) {
    ///     ticket.on_done(move |outcome| {
    ///         let _ = replies.send((client, outcome)); // refused if that thread has ended
    ///     });
    /// }
    /// # let (sender, replies) = mpsc::channel();
    /// # forward(Ticket::done(SeqNo(7)), 3, sender);
    /// # let (client, outcome) = replies.recv().unwrap();
    /// # assert_eq!((client, outcome.unwrap()), (3, SeqNo(7)));
    /// ```
    pub fn on_done(&self, callback: impl FnOnce(Result<SeqNo>) + Send + 'static) {
        let outcome = match &mut *self.cell.progress.lock() {
            Progress::Waiting { callbacks, .. } => return callbacks.push(Box::new(callback)),
            Progress::Done(outcome) => outcome.clone(),
        };
        debug_assert!(
            outcome.as_ref().map_or(true, |durable| *durable == self.cell.seq),
            "a caller would take another commit for a durable one"
        );
        match self.tickets.upgrade() {
            Some(tickets) => tickets.call(Call { callback: Box::new(callback), seq: self.seq(), outcome }),
            // As on the other thread, a panic ends here.
            None => drop(catch_unwind(AssertUnwindSafe(|| callback(outcome)))),
        }
    }
}

impl Future for Ticket {
    type Output = Result<SeqNo>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<SeqNo>> {
        match &mut *self.cell.progress.lock() {
            Progress::Done(outcome) => {
                debug_assert!(
                    outcome.as_ref().map_or(true, |durable| *durable == self.cell.seq),
                    "a caller would take another commit for a durable one"
                );
                Poll::Ready(outcome.clone())
            }
            Progress::Waiting { waker, .. } => {
                match waker {
                    Some(_) if terrane_base::planted!(KeepFirstWaker) => {}
                    Some(waker) => waker.clone_from(context.waker()),
                    None => *waker = Some(context.waker().clone()),
                }
                Poll::Pending
            }
        }
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("seq", &self.seq()).field("is_done", &self.is_done()).finish()
    }
}
