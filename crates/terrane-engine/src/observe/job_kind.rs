//! Kinds of background jobs, and sets of them.

use std::fmt;

/// Kinds of background jobs.
///
/// ```
/// # use terrane_engine::JobKind;
/// assert_eq!(JobKind::Compact.name(), "compact"); // as in displays, events and logs
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum JobKind {
    /// Replaces a full memtable by an empty one.
    Freeze,
    /// Makes frozen memtables part of the global index.
    Settle,
    /// Writes the oldest generation of the global index into the levels.
    Flush,
    /// Merges extents of one level into the next.
    Compact,
    /// Merges extents because reads gain by it.
    Adapt,
    /// Verifies extents against damage.
    Scrub,
    /// Removes journal segments whose records are all in the levels.
    Trim,
    /// Gives spare space back to the file system.
    Reclaim,
}

impl JobKind {
    /// Its name: one lower-case word, the same in displays, events and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            JobKind::Freeze => "freeze",
            JobKind::Settle => "settle",
            JobKind::Flush => "flush",
            JobKind::Compact => "compact",
            JobKind::Adapt => "adapt",
            JobKind::Scrub => "scrub",
            JobKind::Trim => "trim",
            JobKind::Reclaim => "reclaim",
        }
    }
}

impl fmt::Display for JobKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobKinds(u16);

impl JobKinds {
    /// Jobs that bring memory back: all that writers wait for.
    pub(crate) const MEMORY: JobKinds =
        JobKinds::of(&[JobKind::Freeze, JobKind::Settle, JobKind::Flush, JobKind::Trim]);
    /// Jobs that move the records of one table towards its levels.
    pub(crate) const TO_LEVELS: JobKinds = JobKinds::of(&[JobKind::Freeze, JobKind::Settle, JobKind::Flush]);
    /// Jobs that a caller may wait for.
    pub(crate) const AWAITED: JobKinds = JobKinds(JobKinds::MEMORY.0 | JobKinds::of(&[JobKind::Compact]).0);
    /// Jobs that merge levels.
    pub(crate) const MERGES: JobKinds = JobKinds::of(&[JobKind::Compact, JobKind::Adapt]);

    /// The set of these.
    pub(crate) const fn of(kinds: &[JobKind]) -> JobKinds {
        let (mut bits, mut at) = (0, 0);
        while at < kinds.len() {
            bits |= 1 << kinds[at] as u16;
            at += 1;
        }
        JobKinds(bits)
    }

    /// Returns true if `kind` is one of them.
    pub(crate) const fn has(self, kind: JobKind) -> bool {
        self.0 & 1 << kind as u16 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_it_was_made_of() {
        assert!(JobKinds::AWAITED.has(JobKind::Compact) && JobKinds::AWAITED.has(JobKind::Freeze));
        assert!(!JobKinds::MEMORY.has(JobKind::Compact) && !JobKinds::AWAITED.has(JobKind::Scrub));
        assert!(!JobKinds::of(&[]).has(JobKind::Freeze));
        assert!(JobKinds::MERGES.has(JobKind::Adapt) && !JobKinds::TO_LEVELS.has(JobKind::Trim));
    }
}
