//! Comparators: a user function compares the keys of a column family.

use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use crate::callbacks::order::Order;
use crate::callbacks::{Destructor, Name, State};

/// The name of RocksDB's own order, which is that of bytes.
pub(crate) const BYTEWISE: &str = "leveldb.BytewiseComparator";

/// How keys compare.
pub(crate) type Compare =
    Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int>;
/// How keys compare, each with or without a timestamp.
pub(crate) type CompareWithout =
    Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize, u8, *const c_char, usize, u8) -> c_int>;

/// A comparator as callers have it; options and open databases hold what it stands for as well.
#[derive(Debug)]
pub(crate) struct Comparator(Arc<UserComparator>);

/// The user's comparator. Its destructor is called when the last holder drops it.
#[derive(Debug)]
pub(crate) struct UserComparator {
    name: String,
    state: State,
    compare: Compare,
    /// That of keys that end with a timestamp.
    timestamps: Option<Timestamps>,
}

/// How keys compare that end with a timestamp.
#[derive(Clone, Copy, Debug)]
struct Timestamps {
    bytes: usize,
    compare: Compare,
    compare_without: CompareWithout,
}

/// Says how many bytes a timestamp of a column family has.
#[repr(transparent)]
pub(crate) struct TimestampBytes(Option<unsafe extern "C" fn(*mut c_void, u32) -> usize>);

impl TimestampBytes {
    /// The result of the user's function; 0 without one.
    pub(crate) fn of(&self, state: *mut c_void, family: u32) -> usize {
        // SAFETY: the user's function, called with the user's pointer.
        self.0.map_or(0, |function| unsafe { function(state, family) })
    }
}

impl Comparator {
    /// The order by which it compares.
    pub(crate) fn order(&self) -> Order {
        Order::of(self.other_order().as_ref())
    }

    /// The user's comparator, unless the order is that of bytes.
    pub(crate) fn other_order(&self) -> Option<Arc<UserComparator>> {
        (self.0.name != BYTEWISE || self.0.timestamps.is_some()).then(|| self.0.clone())
    }
}

impl UserComparator {
    /// The same for an engine to ask, which frees nothing: what a closed database leaves behind (blocks that
    /// wait for their epoch) must not put the user's destructor off. Requires: this one lives until no caller
    /// compares any more.
    pub(crate) fn to_ask(&self) -> UserComparator {
        let state = State::new(self.state.pointer(), None);
        let UserComparator { compare, timestamps, .. } = *self;
        UserComparator { name: self.name.clone(), state, compare, timestamps }
    }

    /// Bytes of the timestamps that keys end with; 0 if they have none.
    pub(crate) fn timestamp_bytes(&self) -> usize {
        self.timestamps.map_or(0, |timestamps| timestamps.bytes)
    }

    /// How two timestamps relate.
    pub(crate) fn compare_timestamps(&self, left: &[u8], right: &[u8]) -> Ordering {
        self.compare_by(self.timestamps.and_then(|timestamps| timestamps.compare), left, right)
    }

    /// How two keys without timestamps relate.
    pub(crate) fn compare_without(&self, left: &[u8], right: &[u8]) -> Ordering {
        let Some(compare) = self.timestamps.and_then(|timestamps| timestamps.compare_without) else {
            return left.cmp(right);
        };
        let (left, right) = ((left.as_ptr().cast(), left.len()), (right.as_ptr().cast(), right.len()));
        // SAFETY: as below; neither key has a timestamp.
        let order = unsafe { compare(self.state.pointer(), left.0, left.1, 0, right.0, right.1, 0) };
        order.cmp(&0)
    }

    fn compare_by(&self, compare: Compare, left: &[u8], right: &[u8]) -> Ordering {
        let Some(compare) = compare else { return left.cmp(right) };
        let (left, right) = ((left.as_ptr().cast(), left.len()), (right.as_ptr().cast(), right.len()));
        // SAFETY: the user's function, called with the user's pointer and with bytes that live until it
        // returns.
        let order = unsafe { compare(self.state.pointer(), left.0, left.1, right.0, right.1) };
        order.cmp(&0)
    }
}

impl terrane::Comparator for UserComparator {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        // The user's function takes the timestamps off without a look; a key that is too short comes from a
        // damaged table.
        if left.len().min(right.len()) < self.timestamp_bytes() {
            return left.cmp(right);
        }
        self.compare_by(self.compare, left, right)
    }
}

export! {
    fn rocksdb_comparator_create(
        state: *mut c_void,
        destructor: Destructor,
        compare: Compare,
        name: Name,
    ) -> Option<Box<Comparator>> {
        let state = State::new(state, destructor);
        let name = state.name(name);
        Some(Box::new(Comparator(Arc::new(UserComparator { name, state, compare, timestamps: None }))))
    }

    fn rocksdb_comparator_with_ts_create(
        state: *mut c_void,
        destructor: Destructor,
        compare: Compare,
        compare_timestamps: Compare,
        compare_without: CompareWithout,
        name: Name,
        timestamp_size: usize,
    ) -> Option<Box<Comparator>> {
        let state = State::new(state, destructor);
        let name = state.name(name);
        let timestamps = (timestamp_size > 0).then_some(Timestamps {
            bytes: timestamp_size,
            compare: compare_timestamps,
            compare_without,
        });
        Some(Box::new(Comparator(Arc::new(UserComparator { name, state, compare, timestamps }))))
    }

    fn rocksdb_comparator_destroy(comparator: Option<Box<Comparator>>) {
        drop(comparator);
    }
}
