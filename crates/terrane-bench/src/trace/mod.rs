//! Recorded operations: any run writes them if its plan says so, and the workload `replay` does them again.
//!
//! * [`Writer`] owns the file. Each thread has a [`Recorder`] with a buffer of its own; only whole blocks are
//!   handed over, so that an operation costs no lock. [`Writer::finish`] writes the end; a file without it is
//!   refused.
//! * [`Reader`] finds the blocks of each thread; [`Operations`] reads them one at a time and checks each.
//!
//! Layout: `docs/format/trace.md`. An operation takes 3 to 7 bytes: keys as differences, times in
//! microseconds. A trace is a file given by the user, so all of it is taken as hostile.

mod block;
mod reader;
mod writer;

use serde::{Deserialize, Serialize};

use crate::plan::Data;

pub use reader::{Operations, Reader};
pub use writer::{Recorder, Writer};

const MAGIC: &[u8; 8] = b"TRNTRACE";
const VERSION: u16 = 1;
/// Magic, version, zeros, length.
const HEADER_FIXED: usize = 16;
/// Thread, operations, base, length. The end of a file has the same form.
const BLOCK_FIXED: usize = 20;
const CHECKSUM: usize = 4;
/// Bytes of a header's JSON at most.
const JSON_MAX: usize = 64 << 10;
/// Bytes of a block's operations at most.
const PAYLOAD_MAX: usize = 1 << 20;
/// Keys of a multi-read at most.
const MULTI_READ_MAX: usize = 65_536;
/// In place of a thread: the end of the file.
const END: u32 = u32::MAX;

const SEED_HEADER: u32 = u32::from_le_bytes(*b"TRCH");
const SEED_BLOCK: u32 = u32::from_le_bytes(*b"TRCB");
const SEED_END: u32 = u32::from_le_bytes(*b"TRCE");

/// The header of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Keys and values of the scenario that was recorded.
    pub data: Data,
    /// The longest value that the operations write, in bytes.
    pub value_bytes_max: usize,
}
