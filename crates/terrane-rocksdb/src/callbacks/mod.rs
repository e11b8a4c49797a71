//! Functions of the user: merge operators, compaction filters and their factories, slice transforms,
//! comparators, loggers.
//!
//! Each object keeps the pointer that its functions are called with, and calls the destructor once, when
//! the object is not used any more: options, open databases and the handle each hold it by count. Functions
//! are called from any thread, several at once, as RocksDB does.
#![expect(unsafe_code, reason = "calls of functions of C callers")]

pub(crate) mod backup_progress;
pub(crate) mod batch_visitor;
pub(crate) mod compaction_filter;
pub(crate) mod comparator;
pub(crate) mod filter_factory;
pub(crate) mod listener;
pub(crate) mod logger;
pub(crate) mod merge;
pub(crate) mod operator_registry;
pub(crate) mod order;
pub(crate) mod table_filter;
pub(crate) mod transform;

use std::ffi::{CStr, c_char, c_void};

/// Frees what the user's pointer points at.
pub(crate) type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;
/// Names an object; the string lives as long as the object.
pub(crate) type Name = Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>;

/// The pointer that the user's functions are called with.
#[derive(Debug)]
pub(crate) struct State {
    pointer: *mut c_void,
    destructor: Destructor,
}

// SAFETY: RocksDB's interface asks that functions of the user may be called from any thread, several at once.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

impl State {
    pub(crate) fn new(pointer: *mut c_void, destructor: Destructor) -> State {
        State { pointer, destructor }
    }

    pub(crate) fn pointer(&self) -> *mut c_void {
        self.pointer
    }

    /// The name that `name` says, or what stands for none.
    pub(crate) fn name(&self, name: Name) -> String {
        let Some(name) = name else { return "unnamed".to_owned() };
        // SAFETY: the user's function, called with the user's pointer.
        let text = unsafe { name(self.pointer) };
        if text.is_null() {
            return "unnamed".to_owned();
        }
        // SAFETY: the function returns a string that ends with a zero.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: called once, when no function of the object can be called any more.
            unsafe { destructor(self.pointer) };
        }
    }
}

/// A copy of bytes that a function of the user left, none for null.
fn copied(bytes: *const c_char, len: usize) -> Vec<u8> {
    if bytes.is_null() || len == 0 {
        return Vec::new();
    }
    // SAFETY: the user's function promises so many bytes at the pointer that it returned.
    unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) }.to_vec()
}
