//! Every system call of the engine: directories and files, mapped memory, and devices for tests.
//!
//! Layer 2: knows bytes and paths, but no format. The traits [`Disk`] and [`File`] are the only access to
//! stored bytes.
//!
//! * [`PosixDisk`]: the operating system's files.
//! * [`MemDisk`]: a strict device in memory that can lose power.
//! * [`MeteredDisk`]: wraps any of them and counts calls and bytes.
//! * [`FollowingDisk`]: only reads files that another process writes.
//! * [`FaultyDisk`]: wraps any of them and fails the calls that a test selects.
//! * [`pm`]: persistent memory.
//! * [`Buffer`]: memory for bytes that are in use for a short time, kept for the next use.
//! * [`ProcessUsage`]: the time and memory that this process used. [`MemoryLimit`]: a ceiling of memory for
//!   another one.

mod allocator;
mod batch;
mod buffers;
mod call;
mod disk;
mod faulty;
mod flow;
mod following;
mod mapping;
mod memory;
mod memory_limit;
mod metered;
pub mod pm;
mod posix;
mod posix_batch;
mod posix_direct;
mod posix_file;
mod posix_lock;
mod posix_pending;
mod priority;
mod region;
mod ring;
mod usage;

pub use allocator::return_freed_memory;
pub use batch::{Announced, FileRead, PendingRead, ReadBytes, buffer_at_least};
pub use buffers::{Buffer, buffer_capacity, keep_buffer, take_buffer};
pub use call::Call;
pub use disk::{Disk, DiskLock, File, Lines, OpenMode};
pub use faulty::{Failure, Fault, FaultyDisk};
pub use flow::{Flow, FlowCounts};
pub use following::FollowingDisk;
pub use memory::{MemDisk, SECTOR_BYTES};
pub use memory_limit::MemoryLimit;
pub use metered::MeteredDisk;
pub use posix::PosixDisk;
pub use priority::{lower_priority, pin_to_processor};
pub use region::{HUGE_PAGE_BYTES, Region, SegmentMemory};
pub use usage::ProcessUsage;
