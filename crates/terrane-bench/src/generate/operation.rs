//! One operation as a value: what generators and traces make and workers do.

use crate::engine::Direction;

/// An operation on key numbers; the worker turns a number into the bytes of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads a key that should exist.
    Read(u64),
    /// Reads a key that does not exist, near this number.
    ReadMissing(u64),
    /// Reads several keys at once.
    MultiRead(Vec<u64>),
    /// Overwrites a key with a value of so many bytes.
    Update(u64, usize),
    /// Writes a key that did not exist.
    Insert(u64, usize),
    /// Reads a key, changes its value, writes it back.
    ReadModifyWrite(u64, usize),
    /// Removes a key.
    Delete(u64),
    /// Removes so many keys from this one on, in the order of keys, by one range delete.
    DeleteRange(u64, u64),
    /// Visits some rows from a key.
    Scan(u64, u64, Direction),
    /// Reads several keys, each once, for update and writes each with a value of so many bytes, as one
    /// transaction.
    Transaction(Vec<u64>, usize),
}

/// The kinds, for latencies by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    /// Point reads of keys that exist.
    Read,
    /// Point reads of absent keys.
    ReadMissing,
    /// Multi-gets.
    MultiRead,
    /// Overwrites.
    Update,
    /// Inserts.
    Insert,
    /// Read-modify-writes.
    ReadModifyWrite,
    /// Deletes.
    Delete,
    /// Range deletes.
    DeleteRange,
    /// Seeks with their nexts, and whole scans.
    Scan,
    /// Transactions, with every run that it took until they committed.
    Transaction,
}

impl OperationKind {
    /// Every kind.
    pub const ALL: [OperationKind; 10] = [
        OperationKind::Read,
        OperationKind::ReadMissing,
        OperationKind::MultiRead,
        OperationKind::Update,
        OperationKind::Insert,
        OperationKind::ReadModifyWrite,
        OperationKind::Delete,
        OperationKind::DeleteRange,
        OperationKind::Scan,
        OperationKind::Transaction,
    ];
}

impl Operation {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> OperationKind {
        match self {
            Operation::Read(_) => OperationKind::Read,
            Operation::ReadMissing(_) => OperationKind::ReadMissing,
            Operation::MultiRead(_) => OperationKind::MultiRead,
            Operation::Update(..) => OperationKind::Update,
            Operation::Insert(..) => OperationKind::Insert,
            Operation::ReadModifyWrite(..) => OperationKind::ReadModifyWrite,
            Operation::Delete(_) => OperationKind::Delete,
            Operation::DeleteRange(..) => OperationKind::DeleteRange,
            Operation::Scan(..) => OperationKind::Scan,
            Operation::Transaction(..) => OperationKind::Transaction,
        }
    }
}
