//! The rows that are left of a damaged index block, for repair: those that their blocks prove.
//!
//! 1. Rows are followed from the front, as long as each begins where the one before it ends, and so does its
//!    block.
//! 2. From the end they are followed back in the same way: a row begins at each byte from which rows lead to
//!    the end of the index block and blocks to its beginning, which the meta names.
//! 3. A row stays if its block does: checksum, counts, first and last key are as the row says.
//! 4. Where rows are missing, one row stands for all blocks there. Its checksum is wrong on purpose, so that
//!    their bytes are not taken for a block; its keys are those of its neighbours.
//!
//! So no row counts that hangs between two damaged places, or begins where older bytes of the slot do: what
//! an older extent left in the index block follows neither from its front nor to its end.
//! Takes linear time, whatever the bytes are.

use terrane_base::options::Compression;
use terrane_base::{Collation, SeqNo};

use super::row::{FIXED_BYTES, ROW_BYTES_MIN, Row};
use super::{IndexBlock, IndexBuilder, IndexRow, TRAILER_BYTES};
use crate::extent::ExtentMeta;
use crate::wire::{Fields, u32_at};

/// Longest index block that is looked into; an extent of one slot has some 10 KB.
const BYTES_MAX: usize = 16 << 20;
/// Bytes of keys that are compared for each byte of the index block, at most: rows that overlap each other
/// could have the same long keys compared again and again.
const COMPARED_MAX: usize = 16;

/// The rows that are left of a damaged index block.
#[derive(Clone, Debug)]
pub struct Remains {
    /// They and the rows that stand for missing ones, as an index block.
    pub bytes: Vec<u8>,
    /// Rows in it.
    pub blocks: usize,
    /// Of those, the rows that stand for missing ones, in order.
    pub gaps: Vec<usize>,
    /// Entries in the blocks that have a row of their own.
    pub entries: u64,
}

/// The remains of an index block that was read as `bytes` and is not the one that `meta` names. `is_block`
/// reads the block of a row, which lies within the extent's blocks, and says if it is as the row says, with
/// the first and the last key.
///
/// `None` if no row can be proven, or those that can be contradict the meta.
#[must_use]
pub fn remains_of(
    bytes: &[u8],
    meta: &ExtentMeta,
    is_block: &mut dyn FnMut(&IndexRow<'_>) -> bool,
) -> Option<Remains> {
    let rows = bytes.len().checked_sub(TRAILER_BYTES).map(|len| &bytes[..len])?;
    if bytes.len() > BYTES_MAX || meta.collation.is_missing() {
        return None;
    }
    let walk = Walk { rows, data_end: meta.index.offset, collation: &meta.collation };
    let mut list = walk.front_rows();
    list.retain(|(_, row)| is_block(row));
    let front = list.last().map_or(Front::default(), |(end, row)| Front {
        at: *end,
        offset: row.offset + row.stored_len,
        key: Some(row.last_key),
    });
    list.extend(walk.end_rows(&front).into_iter().filter(|(_, row)| is_block(row)));
    let proven: Vec<IndexRow<'_>> = list.into_iter().map(|(_, row)| row).collect();
    if !is_of(&proven, meta) {
        return None;
    }
    assembled(&proven, meta, is_block)
}

/// Where the rows end that follow from the front.
#[derive(Default)]
struct Front<'a> {
    at: usize,
    offset: u32,
    key: Option<&'a [u8]>,
}

struct Walk<'a> {
    rows: &'a [u8],
    /// Where the last block ends.
    data_end: u32,
    collation: &'a Collation,
}

impl<'a> Walk<'a> {
    /// The row at a byte, and where it ends, if its keys are in order and its block lies within the extent's.
    fn row(&self, at: usize) -> Option<(usize, IndexRow<'a>)> {
        let rest = self.rows.get(at..).filter(|rest| rest.len() >= ROW_BYTES_MIN)?;
        let (offset, stored_len) = (u32_at(rest, 0)?, u32_at(rest, 4)?);
        let fits = offset.checked_add(stored_len).is_some_and(|end| end <= self.data_end) && stored_len > 0;
        // Cheaper than an error: this is asked of every byte.
        if !fits || Compression::from_u8(rest[FIXED_BYTES - 1]).is_none() {
            return None;
        }
        let mut fields = Fields::new("index block", rest);
        let row = Row::decode(&mut fields).ok()?;
        Some((at + fields.at(), row.show(rest)))
    }

