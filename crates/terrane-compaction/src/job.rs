//! Jobs and their results as plain values: a thread or a remote host may run a job, and only the engine makes
//! its result durable.

mod filtered;
mod frame;
mod report;
mod request;
mod values;
mod work;

use std::fmt;
use std::sync::Arc;

use terrane_base::options::{BlockEncoding, Compression, ValueCompression};
use terrane_base::{Collation, ExtentId, SeqNo, TableId, ValueTableId};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::{EditOp, Place};

use crate::claims::Claim;
use crate::limits::Limits;
use crate::range::{Hull, KeyRange};
pub use report::{REPORT_BYTES_MAX, decode_report, encode_report};
pub use request::{JobRequest, REQUEST_BYTES_MAX, Stays};
pub use values::{Mended, ValueInput};
pub use work::Work;
pub(crate) use work::with_work_fields;

/// The reason for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobKind {
    /// Overflow runs move into L1.
    Runs,
    /// A level is larger than its target: extents move one level down.
    Level,
    /// Extents with many deletes: they move down; where nothing is deeper the deletes are dropped.
    Deletes,
    /// Small neighbours of a level become fewer, full extents.
    Gather,
    /// The tree shrank: the deepest level moves up into the one above it.
    Collapse,
    /// The table is mostly read: a level moves into the next, so that reads search fewer runs.
    Adapt,
    /// A caller asked for it.
    Manual,
    /// A range of a global index generation moves into L1.
    Flush,
    /// A global index generation becomes an overflow run.
    Dump,
    /// Value tables with many dead values: the live ones are written to new value tables.
    Collect,
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
            JobKind::Collect => "collect",
        }
    }
}

impl fmt::Display for JobKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Extents of one level or run that a job replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Their level or run.
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

    /// Returns true if it is of a level deeper than `target`.
    pub(crate) fn is_below(&self, target: Place) -> bool {
        matches!((self.place, target), (Place::Level(own), Place::Level(target)) if own > target)
    }

    fn hull(&self) -> Hull<'_> {
        let mut hull = Hull::default();
        self.extents.iter().for_each(|meta| hull.add(meta));
        hull
    }
}

/// How output extents are encoded.
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
    /// Compression of value tables.
    pub value_compression: ValueCompression,
    /// Values of at least this many bytes go into value tables; `u64::MAX`: none does.
    pub separate_from: u64,
}

impl OutputSettings {
    /// Settings for a level or run; `is_last`: no deeper level has extents; `exceeds_memory` is
    /// [`TableShape::exceeds_memory`](crate::TableShape::exceeds_memory).
    #[must_use]
    pub fn new(limits: &Limits, is_last: bool, exceeds_memory: bool) -> Self {
        let block_bytes = if exceeds_memory { limits.block_bytes_beyond_memory } else { limits.block_bytes };
        OutputSettings {
            block_bytes: block_bytes as usize,
            block_encoding: limits.block_encoding,
            filter_bits_per_key: limits.filter_bits_per_key as u32,
            compression: if is_last { limits.compression_last } else { limits.compression },
            value_compression: limits.value_compression,
            separate_from: limits.separate_from,
        }
    }
}

/// An extent of the level below a job's target, or several neighbours: outputs should not span too many of
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grandparent {
    /// Its largest key.
    pub largest: Vec<u8>,
    /// Its stored bytes.
    pub bytes: u64,
}

