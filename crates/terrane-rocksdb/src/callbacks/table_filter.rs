//! Filters of table files: a user function decides which files an iterator reads. And the function types of
//! key filters, which are never called.

use std::ffi::{c_char, c_int, c_void};

use terrane::ExtentSummary;

use crate::callbacks::State;
use crate::extents::Owner;
use crate::generated::values::TableProperties;

/// Returns nonzero if an iterator looks into a table file of these properties.
pub(crate) type ShowsTable = Option<unsafe extern "C" fn(*mut c_void, *const TableProperties) -> u8>;

/// Makes a filter over some keys. Returns the filter, the function that tests a key, and the one that frees
/// it.
pub(crate) type MakeKeyFilter = Option<
    unsafe extern "C" fn(*mut c_void, *const *const c_char, *const usize, c_int, *mut usize) -> *mut c_char,
>;
/// Tests whether a key may be in a filter.
pub(crate) type KeyMayMatch =
    Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> u8>;
/// Frees a filter.
pub(crate) type DeleteFilter = Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize)>;

/// A filter of table files.
#[derive(Debug)]
pub(crate) struct TableFilter {
    state: State,
    filter: ShowsTable,
}

impl TableFilter {
    /// The filter of the user's function, or none without one.
    pub(crate) fn new(state: State, filter: ShowsTable) -> Option<TableFilter> {
        filter.is_some().then(|| TableFilter { state, filter })
    }

    /// Returns true if iterators show the rows of an extent of a column family.
    pub(crate) fn shows(&self, extent: &ExtentSummary, owner: Owner<'_>) -> bool {
        let Some(filter) = self.filter else { return true };
        let properties = TableProperties::of(extent, owner);
        // SAFETY: the user's function, with the user's pointer and properties that are there during the call.
        unsafe { filter(self.state.pointer(), &raw const properties) != 0 }
    }
}
