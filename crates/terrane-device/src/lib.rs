//! Every system call of the engine: directories and files, mapped memory, and devices for tests.
//!
//! Layer 2: knows bytes and paths, no format. The traits [`Disk`] and [`File`] are the only way to stored
//! bytes; `PosixDisk` is the real one.

mod disk;
mod region;

pub use disk::{Disk, DiskLock, File, OpenMode};
pub use region::{Region, SegmentMemory};
