//! A copy of the journal's bytes that outlives this machine.

use std::fmt::Debug;

use terrane_base::{Result, SegmentId};

use crate::SealedSegment;

/// Takes the bytes of segments, in the order in which they are written, and makes them durable elsewhere: as
/// objects of a bucket, by a service, in a log of another engine.
///
/// An implementer guarantees:
/// 1. What it has at any moment is a prefix of all bytes that it was given, and all that
///    [`CommitLog::persist`] returned for: an opening elsewhere finds it, and finds nothing else.
/// 2. Once another writer has taken over, no call of `persist` succeeds for bytes that the other one did not
///    find. The error is `Poisoned`.
/// 3. After an error every later `append` and `persist` fails.
pub trait CommitLog: Send + Sync + Debug {
    /// Takes `bytes` at `offset` of a segment; they become durable soon, or by [`CommitLog::persist`]. Waits
    /// where too much is under way. Called by one thread at a time.
    ///
    /// # Errors
    /// `Poisoned` if another writer has taken over; any error of bytes before.
    fn append(&self, segment: SegmentId, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Makes everything durable that was appended before the call. May be called during all other calls. The
    /// first call says that the log has all of the replayed segments then ([`complete_log`]).
    ///
    /// # Errors
    /// As [`CommitLog::append`].
    fn persist(&self) -> Result<()>;

    /// How many bytes, from the front of a segment of an earlier opening, the log had when it was opened.
    fn held(&self, segment: SegmentId) -> u64;

    /// Segments up to this one are no longer needed.
    fn trim(&self, upto: SegmentId);

    /// Ends background work; called at least once, possibly more often.
    fn stop(&self);
}

/// Gives `log` what it lacks of replayed segments, durably: what the process that wrote them had not given it
/// yet, and all of a journal that had no log before. Requires: no end of them is recorded before.
///
/// # Errors
/// As [`CommitLog::append`].
pub fn complete_log(log: &dyn CommitLog, replayed: &[SealedSegment]) -> Result<()> {
    for segment in replayed {
        let (held, end) = (log.held(segment.spec.id), segment.end as usize);
        if held < segment.end {
            let from = held as usize;
            log.append(segment.spec.id, held, segment.bytes(from..end))?;
        }
    }
    log.persist()
}
