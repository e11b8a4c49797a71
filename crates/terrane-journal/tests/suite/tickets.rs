//! Tickets: shared persist steps, failures, callbacks, wakers, room, close.
#![cfg(not(feature = "shuttle"))]
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may panic and start threads")]

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use terrane_base::env::{Env, Step, SteppedSpawn};
use terrane_base::{Error, Kind, Result, SeqNo};
use terrane_journal::{PersistThrough, Ticket, Tickets};

/// Counts persist steps and remembers how far they reached; everything from step `fails_from` on fails.
#[derive(Default)]
struct Device {
    steps: AtomicU64,
    durable: AtomicU64,
    fails_from: AtomicU64,
}

struct Shared(Arc<Device>);

impl PersistThrough for Shared {
    fn persist_through(&self, seq: SeqNo) -> Result<()> {
        let step = self.0.steps.fetch_add(1, Ordering::SeqCst) + 1;
        let fails_from = self.0.fails_from.load(Ordering::SeqCst);
        if fails_from > 0 && step >= fails_from {
            return Err(Error::new(Kind::Io, "the device failed"));
        }
        self.0.durable.fetch_max(seq.0, Ordering::SeqCst);
        Ok(())
    }

    fn durable(&self) -> SeqNo {
        SeqNo(self.0.durable.load(Ordering::SeqCst))
    }
}

fn tickets(in_flight_max: usize, has_thread: bool) -> (Arc<Device>, Arc<Tickets>) {
    let (device, mut env) = (Arc::new(Device::default()), Env::real());
    if !has_thread {
        env.spawn = Arc::new(SteppedSpawn::default());
    }
    (device.clone(), Tickets::new(Box::new(Shared(device)), in_flight_max, &env, note_panic))
}

thread_local! {
    /// The panicked callbacks that were reported to this thread.
    static PANICKED: RefCell<Vec<(SeqNo, String)>> = const { RefCell::new(Vec::new()) };
}

fn note_panic(seq: SeqNo, text: &str) {
    PANICKED.with_borrow_mut(|panics| panics.push((seq, text.to_owned())));
}

fn issue(tickets: &Arc<Tickets>, numbers: std::ops::RangeInclusive<u64>) -> Vec<Ticket> {
    numbers.map(|number| tickets.issue(SeqNo(number))).collect()
}

#[test]
fn one_persist_step_completes_all_that_wait() {
    let (device, tickets) = tickets(1 << 16, false);
    let issued = issue(&tickets, 1..=1000);
    assert!(issued.iter().all(|ticket| !ticket.is_done()), "nothing is durable yet");
    assert_eq!(issued[10].wait().unwrap(), SeqNo(11));
    assert_eq!((device.steps.load(Ordering::SeqCst), device.durable.load(Ordering::SeqCst)), (1, 1000));
    for (ticket, number) in issued.iter().zip(1..) {
        assert_eq!((ticket.seq(), ticket.is_done()), (SeqNo(number), true));
        assert_eq!(ticket.wait_for(Duration::ZERO).unwrap().unwrap(), SeqNo(number));
    }
    assert!(tickets.issue(SeqNo(500)).is_done(), "a durable commit needs no step");
    assert_eq!(device.steps.load(Ordering::SeqCst), 1);
}

#[test]
fn a_failed_persist_step_reaches_every_ticket_that_is_not_durable() {
    let (device, tickets) = tickets(1 << 16, false);
    let issued = issue(&tickets, 1..=10);
    device.fails_from.store(1, Ordering::SeqCst);
    device.durable.store(3, Ordering::SeqCst); // by another thread that syncs
    assert_eq!(issued[9].wait().unwrap_err().kind(), Kind::Io);
    for (ticket, number) in issued.iter().zip(1..) {
        assert!(ticket.is_done());
        assert_eq!(ticket.wait().map_err(|error| error.kind()).is_ok(), number <= 3, "ticket {number}");
    }
    assert_eq!(device.steps.load(Ordering::SeqCst), 1);
    assert_eq!(tickets.issue(SeqNo(11)).wait().unwrap_err().kind(), Kind::Io, "later ones fail as well");
}

#[test]
fn a_close_completes_every_ticket_and_dropped_ones() {
    let (device, tickets) = tickets(1 << 16, false);
    let kept = issue(&tickets, 1..=3);
    drop(issue(&tickets, 4..=5));
    tickets.close();
    assert!(kept.iter().all(Ticket::is_done));
    assert_eq!(device.durable.load(Ordering::SeqCst), 5, "a dropped ticket is not a dropped commit");
    let late = tickets.issue(SeqNo(6));
    assert!(late.is_done() && late.wait().is_ok());
    assert_eq!(device.durable.load(Ordering::SeqCst), 6);
    assert_eq!(tickets.step(), Step::Ended);
    drop(tickets);
    assert_eq!(kept[0].wait().unwrap(), SeqNo(1), "a ticket outlives what issued it");
}

