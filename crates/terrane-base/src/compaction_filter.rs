//! Compaction filters: a look of the user's at rows that a compaction rewrites anyway, which may take them out or change
//! them.
//!
//! # Rules
//! 1. A filter is asked about values: what was put, and what operands were folded to as a whole. Never about deletes, or
//!    operands that are not folded yet.
//! 2. It is not asked about what a snapshot, an iterator or a transaction sees that was open when the compaction began, nor
//!    about what a newer version hides there. So what it takes out is gone for those who come later only; one that comes while
//!    the compaction runs may see a row and later not.
//! 3. It is a wish: nobody says when a row meets a compaction, or whether an extent that is re-linked as it is ever does (see
//!    [`CompactionFilter::sees_all`]). A row that was taken out is as if it had been deleted: no older value comes to light.
//!    Rows in memory are not asked about; flushes are no compactions.
//! 4. It is called on threads of the background, without a lock, any number of times for a row. It may read. It must not
//!    change a database, nor wait for one: that is refused ([`crate::callback`]).
//! 5. A panic ends the compaction with an error that names the filter and the key; what was there stays. It is tried again
//!    later, so the table is not compacted until the filter is mended or taken away.

use std::fmt;
use std::sync::Arc;

/// What becomes of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterDecision {
    /// It stays as it is.
    Keep,
    /// It goes.
    Remove,
    /// It has this value from now on; when it expires stays.
    Change(Vec<u8>),
    /// It goes, and so does every row after it before this key, unasked: as far as this compaction comes, and as rule 2
    /// allows.
    RemoveUntil(Vec<u8>),
}

/// What a compaction is, as far as a filter may want to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionContext {
    /// Whether everything takes part that the levels of the table hold.
    pub is_full: bool,
    /// Whether somebody asked for it by name, as `compact_range` does.
    pub is_manual: bool,
}

/// Looks at rows in compactions. See the [module](self) for the rules.
pub trait CompactionFilter: Send + Sync + fmt::Debug {
    /// A name, for errors.
    fn name(&self) -> &str;

    /// What becomes of the row.
    fn filter(&self, key: &[u8], value: &[u8]) -> FilterDecision;

    /// Whether every row that takes part in a compaction is to be seen. Then nothing is re-linked or copied undecoded any
    /// more, and compactions cost what they cost other engines. Without it those rows are seen that are decoded anyway:
    /// those that meet others.
    fn sees_all(&self) -> bool {
        false
    }

    /// A filter for one compaction, where each has its own, with a state of its own; none if this one is asked. Called once
    /// before the compaction, by the rules for [`CompactionFilter::filter`]; what is returned is let go of when it has ended.
    fn for_compaction(&self, _compaction: CompactionContext) -> Option<Arc<dyn CompactionFilter>> {
        None
    }
}
