//! External files: extents written without a database, to be taken into one (`docs/format/external.md`).
//!
//! * [`ExternalWriter`]: sorted entries in, a file out; nobody sees a half of it, for its trailer is written last.
//! * [`ExternalFile`]: what is in one, and whether it is sound.

mod file;
mod ranges;
mod writer;

pub use file::ExternalFile;
pub use writer::{ExternalSummary, ExternalWriter};