#[test]
fn callbacks_come_in_order_and_a_panic_loses_one_call() {
    let (_, tickets) = tickets(1 << 16, false);
    let called = Arc::new(Mutex::new(Vec::new()));
    for (ticket, number) in issue(&tickets, 1..=5).into_iter().zip(1u64..) {
        let called = called.clone();
        ticket.on_done(move |outcome| {
            assert!(number != 3, "on purpose");
            called.lock().unwrap().push(outcome.unwrap().0);
        });
    }
    assert_eq!(tickets.step(), Step::Worked);
    assert!(called.lock().unwrap().is_empty(), "the persist step calls nothing by itself");
    while tickets.step() == Step::Worked {}
    assert_eq!((called.lock().unwrap().clone(), tickets.callback_panics()), (vec![1, 2, 4, 5], 1));
    let (sender, outcomes) = mpsc::channel();
    tickets.issue(SeqNo(2)).on_done(move |outcome| sender.send(outcome).unwrap());
    assert_eq!(outcomes.try_recv().unwrap().unwrap(), SeqNo(2), "at once, if it is done");
    tickets.issue(SeqNo(3)).on_done(|_| panic!("on {}", "purpose"));
    tickets.done(SeqNo(6)).on_done(|_| std::panic::panic_any(7));
    assert_eq!(tickets.callback_panics(), 3, "those that are called at once count as well");
    let panics = PANICKED.take();
    let panics: Vec<_> = panics.iter().map(|(seq, text)| (seq.0, text.as_str())).collect();
    assert_eq!(panics, [(3, "on purpose"), (3, "on purpose"), (6, "a panic without a text")]);
}

#[test]
fn a_callback_may_wait_for_another_ticket() {
    let (device, tickets) = tickets(1 << 16, false);
    let (sender, outcomes) = mpsc::channel();
    let again = tickets.clone();
    tickets.issue(SeqNo(1)).on_done(move |_| sender.send(again.issue(SeqNo(2)).wait()).unwrap());
    while tickets.step() == Step::Worked {}
    assert_eq!(outcomes.try_recv().unwrap().unwrap(), SeqNo(2));
    assert_eq!(device.steps.load(Ordering::SeqCst), 2);
}

#[derive(Default)]
struct Counting(AtomicU64);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_polled_ticket_wakes_its_last_waker_once() {
    let (_, tickets) = tickets(1 << 16, false);
    let mut ticket = tickets.issue(SeqNo(1));
    let (first, last) = (Arc::new(Counting::default()), Arc::new(Counting::default()));
    for counting in [&first, &last] {
        let waker = Waker::from(counting.clone());
        assert!(Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    assert_eq!(tickets.step(), Step::Worked);
    assert_eq!((first.0.load(Ordering::SeqCst), last.0.load(Ordering::SeqCst)), (0, 1));
    let waker = Waker::from(last.clone());
    let Poll::Ready(outcome) = Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)) else {
        panic!("it is durable");
    };
    assert_eq!(outcome.unwrap(), SeqNo(1));
}

#[test]
fn a_persist_step_makes_room() {
    let (device, tickets) = tickets(2, false);
    let first = issue(&tickets, 1..=1);
    assert!(tickets.has_room());
    drop(issue(&tickets, 2..=2));
    assert!(!tickets.has_room());
    tickets.wait_for_room();
    assert!(tickets.has_room() && first[0].is_done());
    tickets.wait_for_room();
    assert_eq!(device.steps.load(Ordering::SeqCst), 1, "a writer waits only if there is no room");
    for number in [3, 4] {
        tickets.issue(SeqNo(number)).on_done(|_| {});
    }
    assert_eq!(tickets.step(), Step::Worked);
    assert!(!tickets.has_room(), "callbacks to come count");
    assert_eq!(tickets.step(), Step::Worked);
    assert!(tickets.has_room());
}

#[test]
fn a_thread_serves_what_no_caller_waits_for() {
    let (_, tickets) = tickets(1 << 16, true);
    let served = tickets.clone();
    let thread = std::thread::spawn(move || served.run());
    let (sender, outcomes) = mpsc::channel();
    for number in 1..=100 {
        let sender = sender.clone();
        tickets.issue(SeqNo(number)).on_done(move |outcome| sender.send(outcome.unwrap().0).unwrap());
    }
    drop(sender);
    assert_eq!(outcomes.iter().sum::<u64>(), 5050);
    let last = tickets.issue(SeqNo(101));
    while last.wait_for(Duration::from_millis(1)).is_none() {}
    tickets.close();
    thread.join().unwrap();
}
