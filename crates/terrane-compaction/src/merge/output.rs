//! The output of a merge: extents in key order, some of them re-linked.
//!
//! Invariants:
//! 1. All versions of a key are in one extent: an extent ends only before a new key.
//! 2. A range delete goes into the extent of the entries that it covers. If it reaches further it is cut
//!    after a key `k`, at `k` plus a zero byte, so that the inclusive bounds of extents stay disjoint. A
//!    range delete over much of the level below is cut at borders of extents there, so that concurrent jobs
//!    can move its pieces further down.
//! 3. What was written is freed unless [`Output::commit`] was reached.

mod commit;
mod divide;
mod replaced;
mod reused;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use terrane_base::{Collation, Entry, Error, ExtentId, Result};
use terrane_format::extent::{ExtentMeta, Replaced};
use terrane_format::range_deletes::Fragment;
use terrane_storage::{SLOT_BYTES, Store};
use terrane_table::{ExtentWriter, WriterSettings};

pub(super) use replaced::Behind;

use super::values::Values;
use crate::control::JobControl;
use crate::job::{JobSpec, Work};

/// An output extent ends at a border of grandparents only if it has this many bytes; otherwise borders would
/// make it permanently small.
const CUT_BYTES_MIN: usize = SLOT_BYTES / 4;
/// An extent ends at this many bytes of range deletes. Several of the longest fragments fit.
const RANGE_BYTES_MAX: usize = SLOT_BYTES / 4;
/// Generous bound of the bytes that an entry may add besides its key and value.
const ENTRY_OVERHEAD: usize = 256;

/// The output of a job.
pub(super) struct Committed {
    /// All extents in key order.
    pub(super) added: Vec<Arc<ExtentMeta>>,
    /// Which of them are re-linked.
    pub(super) relinked: HashSet<ExtentId>,
    /// The value tables that were written.
    pub(super) values: Vec<Arc<ExtentMeta>>,
}

/// Bytes at which an extent ends.
fn extent_max(spec: &JobSpec) -> usize {
    debug_assert!(spec.extent_bytes_max > 0, "an extent has an entry");
    spec.extent_bytes_max.min(SLOT_BYTES as u64) as usize
}

/// Collects the output of one job.
pub(super) struct Output<'a> {
    spec: &'a JobSpec,
    store: &'a dyn Store,
    control: &'a JobControl,
    writer: ExtentWriter,
    /// The value tables of the output.
    pub(super) values: Values<'a>,
    added: Vec<Arc<ExtentMeta>>,
    /// Which of them are re-linked; the others were written by this job.
    relinked: HashSet<ExtentId>,
    /// Bytes that certainly fit before the writer must be asked again.
    slack: usize,
    /// Size at which the extent ends.
    limit: usize,
    /// The first grandparent that is not passed, and the bytes of those passed since the extent began.
    grandparent: usize,
    met_bytes: u64,
    cut_is_due: bool,
    /// Bytes of grandparents after which a range delete is cut.
    piece_bytes: u64,
    is_committed: bool,
    /// Range deletes of the output, in key order, and the first that is in no extent yet.
    ranges: Vec<Fragment>,
    next_range: usize,
    /// The first key that no extent of the output covers yet.
    covered_to: Vec<u8>,
    /// The extents that each opened input had replaced.
    known: HashMap<ExtentId, Vec<Replaced>>,
}

impl<'a> Output<'a> {
    pub(super) fn new(
        spec: &'a JobSpec,
        (store, values): (&'a dyn Store, Values<'a>),
        control: &'a JobControl,
        ranges: Vec<Fragment>,
    ) -> Result<Self> {
        let mut writer = ExtentWriter::new(WriterSettings {
            table: spec.table,
            block_bytes: spec.output.block_bytes,
            block_encoding: spec.output.block_encoding,
            filter_bits_per_key: spec.output.filter_bits_per_key,
            compression: spec.output.compression,
            zstd_level: None,
            value_table: None,
            may_point: spec.points(),
        })?
        .ordered(spec.collation())
        .of_origin(control.origin(spec.target));
        if let Some(extractor) = control.extractor() {
            writer.filter_prefixes(extractor.clone());
        }
        Ok(Output {
            spec,
            store,
            control,
            writer,
            values,
            added: Vec::new(),
            relinked: HashSet::new(),
            slack: 0,
            limit: extent_max(spec),
            grandparent: 0,
            met_bytes: 0,
            cut_is_due: false,
            piece_bytes: divide::piece_bytes(spec),
            is_committed: false,
            ranges,
            next_range: 0,
            covered_to: spec.range.start.clone(),
            known: HashMap::new(),
        })
    }

    /// Bytes of the current extent.
    pub(super) fn open_bytes(&self) -> usize {
        if self.writer.is_empty() { 0 } else { self.writer.estimated_bytes() }
    }

