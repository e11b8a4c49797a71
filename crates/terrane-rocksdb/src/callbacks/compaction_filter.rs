//! Compaction filters: a user function decides about each row that a compaction rewrites.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use terrane::FilterDecision;

use crate::callbacks::{Destructor, Name, State, copied};

/// Says of a row: not 0 to remove it; else it stays, with a new value if the last place is set.
pub(crate) type Filter = Option<
    unsafe extern "C" fn(
        *mut c_void,
        c_int,
        *const c_char,
        usize,
        *const c_char,
        usize,
        *mut *mut c_char,
        *mut usize,
        *mut u8,
    ) -> u8,
>;

/// A handle of a filter: databases that were opened with it hold the filter itself.
#[derive(Debug)]
pub(crate) struct CompactionFilter {
    pub(crate) filter: Arc<UserFilter>,
}

/// A filter of the user.
#[derive(Debug)]
pub(crate) struct UserFilter {
    state: State,
    filter: Filter,
    name: String,
}

impl terrane::CompactionFilter for UserFilter {
    fn name(&self) -> &str {
        &self.name
    }

    fn filter(&self, key: &[u8], value: &[u8]) -> FilterDecision {
        let Some(filter) = self.filter else { return FilterDecision::Keep };
        let (mut new, mut new_len, mut is_changed) = (std::ptr::null_mut(), 0, 0);
        // SAFETY: the user's function, with the user's pointer, and places that are there during the call.
        let removed = unsafe {
            filter(
                self.state.pointer(),
                0,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                &raw mut new,
                &raw mut new_len,
                &raw mut is_changed,
            )
        };
        match (removed != 0, is_changed != 0) {
            (true, _) => FilterDecision::Remove,
            (false, true) => FilterDecision::Change(copied(new, new_len)),
            (false, false) => FilterDecision::Keep,
        }
    }

    /// RocksDB's filters see every row of a compaction.
    fn sees_all(&self) -> bool {
        true
    }
}

export! {
    fn rocksdb_compactionfilter_create(
        state: *mut c_void,
        destructor: Destructor,
        filter: Filter,
        name: Name,
    ) -> Option<Box<CompactionFilter>> {
        let state = State::new(state, destructor);
        let name = state.name(name);
        Some(Box::new(CompactionFilter { filter: Arc::new(UserFilter { state, filter, name }) }))
    }

    fn rocksdb_compactionfilter_set_ignore_snapshots(_filter: Option<&mut CompactionFilter>, _ignore: u8) {}

    fn rocksdb_compactionfilter_destroy(filter: Option<Box<CompactionFilter>>) {
        drop(filter);
    }
}
