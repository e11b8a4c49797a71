//! Every engine runs in a process of its own, so that memory, CPU, I/O and crashes are that engine's alone.
//!
//! * [`protocol`]: the messages between parent and child. [`serve`]: the child. [`parent`]: starts one,
//!   listens, ends it.
//! * [`limit`]: holds the child, its page cache included, to a ceiling of memory.

pub mod limit;
pub mod parent;
pub mod protocol;
pub mod serve;
