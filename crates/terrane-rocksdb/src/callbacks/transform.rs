//! Slice transforms: user functions that give the prefix of a key.

use std::borrow::Cow;
use std::ffi::{c_char, c_void};

use crate::callbacks::{Destructor, Name, State, copied};

/// Longest prefix that filters can hold, in bytes.
const FILTERED_BYTES_MAX: usize = 1024;

/// The prefix of a key: where it begins, and how long it is.
pub(crate) type Prefix =
    Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize, *mut usize) -> *mut c_char>;
/// Returns nonzero if a key has a prefix.
pub(crate) type InDomain = Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> u8>;

/// A slice transform.
#[derive(Debug)]
pub(crate) enum Transform {
    /// The first bytes of keys that have as many.
    Fixed(usize),
    /// The whole key.
    Whole,
    /// A function of the user.
    User(Functions),
}

/// A transform of the user.
#[derive(Debug)]
pub(crate) struct Functions {
    state: State,
    prefix: Prefix,
    in_domain: InDomain,
}

impl Transform {
    /// The prefix of `key`, if it has one.
    pub(crate) fn prefix<'k>(&self, key: &'k [u8]) -> Option<Cow<'k, [u8]>> {
        match self {
            Transform::Fixed(bytes) => key.get(..*bytes).map(Cow::Borrowed),
            Transform::Whole => Some(Cow::Borrowed(key)),
            Transform::User(functions) => functions.prefix(key).map(Cow::Owned),
        }
    }

    /// Its name as files of options tell it; one of the user's has none here.
    pub(crate) fn shown_name(&self) -> String {
        match self {
            Transform::Fixed(bytes) => format!("rocksdb.FixedPrefix.{bytes}"),
            Transform::Whole => "rocksdb.Noop".to_owned(),
            Transform::User(_) => "of the program".to_owned(),
        }
    }

    /// The prefix extractor of the engine's filters. Those of functions of the user hold whole keys only:
    /// their names do not vouch for the function.
    pub(crate) fn extractor(&self) -> String {
        match self {
            Transform::Fixed(bytes @ 1..=FILTERED_BYTES_MAX) => format!("fixed:{bytes}"),
            _ => "none".to_owned(),
        }
    }
}

impl Functions {
    fn prefix(&self, key: &[u8]) -> Option<Vec<u8>> {
        let start = key.as_ptr().cast();
        if let Some(in_domain) = self.in_domain {
            // SAFETY: the user's function, with the user's pointer and a key.
            if unsafe { in_domain(self.state.pointer(), start, key.len()) } == 0 {
                return None;
            }
        }
        let mut len = 0;
        // SAFETY: as above, with a place for the length.
        let prefix = unsafe { (self.prefix?)(self.state.pointer(), start, key.len(), &raw mut len) };
        Some(copied(prefix, len))
    }
}

export! {
    fn rocksdb_slicetransform_create(
        state: *mut c_void,
        destructor: Destructor,
        prefix: Prefix,
        in_domain: InDomain,
        _name: Name,
    ) -> Option<Box<Transform>> {
        let state = State::new(state, destructor);
        Some(Box::new(Transform::User(Functions { state, prefix, in_domain })))
    }

    fn rocksdb_slicetransform_create_fixed_prefix(bytes: usize) -> Option<Box<Transform>> {
        Some(Box::new(Transform::Fixed(bytes)))
    }

    fn rocksdb_slicetransform_create_noop() -> Option<Box<Transform>> {
        Some(Box::new(Transform::Whole))
    }

    fn rocksdb_slicetransform_destroy(transform: Option<Box<Transform>>) {
        drop(transform);
    }
}
