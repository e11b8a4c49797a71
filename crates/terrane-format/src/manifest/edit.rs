//! Edits: changes to the state of a database, as operations.
//!
//! The removals of an edit refer to the state before the edit and take effect before its additions, in any
//! order of the operations: one edit can remove a re-linked extent from one level and add it to another.

use std::sync::Arc;

use terrane_base::{ExtentId, SegmentId, SeqNo, TableId, varint};

use crate::extent::ExtentMeta;

pub use super::decode::decode_edits;

/// Longest name of a table or an option, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// Longest value of an option, in bytes.
pub const OPTION_BYTES_MAX: usize = 4096;
/// Most options of a table.
pub const OPTIONS_MAX: usize = 256;
/// Deepest level.
pub const LEVEL_MAX: u8 = 63;
/// The byte of [`Place::Values`].
pub(super) const PLACE_VALUES: u8 = LEVEL_MAX + 1;

/// Options of a table as `name` and `value`: stored as given, validated where they are used.
pub type TableOptions = Vec<(String, String)>;

/// The level or overflow run of a table that holds an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A level by its number: 1 is L1; up to [`LEVEL_MAX`].
    Level(u8),
    /// An overflow run (L0) by its number; a higher number is newer.
    Run(u64),
    /// The value tables: an extent of values, which entries of other extents point to. It is removed with the
    /// last pointer into it, and by no operation.
    Values,
}

/// A segment of the journal: its number, its file, and the size of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSpec {
    /// Which segment.
    pub id: SegmentId,
    /// Number of its file under `journal/`.
    pub file: u32,
    /// Bytes of the file.
    pub bytes: u64,
}

/// The end of a segment to which nothing more is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// End of its last group.
    pub end_offset: u64,
    /// Sequence number of its last record, or of the record before the segment if it holds none.
    pub last_seq: SeqNo,
    /// Running checksum of the segment up to there; the next segment's header repeats it.
    pub checksum: u32,
}

/// A segment that is no longer live and is kept as history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Number of its first record.
    pub first_seq: SeqNo,
    /// Number of its last record.
    pub last_seq: SeqNo,
    /// End of its last group.
    pub end_offset: u64,
    /// Time at which it ceased to be live, in milliseconds since 1970.
    pub freed_at: u64,
}

/// Limits of the history that is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryRule {
    /// Most bytes of kept segments; 0 keeps none.
    pub bytes: u64,
    /// How long segments are kept, in milliseconds; 0 keeps them as long as there is room.
    pub age: u64,
}

/// The next free number of each sort. Numbers are never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextIds {
    /// Next table.
    pub table: TableId,
    /// Next segment.
    pub segment: SegmentId,
    /// Next segment file.
    pub segment_file: u32,
    /// Next overflow run.
    pub run: u64,
}

