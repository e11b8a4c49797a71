//! What a merge writes: extents in key order, some of them re-linked.
//!
//! Invariants:
//! 1. All versions of a key are in one extent: an extent ends only before a new key.
//! 2. What was written goes back to the store unless [`Output::commit`] was reached.

use std::collections::HashSet;
use std::sync::Arc;

use terrane_base::{Entry, Error, ExtentId, Result};
use terrane_format::extent::ExtentMeta;
use terrane_format::index::IndexRow;
use terrane_storage::{SLOT_BYTES, Store};
use terrane_table::{ExtentWriter, WriterSettings};

use crate::control::JobControl;
use crate::job::{JobSpec, Work};

/// An output extent ends at a border of grandparents only if it has this many bytes: else borders would make it
/// small for good.
const CUT_BYTES_MIN: usize = SLOT_BYTES / 4;
/// Bytes that an entry may add beside its key and value, generously.
const ENTRY_OVERHEAD: usize = 256;

/// The output of a job.
pub(super) struct Committed {
    /// All extents in key order.
    pub(super) added: Vec<Arc<ExtentMeta>>,
    /// Which of them are re-linked.
    pub(super) relinked: HashSet<ExtentId>,
}

/// Collects the output of one job.
pub(super) struct Output<'a> {
    spec: &'a JobSpec,
    store: &'a dyn Store,
    control: &'a JobControl,
    writer: ExtentWriter,
    added: Vec<Arc<ExtentMeta>>,
    /// Which of them are re-linked; the others were written by this job.
    relinked: HashSet<ExtentId>,
    /// Bytes that may surely be added before the writer must be asked again.
    slack: usize,
    /// Size at which the extent ends.
    limit: usize,
    /// The first grandparent that is not left behind, and bytes of those met since the extent began.
    grandparent: usize,
    met_bytes: u64,
    cut_is_due: bool,
    is_committed: bool,
}

impl<'a> Output<'a> {
    pub(super) fn new(spec: &'a JobSpec, store: &'a dyn Store, control: &'a JobControl) -> Result<Self> {
        let writer = ExtentWriter::new(WriterSettings {
            table: spec.table,
            block_bytes: spec.output.block_bytes,
            block_encoding: spec.output.block_encoding,
            filter_bits_per_key: spec.output.filter_bits_per_key,
            compression: spec.output.compression,
        })?;
        Ok(Output {
            spec,
            store,
            control,
            writer,
            added: Vec::new(),
            relinked: HashSet::new(),
            slack: 0,
            limit: SLOT_BYTES,
            grandparent: 0,
            met_bytes: 0,
            cut_is_due: false,
            is_committed: false,
        })
    }

    /// Bytes of the extent that is being filled.
    pub(super) fn open_bytes(&self) -> usize {
        if self.writer.is_empty() { 0 } else { self.writer.estimated_bytes() }
    }

    /// Adds the first version of a key that stays.
    #[inline]
    pub(super) fn add_first(&mut self, entry: Entry<'_>, work: &mut Work) -> Result<()> {
        let bytes = 3 * entry.key.len() + entry.value.len() + ENTRY_OVERHEAD;
        if bytes > self.slack || self.cut_is_due {
            self.make_room(entry.key.len(), entry.value.len(), bytes, work)?;
        }
        self.slack = self.slack.saturating_sub(bytes);
        self.add(entry, work)
    }

    /// Adds a further version of the key that was added last.
    #[inline]
    pub(super) fn add_next(&mut self, entry: Entry<'_>, work: &mut Work) -> Result<()> {
        self.slack = self.slack.saturating_sub(entry.key.len() + entry.value.len() + ENTRY_OVERHEAD);
        self.add(entry, work)
    }

    #[inline]
    fn add(&mut self, entry: Entry<'_>, work: &mut Work) -> Result<()> {
        work.entries_out += 1;
        self.writer.add(entry)
    }

    /// Closes the extent unless an entry fits, and finds out how much more does.
    fn make_room(&mut self, key_len: usize, value_len: usize, bytes: usize, work: &mut Work) -> Result<()> {
        let is_full = !self.writer.fits(key_len, value_len) || self.open_bytes() + bytes > self.limit;
        if !self.writer.is_empty() && (is_full || self.cut_is_due) {
            self.close(work)?;
        }
        // Asking the writer costs more than adding a small entry does, so it is asked once per 32nd of a slot.
        let left = self.limit.min(SLOT_BYTES).saturating_sub(self.open_bytes());
        let share = (SLOT_BYTES / 32).min(left / 2);
        self.slack = if self.writer.fits(0, share + bytes) { share + bytes } else { bytes };
        Ok(())
    }

