//! Decides from counted reads and writes whether a table's tree should have fewer sorted runs: a pure
//! function to a [`Mode`]. It uses whole numbers only, so that every machine decides alike.
//!
//! Steps: 1. [`Load::observe`] adds the counts since the last call; older counts decay over `WINDOW_MS`. Once
//! nothing was written for `ENTER_MS`, earlier writes are forgotten. 2. After `ENTER_MS` with enough reads
//! and hardly a write, the table is read-heavy. 3. It stays so until a larger share is written, or hardly
//! anything is read: between the two thresholds the mode does not change, so that a load near one of them
//! does not alternate. 4. [`Load::pays`] compares the cost of a merge with the reads that it helps.
//!
//! How long the reads will continue is unknown; the estimate is as long again as they have lasted. So cheap
//! work is done soon and expensive work only after a long time, and a load that changes often costs little.

use terrane_base::options::AdaptiveShape;

/// Counts decay over this time, in milliseconds, so a sum is about what comes in one second.
const WINDOW_MS: u64 = 1000;
/// How long a load must have been read-heavy before the mode changes, in milliseconds.
const ENTER_MS: u64 = 1000;
/// Reads and seeks in a window below which there is nothing to win.
const READS_MIN: u64 = 100;
/// Reads per record written from which on a load is read-heavy.
const ENTER_RATIO: u64 = 64;
/// Reads per record written below which it no longer is.
const LEAVE_RATIO: u64 = 16;
/// The longest time that reads are expected to continue, in milliseconds.
const HORIZON_MS: u64 = 3_600_000;
/// Cost of one more sorted run for a point read: the fences, and a filter. Nanoseconds.
const READ_RUN_NANOS: u64 = 250;
/// Cost of one more sorted run for a seek: an index block and a data block. Nanoseconds.
const SEEK_RUN_NANOS: u64 = 600;
/// Cost of reading, merging and writing a stored byte. Nanoseconds. The design page has the measurements;
/// half of the gains is counted.
const MERGE_BYTE_NANOS: u64 = 5;

/// The goal for the shape of a table's tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// As few bytes are merged as the limits of the shape allow.
    #[default]
    WriteFriendly,
    /// As few sorted runs as are worth their merges.
    ReadHeavy,
}

/// The counts of a table between two observations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Keys that point reads searched.
    pub reads: u64,
    /// Sorted runs that they searched.
    pub read_runs: u64,
    /// Scans that were placed.
    pub seeks: u64,
    /// Sorted runs that these were placed in.
    pub seek_runs: u64,
    /// Records written.
    pub records: u64,
    /// Bytes of these records.
    pub bytes: u64,
}

impl Counted {
    /// Applies `change` to each number and its counterpart.
    fn zip(self, other: Counted, change: impl Fn(u64, u64) -> u64) -> Counted {
        Counted {
            reads: change(self.reads, other.reads),
            read_runs: change(self.read_runs, other.read_runs),
            seeks: change(self.seeks, other.seeks),
            seek_runs: change(self.seek_runs, other.seek_runs),
            records: change(self.records, other.records),
            bytes: change(self.bytes, other.bytes),
        }
    }

    /// The counts since `earlier`; 0 for a count that went back.
    #[must_use]
    pub fn since(self, earlier: Counted) -> Counted {
        self.zip(earlier, u64::saturating_sub)
    }
}

/// The use of a table in the last while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The decayed counts: about what comes in one second.
    pub recent: Counted,
    /// The goal for the shape.
    pub mode: Mode,
    /// For how long the load has been read-heavy, in milliseconds.
    pub read_heavy_ms: u64,
    /// For how long nothing has been written, in milliseconds.
    pub quiet_ms: u64,
}