/// One change of the state.
#[derive(Clone, Debug, PartialEq)]
pub enum EditOp {
    /// Creates a table. Its number was never used before; no live table has its name.
    CreateTable {
        /// The new table.
        id: TableId,
        /// Its name: 1 to [`NAME_BYTES_MAX`] bytes.
        name: String,
        /// Its options.
        options: TableOptions,
    },
    /// Replaces the options of a table.
    SetOptions {
        /// Which table.
        id: TableId,
        /// All of its options from now on.
        options: TableOptions,
    },
    /// Drops a table: its name is free at once, and the table is removed with its last extent.
    DropTable {
        /// Which table.
        id: TableId,
    },
    /// Adds an extent.
    AddExtent {
        /// The table.
        table: TableId,
        /// The level or run; a run that does not exist is created.
        place: Place,
        /// The extent.
        meta: Arc<ExtentMeta>,
    },
    /// Removes an extent.
    RemoveExtent {
        /// The table.
        table: TableId,
        /// The level or run; a run is removed with its last extent.
        place: Place,
        /// Which extent.
        id: ExtentId,
        /// Its smallest key, by which it is found.
        smallest: Vec<u8>,
    },
    /// Makes a segment live, before its first use.
    AddSegment(SegmentSpec),
    /// Ends a segment: nothing more will be written to it.
    SealSegment {
        /// Which segment.
        id: SegmentId,
        /// How it ended.
        seal: Seal,
    },
    /// Removes a segment, sealed or not; its file may be reused.
    RemoveSegment {
        /// Which segment.
        id: SegmentId,
    },
    /// Every record of a table up to this number is in its extents.
    Flushed {
        /// Which table.
        table: TableId,
        /// The number; never goes back.
        seq: SeqNo,
    },
    /// Every record up to this number, of whichever table, is in its extents. Format version 2.
    FlushedAll {
        /// The number; one that is not above the present one changes nothing.
        seq: SeqNo,
    },
    /// Every commit up to this number is durable.
    Durable {
        /// The number; one that is not above the present one changes nothing.
        seq: SeqNo,
    },
    /// Raises the free numbers.
    NextIds(NextIds),
    /// Starts an epoch of the journal; recovery has closed the epoch before.
    Epoch {
        /// Number of the new epoch; greater than the one before.
        epoch: u64,
    },
    /// The database was closed cleanly; holds until the next edit.
    CleanClose {
        /// Last sequence number in use.
        last_seq: SeqNo,
    },
    /// Moves a live segment to the history, after all that is kept already.
    KeepSegment {
        /// Which segment.
        id: SegmentId,
        /// The part that is kept.
        kept: Kept,
    },
    /// Gives the oldest segment of history up; its file may be used again.
    ForgetSegment {
        /// Removes the oldest segment of the history; its file may be reused.
        id: SegmentId,
    },
    /// Sets the limits of the history.
    SetHistory(HistoryRule),
    /// The ingest that the journal announces under this number did not happen.
    VoidMark {
        /// The number.
        seq: SeqNo,
    },
}

/// Changes that take effect together or not at all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edit {
    /// The changes.
    pub ops: Vec<EditOp>,
}

impl EditOp {
    /// Adds an extent.
    #[must_use]
    pub fn add(table: TableId, place: Place, meta: impl Into<Arc<ExtentMeta>>) -> Self {
        EditOp::AddExtent { table, place, meta: meta.into() }
    }

    /// Removes the extent that `meta` describes.
    #[must_use]
    pub fn remove(table: TableId, place: Place, meta: &ExtentMeta) -> Self {
        EditOp::RemoveExtent { table, place, id: meta.id, smallest: meta.smallest.clone() }
    }

