//! Results a person can read: table, JSON lines, HTML, comparison.
//!
//! A run appends lines to a file as they come ([`jsonl`]). What was read back is a [`model::RunReport`]; a
//! [`summary::Summary`] groups its cells over repetitions, and [`table`] and [`html`] draw that. [`compare`]
//! sets two runs side by side. [`metric`] is the one place that says how a figure is derived from a cell and
//! how it is written.

pub mod compare;
pub mod html;
pub mod jsonl;
pub mod metric;
pub mod model;
pub mod statistic;
pub mod summary;
pub mod table;
mod text;