/// The description of a job. Self-contained: with access to the store it can run anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSpec {
    /// The reason.
    pub kind: JobKind,
    /// The number of the caller's request that the job is a step of, if it is one.
    pub request: Option<u64>,
    /// For which table.
    pub table: TableId,
    /// The extents to replace, newest first.
    pub inputs: Vec<Input>,
    /// The value tables that the inputs point into, by number.
    pub values: Vec<ValueInput>,
    /// The keys whose values move whichever value table has them.
    pub mended: Option<Mended>,
    /// The level or run of the output.
    pub target: Place,
    /// The keys that the output may have.
    pub range: KeyRange,
    /// Keys that deeper levels may hold, as sorted, disjoint ranges: their deletes must stay.
    pub below: Vec<KeyRange>,
    /// The greatest number that deeper levels may hold within the range: a version with a greater number has
    /// no second copy there.
    pub below_seq_max: SeqNo,
    /// Extents of the level below the target that overlap the range, in key order.
    pub grandparents: Vec<Grandparent>,
    /// An output extent ends once it overlaps this many bytes of grandparents.
    pub grandparent_bytes_max: u64,
    /// Live snapshots, ascending.
    pub snapshots: Vec<SeqNo>,
    /// How to encode the output.
    pub output: OutputSettings,
    /// True if the job exists to drop deletes: then extents and blocks with deletes are not reused.
    pub drops_deletes: bool,
    /// True if everything is decoded and written again.
    pub rewrites: bool,
    /// Output bytes after which replaced extents of the target may be published; `u64::MAX`: only at the end.
    pub part_bytes: u64,
    /// An output extent ends at this many bytes: those of a slot, or fewer where the device is nearly full.
    pub extent_bytes_max: u64,
}

impl JobSpec {
    /// Stored bytes of all inputs.
    #[must_use]
    pub fn input_bytes(&self) -> u64 {
        self.inputs.iter().map(Input::bytes).sum()
    }

    /// Key order of the table.
    #[must_use]
    pub fn collation(&self) -> &Collation {
        &self.range.collation
    }

    /// The value table with this number, if the inputs point into it.
    #[must_use]
    pub fn values_of(&self, number: ValueTableId) -> Option<&ValueInput> {
        let index = self.values.binary_search_by_key(&number, ValueInput::number).ok()?;
        Some(&self.values[index])
    }

    /// Returns true if an extent has pointers to values that the job rewrites.
    #[must_use]
    pub fn moves_values_of(&self, meta: &ExtentMeta) -> bool {
        debug_assert!(
            self.values.is_sorted_by(|a, b| a.number() < b.number()),
            "a value table that is there would not be found"
        );
        let range = || KeyRange::closed(&meta.smallest, &meta.largest).ordered(self.collation());
        if self.mended.as_ref().is_some_and(|mended| mended.range.overlaps(&range())) {
            return !meta.references().is_empty();
        }
        let is_rewritten = |number| self.values_of(number).is_some_and(|values| values.is_rewritten);
        meta.references().iter().any(|reference| is_rewritten(reference.table))
    }

    /// Returns true if entries of the output may be pointers to values.
    #[must_use]
    pub fn points(&self) -> bool {
        self.output.separate_from != u64::MAX || !self.values.is_empty()
    }

    /// Returns true if re-linking may be enough: one level or run moves into a gap.
    #[must_use]
    pub fn is_move(&self) -> bool {
        let mut filled = self.inputs.iter().filter(|input| !input.extents.is_empty());
        let (Some(input), None) = (filled.next(), filled.next()) else { return false };
        let moves = |meta: &ExtentMeta| {
            meta.compression == self.output.compression
                && !(self.drops_deletes && (meta.deletes > 0 || meta.expiry.is_some()))
                && meta.range_deletes.is_none()
                && !self.moves_values_of(meta)
        };
        input.place != self.target && !self.rewrites && input.extents.iter().all(moves)
    }

    /// Walks the job and asserts that extents of an input are in order and apart, that no extent comes
    /// twice, and that what lies below is in order. A caller's comparator may break its promise.
    pub(crate) fn check(&self) -> bool {
        let mut places: Vec<Place> = self.inputs.iter().map(|input| input.place).collect();
        places.sort_unstable();
        assert!(places.is_sorted_by(|a, b| a < b), "a place is an input twice: {places:?}");
        let is_by_number = self.values.is_sorted_by(|a, b| a.number() < b.number());
        assert!(is_by_number, "value tables are searched by number: {:?}", self.values);
        let rises = self.inputs.iter().any(|input| input.is_below(self.target));
        assert!(!rises || !self.is_in_parts(), "a part would show versions that its deletes hid");
        if self.collation().is_bytes() {
            for input in &self.inputs {
                let is_apart = input.extents.is_sorted_by(|a, b| a.largest < b.smallest);
                assert!(is_apart, "extents of {:?} overlap", input.place);
            }
            assert!(self.below.is_sorted_by(|a, b| a.ends_before(&b.start)), "ranges below overlap");
            assert!(self.grandparents.is_sorted_by_key(|grandparent| &grandparent.largest), "grandparents");
        }
        true
    }