    /// The name of the operation as one lower-case word.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            EditOp::CreateTable { .. } => "create-table",
            EditOp::SetOptions { .. } => "set-options",
            EditOp::DropTable { .. } => "drop-table",
            EditOp::AddExtent { .. } => "add-extent",
            EditOp::RemoveExtent { .. } => "remove-extent",
            EditOp::AddSegment(_) => "add-segment",
            EditOp::SealSegment { .. } => "seal-segment",
            EditOp::RemoveSegment { .. } => "remove-segment",
            EditOp::Flushed { .. } => "flushed",
            EditOp::FlushedAll { .. } => "flushed-all",
            EditOp::Durable { .. } => "durable",
            EditOp::NextIds(_) => "next-ids",
            EditOp::Epoch { .. } => "epoch",
            EditOp::CleanClose { .. } => "clean-close",
            EditOp::KeepSegment { .. } => "keep-segment",
            EditOp::ForgetSegment { .. } => "forget-segment",
            EditOp::SetHistory(_) => "set-history",
            EditOp::VoidMark { .. } => "void-mark",
        }
    }

    /// Appends the operation to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            EditOp::CreateTable { id, name, options } => {
                put_tag(out, 1);
                varint::put(out, id.0);
                put_bytes(out, name.as_bytes());
                put_options(out, options);
            }
            EditOp::SetOptions { id, options } => {
                put_tag(out, 2);
                varint::put(out, id.0);
                put_options(out, options);
            }
            EditOp::DropTable { id } => {
                put_tag(out, 3);
                varint::put(out, id.0);
            }
            EditOp::AddExtent { table, place, meta } => {
                put_tag(out, 4);
                varint::put(out, table.0);
                put_place(out, *place);
                meta.encode(out);
            }
            EditOp::RemoveExtent { table, place, id, smallest } => {
                put_tag(out, 5);
                varint::put(out, table.0);
                put_place(out, *place);
                varint::put(out, id.file);
                varint::put(out, id.slot);
                put_bytes(out, smallest);
            }
            _ => self.encode_journal(out),
        }
    }

    /// [`EditOp::encode`] for the operations that do not concern one table's extents or options.
    fn encode_journal(&self, out: &mut Vec<u8>) {
        match self {
            EditOp::AddSegment(spec) => {
                put_tag(out, 6);
                put_u64(out, spec.id.0);
                varint::put(out, spec.file);
                put_u64(out, spec.bytes);
            }
            EditOp::SealSegment { id, seal } => {
                put_tag(out, 7);
                put_u64(out, id.0);
                put_u64(out, seal.end_offset);
                put_u64(out, seal.last_seq.0);
                out.extend_from_slice(&seal.checksum.to_le_bytes());
            }
            EditOp::RemoveSegment { id } => {
                put_tag(out, 8);
                put_u64(out, id.0);
            }
            EditOp::Flushed { table, seq } => {
                put_tag(out, 9);
                varint::put(out, table.0);
                put_u64(out, seq.0);
            }
            EditOp::Durable { seq } => {
                put_tag(out, 10);
                put_u64(out, seq.0);
            }
            EditOp::NextIds(next) => {
                put_tag(out, 11);
                varint::put(out, next.table.0);
                put_u64(out, next.segment.0);
                varint::put(out, next.segment_file);
                put_u64(out, next.run);
            }
            EditOp::Epoch { epoch } => {
                put_tag(out, 12);
                put_u64(out, *epoch);
            }
            EditOp::CleanClose { last_seq } => {
                put_tag(out, 13);
                put_u64(out, last_seq.0);
            }
            EditOp::KeepSegment { id, kept } => {
                put_tag(out, 14);
                let fields = [id.0, kept.first_seq.0, kept.last_seq.0, kept.end_offset, kept.freed_at];
                fields.into_iter().for_each(|field| put_u64(out, field));
            }
            EditOp::ForgetSegment { id } => {
                put_tag(out, 15);
                put_u64(out, id.0);
            }
            EditOp::SetHistory(rule) => {
                put_tag(out, 16);
                put_u64(out, rule.bytes);
                put_u64(out, rule.age);
            }
            EditOp::VoidMark { seq } => {
                put_tag(out, 17);
                put_u64(out, seq.0);
            }
            EditOp::FlushedAll { seq } => {
                put_tag(out, 18);
                put_u64(out, seq.0);
            }
            _ => unreachable!("encode() writes the operations on tables itself"),
        }
    }
}

impl Edit {
    /// Appends the edit to `out`: the number of operations, then each.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::put(out, self.ops.len() as u32);
        for op in &self.ops {
            op.encode(out);
        }
    }
}

fn put_tag(out: &mut Vec<u8>, tag: u8) {
    out.push(tag);
}

fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::put(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
}

fn put_options(out: &mut Vec<u8>, options: &TableOptions) {
    varint::put(out, options.len() as u32);
    for (name, value) in options {
        put_bytes(out, name.as_bytes());
        put_bytes(out, value.as_bytes());
    }
}

/// Encodes a level as its number, a run as 0 followed by its number, the value tables as the number behind
/// the deepest level.
fn put_place(out: &mut Vec<u8>, place: Place) {
    match place {
        Place::Level(level) => out.push(level),
        Place::Run(run) => {
            out.push(0);
            put_u64(out, run);
        }
        Place::Values => out.push(PLACE_VALUES),
    }
}
