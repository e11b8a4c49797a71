//! Compaction filters: a user's function that may remove or change rows that a compaction rewrites anyway.
//!
//! # Rules
//! 1. A filter is called for values: of puts, and of completely folded operands. Never for deletes, or for
//!    operands that are not folded yet.
//! 2. It is not called for versions that a snapshot, an iterator or a transaction sees which was open when
//!    the compaction began, nor for versions that a newer one hides there. So only later readers miss what it
//!    removes; a reader that comes while the compaction runs may see a row and later not.
//! 3. It is a best effort: there is no guarantee when a row is compacted, or whether a re-linked extent ever
//!    is (see [`CompactionFilter::sees_all`]). A removed row is as if it had been deleted: no older value
//!    becomes visible. It is not called for rows in memory, and flushes are not compactions.
//! 4. Background threads call it, without a lock, any number of times for a row. It may read. It must not
//!    change a database, nor wait for one: that is refused ([`crate::callback`]).
//! 5. A panic ends the compaction with an error that names the filter and the key; the data stays unchanged.
//!    The compaction is tried again later, so the table is not compacted until the filter is fixed or
//!    removed.

use std::fmt;
use std::sync::Arc;

/// The decision about a row.
///
/// ```
/// # use terrane_base::FilterDecision;
/// /// Rewrites values of an old form, and drops a whole day of the log.
/// fn decide(key: &[u8], value: &[u8]) -> FilterDecision {
///     match value.strip_prefix(b"v1:") {
///         _ if key.starts_with(b"log/2024-01-30") => FilterDecision::RemoveUntil(b"log/2024-01-31".into()),
///         Some(old) => FilterDecision::Change([b"v2:", old].concat()),
///         None => FilterDecision::Keep,
///     }
/// }
/// assert_eq!(decide(b"user/ada", b"v1:1815"), FilterDecision::Change(b"v2:1815".into()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterDecision {
    /// Keep it unchanged.
    Keep,
    /// It goes.
    Remove,
    /// It has this value from now on; when it expires stays.
    Change(Vec<u8>),
    /// Remove it, and without further calls every row after it before this key: as far as this compaction
    /// reaches, and as rule 2 allows.
    RemoveUntil(Vec<u8>),
}

/// Facts about a compaction that a filter may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionContext {
    /// True if the compaction includes everything that the levels of the table hold.
    pub is_full: bool,
    /// True if a caller requested it, as `compact_range` does.
    pub is_manual: bool,
}

/// Looks at rows in compactions. See the [module](self) for the rules.
///
/// ```
/// # use terrane_base::{CompactionFilter, FilterDecision};
/// /// Drops sessions that were closed.
/// #[derive(Debug)]
/// struct Closed;
///
/// impl CompactionFilter for Closed {
///     fn name(&self) -> &str {
///         "closed-sessions"
///     }
///
///     fn filter(&self, key: &[u8], value: &[u8]) -> FilterDecision {
///         match key.starts_with(b"session/") && value == b"closed" {
///             true => FilterDecision::Remove,
///             false => FilterDecision::Keep,
///         }
///     }
/// }
///
/// assert_eq!(Closed.filter(b"session/7", b"closed"), FilterDecision::Remove);
/// assert_eq!(Closed.filter(b"user/ada", b"closed"), FilterDecision::Keep);
/// ```
pub trait CompactionFilter: Send + Sync + fmt::Debug {
    /// A name, for errors.
    fn name(&self) -> &str;

    /// Decides about the row.
    fn filter(&self, key: &[u8], value: &[u8]) -> FilterDecision;

    /// Returns true if the filter must see every row of a compaction. Then nothing is re-linked or copied
    /// without decoding, and compactions cost as much as in other engines. Otherwise it sees the rows that
    /// are decoded anyway: those that overlap others.
    fn sees_all(&self) -> bool {
        false
    }

    /// A filter for one compaction, with a state of its own; none if this filter is called itself. Called
    /// once before the compaction, by the rules for [`CompactionFilter::filter`]; the returned filter is
    /// dropped when the compaction has ended.
    fn for_compaction(&self, _compaction: CompactionContext) -> Option<Arc<dyn CompactionFilter>> {
        None
    }
}
