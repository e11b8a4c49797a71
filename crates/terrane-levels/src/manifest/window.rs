//! A window on a file: bounds memory for files of any length.

use std::sync::Arc;

use terrane_base::Result;
use terrane_device::File;

/// Bytes read at once.
const WINDOW_BYTES: u64 = 1 << 20;

pub(crate) struct Window {
    file: Arc<dyn File>,
    len: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    pub(crate) fn new(file: Arc<dyn File>) -> Result<Self> {
        let len = file.len()?;
        Ok(Window { file, len, start: 0, bytes: Vec::new() })
    }

    /// Length of the file when the window was made.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Path and offset for errors.
    pub(crate) fn path(&self) -> String {
        self.file.path().display().to_string()
    }

    /// Bytes from `offset`: `len` of them, or fewer at the end of the file.
    pub(crate) fn get(&mut self, offset: u64, len: u64) -> Result<&[u8]> {
        let offset = offset.min(self.len);
        let len = len.min(self.len - offset);
        let inside = offset >= self.start && offset + len <= self.start + self.bytes.len() as u64;
        if !inside {
            let wanted = len.max(WINDOW_BYTES).min(self.len - offset);
            self.bytes.resize(wanted as usize, 0);
            self.start = offset;
            if let Err(error) = self.file.read_at(offset, &mut self.bytes) {
                self.bytes.clear();
                return Err(error);
            }
        }
        debug_assert!(offset >= self.start, "the window begins at what was asked for, or before it");
        let from = (offset - self.start) as usize;
        debug_assert!(from + len as usize <= self.bytes.len(), "the window holds what was asked for");
        Ok(&self.bytes[from..from + len as usize])
    }
}
