//! User functions that get the changes of a write batch one by one.

use std::ffi::{c_char, c_void};

/// FieldValue of a key and a value.
pub(crate) type OnPut = Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize)>;
/// FieldValue of a key, or of data.
pub(crate) type OnBytes = Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize)>;
/// FieldValue of a column family, a key and a value.
pub(crate) type OnFamilyPut =
    Option<unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize, *const c_char, usize)>;
/// FieldValue of a column family and a key.
pub(crate) type OnFamilyKey = Option<unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize)>;

/// The user's pointer, for the time of one walk.
#[derive(Clone, Copy)]
pub(crate) struct Listener(pub(crate) *mut c_void);

impl Listener {
    pub(crate) fn put(self, callback: OnPut, key: &[u8], value: &[u8]) {
        if let Some(callback) = callback {
            // SAFETY: the user's function, with the user's pointer and byte strings that are there during the
            // call.
            unsafe { callback(self.0, key.as_ptr().cast(), key.len(), value.as_ptr().cast(), value.len()) };
        }
    }

    pub(crate) fn bytes(self, callback: OnBytes, bytes: &[u8]) {
        if let Some(callback) = callback {
            // SAFETY: as above.
            unsafe { callback(self.0, bytes.as_ptr().cast(), bytes.len()) };
        }
    }

    pub(crate) fn family_put(self, callback: OnFamilyPut, family: u32, key: &[u8], value: &[u8]) {
        if let Some(callback) = callback {
            // SAFETY: as above.
            unsafe {
                callback(self.0, family, key.as_ptr().cast(), key.len(), value.as_ptr().cast(), value.len())
            };
        }
    }

    pub(crate) fn family_key(self, callback: OnFamilyKey, family: u32, key: &[u8]) {
        if let Some(callback) = callback {
            // SAFETY: as above.
            unsafe { callback(self.0, family, key.as_ptr().cast(), key.len()) };
        }
    }
}
