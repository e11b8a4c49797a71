//! The operations of the callers of a history, as values drawn from a seed.
//!
//! Every caller writes keys of its own and knows at any time what they must be; it may read everything. So
//! every answer can be compared exactly, whatever the schedule. Maintenance concerns the whole database, and
//! any caller requests it.

use std::fmt;
use terrane_base::Rng;

/// Keys of each caller in each table that any operation may change.
pub(super) const KEYS: u64 = 12;
/// Keys behind those, which are put once and removed by a single delete, in turns.
pub(super) const SINGLE_KEYS: u64 = 2;
/// Tables that are there from the beginning to the end.
pub(super) const TABLES: [&str; 2] = ["default", "second"];

/// Which caller's key, in which of [`TABLES`], or in the caller's own table, which comes and goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) table: usize,
    pub(super) key: u64,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Put {
        at: At,
        len: u64,
        sync: bool,
    },
    Delete {
        at: At,
    },
    DeleteRange {
        table: usize,
        from: u64,
        to: u64,
    },
    Merge {
        at: At,
        len: u64,
    },
    /// A batch over both tables, some of it deletes.
    Batch {
        seed: u64,
        sync: bool,
    },
    /// Values for every key of the caller, several times: more than a memtable and a segment of most
    /// histories hold.
    Fill {
        table: usize,
    },
    /// A transaction that reads and writes keys of its caller; optimistic or with locks; rolled back now and
    /// then.
    Transact {
        seed: u64,
    },
    /// A transaction that is prepared, and then committed or rolled back by its name.
    Prepare {
        seed: u64,
    },
    /// A value that expires long behind the end of the history, or that has expired.
    PutUntil {
        at: At,
        has_expired: bool,
    },
    /// Puts a key that is not there, or removes it by a single delete.
    Single {
        at: At,
    },
    /// A row that the compaction filter of the tables removes.
    PutDoomed {
        at: At,
    },
    /// Reads the change feed across two commits of its own.
    ReadChanges {
        at: At,
    },
    /// A follower on the same device looks at the rows, twice.
    Follow {
        at: At,
    },
    Get {
        at: At,
    },
    MultiGet {
        table: usize,
    },
    Scan {
        table: usize,
        backward: bool,
    },
    /// Looks at all callers' rows of a table: no row may change under the scan.
    ScanAll {
        table: usize,
    },
    TakeSnapshot,
    ReadSnapshot,
    DropSnapshot,
    Ingest {
        seed: u64,
    },
    Load {
        seed: u64,
    },
    DropExtents {
        table: usize,
        from: u64,
        to: u64,
    },
    Flush,
    FlushToRun {
        table: usize,
    },
    Level {
        table: usize,
        level: u8,
    },
    Compact {
        table: usize,
        whole: bool,
    },
    Pause,
    Resume,
    Cancel,
    Quiesce,
    Sync,
    CreateTable {
        seed: u64,
    },
    DropTable,
    SetOption {
        seed: u64,
    },
    Checkpoint,
    Backup,
    Look,
    /// Closes the database beside the other callers, which end at the first refusal.
    Close,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Op {
    /// Returns true if it may delete rows.
    pub(super) fn may_delete(&self) -> bool {
        matches!(
            self,
            Op::Delete { .. }
                | Op::DeleteRange { .. }
                | Op::Batch { .. }
                | Op::Transact { .. }
                | Op::Prepare { .. }
                | Op::PutUntil { .. }
                | Op::Single { .. }
                | Op::Ingest { .. }
                | Op::DropExtents { .. }
                | Op::DropTable
        )
    }

    /// The name of its kind.
    pub(super) fn kind(&self) -> String {
        self.to_string().split([' ', '{']).next().unwrap_or_default().to_owned()
    }
}

/// The operations of all callers of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct History {
    /// Options of the database, by name and value.
    pub(super) options: Vec<(String, String)>,
    /// The operations of the first thread before there are others.
    pub(super) before: Vec<Op>,
    /// The operations of each caller.
    pub(super) callers: Vec<Vec<Op>>,
}

/// Callers of a history, at most.
const CALLERS_MAX: u64 = 3;
/// Operations of a caller, at most.
const OPERATIONS_MAX: u64 = 14;

