//! The read way: point reads (`point.rs` their entry, `get.rs` the way, `memory.rs` its part in memory,
//! `hidden.rs` range deletes), many keys at once (`multi_get/`), ranges (`scan/`), and the moments of the
//! past that readers hold (`snapshots/`).
//!
//! `value_target.rs` is where a point read puts its value, `read_target.rs` what it does for each such place
//! when memory has not ended it. `separated.rs` follows pointers to values, `merge_operands.rs` folds
//! operands, `row_cache.rs` keeps single values, `filter_policy.rs` chooses the filters that a read asks,
//! `sampling.rs` looks closely at some reads.

pub(crate) mod get;
pub(crate) mod hidden;
pub(crate) mod memory;
pub(crate) mod merge_operands;
pub(crate) mod multi_get;
pub(crate) mod point;
pub(crate) mod read_target;
pub(crate) mod row_cache;
pub(crate) mod sampling;
pub(crate) mod scan;
pub(crate) mod separated;
pub(crate) mod snapshots;
pub(crate) mod value_target;

use std::ops::Deref;

use crate::shared::Shared;

/// The reads of a database. Made for each call, it costs nothing: it is a reference, handed on by value.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'e> {
    pub(crate) shared: &'e Shared,
}

impl<'e> Reader<'e> {
    /// The reader of a database.
    #[inline(always)]
    pub(crate) fn of(shared: &'e Shared) -> Reader<'e> {
        Reader { shared }
    }
}

/// The methods of `Shared` are found here, as in the engine.
impl Deref for Reader<'_> {
    type Target = Shared;

    #[inline(always)]
    fn deref(&self) -> &Shared {
        self.shared
    }
}
