//! Options for databases in memory.

use super::Options;

impl Options {
    /// Options for a database in memory that a test creates and drops: 64 MiB of memory, segments of 1 MiB,
    /// because a device in memory walks a whole segment at each sync, and one background thread. Everything
    /// else has its default.
    ///
    /// ```
    /// # use terrane_base::options::Options;
    /// let options = Options { close_flush: false, ..Options::in_memory() };
    /// assert_eq!(options.memory_bytes, 64 << 20);
    /// ```
    #[must_use]
    pub fn in_memory() -> Options {
        Options {
            memory_bytes: 64 << 20,
            segment_bytes: 1 << 20,
            background_threads: 1,
            ..Options::default()
        }
    }
}
