//! Merge operators of a source: the one that the source names, if the library has it, and one that refuses
//! every merge.
//!
//! Unsafe code: calls of the C interface, and functions that it calls.
#![expect(unsafe_code, reason = "calls of a C interface, and functions that this interface calls")]

use std::ffi::{CString, c_char, c_int, c_uchar, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use crate::engine::rocksdb::api::{Api, MergeOperator, Options, Owned, checked};
use crate::engine::rocksdb::setup;
use crate::error::Result;

/// The option that names a merge operator.
pub(super) const OPTION: &str = "merge_operator";

/// The merge operator that an option string names, the last one if there are several, and the string without
/// it.
#[must_use]
pub fn apart(options: &str) -> (Option<String>, String) {
    let (mut operator, mut others) = (None, Vec::new());
    let mut depth = 0_i64;
    // Semicolons within braces are the nested options' own.
    let parts = options.split(|letter| {
        depth += i64::from(letter == '{') - i64::from(letter == '}');
        letter == ';' && depth == 0
    });
    for part in parts {
        match part.split_once('=') {
            Some((name, value)) if name.trim() == OPTION => operator = Some(value.trim().to_owned()),
            _ if part.trim().is_empty() => {}
            _ => others.push(part),
        }
    }
    (operator, others.join(";"))
}

/// Returns true if options came with a merge operator: RocksDB leaves a name that it does not know out
/// without a word. A database in memory is asked to merge, which it refuses without an operator.
pub(super) fn has_one(api: &Arc<Api>, options: &Owned<Options>) -> Result<bool> {
    let probe = setup::parse(api, options, "create_if_missing=true")?;
    // SAFETY: the objects are made and destroyed here, the environment last; key and operand are alive for
    // the call.
    unsafe {
        let environment = Owned::new(api, (api.create_mem_env)(), api.env_destroy);
        (api.options_set_env)(probe.as_ptr(), environment.as_ptr());
        let write = Owned::new(api, (api.writeoptions_create)(), api.writeoptions_destroy);
        let path = c"/operator".as_ptr();
        let db = checked(api, "open in memory", |error| (api.open)(probe.as_ptr(), path, error))?;
        let db = Owned::new(api, db, api.close);
        let (key, operand) = (c"k".as_ptr(), c"operand1".as_ptr());
        let merged = checked(api, "merge", |error| {
            (api.merge)(db.as_ptr(), write.as_ptr(), key, 1, operand, 8, error);
        });
        Ok(merged.is_ok())
    }
}

/// An operator under the recorded name, or one of our own, that refuses every merge.
pub(super) fn refusing(api: &Api, name: Option<&str>) -> *mut MergeOperator {
    let name = name.and_then(|name| CString::new(name).ok()).unwrap_or_else(|| c"terrane.none".to_owned());
    // SAFETY: the state is a string that `free_name` takes back once, when RocksDB destroys the operator.
    unsafe {
        (api.mergeoperator_create)(
            name.into_raw().cast(),
            free_name,
            refuse_full,
            refuse_partial,
            None,
            operator_name,
        )
    }
}

unsafe extern "C" fn free_name(state: *mut c_void) {
    // SAFETY: the state of `refusing`, given back once.
    drop(unsafe { CString::from_raw(state.cast()) });
}

unsafe extern "C" fn operator_name(state: *mut c_void) -> *const c_char {
    state.cast()
}

unsafe extern "C" fn refuse_full(
    _state: *mut c_void,
    _key: *const c_char,
    _key_len: usize,
    _value: *const c_char,
    _value_len: usize,
    _operands: *const *const c_char,
    _lengths: *const usize,
    _count: c_int,
    could: *mut c_uchar,
    len: *mut usize,
) -> *mut c_char {
    // SAFETY: RocksDB gives places for both.
    unsafe {
        could.write(0);
        len.write(0);
    }
    null_mut()
}

unsafe extern "C" fn refuse_partial(
    _state: *mut c_void,
    _key: *const c_char,
    _key_len: usize,
    _operands: *const *const c_char,
    _lengths: *const usize,
    _count: c_int,
    could: *mut c_uchar,
    len: *mut usize,
) -> *mut c_char {
    // SAFETY: RocksDB gives places for both.
    unsafe {
        could.write(0);
        len.write(0);
    }
    null_mut()
}
