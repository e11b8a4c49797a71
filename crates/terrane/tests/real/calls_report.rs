//! The table of system calls, phases and outcomes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The outcome of a life with a fault.
pub(crate) enum Seen {
    /// The script met no error: the engine went on by itself.
    Unmoved,
    /// The script got an error.
    Refused,
    /// The allocator had no memory, which ends the process.
    Died,
    /// A fault of the engine.
    Bad(String),
}

const PHASES: [&str; 6] = ["open", "write", "flush", "compact", "recover", "close"];

#[derive(Default)]
struct Cell {
    unmoved: u64,
    refused: u64,
    died: u64,
    bad: u64,
}

/// Everything that was tried.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) lives: u64,
    pub(crate) failures: Vec<String>,
    cells: BTreeMap<(String, String), Cell>,
    errors: BTreeMap<String, BTreeSet<String>>,
    left_out: BTreeSet<String>,
}

impl Report {
    pub(crate) fn left_out<'a>(&mut self, calls: impl Iterator<Item = &'a String>) {
        self.left_out.extend(calls.cloned());
    }

    pub(crate) fn note(&mut self, call: &str, error: &str, phases: &BTreeSet<String>, seen: &Seen) {
        self.lives += 1;
        for phase in phases {
            let cell = self.cells.entry((call.to_owned(), phase.clone())).or_default();
            match seen {
                Seen::Unmoved => cell.unmoved += 1,
                Seen::Refused => cell.refused += 1,
                Seen::Died => cell.died += 1,
                Seen::Bad(_) => cell.bad += 1,
            }
            self.errors.entry(call.to_owned()).or_default().insert(error.to_owned());
        }
    }

    pub(crate) fn summary(&self) -> String {
        format!(
            "{} lives, {} calls made to fail, {} faults",
            self.lives,
            self.errors.len(),
            self.failures.len()
        )
    }

    /// One row per call: in each phase, lives that went on by themselves / got an error / ended for lack of
    /// memory / went wrong.
    pub(crate) fn table(&self) -> String {
        let mut text = String::from("| call | errors |");
        PHASES.iter().for_each(|phase| write!(text, " {phase} |").unwrap());
        text.push_str("\n|---|---|---|---|---|---|---|---|\n");
        for (call, errors) in &self.errors {
            let errors: Vec<&str> = errors.iter().map(String::as_str).collect();
            write!(text, "| `{call}` | {} |", errors.join(" ")).unwrap();
            for phase in PHASES {
                match self.cells.get(&(call.clone(), phase.to_owned())) {
                    Some(cell) => {
                        write!(text, " {}/{}/{}/{} |", cell.unmoved, cell.refused, cell.died, cell.bad)
                            .unwrap()
                    }
                    None => text.push_str(" – |"),
                }
            }
            text.push('\n');
        }
        let left: Vec<&str> = self.left_out.iter().map(String::as_str).collect();
        write!(text, "left out: {}", left.join(", ")).unwrap();
        text
    }
}
