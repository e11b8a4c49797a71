//! Filters of files; and filters of keys, which are kept and never called.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use terrane::ExtentSummary;

use super::{Destructor, Name, State};
use crate::generated::values::TableProperties;
use crate::metadata::Owner;
use crate::objects::{FilterPolicy, ReadOptions};

/// Whether an iterator looks into a table file of these properties.
pub(crate) type ShowsTable = Option<unsafe extern "C" fn(*mut c_void, *const TableProperties) -> u8>;

/// A filter of table files.
#[derive(Debug)]
pub(crate) struct TableFilter {
    state: State,
    filter: ShowsTable,
}

impl TableFilter {
    /// Whether iterators show what is in an extent of a column family.
    pub(crate) fn shows(&self, extent: &ExtentSummary, owner: Owner<'_>) -> bool {
        let Some(filter) = self.filter else { return true };
        let properties = TableProperties::of(extent, owner);
        // SAFETY: the user's function, with the user's pointer and properties that are there during the call.
        unsafe { filter(self.state.pointer(), &raw const properties) != 0 }
    }
}

/// What makes a filter of keys of some: where it is, whether a key may be in it, and what frees it.
pub(crate) type MakeKeyFilter = Option<
    unsafe extern "C" fn(*mut c_void, *const *const c_char, *const usize, c_int, *mut usize) -> *mut c_char,
>;
/// Whether a key may be in a filter.
pub(crate) type KeyMayMatch =
    Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> u8>;
/// Frees a filter.
pub(crate) type DeleteFilter = Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize)>;

export! {
    fn rocksdb_filterpolicy_create(
        state: *mut c_void,
        destructor: Destructor,
        _make: MakeKeyFilter,
        _may_match: KeyMayMatch,
        _delete: DeleteFilter,
        _name: Name,
    ) -> Option<Box<FilterPolicy>> {
        Some(Box::new(FilterPolicy::of_user(Arc::new(State::new(state, destructor)))))
    }

    fn rocksdb_readoptions_set_table_filter(
        options: Option<&mut ReadOptions>,
        state: *mut c_void,
        destructor: Destructor,
        filter: ShowsTable,
    ) {
        let filter = TableFilter { state: State::new(state, destructor), filter };
        if let Some(options) = options {
            options.more.table_filter = filter.filter.is_some().then(|| Arc::new(filter));
        }
    }
}
