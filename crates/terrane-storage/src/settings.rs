//! Settings with which a store is opened.

use terrane_base::options::IoUring;

/// How to open a [`LocalStore`](crate::LocalStore).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreSettings {
    /// Bypass the operating system's page cache.
    pub direct_io: bool,
    /// Refuse everything that would change the directory.
    pub read_only: bool,
    /// How batches of reads go to the device.
    pub io_uring: IoUring,
}
