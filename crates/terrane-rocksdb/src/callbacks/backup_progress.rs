//! User functions that a running backup calls with its progress.

use std::ffi::{c_char, c_void};

/// FieldValue that the backup went on.
pub(crate) type OnProgress = Option<unsafe extern "C" fn(*mut c_void)>;
/// Asked whether a file may be left out.
pub(crate) type MayExclude = Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> u8>;

/// The user's function and its pointer. The caller keeps both alive as long as the options are used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgressListener {
    state: *mut c_void,
    callback: OnProgress,
}

impl Default for ProgressListener {
    fn default() -> Self {
        ProgressListener { state: std::ptr::null_mut(), callback: None }
    }
}

impl ProgressListener {
    pub(crate) fn new(state: *mut c_void, callback: OnProgress) -> ProgressListener {
        ProgressListener { state, callback }
    }

    /// Tells that the backup went on.
    pub(crate) fn call(self) {
        if let Some(callback) = self.callback {
            // SAFETY: the user's function, with the user's pointer, on the thread that makes the backup.
            unsafe { callback(self.state) };
        }
    }
}
