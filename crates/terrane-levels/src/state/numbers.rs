//! Numbers of a state: which are possible, and that no edit lowers one.

use terrane_base::{Error, Result, SeqNo};
use terrane_format::manifest::{NextIds, Place};

use super::State;

/// Most tables that can ever be created: the engine keeps an array indexed by their numbers, so this bounds
/// memory.
pub(super) const TABLE_NUMBERS: u32 = 1 << 22;
/// Most segment files.
pub(super) const FILE_NUMBERS: u32 = 1 << 31;
/// Most segments, runs and epochs: sums below it cannot overflow, and no database needs so many.
const NUMBERS: u64 = 1 << 62;

impl State {
    /// The numbers that no edit lowers: the next free ones, the durable and flushed ones, and the epoch.
    pub(super) fn rising(&self) -> [u64; 7] {
        let NextIds { table, segment, segment_file, run } = self.next;
        let seqs = [self.durable.0, self.flushed_all.0];
        [table.0.into(), segment.0, segment_file.into(), run, seqs[0], seqs[1], self.epoch]
    }

    pub(super) fn raise_next(&mut self, next: &NextIds) -> Result<()> {
        let now = &self.next;
        let lowered = next.table < now.table
            || next.segment < now.segment
            || next.segment_file < now.segment_file
            || next.run < now.run;
        if lowered {
            return Err(Error::invalid(format!("free numbers go back from {now:?} to {next:?}")));
        }
        let is_possible = next.table.0 <= TABLE_NUMBERS
            && next.segment_file <= FILE_NUMBERS
            && next.segment.0 <= NUMBERS
            && next.run <= NUMBERS;
        if !is_possible {
            return Err(used_up());
        }
        self.next = *next;
        Ok(())
    }
}

pub(super) fn run_after(place: Place) -> Result<u64> {
    match place {
        Place::Run(run) => after_u64(run),
        Place::Level(_) | Place::Values => Ok(0),
    }
}

pub(super) fn raise(number: &mut SeqNo, to: SeqNo) -> Result<()> {
    check_seq(to)?;
    // Concurrent jobs append in any order; the highest number counts.
    *number = to.max(*number);
    Ok(())
}

pub(super) fn check_seq(seq: SeqNo) -> Result<()> {
    if seq > SeqNo::MAX {
        Err(Error::invalid(format!("sequence number {seq} is beyond 56 bits")))
    } else {
        Ok(())
    }
}

/// The number after one of `count` numbers.
pub(super) fn after(number: u32, count: u32) -> Result<u32> {
    if number < count { Ok(number + 1) } else { Err(used_up()) }
}

pub(super) fn after_u64(number: u64) -> Result<u64> {
    if number < NUMBERS { Ok(number + 1) } else { Err(used_up()) }
}

#[cold]
fn used_up() -> Error {
    Error::invalid("a number beyond the last possible one: the numbers of a database are used up")
}