impl Load {
    /// The load after another `elapsed_ms` milliseconds in which `counted` was counted.
    #[must_use]
    pub fn observe(&self, policy: AdaptiveShape, counted: Counted, elapsed_ms: u64) -> Load {
        let fade = |old: u64, new: u64| {
            if elapsed_ms >= WINDOW_MS {
                return new.saturating_mul(WINDOW_MS) / elapsed_ms;
            }
            // Rounded up, so that it reaches 0.
            (old - (old.saturating_mul(elapsed_ms)).div_ceil(WINDOW_MS).min(old)).saturating_add(new)
        };
        let quiet_ms = if counted.records == 0 { self.quiet_ms.saturating_add(elapsed_ms) } else { 0 };
        let mut recent = self.recent.zip(counted, fade);
        if quiet_ms >= ENTER_MS {
            (recent.records, recent.bytes) = (0, 0);
        }
        let mut load = Load { recent, quiet_ms, ..*self };
        load.follow(policy, elapsed_ms);
        debug_assert!(policy != AdaptiveShape::Off || load.mode == Mode::WriteFriendly, "the option is off");
        debug_assert!(
            load.mode == Mode::WriteFriendly || (load.recent.reads, load.recent.seeks) != (0, 0),
            "no reads"
        );
        load
    }

    fn follow(&mut self, policy: AdaptiveShape, elapsed_ms: u64) {
        let (enter_ms, reads_min) = match policy {
            AdaptiveShape::Off => {
                (self.mode, self.read_heavy_ms) = (Mode::WriteFriendly, 0);
                return;
            }
            AdaptiveShape::Auto => (ENTER_MS, READS_MIN),
            AdaptiveShape::Eager => (0, 1),
        };
        let reads = self.recent.reads.saturating_add(self.recent.seeks);
        let (ratio, reads_min) = match self.mode {
            Mode::WriteFriendly => (ENTER_RATIO, reads_min),
            Mode::ReadHeavy => (LEAVE_RATIO, (reads_min / 4).max(1)),
        };
        debug_assert!(reads_min > 0, "a table without reads would be shaped for reads");
        let is_read = reads >= reads_min && self.recent.records.saturating_mul(ratio) <= reads;
        if !is_read {
            let stays = terrane_base::planted!(StayReadHeavy) && self.mode == Mode::ReadHeavy;
            self.mode = if stays { Mode::ReadHeavy } else { Mode::WriteFriendly };
            self.read_heavy_ms = 0;
            return;
        }
        self.read_heavy_ms = self.read_heavy_ms.saturating_add(elapsed_ms);
        if self.read_heavy_ms >= enter_ms {
            self.mode = Mode::ReadHeavy;
        }
    }

    /// Returns true if nothing but the time without writes changes while there are no reads or writes.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        let is_quiet = self.recent == Counted::default() && self.quiet_ms >= ENTER_MS;
        is_quiet && self.mode == Mode::WriteFriendly && self.read_heavy_ms == 0
    }

    /// Sorted runs per recent point read, in thousandths; 0 if there were no reads.
    #[must_use]
    pub fn runs_per_read_milli(&self) -> u64 {
        self.recent.read_runs.saturating_mul(1000).checked_div(self.recent.reads).unwrap_or(0)
    }

    /// Returns true if reads are expected to save more time by one sorted run less, of `runs`, than a merge
    /// of `bytes` takes. `refill_bytes` is what writers write until there is a new run.
    #[must_use]
    pub fn pays(&self, policy: AdaptiveShape, bytes: u64, runs: u64, refill_bytes: u64) -> bool {
        if self.mode == Mode::WriteFriendly || runs < 2 {
            return false;
        }
        if policy == AdaptiveShape::Eager {
            return true;
        }
        // The run in which a read ends is unknown: the runs beyond the first that it searched are distributed
        // over the others.
        let saved_reads = self.recent.read_runs.saturating_sub(self.recent.reads) / (runs - 1);
        let saved_seeks = self.recent.seek_runs / runs;
        let nanos = saved_reads
            .saturating_mul(READ_RUN_NANOS)
            .saturating_add(saved_seeks.saturating_mul(SEEK_RUN_NANOS));
        let refill_ms = refill_bytes.saturating_mul(WINDOW_MS).checked_div(self.recent.bytes);
        let lasts_ms = self.read_heavy_ms.min(HORIZON_MS).min(refill_ms.unwrap_or(HORIZON_MS));
        let won = u128::from(nanos) * u128::from(lasts_ms) / u128::from(WINDOW_MS);
        won >= u128::from(bytes) * u128::from(MERGE_BYTE_NANOS)
    }
}
