//! Every engine runs in a process of its own, so that memory, CPU, I/O and crashes are that engine's alone.
//!
//! * [`protocol`]: the messages between parent and child. [`serve`]: the child. [`parent`]: starts one,
//!   listens, ends it.
//!
//! A control group ([`MemoryLimit`](terrane_device::MemoryLimit)) holds the child, its page cache included,
//! to a ceiling of memory. Without it an engine that reads through the page cache would have all memory of
//! the machine, and one that caches by itself only its budget. Where this process may not make one, the run
//! says that the limit was not enforced.

pub mod parent;
pub mod protocol;
pub mod serve;
