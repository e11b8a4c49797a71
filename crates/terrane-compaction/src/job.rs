//! Jobs and their results as plain values: a thread or a remote host may run a job, and only the engine makes
//! its result durable.

use std::fmt;
use std::sync::Arc;

use terrane_base::options::{BlockEncoding, Compression};
use terrane_base::{Collation, ExtentId, SeqNo, TableId};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::{EditOp, Place};

use crate::claims::Claim;
use crate::limits::Limits;
use crate::range::{Hull, KeyRange};

/// Why a job exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobKind {
    /// Overflow runs move into L1.
    Runs,
    /// A level is beyond its target: extents move one level down.
    Level,
    /// Extents are mostly deletes: these move down, or vanish where nothing is deeper.
    Deletes,
    /// Small neighbours of a level become fewer, full extents.
    Gather,
    /// The tree shrank: the deepest level moves up into the one above it.
    Collapse,
    /// The table is mostly read: a level moves into the next, so that reads have fewer to search.
    Adapt,
    /// Someone asked for it.
    Manual,
    /// A range of a global index generation moves into L1.
    Flush,
    /// A global index generation becomes an overflow run.
    Dump,
}

impl JobKind {
    /// The kind as one lower-case word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            JobKind::Runs => "runs",
            JobKind::Level => "level",
            JobKind::Deletes => "deletes",
            JobKind::Gather => "gather",
            JobKind::Collapse => "collapse",
            JobKind::Adapt => "adapt",
            JobKind::Manual => "manual",
            JobKind::Flush => "flush",
            JobKind::Dump => "dump",
        }
    }
}

impl fmt::Display for JobKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Extents of one place that a job replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Where they are.
    pub place: Place,
    /// The extents, in key order; they do not overlap.
    pub extents: Vec<ExtentMeta>,
}

impl Input {
    /// Their stored bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.extents.iter().map(|meta| u64::from(meta.bytes)).sum()
    }

    fn hull(&self) -> Hull<'_> {
        let mut hull = Hull::default();
        self.extents.iter().for_each(|meta| hull.add(meta));
        hull
    }
}

/// How output extents are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputSettings {
    /// Entries of a block before compression, in bytes.
    pub block_bytes: usize,
    /// Layout of blocks.
    pub block_encoding: BlockEncoding,
    /// Bits of a filter per key.
    pub filter_bits_per_key: u32,
    /// Compression of blocks.
    pub compression: Compression,
}

impl OutputSettings {
    /// Settings for a place; `is_last`: no deeper level has extents.
    #[must_use]
    pub fn new(limits: &Limits, is_last: bool) -> Self {
        OutputSettings {
            block_bytes: limits.block_bytes as usize,
            block_encoding: limits.block_encoding,
            filter_bits_per_key: limits.filter_bits_per_key as u32,
            compression: if is_last { limits.compression_last } else { limits.compression },
        }
    }
}

/// An extent of the level below a job's target, or several side by side: outputs should not span too many of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grandparent {
    /// Its largest key.
    pub largest: Vec<u8>,
    /// Its stored bytes.
    pub bytes: u64,
}

/// What a job is to do. Self-contained: with the store at hand it can run anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSpec {
    /// Why.
    pub kind: JobKind,
    /// For which table.
    pub table: TableId,
    /// What to replace, newest first.
    pub inputs: Vec<Input>,
    /// Where the output goes.
    pub target: Place,
    /// The keys that the output may have.
    pub range: KeyRange,
    /// Keys that deeper levels may hold, as sorted, disjoint ranges: there deletes must stay.
    pub below: Vec<KeyRange>,
    /// The greatest number that deeper levels may hold within the range: what has a greater one lies nowhere deeper a
    /// second time.
    pub below_seq_max: SeqNo,
    /// Extents of the level below the target that overlap the range, in key order.
    pub grandparents: Vec<Grandparent>,
    /// Bytes of grandparents from which on an output extent ends.
    pub grandparent_bytes_max: u64,
    /// Live snapshots, ascending.
    pub snapshots: Vec<SeqNo>,
    /// How to write the output.
    pub output: OutputSettings,
    /// Whether the job exists to drop deletes: then extents and blocks with deletes are not reused.
    pub drops_deletes: bool,
    /// Whether everything is decoded and written anew.
    pub rewrites: bool,
    /// Output bytes after which what replaces extents of the target may be published; `u64::MAX`: only at the end.
    pub part_bytes: u64,
}

impl JobSpec {
    /// Stored bytes of all inputs.
    #[must_use]
    pub fn input_bytes(&self) -> u64 {
        self.inputs.iter().map(Input::bytes).sum()
    }

