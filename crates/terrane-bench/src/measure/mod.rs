//! Costs of a step for the machine, and a description of the machine.
//!
//! * [`process::ProcessProbe`]: CPU, memory, I/O and context switches of this process between two moments.
//! * [`hardware`]: the processor's own counters, where the kernel gives them.
//! * [`machine`]: the description that stands in the header of every result. [`mount`]: the mount that
//!   has a directory.
//!
//! Nothing here fails a run: what a machine does not tell is left empty.

pub mod hardware;
pub mod machine;
pub mod mount;
mod proc;
pub mod process;
