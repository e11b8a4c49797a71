//! Reports: a written report is read back; figures and verdicts on cells made by hand; table and page are
//! sound.
#![allow(
    clippy::disallowed_methods,
    clippy::type_complexity,
    clippy::unwrap_used,
    reason = "a test, on files of its own"
)]

mod compare;
mod fixture;
mod jsonl;
mod page;
mod summary;
mod table;
