//! External files: extents written without a database, for a later ingest (`docs/format/external.md`).
//!
//! * [`ExternalWriter`]: writes sorted entries into a file. An incomplete file is never accepted, because its
//!   trailer is written last.
//! * [`ExternalFile`]: reads and checks a file.

mod file;
mod ranges;
mod writer;

pub use file::ExternalFile;
pub use writer::{ExternalSummary, ExternalWriter};
