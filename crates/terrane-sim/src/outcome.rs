//! Figures of a run.

use crate::count::Counts;
use crate::trace::Trace;

/// Figures of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Hash of everything that happened: the same for the same script, always.
    pub trace: Trace,
    /// Hash of every answer: the same for the same operations under other options.
    pub answers: Trace,
    /// Operations done.
    pub operations: u64,
    /// Operations done in the middle of others.
    pub nested: u64,
    /// Crashes, those inside a recovery included.
    pub crashes: u64,
    /// Times the database was opened.
    pub opens: u64,
    /// Calls that were refused with EIO.
    pub broken: u64,
    /// Calls that were refused with ENOSPC by a fault; want of room is not counted.
    pub full: u64,
    /// Syncs that failed and then lied.
    pub lies: u64,
    /// Bits that rotted, reads and writes harmed without a word.
    pub silent: u64,
    /// Extents that scrubbing verified.
    pub scrubbed: u64,
    /// Bytes of them.
    pub scrubbed_bytes: u64,
    /// Damaged parts of extents that scrubbing found.
    pub found: u64,
    /// Looks of a reader at what a dead process left, and repairs of it.
    pub looks: u64,
    /// Operations, by kind.
    pub did: Counts,
    /// True if the database said that it is damaged, which ends a run.
    pub refused: bool,
}

impl Outcome {
    /// Adds another's counts; hashes stay.
    pub fn add(&mut self, other: &Outcome) {
        self.operations += other.operations;
        self.nested += other.nested;
        self.crashes += other.crashes;
        self.opens += other.opens;
        self.broken += other.broken;
        self.full += other.full;
        self.lies += other.lies;
        self.silent += other.silent;
        self.scrubbed += other.scrubbed;
        self.scrubbed_bytes += other.scrubbed_bytes;
        self.found += other.found;
        self.looks += other.looks;
        self.did.add(&other.did);
    }
}
