//! Requests from one thread to another and their answers back, without a lock and without an allocation.
//!
//! ```text
//! client ──fills──► [ slot slot slot slot ... ] ◄──answers in place── desk (one thread at a time)
//!    ▲                        ring                                      │
//!    └──────────── takes the answers in order ◄─────────────────────────┘
//! ```
//!
//! * [`ring`]: a *lane*, the ring between one client and one desk. A request is answered in the slot in which
//!   it came, so that slots keep their buffers and no second ring is needed.
//! * [`bell`]: sleep and wake-up of a thread that waits for others.
//! * [`desk`]: the lanes that one thread at a time serves; which thread serves them, and how that ends.
//!
//! # Nothing is lost
//! A request counts as *accepted* when its publication finds the lane open ([`ring`]). A desk that closes
//! first ends every lane, by the same word, and then serves what was accepted. Later requests are *refused*:
//! the client gets that as the answer.
//!
//! # No thread sleeps for ever
//! A thread announces that it will sleep and then checks once more; a thread with work stores it first and
//! then checks for the announcement. All four are sequentially consistent, so at least one of the two sees
//! the other ([`bell`]).

mod bell;
mod desk;
mod ring;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
#[cfg(test)]
pub(crate) mod waiting;

pub(crate) use bell::Bell;
pub(crate) use desk::{Desk, Serve};
pub(crate) use ring::{Client, Server, Taken};