    /// True if the counts fit: range deletes are taken in their order, grandparents are passed once, an
    /// extent takes a slot, and re-linked extents were added.
    fn is_sound(&self) -> bool {
        self.next_range <= self.ranges.len()
            && self.grandparent <= self.spec.grandparents.len()
            && self.limit <= extent_max(self.spec)
            && self.relinked.len() <= self.added.len()
    }

    /// Adds the newest surviving version of a key.
    #[inline]
    pub(super) fn add_first(&mut self, entry: Entry<'_>, work: &mut Work) -> Result<()> {
        debug_assert!(
            self.is_sound(),
            "the counts of the output fit what it has, before entry {}",
            work.entries_out
        );
        let bytes = 3 * entry.key.len() + entry.value.len() + ENTRY_OVERHEAD;
        let has_ranges = self.has_ranges();
        if has_ranges {
            self.take_ranges_before(entry.key, work)?;
        }
        if bytes > self.slack || self.cut_is_due {
            self.make_room(entry.key, entry.value.len(), bytes, work)?;
        }
        if has_ranges {
            // Up to the key itself, which is in the current extent by now.
            self.take_ranges_to(entry.key)?;
        }
        self.slack = self.slack.saturating_sub(bytes);
        self.add(entry, work)
    }

    #[inline]
    fn has_ranges(&self) -> bool {
        self.next_range < self.ranges.len() || self.writer.range_delete_bytes() > 0
    }

    /// Adds the range deletes that begin before `key`, the next key, to extents.
    fn take_ranges_before(&mut self, key: &[u8], work: &mut Work) -> Result<()> {
        while self.next_begins(|start| self.spec.collation().lt(start, key)) {
            self.take_range(Some(key), work)?;
        }
        debug_assert!(
            self.is_sound(),
            "the counts of the output fit what it has, before range delete {}",
            self.next_range
        );
        Ok(())
    }

    /// Adds the next range delete to the current extent or, if that is full, to a new one; then in pieces as
    /// far as `key`, the next key, or to its end.
    fn take_range(&mut self, key: Option<&[u8]>, work: &mut Work) -> Result<()> {
        debug_assert!(
            self.is_sound(),
            "the counts of the output fit what it has, before range delete {}",
            self.next_range
        );
        let ends_piece = self.ends_piece();
        let Some(next) = self.ranges.get(self.next_range) else { return Ok(()) };
        let (bytes, held) = (next.encoded_len(), self.writer.range_delete_bytes());
        let is_full = held > 0 && held + bytes > RANGE_BYTES_MAX;
        if !self.writer.is_empty()
            && (ends_piece || is_full || self.open_bytes() + bytes > SLOT_BYTES)
            && !self.would_come_back(&next.start)
        {
            let start = next.start.clone();
            // The part that was cut off before it comes first.
            return self.close(Some(&start), work);
        }
        self.push_range()?;
        self.divide_range(key, work)
    }

    /// Returns true if an extent that ended before `start` would contain only a piece of one range delete,
    /// with the rest before `start`, which would repeat for ever. Two fragments fit: their keys are at most
    /// 128 KiB each, and the rest are numbers that as many snapshots keep.
    fn would_come_back(&self, start: &[u8]) -> bool {
        debug_assert!(
            self.next_range <= self.ranges.len(),
            "the range delete that was taken last is one of them"
        );
        let Some(last) = self.next_range.checked_sub(1).map(|taken| &self.ranges[taken]) else {
            return false;
        };
        let collation = self.spec.collation();
        let reaches = collation.le(start, &last.last_key(collation));
        self.writer.range_delete_count() == 1 && !self.writer.has_entries() && reaches
    }

    /// Adds the range deletes that begin up to `key` to the current extent.
    fn take_ranges_to(&mut self, key: &[u8]) -> Result<()> {
        while self.next_begins(|start| self.spec.collation().le(start, key)) {
            self.push_range()?;
        }
        debug_assert!(
            self.is_sound(),
            "the counts of the output fit what it has, before range delete {}",
            self.next_range
        );
        Ok(())
    }

    fn next_begins(&self, is_taken: impl Fn(&[u8]) -> bool) -> bool {
        self.ranges.get(self.next_range).is_some_and(|next| is_taken(&next.start))
    }

    fn push_range(&mut self) -> Result<()> {
        assert!(self.next_range < self.ranges.len(), "all range deletes are taken");
        self.slack = 0;
        self.next_range += 1;
        self.writer.add_range_delete(self.ranges[self.next_range - 1].clone())
    }

    /// Cuts the range deletes that reach to `next`, the least key of the next extent, or further.
    fn cut_range(&mut self, next: &[u8]) {
        let Some(taken) = self.next_range.checked_sub(1) else { return };
        let last = &self.ranges[taken];
        let collation = self.spec.collation();
        if self.writer.range_delete_bytes() == 0 || collation.lt(&last.last_key(collation), next) {
            return;
        }
        let entry = if self.writer.has_entries() { self.writer.last_key() } else { &[] };
        let end = collation.successor(collation.max(entry, &last.start));
        if let Some(behind) = self.writer.cut_range_delete(&end) {
            debug_assert!(behind.seqs == self.ranges[taken].seqs, "the piece behind hides the same versions");
            self.ranges[taken] = behind;
            self.next_range = taken;
        }
    }

