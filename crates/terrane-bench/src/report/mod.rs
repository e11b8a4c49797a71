//! Results a person can read: table, JSON lines, HTML, comparison.

pub mod model;
