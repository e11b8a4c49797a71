//! Comparators. Keys are kept as bytes that compare as the keys do, so a comparison by a function of the user is not possible
//! yet: what is set is refused at open, by name.

use std::ffi::{c_char, c_int, c_void};

use super::{Destructor, Name, State};

/// The name of RocksDB's own order, which is that of bytes.
const BYTEWISE: &str = "leveldb.BytewiseComparator";

/// How keys compare.
pub(crate) type Compare =
    Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int>;
/// How keys compare, each with or without a timestamp.
pub(crate) type CompareWithout =
    Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize, u8, *const c_char, usize, u8) -> c_int>;

/// A comparator.
#[derive(Debug)]
pub(crate) struct Comparator {
    name: String,
    _state: State,
}

impl Comparator {
    /// The name, unless it is that of the order of bytes.
    pub(crate) fn other_order(&self) -> Option<&str> {
        (self.name != BYTEWISE).then_some(&self.name)
    }
}

export! {
    fn rocksdb_comparator_create(
        state: *mut c_void,
        destructor: Destructor,
        _compare: Compare,
        name: Name,
    ) -> Option<Box<Comparator>> {
        let state = State::new(state, destructor);
        Some(Box::new(Comparator { name: state.name(name), _state: state }))
    }

    fn rocksdb_comparator_with_ts_create(
        state: *mut c_void,
        destructor: Destructor,
        _compare: Compare,
        _compare_timestamps: Compare,
        _compare_without: CompareWithout,
        name: Name,
        _timestamp_size: usize,
    ) -> Option<Box<Comparator>> {
        let state = State::new(state, destructor);
        Some(Box::new(Comparator { name: format!("{} with timestamps", state.name(name)), _state: state }))
    }

    fn rocksdb_comparator_destroy(comparator: Option<Box<Comparator>>) {
        drop(comparator);
    }
}
