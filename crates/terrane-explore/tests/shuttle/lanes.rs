//! Lanes, bells and desks: order, completeness, sleep, helpers, closing, panics. A lost wake-up becomes a
//! deadlock, which the explorer reports.

#[path = "../../../terrane/src/cores/lane/mod.rs"]
mod lane;

use std::sync::Arc;

use lane::waiting::wait;
use lane::{Bell, Client, Desk, Serve, Server, Taken};
use shuttle::thread;

use crate::explore;

/// Answers a number with its double; panics at the number 7, if it is asked to.
struct Doubler {
    panics: bool,
    /// Of one lane, how many requests it answers in a round.
    at_once: usize,
}

const FAILED: u64 = u64::MAX;

#[derive(Default)]
struct Sum {
    asked: u64,
    answer: u64,
}

impl Serve for Doubler {
    type Slot = Sum;

    fn serve(&mut self, lanes: &mut [Server<Sum>]) {
        for lane in lanes {
            let count = lane.waiting().min(self.at_once);
            for index in 0..count {
                let sum = lane.get_mut(index);
                if self.panics && sum.asked == 7 {
                    // Without the hook, which would print it for every schedule.
                    std::panic::resume_unwind(Box::new("seven"));
                }
                assert_eq!(sum.answer, 0, "answered once");
                sum.answer = 2 * sum.asked;
                thread::yield_now();
            }
            lane.advance(count);
        }
    }

    fn fail(&mut self, sum: &mut Sum) {
        sum.answer = FAILED;
    }
}

type Asker = Client<Sum>;

fn desk(panics: bool) -> Arc<Desk<Doubler>> {
    Arc::new(Desk::new(Doubler { panics, at_once: 2 }))
}

/// The answers that a client got: in order, then how many requests were refused.
#[derive(Default)]
struct Heard {
    answers: Vec<u64>,
    refused: u64,
}

impl Heard {
    fn take_from(&mut self, client: &mut Asker) {
        client.look();
        while let Some(taken) = client.take() {
            match taken {
                Taken::Answered(sum) => {
                    assert_eq!(self.refused, 0, "an answer behind a refusal");
                    self.answers.push(sum.answer);
                }
                Taken::Refused(_) => self.refused += 1,
            }
        }
    }
}

/// Asks for `count` numbers from 1, each `together` of them published at once, and hears everything.
fn ask(desk: &Desk<Doubler>, slots: usize, count: u64, together: u64, helps: bool) -> Heard {
    let bell = terrane_base::sync::Arc::new(Bell::new());
    let mut heard = Heard::default();
    let Some(mut client) = desk.enter(slots, bell.clone()) else { return heard };
    for number in 1..=count {
        while client.free().is_none() {
            client.publish();
            wait(desk, &mut client, &bell, helps);
            heard.take_from(&mut client);
        }
        *client.free().unwrap() = Sum { asked: number, answer: 0 };
        client.submit();
        if number % together == 0 {
            client.publish();
        }
    }
    client.publish();
    while client.unanswered() + client.ready() > 0 {
        wait(desk, &mut client, &bell, helps);
        heard.take_from(&mut client);
    }
    assert_eq!(heard.answers.len() as u64 + heard.refused, count, "everything is heard of");
    heard
}

fn doubled(count: u64) -> Vec<u64> {
    (1..=count).map(|number| 2 * number).collect()
}

#[test]
fn answers_come_in_order_and_once() {
    for helps in [false, true] {
        explore(move || {
            let desk = desk(false);
            let owner = thread::spawn({
                let desk = desk.clone();
                move || desk.run()
            });
            let clients = [(2, 1), (4, 3)].map(|(slots, together)| {
                let desk = desk.clone();
                thread::spawn(move || ask(&desk, slots, 5, together, helps))
            });
            for client in clients {
                assert_eq!(client.join().unwrap().answers, doubled(5));
            }
            desk.close();
            owner.join().unwrap();
            assert_eq!(desk.served(), 10);
        });
    }
}

#[test]
fn a_desk_without_an_owner_is_served_by_waiting_clients() {
    explore(|| {
        let desk = desk(false);
        let clients = [1, 2].map(|together| {
            let desk = desk.clone();
            // The one that sleeps is woken by the one that served its request, or serves it.
            thread::spawn(move || {
                let bell = terrane_base::sync::Arc::new(Bell::new());
                let mut client = desk.enter(4, bell).unwrap();
                let mut heard = Heard::default();
                for number in 1..=3 {
                    *client.free().unwrap() = Sum { asked: number, answer: 0 };
                    client.submit();
                    if number % together == 0 {
                        client.publish();
                    }
                }
                client.publish();
                while heard.answers.len() < 3 {
                    if !desk.help() {
                        thread::yield_now();
                    }
                    heard.take_from(&mut client);
                }
                heard.answers
            })
        });
        for client in clients {
            assert_eq!(client.join().unwrap(), doubled(3));
        }
    });
}

#[test]
fn a_request_that_is_accepted_before_a_close_is_answered() {
    explore(|| {
        let desk = desk(false);
        let owner = thread::spawn({
            let desk = desk.clone();
            move || desk.run()
        });
        let clients = [false, true].map(|helps| {
            let desk = desk.clone();
            thread::spawn(move || ask(&desk, 2, 4, 2, helps))
        });
        desk.close();
        for client in clients {
            let heard = client.join().unwrap();
            assert_eq!(
                heard.answers,
                doubled(heard.answers.len() as u64),
                "a prefix, and nothing of it twice"
            );
        }
        owner.join().unwrap();
    });
}