    /// How the keys of the table are ordered.
    #[must_use]
    pub fn collation(&self) -> &Collation {
        &self.range.collation
    }

    /// Whether the job may need no more than re-linking: one place moves, into a gap.
    #[must_use]
    pub fn is_move(&self) -> bool {
        let mut filled = self.inputs.iter().filter(|input| !input.extents.is_empty());
        let (Some(input), None) = (filled.next(), filled.next()) else { return false };
        let moves = |meta: &ExtentMeta| {
            meta.compression == self.output.compression
                && !(self.drops_deletes && (meta.deletes > 0 || meta.expiry.is_some()))
                && meta.range_deletes.is_none()
        };
        input.place != self.target && !self.rewrites && input.extents.iter().all(moves)
    }

    /// Whether parts of the result may be published before the job ends.
    #[must_use]
    pub fn is_in_parts(&self) -> bool {
        self.part_bytes != u64::MAX
    }

    /// What the job must hold while it runs.
    #[must_use]
    pub fn claim(&self) -> Claim {
        let mut holds = vec![(self.target, self.range.clone())];
        for input in self.inputs.iter().filter(|input| input.place != self.target) {
            holds.extend(input.hull().to_range().map(|range| (input.place, range)));
        }
        let sources = self.inputs.iter().filter(|input| input.place != self.target);
        let leaves = sources.map(|input| (input.place, input.bytes())).collect();
        Claim { table: self.table, holds, leaves }
    }
}

/// An extent that a result removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// From where.
    pub place: Place,
    /// Which.
    pub id: ExtentId,
    /// Its smallest key, by which it is found.
    pub smallest: Vec<u8>,
}

impl Removed {
    /// An extent of a place.
    pub(crate) fn of(place: Place, meta: &ExtentMeta) -> Self {
        Removed { place, id: meta.id, smallest: meta.smallest.clone() }
    }
}

/// What a job did, for the engine to publish in one edit. Its new extents are durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobResult {
    /// For which table.
    pub table: TableId,
    /// Where the added extents go.
    pub target: Place,
    /// What leaves its place, re-linked extents included.
    pub removed: Vec<Removed>,
    /// What comes to the target, in key order, re-linked extents included.
    pub added: Vec<Arc<ExtentMeta>>,
    /// Which extents are in both lists: they stay where they are on the device.
    pub relinked: Vec<ExtentId>,
    /// What it took.
    pub work: Work,
    /// For a flush: the key from which the next step goes on; `None` when the generation is done.
    pub next: Option<Vec<u8>>,
}

impl JobResult {
    /// The result as operations of an edit.
    #[must_use]
    pub fn edit_ops(&self) -> Vec<EditOp> {
        let removed = self.removed.iter().map(|removed| EditOp::RemoveExtent {
            table: self.table,
            place: removed.place,
            id: removed.id,
            smallest: removed.smallest.clone(),
        });
        let added = self.added.iter().map(|meta| EditOp::AddExtent {
            table: self.table,
            place: self.target,
            meta: Arc::clone(meta),
        });
        removed.chain(added).collect()
    }

    /// The extents that the job wrote: they go back to the store if the result is not published.
    pub fn written(&self) -> impl Iterator<Item = &ExtentMeta> {
        self.added.iter().map(AsRef::as_ref).filter(|meta| !self.relinked.contains(&meta.id))
    }

    /// The extents that are free once the result is published and nobody reads them any more.
    pub fn freed(&self) -> impl Iterator<Item = &Removed> {
        self.removed.iter().filter(|removed| !self.relinked.contains(&removed.id))
    }
}

/// What a job read, wrote and reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Stored bytes read.
    pub bytes_read: u64,
    /// Stored bytes written.
    pub bytes_written: u64,
    /// Stored bytes of extents that were re-linked.
    pub bytes_relinked: u64,
    /// Stored bytes of blocks that were copied undecoded.
    pub bytes_copied: u64,
    /// Extents that were re-linked.
    pub extents_relinked: u64,
    /// Blocks that were copied undecoded.
    pub blocks_copied: u64,
    /// Blocks that were decoded.
    pub blocks_decoded: u64,
    /// Entries of all inputs, reused ones included.
    pub entries_in: u64,
    /// Entries of all outputs, reused ones included.
    pub entries_out: u64,
    /// Entries that were dropped.
    pub entries_dropped: u64,
    /// Entries that had expired.
    pub entries_expired: u64,
    /// Rows that a compaction filter took out or changed.
    pub entries_filtered: u64,
    /// Operands that were folded, with others or with a value.
    pub operands_folded: u64,
    /// Times that a merge operator failed: its operands stayed as they were.
    pub folds_failed: u64,
}
