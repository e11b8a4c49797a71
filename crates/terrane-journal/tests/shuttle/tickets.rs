//! Tickets under the schedule explorer: no wake-up is lost, whichever thread persists.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Wake, Waker};

use shuttle::sync::Condvar;
use terrane_journal::{PersistThrough, Tickets};

use super::*;

/// A device that one thread at a time uses.
#[derive(Default)]
struct Device {
    in_use: AtomicBool,
    durable: AtomicU64,
}

impl Device {
    fn durable(&self) -> SeqNo {
        SeqNo(self.durable.load(Ordering::SeqCst))
    }
}

struct SharedDevice(Arc<Device>);

impl PersistThrough for SharedDevice {
    fn persist_through(&self, seq: SeqNo) -> Result<()> {
        assert!(!self.0.in_use.swap(true, Ordering::SeqCst), "two persisters");
        thread::yield_now();
        self.0.durable.fetch_max(seq.0, Ordering::SeqCst);
        self.0.in_use.store(false, Ordering::SeqCst);
        Ok(())
    }

    fn durable(&self) -> SeqNo {
        self.0.durable()
    }
}

fn served() -> (Arc<Device>, Arc<Tickets>, thread::JoinHandle<()>) {
    let device = Arc::new(Device::default());
    let (journal, env) = (SharedDevice(device.clone()), terrane_base::env::Env::real());
    let tickets = Tickets::new(Box::new(journal), 2, &env, |seq, text| panic!("callback of {seq}: {text}"));
    let service = tickets.clone();
    (device, tickets, thread::spawn(move || service.run()))
}

/// Sleeps until a waker or a callback wakes it.
#[derive(Default)]
struct Sleeper {
    is_woken: Mutex<bool>,
    changed: Condvar,
}

impl Sleeper {
    fn sleep(&self) {
        let mut is_woken = self.is_woken.lock().unwrap();
        while !*is_woken {
            is_woken = self.changed.wait(is_woken).unwrap();
        }
    }

    fn wake_up(&self) {
        *self.is_woken.lock().unwrap() = true;
        self.changed.notify_all();
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.wake_up();
    }
}

/// A wake-up that is missing shows as a deadlock.
#[test]
fn no_ticket_is_left_behind() {
    explore(|| {
        let (device, tickets, service) = served();
        let waiting = tickets.clone();
        let waiter = thread::spawn(move || {
            for number in [1, 2] {
                waiting.wait_for_room();
                assert_eq!(waiting.issue(SeqNo(number)).wait().unwrap(), SeqNo(number));
            }
        });
        let calling = tickets.clone();
        let caller = thread::spawn(move || {
            let sleeper = Arc::new(Sleeper::default());
            calling.wait_for_room();
            let called = sleeper.clone();
            calling.issue(SeqNo(3)).on_done(move |outcome| {
                assert_eq!(outcome.unwrap(), SeqNo(3));
                called.wake_up();
            });
            sleeper.sleep();
        });
        let sleeper = Arc::new(Sleeper::default());
        let mut ticket = tickets.issue(SeqNo(4));
        let waker = Waker::from(sleeper.clone());
        if Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)).is_pending() {
            sleeper.sleep();
        }
        assert!(ticket.is_done() && device.durable() >= SeqNo(4), "done before it is durable");
        waiter.join().unwrap();
        caller.join().unwrap();
        tickets.close();
        service.join().unwrap();
    });
}

#[test]
fn a_close_completes_tickets_beside_writers() {
    explore(|| {
        let (device, tickets, service) = served();
        let writing = tickets.clone();
        let writer = thread::spawn(move || {
            let issued = [1, 2, 3].map(|number| writing.issue(SeqNo(number)));
            issued.map(|ticket| ticket.wait().unwrap())
        });
        let first = tickets.issue(SeqNo(4));
        tickets.close();
        assert!(first.is_done(), "the close waited for it");
        assert_eq!(writer.join().unwrap(), [1, 2, 3].map(SeqNo));
        assert!(device.durable() >= SeqNo(4));
        service.join().unwrap();
    });
}

fn issue_with_callback(tickets: &Arc<Tickets>, number: u64, called: &Arc<AtomicU64>) {
    let called = called.clone();
    tickets.issue(SeqNo(number)).on_done(move |outcome| {
        called.fetch_add(outcome.unwrap().0, Ordering::SeqCst);
    });
}

/// Two writers want the room that the callbacks of two tickets take. Without the wake-up of the callback that
/// makes room it is a deadlock.
#[test]
fn a_callback_makes_room() {
    explore(|| {
        let (device, tickets, service) = served();
        let called = Arc::new(AtomicU64::new(0));
        for number in [1, 2] {
            issue_with_callback(&tickets, number, &called);
        }
        let writers = [3, 4].map(|number| {
            let (tickets, called) = (tickets.clone(), called.clone());
            thread::spawn(move || {
                tickets.wait_for_room();
                issue_with_callback(&tickets, number, &called);
            })
        });
        for writer in writers {
            writer.join().unwrap();
        }
        tickets.close();
        service.join().unwrap();
        assert_eq!(called.load(Ordering::SeqCst), 1 + 2 + 3 + 4, "each callback is called once");
        assert_eq!(device.durable(), SeqNo(4));
    });
}
