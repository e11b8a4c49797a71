//! Lanes, bells and desks with real threads: order, sleep, helpers, closing. `terrane-explore` explores
//! their schedules; this program is for ThreadSanitizer and Miri, which find data races.
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]

use std::sync::Arc;

use super::ring::lane;
use super::waiting::wait;
use super::{Bell, Client, Desk, Serve, Server, Taken};

const CLIENTS: u64 = 3;
const REQUESTS: u64 = if cfg!(miri) { 40 } else { 20_000 };

/// A request with bytes of its own, so that a slot that two threads use at once is found.
#[derive(Default)]
struct Text {
    asked: String,
    answer: String,
}

/// Answers with the text turned round, up to three of a lane in a round.
struct Turner;

fn turned(text: &str) -> String {
    text.chars().rev().collect()
}

impl Serve for Turner {
    type Slot = Text;

    fn serve(&mut self, lanes: &mut [Server<Text>]) {
        for lane in lanes {
            let count = lane.waiting().min(3);
            for index in 0..count {
                let text = lane.get_mut(index);
                text.answer = turned(&text.asked);
            }
            lane.advance(count);
        }
    }

    fn fail(&mut self, text: &mut Text) {
        text.answer.clear();
    }
}

fn request(client: u64, number: u64) -> String {
    format!("{client} asks for {number}")
}

/// Takes the ready answers; returns how many, and whether one of them was refused.
fn take(client: &mut Client<Text>, name: u64, heard: u64) -> (u64, bool) {
    client.look();
    let mut number = heard;
    while let Some(taken) = client.take() {
        match taken {
            Taken::Answered(text) => assert_eq!(text.answer, turned(&request(name, number))),
            Taken::Refused(_) => return (number - heard, true),
        }
        number += 1;
    }
    (number - heard, false)
}

/// Asks `count` times, as far as the desk is open; returns how many answers came.
fn ask(desk: &Desk<Turner>, name: u64, count: u64) -> u64 {
    let bell = Arc::new(Bell::new());
    let Some(mut client) = desk.enter(4, bell.clone()) else { return 0 };
    let mut heard = 0;
    for number in 0..count {
        while client.free().is_none() {
            client.publish();
            wait(desk, &mut client, &bell, name.is_multiple_of(2));
            let (more, is_refused) = take(&mut client, name, heard);
            heard += more;
            if is_refused {
                return heard;
            }
        }
        *client.free().unwrap() = Text { asked: request(name, number), answer: String::new() };
        client.submit();
        if number % 3 == name % 3 {
            client.publish();
        }
    }
    client.publish();
    while client.unanswered() + client.ready() > 0 {
        wait(desk, &mut client, &bell, name.is_multiple_of(2));
        let (more, is_refused) = take(&mut client, name, heard);
        heard += more;
        if is_refused {
            break;
        }
    }
    heard
}

#[test]
fn every_request_is_answered_in_its_slot() {
    let desk = Desk::new(Turner);
    std::thread::scope(|scope| {
        let owner = scope.spawn(|| desk.run());
        let clients: Vec<_> = (0..CLIENTS)
            .map(|name| {
                scope.spawn({
                    let desk = &desk;
                    move || ask(desk, name, REQUESTS)
                })
            })
            .collect();
        for client in clients {
            assert_eq!(client.join().unwrap(), REQUESTS);
        }
        desk.close();
        owner.join().unwrap();
    });
    assert_eq!(desk.served(), CLIENTS * REQUESTS);
}

#[test]
fn a_close_answers_what_it_accepted() {
    for _ in 0..if cfg!(miri) { 2 } else { 200 } {
        let desk = Desk::new(Turner);
        std::thread::scope(|scope| {
            let owner = scope.spawn(|| desk.run());
            let clients: Vec<_> = (0..CLIENTS)
                .map(|name| {
                    scope.spawn({
                        let desk = &desk;
                        move || ask(desk, name, 30)
                    })
                })
                .collect();
            desk.close();
            let heard: u64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
            owner.join().unwrap();
            assert_eq!(desk.served(), heard, "what was accepted is heard of, and nothing else");
        });
    }
}

/// Both ends in one thread, through many laps, and the rest in the slots goes with them.
#[test]
fn slots_go_round() {
    let (mut client, mut server) = lane::<Text>(2, Arc::new(Bell::new()));
    for number in 0..9 {
        *client.free().unwrap() = Text { asked: request(0, number), answer: String::new() };
        client.submit();
        client.publish();
        assert_eq!(server.look(), 1);
        let text = server.get_mut(0);
        text.answer = turned(&text.asked);
        server.advance(1);
        assert_eq!(take(&mut client, 0, number), (1, false));
    }
    client.free().unwrap().asked = request(0, 9);
    client.submit();
    drop(client);
    assert!(server.is_gone());
    assert_eq!((server.look(), server.get(0).asked.as_str()), (1, "0 asks for 9"));
}