    /// Adds a stored block. Requires: its keys are greater than all before.
    pub(super) fn add_block(&mut self, row: &IndexRow<'_>, stored: &[u8], work: &mut Work) -> Result<()> {
        let is_full = !self.writer.fits_block(row) || self.open_bytes() + stored.len() > self.limit;
        if !self.writer.is_empty() && (is_full || self.cut_is_due) {
            self.close(work)?;
        }
        if !self.writer.is_empty() && self.writer.last_key() >= row.first_key {
            return Err(out_of_order());
        }
        self.writer.add_block(row, stored)?;
        self.slack = 0;
        work.blocks_copied += 1;
        work.bytes_copied += u64::from(row.stored_len);
        work.entries_out += u64::from(row.entries);
        Ok(())
    }

    /// Takes an extent over as it is. Requires: its keys are greater than all before.
    pub(super) fn relink(&mut self, meta: &ExtentMeta, work: &mut Work) -> Result<()> {
        self.close(work)?;
        self.relinked.insert(meta.id);
        self.push(Arc::new(meta.clone()))?;
        work.extents_relinked += 1;
        work.bytes_relinked += u64::from(meta.bytes);
        work.entries_in += meta.entries;
        work.entries_out += meta.entries;
        Ok(())
    }

    /// Notes that `bytes` more are about to be copied, after which the extent should end: what is open and they
    /// are shared evenly by as few extents as can hold them.
    pub(super) fn balance(&mut self, bytes: usize) {
        let total = self.open_bytes() + bytes;
        let extents = total.div_ceil(SLOT_BYTES);
        if extents > 1 {
            // A little more than the share, so that the last one gets no more extents than were counted.
            self.limit = (total / extents + self.spec.output.block_bytes).min(SLOT_BYTES);
            self.slack = 0;
        }
    }

    /// Looks whether the output left so many grandparents behind that the extent should end before `key`, the
    /// least key of what is added from now on.
    pub(super) fn pass_grandparents(&mut self, key: &[u8]) {
        while let Some(grandparent) = self.spec.grandparents.get(self.grandparent)
            && grandparent.largest.as_slice() < key
        {
            if !self.writer.is_empty() {
                self.met_bytes += u64::from(grandparent.bytes);
            }
            self.grandparent += 1;
        }
        self.cut_is_due =
            self.met_bytes > self.spec.grandparent_bytes_max && self.open_bytes() >= CUT_BYTES_MIN;
    }

    /// Writes the extent that is being filled, if it has anything.
    pub(super) fn close(&mut self, work: &mut Work) -> Result<()> {
        (self.slack, self.limit, self.met_bytes, self.cut_is_due) = (0, SLOT_BYTES, 0, false);
        if self.writer.is_empty() {
            return Ok(());
        }
        self.control.spend(self.writer.estimated_bytes() as u64)?;
        let meta = self.writer.finish(self.store)?;
        work.bytes_written += u64::from(meta.bytes);
        self.push(Arc::new(meta))
    }

    /// Takes an extent in, which inputs that say the truth give out in order.
    fn push(&mut self, meta: Arc<ExtentMeta>) -> Result<()> {
        let is_in_order = meta.smallest <= meta.largest
            && self.added.last().is_none_or(|last| last.largest < meta.smallest);
        self.added.push(meta);
        if is_in_order { Ok(()) } else { Err(out_of_order()) }
    }

    /// Makes everything durable and hands it over.
    pub(super) fn commit(mut self, work: &mut Work) -> Result<Committed> {
        let committed = self.commit_part(work)?;
        self.is_committed = true;
        Ok(committed)
    }

    /// Makes what there is so far durable and hands it over. Requires: what is added from now on has greater keys.
    pub(super) fn commit_part(&mut self, work: &mut Work) -> Result<Committed> {
        self.close(work)?;
        self.control.check()?;
        if self.added.len() > self.relinked.len() {
            self.store.sync()?;
        }
        let (added, relinked) = (std::mem::take(&mut self.added), std::mem::take(&mut self.relinked));
        Ok(Committed { added, relinked })
    }
}

#[cold]
fn out_of_order() -> Error {
    Error::corrupt("keys of the inputs are out of order")
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        if self.is_committed {
            return;
        }
        for meta in self.added.iter().filter(|meta| !self.relinked.contains(&meta.id)) {
            // The job's own error is the one to act on; slots that cannot be given back now are free after the
            // next open, for no manifest names them.
            let _ = self.store.free(meta.id, meta.slots);
        }
    }
}
