//! Counts of the operations of a run, by kind.

use std::fmt;

use crate::op::Op;

/// Everything that is counted. First the operations of scripts, then what they consist of, then what became
/// of them.
pub const NAMES: [&str; NAME_COUNT] = [
    "put",
    "delete",
    "delete range",
    "merge",
    "put once or single delete",
    "put for a time",
    "batch",
    "asynchronous write",
    "wait for a ticket",
    "indexed batch",
    "transaction",
    "ingest",
    "load",
    "drop extents",
    "estimate",
    "create table",
    "drop table",
    "get",
    "contains",
    "multi-get",
    "scan",
    "prefix scan",
    "read without filters",
    "through cores",
    "snapshot",
    "release of a snapshot",
    "flush",
    "compact",
    "compact a level",
    "flush to a run",
    "scrub",
    "pause",
    "resume",
    "cancel",
    "sync",
    "wait until quiescent",
    "background steps",
    "wait",
    "rest",
    "check",
    "look of a reader",
    "checkpoint",
    "backup",
    "restore",
    "request to go back to a backup",
    "go back to a backup",
    "follower",
    "repair",
    "reopen",
    "crash",
    "fault",
    "heal",
    "room",
    "rot",
    "decay",
    "in the middle of another",
    // In transactions.
    "transaction: optimistic",
    "transaction: pessimistic",
    "transaction: put",
    "transaction: delete",
    "transaction: single delete",
    "transaction: merge",
    "transaction: put until",
    "transaction: delete range",
    "transaction: read",
    "transaction: read for update",
    "transaction: scan",
    "transaction: savepoint",
    "transaction: write of another beside it",
    "transaction: wanted by another one",
    "transaction: moved on with its first lock",
    "transaction: lock taken away",
    "transaction: too late",
    "transaction: committed",
    "transaction: conflict",
    "transaction: rolled back",
    "transaction: prepared",
    "transaction: prepared, found after an opening",
    "transaction: prepared, committed",
    "transaction: prepared, rolled back",
    // In indexed batches.
    "indexed batch: put",
    "indexed batch: delete",
    "indexed batch: single delete",
    "indexed batch: merge",
    "indexed batch: put until",
    "indexed batch: delete range",
    "indexed batch: read",
    "indexed batch: scan",
    "indexed batch: savepoint",
    "indexed batch: written",
    // Outcomes of asynchronous writes.
    "asynchronous write: ticket dropped",
    "asynchronous write: durable",
    "asynchronous write: failed sync",
    "asynchronous write: called back",
    "asynchronous write: in flight at a crash",
    // Outcomes of other operations.
    "batch larger than its share",
    "ingest or load that failed",
    "range deletes of a file",
    "merges of a file",
    "backup that failed",
    "restore that failed",
    "restore that was killed",
    "change feed: gone on",
    "change feed: copied again",
];

/// How many there are.
const NAME_COUNT: usize = 104;

/// Counts by kind.
#[derive(Clone, Copy, Debug)]
pub struct Counts([u64; NAME_COUNT]);

impl Default for Counts {
    fn default() -> Self {
        Counts([0; NAME_COUNT])
    }
}

impl Counts {
    /// Counts one.
    ///
    /// # Panics
    /// If nothing of this name is counted.
    pub(crate) fn note(&mut self, name: &str) {
        let index = NAMES.iter().position(|known| *known == name);
        self.0[index.unwrap_or_else(|| panic!("nothing is counted as {name:?}"))] += 1;
    }

    /// Adds another's.
    pub(crate) fn add(&mut self, other: &Counts) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own += other);
    }

    /// Names and counts.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES.into_iter().zip(self.0)
    }
}

impl fmt::Display for Counts {
    /// The rows of a table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|(name, count)| writeln!(f, "| {name} | {count} |"))
    }
}

impl Op {
    /// As what it is counted: what it consists of, too.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        match self {
            Op::Through(op) | Op::Plain(op) | Op::During { op, .. } => {
                let mut names = op.names();
                names.push(self.name());
                names
            }
            op => vec![op.name()],
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Op::Put { .. } => "put",
            Op::Delete { .. } => "delete",
            Op::DeleteRange { .. } => "delete range",
            Op::Merge { .. } => "merge",
            Op::Once { .. } => "put once or single delete",
            Op::PutFor { .. } => "put for a time",
            Op::Batch { .. } => "batch",
            Op::WriteAsync { .. } => "asynchronous write",
            Op::Await { .. } => "wait for a ticket",
            Op::Indexed { .. } => "indexed batch",
            Op::Transact { .. } => "transaction",
            Op::Ingest { .. } => "ingest",
            Op::Load { .. } => "load",
            Op::DropExtents { .. } => "drop extents",
            Op::Estimate { .. } => "estimate",
            Op::Create { .. } => "create table",
            Op::Drop { .. } => "drop table",
            Op::Get { .. } => "get",
            Op::Contains { .. } => "contains",
            Op::MultiGet { .. } => "multi-get",
            Op::Scan { .. } => "scan",
            Op::Prefix { .. } => "prefix scan",
            Op::Plain(_) => "read without filters",
            Op::Through(_) => "through cores",
            op => op.name_of_world(),
        }
    }

    /// Names of operations that neither write nor read.
    fn name_of_world(&self) -> &'static str {
        match self {
            Op::Snapshot { .. } => "snapshot",
            Op::Release { .. } => "release of a snapshot",
            Op::Flush => "flush",
            Op::Compact { .. } => "compact",
            Op::Level { .. } => "compact a level",
            Op::Run { .. } => "flush to a run",
            Op::Scrub => "scrub",
            Op::Pause => "pause",
            Op::Resume => "resume",
            Op::Cancel => "cancel",
            Op::Sync => "sync",
            Op::Quiesce => "wait until quiescent",
            Op::Steps { .. } => "background steps",
            Op::Wait { .. } => "wait",
            Op::Rest => "rest",
            Op::Check => "check",
            Op::Peek => "look of a reader",
            Op::Checkpoint { .. } => "checkpoint",
            Op::Backup { .. } => "backup",
            Op::Restore { .. } => "restore",
            Op::GoBack { .. } => "request to go back to a backup",
            Op::Follow => "follower",
            Op::Repair => "repair",
            Op::Reopen { .. } => "reopen",
            Op::Crash { .. } => "crash",
            Op::Fault(_) => "fault",
            Op::Heal => "heal",
            Op::Room { .. } => "room",
            Op::Rot { .. } => "rot",
            Op::Decay { .. } => "decay",
            Op::During { .. } => "in the middle of another",
            _ => unreachable!("named above"),
        }
    }
}
