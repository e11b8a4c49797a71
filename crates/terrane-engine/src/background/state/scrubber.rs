//! How far scrubbing is, and what it has found.

use std::collections::BTreeSet;
use std::time::Duration;

use terrane_base::TableId;
use terrane_base::sync::Mutex;

use crate::observe::findings::Finding;

/// Where the next extent is looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::background) struct Position {
    pub(in crate::background) table: TableId,
    /// Index of the overflow run or level among the places of the table, or `VALUES` of `scrub.rs`.
    pub(in crate::background) place: usize,
    /// The largest key of the last extent that was verified there; of value tables the number.
    pub(in crate::background) after: Option<Box<[u8]>>,
}

#[derive(Default)]
pub(in crate::background) struct State {
    pub(in crate::background) position: Position,
    /// Time at which the next piece is due.
    pub(in crate::background) due: Duration,
    pub(in crate::background) findings: Vec<Finding>,
    /// Files and offsets of the findings: a later pass finds the same again.
    pub(in crate::background) known: BTreeSet<String>,
}

/// How far scrubbing is and what it found.
#[derive(Default)]
pub(crate) struct Scrubber(pub(in crate::background) Mutex<State>);
