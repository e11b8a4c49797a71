//! Operations of a simulated user and of the world around the database, as values and as lines of text.
//!
//! Keys and values are numbers that stand for bytes ([`key`], [`Value::bytes`]): a script stays short.

use std::ops::Bound;

use crate::fault::{Crash, Fault};
use crate::tickets::Use;
use terrane_base::Rng;
use terrane_base::rng::mix;

/// Keys of a run have numbers below this.
pub(crate) const KEYS_MAX: u64 = 2_000;
/// From here on keys are of a kind: operations in the middle of others leave them alone.
pub(crate) const KIND: u64 = 1 << 40;
/// Keys that are merged to, put and deleted.
pub(crate) const MERGED: u64 = KIND;
/// Keys that are put and then removed by a single delete, in turns.
pub(crate) const ONCE: u64 = 2 * KIND;
/// Keys that expire.
pub(crate) const EXPIRING: u64 = 3 * KIND;
/// Keys that are put together with such.
pub(crate) const MARK: u64 = 4 * KIND;
/// How they begin.
pub(crate) const MARK_PREFIX: &str = "mark/";
/// Keys of each kind.
pub(crate) const KEYS_OF_KIND: u64 = 5;

/// Every key that a run may write.
pub(crate) fn all_keys() -> impl Iterator<Item = Vec<u8>> {
    let of_kinds = [MERGED, ONCE, EXPIRING, MARK].into_iter().flat_map(|kind| kind..kind + KEYS_OF_KIND);
    (0..KEYS_MAX).chain(of_kinds).map(key)
}

/// Returns true if a key is one of those from [`KIND`] on.
pub(crate) fn is_of_a_kind(key: &[u8]) -> bool {
    let kinds: [&[u8]; 4] = [b"fold/", b"once/", b"ttl/", MARK_PREFIX.as_bytes()];
    kinds.iter().any(|kind| key.starts_with(kind))
}

/// Keys that are prefixes of each other, hold zero bytes, or are empty come up often.
#[must_use]
pub(crate) fn key(number: u64) -> Vec<u8> {
    match number / KIND {
        0 => {}
        1 => return format!("fold/{}", number % KIND).into_bytes(),
        2 => return format!("once/{}", number % KIND).into_bytes(),
        3 => return format!("ttl/{}", number % KIND).into_bytes(),
        _ => return format!("{MARK_PREFIX}{}", number % KIND).into_bytes(),
    }
    match mix(number) % 16 {
        0 => vec![0; (number % 8) as usize],
        1 => vec![0xff; (number % 5) as usize],
        2 => format!("k{number}").into_bytes(),
        3 => [b"prefix/".repeat((number % 4) as usize).as_slice(), &number.to_be_bytes()].concat(),
        4 => [b"long/".repeat((number % 60) as usize).as_slice(), &number.to_be_bytes()].concat(),
        _ => format!("key{number:08}").into_bytes(),
    }
}

/// A value: its length, and a number that no other value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    /// Bytes.
    pub(crate) len: u64,
    /// The number that makes it different from other values.
    pub(crate) stamp: u64,
}

impl Value {
    /// The bytes: the stamp as far as it fits, then some that compress well or not at all.
    #[must_use]
    pub(crate) fn bytes(self) -> Vec<u8> {
        let mut bytes = self.stamp.to_le_bytes()[..(self.len as usize).min(8)].to_vec();
        let mut numbers = Rng::new(self.stamp);
        let is_random = self.stamp.is_multiple_of(3);
        bytes.reserve(self.len as usize);
        while (bytes.len() as u64) < self.len {
            let piece = if is_random { numbers.next_u64() } else { self.stamp }.to_le_bytes();
            let left = self.len as usize - bytes.len();
            bytes.extend_from_slice(&piece[..left.min(8)]);
        }
        bytes
    }
}

/// A change of one key, in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The table.
    pub(crate) table: String,
    /// The key.
    pub(crate) key: u64,
    /// The value, or a delete.
    pub(crate) value: Option<Value>,
}

/// A range of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Where it begins.
    pub(crate) lower: Bound<u64>,
    /// Where it ends.
    pub(crate) upper: Bound<u64>,
}