    /// Adds another version of the last key.
    #[inline]
    pub(super) fn add_next(&mut self, entry: Entry<'_>, work: &mut Work) -> Result<()> {
        debug_assert!(
            !self.writer.has_entries() || self.writer.last_key() == entry.key,
            "versions of two keys would count as one"
        );
        self.slack = self.slack.saturating_sub(entry.key.len() + entry.value.len() + ENTRY_OVERHEAD);
        self.add(entry, work)
    }

    #[inline]
    fn add(&mut self, entry: Entry<'_>, work: &mut Work) -> Result<()> {
        work.entries_out += 1;
        self.writer.add(entry)
    }

    /// Ends the extent unless an entry fits, and computes how much more fits.
    fn make_room(&mut self, key: &[u8], value_len: usize, bytes: usize, work: &mut Work) -> Result<()> {
        let is_full = !self.writer.fits(key.len(), value_len) || self.open_bytes() + bytes > self.limit;
        if !self.writer.is_empty() && (is_full || self.cut_is_due) {
            self.close(Some(key), work)?;
        }
        debug_assert!(
            self.writer.is_empty() || self.writer.fits(key.len(), value_len),
            "an extent has room for the entry that it gets"
        );
        // Asking the writer costs more than adding a small entry, so it is asked once per 32nd of a slot.
        let left = self.limit.saturating_sub(self.open_bytes());
        let share = (SLOT_BYTES / 32).min(left / 2);
        self.slack = if self.writer.fits(0, share + bytes) { share + bytes } else { bytes };
        Ok(())
    }

    /// Ends the extent before `key`, the least key of later additions, if the output has passed too many
    /// grandparents. Requires: no entry with a lesser key will be added.
    pub(super) fn pass_grandparents(&mut self, key: &[u8], work: &mut Work) -> Result<()> {
        if self.has_ranges() {
            self.take_ranges_before(key, work)?;
            self.divide_taken(Some(key), work)?;
        }
        while let Some(grandparent) = self.spec.grandparents.get(self.grandparent)
            && self.spec.collation().lt(&grandparent.largest, key)
        {
            if !self.writer.is_empty() {
                self.met_bytes += grandparent.bytes;
            }
            self.grandparent += 1;
        }
        self.cut_is_due =
            self.met_bytes > self.spec.grandparent_bytes_max && self.open_bytes() >= CUT_BYTES_MIN;
        debug_assert!(
            self.is_sound(),
            "the counts of the output fit what it has, behind grandparent {}",
            self.grandparent
        );
        Ok(())
    }

    /// Writes the current extent, if it is not empty. `next` is the least key of what follows.
    fn close(&mut self, next: Option<&[u8]>, work: &mut Work) -> Result<()> {
        self.close_before(next.map_or(Behind::Unknown, Behind::Key), work)
    }

    fn close_before(&mut self, behind: Behind<'_>, work: &mut Work) -> Result<()> {
        (self.slack, self.limit, self.met_bytes, self.cut_is_due) = (0, extent_max(self.spec), 0, false);
        if self.writer.is_empty() {
            return Ok(());
        }
        if let Behind::Key(next) = behind {
            self.cut_range(next);
        }
        self.note_replaced(behind);
        let meta = self.control.finish(&mut self.writer, self.store, self.spec.below.is_empty())?;
        debug_assert!(self.writer.is_empty(), "entries would be in this extent and in the next");
        work.bytes_written += u64::from(meta.bytes);
        self.push(Arc::new(meta))
    }

    /// Appends an extent; valid inputs produce extents in order.
    fn push(&mut self, meta: Arc<ExtentMeta>) -> Result<()> {
        let collation = self.spec.collation();
        let is_in_order = collation.le(&meta.smallest, &meta.largest)
            && self.added.last().is_none_or(|last| collation.lt(&last.largest, &meta.smallest));
        self.added.push(meta);
        debug_assert!(
            self.is_sound(),
            "the counts of the output fit what it has, behind extent {}",
            self.added.len()
        );
        if is_in_order { Ok(()) } else { Err(out_of_order(collation)) }
    }
}

/// The reason why the inputs are out of order: stored bytes are wrong only if the comparator is right.
#[cold]
fn out_of_order(collation: &Collation) -> Error {
    let failed = collation.check().err();
    failed.unwrap_or_else(|| Error::corrupt("keys of the inputs are out of order").of_order())
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        if self.is_committed {
            return;
        }
        debug_assert!(self.relinked.len() <= self.added.len(), "an extent of an input would be freed");
        // Before their slots can be others'.
        drop(self.control.take_fresh());
        for meta in self.added.iter().filter(|meta| !self.relinked.contains(&meta.id)) {
            // The job's own error matters more. Slots that cannot be freed now are free after the next open,
            // because no manifest names them.
            let _ = self.store.free(meta.id, meta.slots);
        }
    }
}
