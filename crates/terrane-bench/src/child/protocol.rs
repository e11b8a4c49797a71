//! The protocol of parent and child: one job as JSON on the child's standard input, events as JSON lines on
//! its standard output.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::plan::{EngineChoice, Scenario};
use crate::report::model::{Cell, Failed};

/// The job of a child: one scenario on one engine, once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The engine.
    pub engine: EngineChoice,
    /// The scenario.
    pub scenario: Scenario,
    /// Repetition, from 0.
    pub repetition: u32,
    /// Seed of this repetition.
    pub seed: u64,
    /// Where the database lies; exists and is empty.
    pub directory: PathBuf,
}

/// A line that a child writes to its parent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A step has begun.
    Started {
        /// Its name.
        step: String,
    },
    /// How far the step is.
    Progress {
        /// Operations so far.
        operations: u64,
        /// Seconds so far.
        seconds: f64,
        /// Operations that there will be, if that is known.
        total: Option<u64>,
    },
    /// A step is done.
    Measured(Box<Cell>),
    /// A step was not measured; unless the engine merely lacks the operation, the child ends.
    Failed(Failed),
    /// The last event.
    Done,
}