/// In which direction a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the first key.
    Forward,
    /// From the last key.
    Backward,
    /// From both ends, by turns that the number decides.
    Both(u64),
    /// With a cursor that seeks, goes on and turns, by what the number decides.
    Cursor(u64),
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Sets a key by itself.
    Put { table: String, key: u64, value: Value, sync: bool },
    /// Removes a key by itself.
    Delete { table: String, key: u64 },
    /// Removes the keys from one to before another, by themselves; nothing if the range is empty.
    DeleteRange { table: String, from: u64, to: u64 },
    /// Merges an operand to a key.
    Merge { table: String, key: u64, value: Value, sync: bool },
    /// Puts a key that is not there, removes one that is by a single delete.
    Once { table: String, key: u64, value: Value },
    /// Sets a key for so long, and another one for good, as one.
    PutFor { table: String, key: u64, value: Value, millis: u64 },
    /// Takes files in that a seed stands for, one for each table, as one.
    Ingest { tables: Vec<String>, seed: u64 },
    /// Loads sorted rows that a seed stands for.
    Load { table: String, seed: u64 },
    /// Deletes a range and drops its extents.
    DropExtents { table: String, from: u64, to: u64 },
    /// Asks how much there is in a range.
    Estimate { table: String, from: u64, to: u64 },
    /// Writes a batch.
    Batch { edits: Vec<Edit>, sync: bool },
    /// Writes a batch without a wait for its sync, and does something with the ticket.
    WriteAsync { edits: Vec<Edit>, ticket: Use },
    /// Waits for a ticket in flight, one that the number chooses.
    Await { which: u64 },
    /// Does a transaction that a seed stands for, in these tables.
    Transact { tables: Vec<String>, seed: u64 },
    /// Makes, reads and writes an indexed batch that a seed stands for.
    Indexed { tables: Vec<String>, seed: u64 },
    /// Creates a table; with options of its own drawn from the seed, unless it is 0.
    Create { table: String, options: u64 },
    /// Drops a table.
    Drop { table: String },
    /// Reads a key, now or at a snapshot.
    Get { table: String, key: u64, at: Option<u64> },
    /// Asks whether a key is there.
    Contains { table: String, key: u64, at: Option<u64> },
    /// Reads several keys.
    MultiGet { table: String, keys: Vec<u64>, at: Option<u64> },
    /// Reads a range.
    Scan { table: String, span: Span, way: Way, limit: u64, at: Option<u64> },
    /// Reads what begins with the bytes of a key, cut to a length.
    Prefix { table: String, key: u64, len: u64, at: Option<u64> },
    /// Does a point read without asking filters.
    Plain(Box<Op>),
    /// Does a write, a get or a multi-get of the present through cores that own the tables.
    Through(Box<Op>),
    /// Takes the snapshot of this name, in place of an older one.
    Snapshot { name: u64 },
    /// Drops a snapshot.
    Release { name: u64 },
    /// Moves everything into the levels.
    Flush,
    /// Merges a range down.
    Compact { table: String, span: Span },
    /// Merges a level into the next one.
    Level { table: String, level: u64 },
    /// Writes what a table has in memory as an overflow run.
    Run { table: String },
    /// Lets scrubbing go through every table, and compares what it finds with what a check finds.
    Scrub,
    /// Pauses the background.
    Pause,
    /// Lets it go on.
    Resume,
    /// Cancels running compactions.
    Cancel,
    /// Makes every write durable.
    Sync,
    /// Waits until the background has nothing to do.
    Quiesce,
    /// Gives the background so many turns.
    Steps { count: u64 },
    /// Lets time pass.
    Wait { millis: u64 },
    /// Writes, then nothing for seconds, while the background does its work at rest.
    Rest,
    /// Compares every row, forward and backward, and runs the database's own check.
    Check,
    /// Has a reader look at what the death of the process would leave now.
    Peek,
    /// Makes a checkpoint of this name, one of a few.
    Checkpoint { name: u64 },
    /// Makes a backup in a way that the seed draws, and removes all but the newest `keep`.
    Backup { keep: u64, seed: u64 },
    /// Restores a backup elsewhere while calls fail or the process dies, in a way that the seed draws, and
    /// once more.
    Restore { seed: u64 },
    /// Restores a backup that the seed draws in the place of the database.
    GoBack { seed: u64 },
    /// Has a follower look at the open database.
    Follow,
    /// Brings what the death of the process would leave now into a new database, and looks at that.
    Repair,
    /// Closes and opens again; with options changed by the seed, unless it is 0.
    Reopen { options: u64 },
    /// Dies, now or at a call to come, and opens again.
    /// Once more at the `again`-th call of that opening, with the power.
    Crash { crash: Crash, after: u64, again: Option<u64> },
    /// Does something to calls to come.
    Fault(Fault),
    /// Ends the faults.
    Heal,
    /// Leaves the device only so much room.
    Room { bytes: u64 },
    /// Bits rot in files whose path contains the text, and the database is opened again.
    Rot { seed: u64, path_part: String },
    /// A bit of an extent rots while the database is open.
    Decay { seed: u64 },
    /// Does another operation in the middle of the next ones: at the `after`-th call from now on a data file,
    /// or, if it reads, that changes anything.
    During { after: u64, op: Box<Op> },
}

impl Op {
    /// Returns true if it only reads, and can fail without consequence.
    #[must_use]
    pub(crate) fn is_read(&self) -> bool {
        use Op::{Contains, Get, MultiGet, Plain, Prefix, Scan, Through};
        match self {
            Get { .. } | Contains { .. } | MultiGet { .. } | Scan { .. } | Prefix { .. } | Plain(_) => true,
            Through(op) => op.is_read(),
            _ => false,
        }
    }

    /// Returns true if it only asks for what the background does by itself: no answer depends on it, so it
    /// takes no time either.
    #[must_use]
    pub(crate) fn is_background(&self) -> bool {
        use Op::{Flush, Level, Quiesce, Resume, Run, Scrub, Steps, Sync};
        matches!(self, Flush | Level { .. } | Quiesce | Resume | Run { .. } | Scrub | Steps { .. } | Sync)
    }

    /// Returns true if cores can do it.
    #[must_use]
    pub(crate) fn may_go_through(&self) -> bool {
        matches!(self, Op::Put { .. } | Op::Delete { .. } | Op::DeleteRange { .. } | Op::Batch { .. })
            || matches!(self, Op::Get { at: None, .. } | Op::MultiGet { at: None, .. })
    }
}
