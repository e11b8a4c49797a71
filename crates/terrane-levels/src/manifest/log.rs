//! The medium of a manifest: where its records are kept, and how they become durable.
//!
//! The rules of a manifest (edits in order, checked against the state, one record in flight, published when
//! durable) is [`Manifest`](super::Manifest); a medium keeps the records. A database in a directory has
//! files (`manifest/write.rs`); a database on an object store has numbered objects (`terrane-remote`).

use std::fmt::Debug;

use terrane_base::Result;

use super::ManifestSize;
use crate::state::State;

/// Keeps the records of one manifest for its one writer.
///
/// An implementer guarantees:
/// 1. A record is durable when [`ManifestLog::append`] returns without error, and so are all before it.
/// 2. What opens the medium after a crash finds every record whose append returned, in order, and at most
///    one more: the one in flight.
/// 3. `Poisoned` means that the outcome is unknown, or that another writer has taken over: nothing is
///    appended any more. Any other error means that nothing happened and nothing will: a later append may
///    succeed.
/// 4. A writer that another one has replaced is refused as `Poisoned` by every later append, roll and close.
/// 5. Damaged bytes are `Corrupt`, naming what they were read from; never an end of the log.
pub trait ManifestLog: Send + Debug {
    /// Number of the last durable record. Rises with every append, may rise with a roll, never falls.
    fn number(&self) -> u64;

    /// The size of the snapshot and of the records after it.
    fn size(&self) -> ManifestSize;

    /// Appends a record of edits; durable on return.
    ///
    /// # Errors
    /// `Full`, `Io`: nothing happened. `Poisoned`.
    fn append(&mut self, payload: &[u8]) -> Result<()>;

    /// Begins again with a snapshot of `state`, which is the state after the last record.
    ///
    /// # Errors
    /// As [`ManifestLog::append`]: after any error but `Poisoned` the records before stay in use.
    fn roll(&mut self, state: &State) -> Result<()>;

    /// Checks that no other writer has taken over. A medium whose lock keeps others out has nothing to check.
    ///
    /// # Errors
    /// `Poisoned` if one has; `Io` if that is not known now.
    fn check(&mut self) -> Result<()> {
        Ok(())
    }

    /// Ends the writing in order, after the last record.
    ///
    /// # Errors
    /// `Io`, `Poisoned`.
    fn close(&mut self) -> Result<()>;
}
