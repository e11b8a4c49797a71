//! Functions of the user that are kept, and never called: filters of the log, filters of files, filters of keys.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use super::{Destructor, Name, State};
use crate::objects::{FilterPolicy, ReadOptions};

/// Any function that is kept for nothing: only whether it is there passes the border.
pub(crate) type Uncalled = *mut c_void;

/// A filter of the log: what is set is refused at open, by name.
#[derive(Debug)]
pub(crate) struct WalFilter {
    _state: State,
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
    fn rocksdb_walfilter_create(
        state: *mut c_void,
        destructor: Destructor,
        _families: Uncalled,
        _found: Uncalled,
        _name: Name,
    ) -> Option<Box<WalFilter>> {
        Some(Box::new(WalFilter { _state: State::new(state, destructor) }))
    }

    fn rocksdb_walfilter_destroy(filter: Option<Box<WalFilter>>) {
        drop(filter);
    }

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
        filter: Uncalled,
    ) {
        let state = Arc::new(State::new(state, destructor));
        if let Some(options) = options {
            options.more.table_filter = (!filter.is_null()).then_some(state);
        }
    }
}