    /// Rows from the front, each with its end.
    fn front_rows(&self) -> Vec<(usize, IndexRow<'a>)> {
        let mut list: Vec<(usize, IndexRow<'a>)> = Vec::new();
        let (mut at, mut offset) = (0, 0);
        while let Some((end, row)) = self.row(at)
            && row.offset == offset
            && self.collation.le(row.first_key, row.last_key)
            && list.last().is_none_or(|(_, last)| self.collation.le(last.last_key, row.first_key))
        {
            (at, offset) = (end, row.offset + row.stored_len);
            list.push((end, row));
        }
        list
    }

    /// Rows behind `front` that lead to the end, each with its end.
    fn end_rows(&self, front: &Front<'_>) -> Vec<(usize, IndexRow<'a>)> {
        let len = self.rows.len();
        // Of each byte, where the row ends that begins there and leads to the end; 0 if none does.
        let mut ends = vec![0u32; len - front.at];
        let mut compared = len.saturating_mul(COMPARED_MAX);
        let mut first = None;
        for at in (front.at..len).rev() {
            let Some((end, row)) = self.row(at).filter(|(_, row)| row.offset >= front.offset) else {
                continue;
            };
            let next = match end == len {
                true => None,
                false if ends[end - front.at] == 0 => continue,
                false => self.row(end).map(|(_, next)| next),
            };
            let next_offset = next.map_or(self.data_end, |next| next.offset);
            if row.offset + row.stored_len != next_offset {
                continue;
            }
            let keys = row.first_key.len() + row.last_key.len();
            let Some(left) = compared.checked_sub(2 * keys) else { break };
            compared = left;
            let follows = next.is_none_or(|next| self.collation.le(row.last_key, next.first_key));
            if follows && self.collation.le(row.first_key, row.last_key) {
                ends[at - front.at] = end as u32;
                let is_behind = front.key.is_none_or(|key| self.collation.le(key, row.first_key));
                first = if is_behind { Some(at) } else { first };
            }
        }
        let mut list = Vec::new();
        let mut at = first.unwrap_or(len);
        while let Some((end, row)) = (at < len).then(|| self.row(at)).flatten() {
            debug_assert!(end > at, "a row takes bytes, so the walk ends");
            list.push((end, row));
            at = end;
        }
        list
    }
}

/// Returns true if rows are some, and may be of the extent that the meta describes.
fn is_of(rows: &[IndexRow<'_>], meta: &ExtentMeta) -> bool {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return false };
    let (collation, is_ranged) = (&meta.collation, meta.range_deletes.is_some());
    let (seq_min, seq_max) = meta.written_seqs();
    let sum = |count: fn(&IndexRow<'_>) -> u32| rows.iter().map(|row| u64::from(count(row))).sum::<u64>();
    let ends_there = last.offset + last.stored_len == meta.index.offset;
    let is_whole = first.offset == 0
        && ends_there
        && rows.windows(2).all(|pair| pair[0].offset + pair[0].stored_len == pair[1].offset);
    let (blocks, entries) = (rows.len() as u64, sum(|row| row.entries));
    let missing = u64::from(!is_whole);
    (first.offset != 0 || is_ranged || first.first_key == meta.smallest)
        && (!ends_there || is_ranged || last.last_key == meta.largest)
        && collation.le(&meta.smallest, first.first_key)
        && collation.le(last.last_key, &meta.largest)
        && rows.iter().all(|row| seq_min <= row.seq_min && row.seq_max <= seq_max)
        && blocks + missing <= u64::from(meta.blocks)
        && entries + missing <= meta.entries
        && sum(|row| row.deletes) <= meta.deletes
        && sum(|row| row.raw_len) + missing <= meta.raw_bytes
        && (!is_whole || (blocks, entries) == (u64::from(meta.blocks), meta.entries))
}

/// An index block of these rows, with one in each gap between them.
fn assembled(
    rows: &[IndexRow<'_>],
    meta: &ExtentMeta,
    is_block: &mut dyn FnMut(&IndexRow<'_>) -> bool,
) -> Option<Remains> {
    let entries: u64 = rows.iter().map(|row| u64::from(row.entries)).sum();
    let (mut index, mut gaps) = (IndexBuilder::new(), Vec::new());
    // All that is missing counts with the first gap: how it is divided is not known.
    let mut missing = meta.entries.saturating_sub(entries);
    let (mut offset, mut key) = (0, meta.smallest.as_slice());
    let ends = rows.iter().map(|row| (row.offset, row.first_key, Some(row)));
    for (start, first_key, row) in ends.chain([(meta.index.offset, meta.largest.as_slice(), None)]) {
        debug_assert!(offset <= start, "rows are in the order of their blocks");
        if offset < start {
            let bounds = (offset..start, key, first_key);
            let gap = gap_row(bounds, std::mem::take(&mut missing), meta.written_seqs(), is_block);
            gaps.push(index.len());
            index.add(&gap);
        }
        if let Some(row) = row {
            index.add(row);
            (offset, key) = (row.offset + row.stored_len, row.last_key);
        }
    }
    let (blocks, mut bytes) = (index.len(), Vec::new());
    index.finish(&mut bytes);
    // Blocks that are longer together than one may be have no row that could stand for them.
    IndexBlock::decode_ordered(bytes.clone(), &meta.collation).ok()?;
    Some(Remains { bytes, blocks, gaps, entries })
}

/// A row for all blocks of a range of the extent, with a checksum that the range does not have.
fn gap_row<'a>(
    (range, first_key, last_key): (std::ops::Range<u32>, &'a [u8], &'a [u8]),
    entries: u64,
    (seq_min, seq_max): (SeqNo, SeqNo),
    is_block: &mut dyn FnMut(&IndexRow<'_>) -> bool,
) -> IndexRow<'a> {
    let row = IndexRow {
        offset: range.start,
        stored_len: range.end - range.start,
        raw_len: range.end - range.start,
        compression: Compression::None,
        checksum: 0,
        entries: u32::try_from(entries).unwrap_or(u32::MAX).max(1),
        deletes: 0,
        seq_min,
        seq_max,
        first_key,
        last_key,
    };
    if is_block(&row) { IndexRow { checksum: 1, ..row } } else { row }
}