#[test]
fn a_panic_is_an_answer() {
    explore(|| {
        let desk = desk(true);
        let owner = thread::spawn({
            let desk = desk.clone();
            move || desk.run()
        });
        let clients = [9, 5].map(|count| {
            let desk = desk.clone();
            thread::spawn(move || ask(&desk, 4, count, 2, count == 5))
        });
        for (client, count) in clients.into_iter().zip([9, 5]) {
            let answers = client.join().unwrap().answers;
            assert_eq!(answers.len(), count, "no client hangs");
            let failed = answers.iter().position(|answer| *answer == FAILED).unwrap_or(count);
            assert_eq!(answers[..failed], doubled(failed as u64));
            assert!(answers[failed..].iter().all(|answer| *answer == FAILED), "what panicked does not go on");
            assert!(count == 5 || failed <= 6, "the seventh was not answered");
        }
        desk.close();
        owner.join().unwrap();
    });
}

#[test]
fn clients_come_and_go() {
    explore(|| {
        let desk = desk(false);
        let owner = thread::spawn({
            let desk = desk.clone();
            move || desk.run()
        });
        let left = thread::spawn({
            let desk = desk.clone();
            move || {
                // Goes without hearing the answer.
                let mut client = desk.enter(2, terrane_base::sync::Arc::new(Bell::new())).unwrap();
                *client.free().unwrap() = Sum { asked: 1, answer: 0 };
                client.submit();
                drop(client);
                desk.wake();
                assert_eq!(ask(&desk, 2, 2, 1, false).answers, doubled(2));
            }
        });
        left.join().unwrap();
        desk.close();
        owner.join().unwrap();
        assert_eq!(desk.served(), 3, "accepted requests are done, from every client");
    });
}

/// Each of them was explored by itself; together they meet between two looks.
#[test]
fn a_panic_meets_a_close_and_clients_that_come_and_go() {
    explore(|| {
        let desk = desk(true);
        let owner = thread::spawn({
            let desk = desk.clone();
            move || desk.run()
        });
        let clients = [(8, false), (3, true)].map(|(count, helps)| {
            let desk = desk.clone();
            thread::spawn(move || ask(&desk, 2, count, 2, helps))
        });
        let gone = thread::spawn({
            let desk = desk.clone();
            move || {
                if let Some(mut client) = desk.enter(2, terrane_base::sync::Arc::new(Bell::new())) {
                    *client.free().unwrap() = Sum { asked: 1, answer: 0 };
                    client.submit();
                }
                desk.wake();
            }
        });
        desk.close();
        for client in clients {
            let answers = client.join().unwrap().answers;
            let failed = answers.iter().position(|answer| *answer == FAILED).unwrap_or(answers.len());
            assert_eq!(answers[..failed], doubled(failed as u64), "a prefix, and nothing of it twice");
            assert!(failed <= 6, "the seventh was not answered");
            assert!(answers[failed..].iter().all(|answer| *answer == FAILED), "what panicked does not go on");
        }
        gone.join().unwrap();
        owner.join().unwrap();
    });
}

/// A session has a lane to each desk and sleeps by one bell: whichever answers wakes it.
#[test]
fn one_bell_wakes_a_client_of_two_desks() {
    for helps in [false, true] {
        explore(move || {
            let desks = [desk(false), desk(false)];
            let owners = desks.clone().map(|desk| thread::spawn(move || desk.run()));
            let sessions = [3, 4].map(|count| {
                let desks = desks.clone();
                thread::spawn(move || ask_both(&desks, count, helps))
            });
            for (session, count) in sessions.into_iter().zip([3, 4]) {
                assert_eq!(session.join().unwrap(), [doubled(count), doubled(count)]);
            }
            desks.iter().for_each(|desk| desk.close());
            owners.into_iter().for_each(|owner| owner.join().unwrap());
        });
    }
}

/// Asks both desks for `count` numbers in turn; returns the answers of each.
fn ask_both(desks: &[Arc<Desk<Doubler>>; 2], count: u64, helps: bool) -> [Vec<u64>; 2] {
    let bell = terrane_base::sync::Arc::new(Bell::new());
    let mut clients = [0, 1].map(|at: usize| desks[at].enter(2, bell.clone()).unwrap());
    let mut heard = [Heard::default(), Heard::default()];
    let mut asked = [0; 2];
    loop {
        for ((client, heard), asked) in clients.iter_mut().zip(&mut heard).zip(&mut asked) {
            heard.take_from(client);
            while *asked < count && client.free().is_some() {
                *asked += 1;
                *client.free().unwrap() = Sum { asked: *asked, answer: 0 };
                client.submit();
            }
            client.publish();
        }
        if heard.iter().all(|heard| heard.answers.len() as u64 == count) {
            return heard.map(|heard| heard.answers);
        }
        if helps && desks.iter().any(|desk| desk.help()) {
            continue;
        }
        desks.iter().for_each(|desk| desk.wake());
        bell.announce();
        let is_ready = |client: &mut Asker| {
            client.look();
            client.ready() > 0
        };
        if clients.iter_mut().any(is_ready) { bell.cancel() } else { bell.sleep() }
    }
}
