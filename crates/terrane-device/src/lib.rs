//! Every system call of the engine: directories and files, mapped memory, and devices for tests.
//!
//! Layer 2: knows bytes and paths, no format. The traits [`Disk`] and [`File`] are the only way to stored
//! bytes.
//!
//! * [`PosixDisk`]: the real device.

mod disk;
mod mapping;
mod posix;
mod posix_file;
mod posix_lock;
mod region;

pub use disk::{Disk, DiskLock, File, OpenMode};
pub use posix::PosixDisk;
pub use region::{HUGE_PAGE_BYTES, Region, SegmentMemory};