impl History {
    /// The history of a seed.
    pub(super) fn of(seed: u64) -> History {
        let mut numbers = Rng::part(seed, 1);
        let mut options = crate::options::random_options(&mut numbers);
        // A schedule is about order, not about time: the world's time hardly passes. What waits for real time
        // or looks for files of the system is off.
        for (name, value) in [
            ("io_uring", "off"),
            ("direct_io", "false"),
            ("io_bytes_per_second", "0"),
            ("reader_age_max_ms", "0"),
        ] {
            options.retain(|(known, _)| known != name);
            options.push((name.to_owned(), value.to_owned()));
        }
        if numbers.one_in(2) {
            options.push(("merge_operator".to_owned(), "append".to_owned()));
        }
        let has_operator = options.iter().any(|(name, _)| name == "merge_operator");
        if numbers.one_in(8) {
            crate::options::without_journal(&mut options);
        }
        let closes = numbers.one_in(8);
        let threads = numbers.pick(&["1", "2", "2", "2", "3"]);
        options.retain(|(name, _)| name != "background_threads");
        options.push(("background_threads".to_owned(), (*threads).to_owned()));
        let favourite = numbers.next_u64();
        let mut draw = |count: u64| -> Vec<Op> {
            (0..count).map(|_| draw(&mut numbers, has_operator, favourite)).collect()
        };
        let before = draw(favourite % 6);
        let callers = 2 + favourite / 6 % (CALLERS_MAX - 1);
        let callers = (0..callers).map(|caller| draw(2 + (favourite >> (8 * caller + 16)) % OPERATIONS_MAX));
        let mut callers: Vec<Vec<Op>> = callers.collect();
        if closes {
            // In the middle of what the others do.
            callers[0].truncate(OPERATIONS_MAX as usize / 2);
            callers[0].push(Op::Close);
        }
        History { options, before, callers }
    }

    /// Returns true if a caller closes the database.
    pub(super) fn closes(&self) -> bool {
        self.callers.iter().any(|operations| operations.last() == Some(&Op::Close))
    }

    /// How many operations there are.
    pub(super) fn len(&self) -> usize {
        self.before.len() + self.callers.iter().map(Vec::len).sum::<usize>()
    }
}

/// One operation. Half of those of maintenance are of few kinds that a history prefers, so that these meet.
fn draw(numbers: &mut Rng, has_operator: bool, favourite: u64) -> Op {
    let table = numbers.below(TABLES.len() as u64) as usize;
    // The last one is the caller's own table.
    let any = numbers.below(TABLES.len() as u64 + 1) as usize;
    let at = At { table: any, key: numbers.below(KEYS) };
    let (seed, sync) = (numbers.next_u64(), numbers.one_in(8));
    let len = if numbers.one_in(8) { 3_000 } else { 10 + numbers.below(300) };
    let (from, to) = (numbers.below(KEYS), numbers.below(KEYS + 1));
    let (from, to) = (from.min(to), from.max(to).max(from.min(to) + 1));
    match numbers.below(100) {
        0..17 => Op::Put { at, len, sync },
        17..19 => Op::PutUntil { at, has_expired: sync },
        19..21 => Op::Single { at: At { key: KEYS + at.key % SINGLE_KEYS, ..at } },
        21..22 => Op::PutDoomed { at: At { table, ..at } },
        22..23 => Op::ReadChanges { at: At { table, ..at } },
        23..24 => Op::Prepare { seed },
        24..26 => Op::Fill { table: any },
        26..30 => Op::Delete { at },
        30..32 => Op::DeleteRange { table: any, from, to },
        32..35 if has_operator => Op::Merge { at: At { table, ..at }, len: len % 100 },
        32..39 => Op::Batch { seed, sync },
        39..42 => Op::Transact { seed },
        42..46 => Op::Get { at },
        46..48 => Op::MultiGet { table },
        48..52 => Op::Scan { table: any, backward: sync },
        52..54 => Op::ScanAll { table },
        54..56 => Op::TakeSnapshot,
        56..58 => Op::ReadSnapshot,
        58..59 => Op::DropSnapshot,
        roll => {
            let kind = if numbers.one_in(2) { (favourite >> (8 * (roll % 3))) % 41 } else { roll - 59 };
            maintenance(kind, (table, from, to), seed)
        }
    }
}

fn maintenance(kind: u64, (table, from, to): (usize, u64, u64), seed: u64) -> Op {
    match kind {
        0..4 => Op::Flush,
        4..7 => Op::FlushToRun { table },
        7..12 => Op::Compact { table, whole: !seed.is_multiple_of(3) },
        12..14 => Op::Level { table, level: (seed % 3) as u8 },
        14..16 => Op::Pause,
        16..19 => Op::Resume,
        19..21 => Op::Cancel,
        21..23 => Op::Quiesce,
        23..27 => Op::Ingest { seed },
        27..29 => Op::Load { seed },
        29..30 => Op::DropExtents { table, from, to },
        30..31 => Op::Sync,
        31..33 => Op::CreateTable { seed },
        33..34 => Op::DropTable,
        34..35 => Op::SetOption { seed },
        35..37 => Op::Checkpoint,
        37..38 => Op::Backup,
        38..39 => Op::Fill { table },
        39..40 => Op::Follow { at: At { table, key: from } },
        _ => Op::Look,
    }
}
