//! Reports: what is written is what is read; figures and verdicts on cells made by hand; table and page are sound.

mod compare;
mod fixture;
mod jsonl;
mod page;
mod summary;
mod table;
