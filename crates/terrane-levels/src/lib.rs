//! The structure of a database: levels of extents, immutable states of them (metasnapshots), live segments
//! and tables, and the manifest that makes every change of these durable.
//!
//! Layer 6: knows no block, no record and no compaction policy.
//!
//! * [`Level`]: a sorted, disjoint array of extents; replacing a few extents copies a few chunks.
//! * [`Metasnapshot`]: all levels of a table at one moment.
//! * [`State`]: everything that the manifest knows; a pure function of its edits.
//! * [`Manifest`]: the durable log of edits. [`directory`]: the files of a database.
//! * [`journal_place`]: the directory of a database whose other parts lie elsewhere.
//! * [`Pins`]: the sequence numbers of live snapshots.

mod chunk;
mod decay;
pub mod directory;
mod fences;
pub mod journal_place;
mod level;
pub mod manifest;
mod metasnapshot;
mod pins;
mod replace;
mod slots;
mod state;
mod values;

pub use chunk::{HasMeta, Totals};
pub use level::{Level, Removal};
pub use manifest::{Manifest, ManifestLog, ManifestSettings, ManifestSize};
pub use metasnapshot::{Change, Metasnapshot, Run};
pub use pins::{Pin, Pins};
pub use slots::Slots;
pub use state::{DEFAULT_TABLE_NAME, KeptSegment, Misfit, Segment, State, Table, Tables};
pub use values::{ValueTable, ValueTables};
