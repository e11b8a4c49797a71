//! The manifest: the durable log of edits to the state of a database. Format page: `docs/format/manifest.md`.
//!
//! * [`mod@file`]: names of manifest files, the file header, the text of `CURRENT`.
//! * [`record`]: records, each checksummed and chained to the one before.
//! * [`edit`]: the content of records, as operations.
//! * [`object`]: the manifest as numbered objects of a bucket; [`journal_mark`]: the mark of a journal whose
//!   database lies there.
//! * [`mod@describe`]: annotated fields of a manifest file, for `terrane dump`.

mod decode;
pub mod describe;
pub mod edit;
pub mod file;
pub mod journal_mark;
pub mod object;
pub mod origins;
pub mod record;

pub use describe::describe;
pub use edit::{Edit, EditOp, HistoryRule, Kept, LEVEL_MAX, NextIds, Place, Seal, SegmentSpec, TableOptions};
pub use file::{Current, DatabaseId, FileHeader};
pub use journal_mark::JournalMark;
pub use object::{ManifestObject, ObjectTag};
pub use record::{RecordHeader, RecordTag};