    /// Returns true if parts of the result may be published before the job ends. No input is deeper than the
    /// target then: extents of a deeper one that the end of a part divides stay, so versions that a delete of
    /// the target hid would be seen again there.
    #[must_use]
    pub fn is_in_parts(&self) -> bool {
        self.part_bytes != u64::MAX
    }

    /// The keys that the job must claim while it runs.
    #[must_use]
    pub fn claim(&self) -> Claim {
        let is_held = |meta: &ExtentMeta| {
            !self.collation().is_bytes()
                || self.range.contains(&meta.smallest) && self.range.contains(&meta.largest)
        };
        let mut replaced = self.inputs.iter().filter(|input| input.place == self.target);
        debug_assert!(
            replaced.all(|input| input.extents.iter().all(is_held)),
            "a job holds the extents of its target that it replaces"
        );
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
    /// Its level or run.
    pub place: Place,
    /// Which.
    pub id: ExtentId,
    /// Its smallest key, by which it is found.
    pub smallest: Vec<u8>,
}

impl Removed {
    /// An extent of a level or run.
    pub(crate) fn of(place: Place, meta: &ExtentMeta) -> Self {
        Removed { place, id: meta.id, smallest: meta.smallest.clone() }
    }
}

/// The result of a job, for the engine to publish in one edit. Its new extents are durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobResult {
    /// For which table.
    pub table: TableId,
    /// The level or run of the added extents.
    pub target: Place,
    /// The extents to remove, re-linked ones included.
    pub removed: Vec<Removed>,
    /// The extents to add to the target, in key order, re-linked ones included.
    pub added: Vec<Arc<ExtentMeta>>,
    /// The value tables to add.
    pub values: Vec<Arc<ExtentMeta>>,
    /// The extents in both lists: they stay in their slots.
    pub relinked: Vec<ExtentId>,
    /// The work that it took.
    pub work: Work,
    /// For a flush: the first key of the next step; `None` when the generation is finished.
    pub next: Option<Vec<u8>>,
}

impl JobResult {
    /// Walks the result and asserts that each extent comes and goes once, and that a re-linked extent does
    /// both.
    ///
    /// # Panics
    /// If it is not so.
    #[must_use]
    pub fn check(&self) -> bool {
        let ids = |mut ids: Vec<ExtentId>| {
            ids.sort_unstable();
            ids
        };
        let removed = ids(self.removed.iter().map(|removed| removed.id).collect());
        let added = ids(self.added.iter().map(|meta| meta.id).collect());
        assert!(removed.is_sorted_by(|a, b| a < b), "an extent goes twice: {removed:?}");
        assert!(added.is_sorted_by(|a, b| a < b), "an extent comes twice: {added:?}");
        let both: Vec<ExtentId> = added.into_iter().filter(|id| removed.binary_search(id).is_ok()).collect();
        assert!(both == self.relinked, "re-linked are {:?}, removed and added {both:?}", self.relinked);
        true
    }

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
        let values = self.values.iter().map(|meta| EditOp::add(self.table, Place::Values, meta.clone()));
        values.chain(removed).chain(added).collect()
    }

    /// The extents that the job wrote, value tables included: they are freed if the result is not published.
    pub fn written(&self) -> impl Iterator<Item = &ExtentMeta> {
        let added = self.added.iter().map(AsRef::as_ref);
        let values = self.values.iter().map(AsRef::as_ref);
        added.filter(|meta| !self.relinked.contains(&meta.id)).chain(values)
    }

    /// The extents that can be freed once the result is published and no reader uses them. Value tables that
    /// the last pointer leaves come with them.
    pub fn freed(&self) -> impl Iterator<Item = &Removed> {
        self.removed.iter().filter(|removed| !self.relinked.contains(&removed.id))
    }
}
