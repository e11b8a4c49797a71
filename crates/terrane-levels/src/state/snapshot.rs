//! A state as edits that create it from nothing, in pieces of bounded size.
//!
//! Order: each table with its extents (then its drop), segments, and the single numbers last.

use std::sync::Arc;

use terrane_base::{Result, SegmentId, SeqNo, TableId, varint};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::{EditOp, HistoryRule, Place};

use super::{State, Table};

/// Operations gathered to payloads of snapshot records.
pub(crate) struct Pieces<'a> {
    /// A piece is passed on when it is this long; the last operation may exceed it.
    bytes_max: usize,
    emit: &'a mut dyn FnMut(&[u8]) -> Result<()>,
    ops: Vec<u8>,
    piece_op_count: u32,
    op_count: u64,
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(bytes_max: usize, emit: &'a mut dyn FnMut(&[u8]) -> Result<()>) -> Self {
        Pieces { bytes_max, emit, ops: Vec::new(), piece_op_count: 0, op_count: 0 }
    }

    /// Passes on all of `state`; returns the number of operations.
    pub(crate) fn write(mut self, state: &State) -> Result<u64> {
        for table in state.tables.values() {
            self.push_table(table, state.flushed_all)?;
        }
        self.push_segments(state)?;
        self.push(&EditOp::NextIds(state.next))?;
        if state.flushed_all > SeqNo::default() && !terrane_base::planted!(ForgetFlushedFloor) {
            self.push(&EditOp::FlushedAll { seq: state.flushed_all })?;
        }
        if state.durable > SeqNo::default() {
            self.push(&EditOp::Durable { seq: state.durable })?;
        }
        if state.epoch > 0 {
            self.push(&EditOp::Epoch { epoch: state.epoch })?;
        }
        // Last, because any later edit would remove the mark.
        if let Some(last_seq) = state.clean_close {
            self.push(&EditOp::CleanClose { last_seq })?;
        }
        self.flush()?;
        assert!(self.ops.is_empty() && self.piece_op_count == 0, "operations are left out of the snapshot");
        debug_assert!(self.op_count > state.tables.len() as u64, "each table, and the next numbers");
        Ok(self.op_count)
    }

    fn push_table(&mut self, table: &Table, flushed_all: SeqNo) -> Result<()> {
        debug_assert!(
            !table.dropped || !table.extents.is_empty(),
            "a dropped table goes with its last extent"
        );
        let (id, name, options) = (table.id, table.name.clone(), table.options.clone());
        self.push(&EditOp::CreateTable { id, name, options })?;
        if table.flushed > flushed_all {
            self.push(&EditOp::Flushed { table: id, seq: table.flushed })?;
        }
        // Before what points into them.
        let values = table.extents.values.iter().map(|values| &values.extent);
        self.push_level(id, Place::Values, values)?;
        // Oldest run first, because a new run must be newer than all others.
        for run in table.extents.runs.iter().rev() {
            self.push_level(id, Place::Run(run.id), run.level.iter())?;
        }
        for (place, level) in (1..).map(Place::Level).zip(&table.extents.levels) {
            self.push_level(id, place, level.iter())?;
        }
        if table.dropped { self.push(&EditOp::DropTable { id }) } else { Ok(()) }
    }

    fn push_level<'m>(
        &mut self,
        table: TableId,
        place: Place,
        mut extents: impl Iterator<Item = &'m Arc<ExtentMeta>>,
    ) -> Result<()> {
        extents.try_for_each(|meta| self.push(&EditOp::AddExtent { table, place, meta: meta.clone() }))
    }

    fn push_segments(&mut self, state: &State) -> Result<()> {
        let last = state.last_sealed;
        let is_there = |id: &SegmentId| state.segments.contains_key(id) || state.history.contains_key(id);
        let gone = last
            .filter(|(spec, _)| !is_there(&spec.id))
            .map(|(spec, seal)| (spec, Some(seal), Some(EditOp::RemoveSegment { id: spec.id })));
        let live = state.segments.values().map(|segment| (segment.spec, segment.seal, None));
        let kept = state.history.values().map(|segment| {
            let (id, kept) = (segment.spec.id, segment.kept);
            let seal = last.filter(|(spec, _)| spec.id == id).map(|(_, seal)| seal);
            (segment.spec, seal, Some(EditOp::KeepSegment { id, kept }))
        });
        let mut all: Vec<_> = live.chain(kept).chain(gone).collect();
        all.sort_by_key(|(spec, ..)| spec.id);
        debug_assert!(
            all.is_sorted_by(|a, b| a.0.id < b.0.id),
            "a segment is live, kept or gone, and only one of them"
        );
        for (spec, seal, end) in all {
            // In the order of their numbers, so that a file is freed before a later segment uses it again.
            self.push(&EditOp::AddSegment(spec))?;
            if let Some(seal) = seal {
                self.push(&EditOp::SealSegment { id: spec.id, seal })?;
            }
            if let Some(end) = end {
                self.push(&end)?;
            }
        }
        if state.history_rule != HistoryRule::default() {
            self.push(&EditOp::SetHistory(state.history_rule))?;
        }
        state.void_marks.iter().try_for_each(|seq| self.push(&EditOp::VoidMark { seq: *seq }))
    }

    fn push(&mut self, op: &EditOp) -> Result<()> {
        let before = self.ops.len();
        op.encode(&mut self.ops);
        debug_assert!(self.ops.len() > before, "each operation has bytes");
        self.piece_op_count += 1;
        self.op_count += 1;
        if self.ops.len() >= self.bytes_max { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        if self.piece_op_count == 0 {
            return Ok(());
        }
        debug_assert!(!self.ops.is_empty(), "{} operations without bytes", self.piece_op_count);
        let mut payload = Vec::with_capacity(varint::BYTES_MAX + self.ops.len());
        varint::put(&mut payload, self.piece_op_count);
        payload.extend_from_slice(&self.ops);
        self.ops.clear();
        self.piece_op_count = 0;
        (self.emit)(&payload)
    }
}
