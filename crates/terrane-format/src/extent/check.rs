//! Checks an extent by its own bytes, for `check` and repair.

use std::borrow::Cow;

use terrane_base::{Collation, Error, ExtentId, Result};

use super::references::{self, Reference, References};
use super::{ExtentMeta, Footer, Handle, Origin, RangeSection, ReferenceSection};
use crate::block::{Block, BlockCursor};
use crate::filter::{self, Filter};
use crate::index::{IndexBlock, IndexRow};
use crate::range_deletes::{Fragment, Fragments};

/// Computes the meta of the extent in `bytes`, which lies at `id` and takes `slots` slots.
///
/// Reads footer and index, but no data block.
///
/// # Errors
/// `Corrupt` if footer or index are broken or contradict each other.
pub fn inspect(bytes: &[u8], id: ExtentId, slots: u32) -> Result<ExtentMeta> {
    inspect_ordered(bytes, id, slots, &Collation::BYTES)
}

/// [`inspect`] for a table with this key order.
///
/// # Errors
/// As [`inspect`].
pub fn inspect_ordered(bytes: &[u8], id: ExtentId, slots: u32, collation: &Collation) -> Result<ExtentMeta> {
    let (footer, index, ranges, references) = open(bytes, collation)?;
    Ok(ExtentMeta { id, slots, ..meta_of(&footer, &index, &ranges, references, collation) })
}

/// [`inspect_ordered`] of an extent that is too large to be in memory as a whole: `read` returns the bytes of
/// a part.
///
/// # Errors
/// As [`inspect`], and those of `read`.
pub fn inspect_parts(
    footer: &Footer,
    id: ExtentId,
    slots: u32,
    collation: &Collation,
    read: &mut dyn FnMut(Handle) -> Result<Vec<u8>>,
) -> Result<ExtentMeta> {
    let mut part = |handle: Handle| {
        let bytes = read(handle)?;
        handle.check(&bytes).map(|()| bytes)
    };
    let index = IndexBlock::decode_ordered(part(footer.index)?, collation)?;
    let ranges = match footer.range_deletes {
        handle if handle.is_empty() => Fragments::default(),
        handle => Fragments::decode_ordered(&part(handle)?, collation)?,
    };
    let references = match footer.references {
        handle if handle.is_empty() => Vec::new(),
        handle => references::decode(&part(handle)?)?,
    };
    check_sums(footer, &index, &ranges)?;
    Ok(ExtentMeta { id, slots, ..meta_of(footer, &index, &ranges, references, collation) })
}

/// Checks every byte of an extent: checksums, structure, order, sums, and that the filter contains every key.
/// Returns its meta, as [`inspect`] does.
///
/// # Errors
/// `Corrupt`, naming the part and its offset in the extent. `Invalid` if this build cannot read its
/// compression.
pub fn verify(bytes: &[u8], id: ExtentId, slots: u32) -> Result<ExtentMeta> {
    verify_ordered(bytes, id, slots, &Collation::BYTES)
}

/// [`verify`] for a table with this key order.
///
/// # Errors
/// As [`verify`].
pub fn verify_ordered(bytes: &[u8], id: ExtentId, slots: u32, collation: &Collation) -> Result<ExtentMeta> {
    let (footer, index, ranges, references) = open(bytes, collation)?;
    let filter = match footer.filter {
        handle if handle.is_empty() => None,
        handle => Some(Filter::decode(part(bytes, handle)?)?),
    };
    let mut last = None;
    let mut found = References::default();
    for (number, row) in index.rows().enumerate() {
        last = verify_block(
            bytes,
            &row,
            (filter.as_ref(), collation),
            (last, &mut found, footer.value_table.is_some()),
        )
        .map(Some)
        .map_err(|error| error.context(format!("block {number} at byte {} of the extent", row.offset)))?;
    }
    if found.to_list() != references {
        return Err(Error::corrupt(format!(
            "extent: its list of value tables says {references:?}, its entries {:?}",
            found.to_list()
        )));
    }
    if !footer.origin.is_empty() {
        Origin::decode(part(bytes, footer.origin)?)?;
    }
    let parts = [footer.index, footer.filter, footer.range_deletes, footer.references, footer.origin];
    let content_end = parts.iter().map(Handle::end).max().unwrap_or_default() as usize;
    if bytes[content_end..bytes.len() - footer.encoded_len()].iter().any(|byte| *byte != 0) {
        return Err(Error::corrupt(format!("extent: bytes from {content_end} to the footer are not zero")));
    }
    Ok(ExtentMeta { id, slots, ..meta_of(&footer, &index, &ranges, references, collation) })
}

/// Returns true if `found`, the meta computed from an extent's bytes, matches `said`, the meta in the
/// manifest.
///
/// While a table's comparator is not available, entries and range deletes cannot be compared, so the
/// manifest's smallest and largest key are accepted as they are.
#[must_use]
pub fn is_as_said(mut found: ExtentMeta, said: &ExtentMeta) -> bool {
    if said.collation.is_missing() {
        found.smallest.clone_from(&said.smallest);
        found.largest.clone_from(&said.largest);
    }
    found == said.as_written()
}

/// Key and sequence number of a block's last entry.
type Last = (Vec<u8>, u64);

fn verify_block(
    bytes: &[u8],
    row: &IndexRow<'_>,
    (filter, collation): (Option<&Filter>, &Collation),
    (last, references, has_values): (Option<Last>, &mut References, bool),
) -> Result<Last> {
    let stored = Handle { offset: row.offset, len: row.stored_len, checksum: 0 };
    let block = row.open_block(slice(bytes, stored)?.to_vec())?.ordered(collation);
    block.check_order()?;
    let mut cursor = BlockCursor::new();
    cursor.seek_first(&block);
    let first = cursor.entry(&block).map(|entry| (entry.key.to_vec(), entry.seq_kind.seq().0));
    let (first_key, first_seq) = first.ok_or_else(|| Error::corrupt("block is empty"))?;
    if last.is_some_and(|(key, seq)| key == first_key && seq <= first_seq) {
        return Err(Error::corrupt("versions of a key that continue from the block before are out of order"));
    }
    if let Some(filter) = filter {
        check_filter(filter, &block)?;
    }
    while let Some(entry) = cursor.entry(&block) {
        references.note(&entry);
        if has_values && !entry.seq_kind.is_plain_put() {
            return Err(Error::corrupt(format!(
                "a value table holds an entry of kind {:?}: only puts are allowed",
                entry.seq_kind
            )));
        }
        cursor.next(&block);
    }
    cursor.seek_last(&block);
    let last = cursor.entry(&block).map(|entry| (entry.key.to_vec(), entry.seq_kind.seq().0));
    let last = last.ok_or_else(|| Error::corrupt("block is empty"))?;
    if first_key != row.first_key || last.0 != row.last_key {
        return Err(Error::corrupt("block's first or last key differs from its index row"));
    }
    Ok(last)
}

fn check_filter(filter: &Filter, block: &Block) -> Result<()> {
    let mut cursor = BlockCursor::new();
    cursor.seek_first(block);
    while let Some(entry) = cursor.entry(block) {
        if !filter.may_contain(filter::hash(entry.key)) {
            return Err(Error::corrupt(format!(
                "filter does not contain key {}",
                crate::dump::text(entry.key)
            )));
        }
        cursor.next(block);
    }
    Ok(())
}

/// The parts of an extent that its meta is made from.
type Parts = (Footer, IndexBlock, Fragments, Vec<Reference>);

/// Decodes footer, index, range deletes and references, and checks them against each other and the length of
/// `bytes`.
fn open(bytes: &[u8], collation: &Collation) -> Result<Parts> {
    let footer = Footer::decode(bytes)?;
    if footer.bytes as usize != bytes.len() {
        return Err(Error::corrupt(format!(
            "extent: expected {} bytes, found {}",
            footer.bytes,
            bytes.len()
        )));
    }
    if !footer.filter.is_empty() {
        part(bytes, footer.filter)?;
    }
    let index = IndexBlock::decode_ordered(part(bytes, footer.index)?.to_vec(), collation)?;
    let ranges = match footer.range_deletes {
        handle if handle.is_empty() => Fragments::default(),
        handle => Fragments::decode_ordered(part(bytes, handle)?, collation)?,
    };
    let references = match footer.references {
        handle if handle.is_empty() => Vec::new(),
        handle => references::decode(part(bytes, handle)?)?,
    };
    check_sums(&footer, &index, &ranges)?;
    Ok((footer, index, ranges, references))
}

fn check_sums(footer: &Footer, index: &IndexBlock, ranges: &Fragments) -> Result<()> {
    let sum = |count: fn(&IndexRow<'_>) -> u64| index.rows().map(|row| count(&row)).sum::<u64>();
    let (ranges_min, ranges_max) = ranges.seq_range().unzip();
    let expected = (
        u64::from(footer.fragments),
        u64::from(footer.blocks),
        u64::from(footer.index.offset),
        footer.raw_bytes,
        footer.entries,
        footer.deletes,
        Some(footer.seq_min),
        Some(footer.seq_max),
    );
    let found = (
        ranges.all().len() as u64,
        index.len() as u64,
        index.data_bytes(),
        sum(|row| u64::from(row.raw_len)),
        sum(|row| u64::from(row.entries)),
        sum(|row| u64::from(row.deletes)),
        index.rows().map(|row| row.seq_min).chain(ranges_min).min(),
        index.rows().map(|row| row.seq_max).chain(ranges_max).max(),
    );
    if expected != found {
        return Err(Error::corrupt(format!(
            "extent: its footer says {expected:?} of fragments, blocks, data bytes, raw bytes, entries, deletes and sequence \
             numbers, its index {found:?}"
        )));
    }
    Ok(())
}

fn meta_of(
    footer: &Footer,
    index: &IndexBlock,
    ranges: &Fragments,
    references: Vec<Reference>,
    collation: &Collation,
) -> ExtentMeta {
    let (first, last) = (index.rows().next(), index.rows().next_back());
    let (start, end) = (ranges.all().first(), ranges.all().last());
    let entries = first.map(|row| row.first_key).zip(last.map(|row| row.last_key));
    let (smallest, largest) = hull(entries, start.zip(end), collation);
    let range_deletes = start.zip(end).map(|(start, end)| {
        let (part, fragments) = (footer.range_deletes, footer.fragments);
        Box::new(RangeSection { part, fragments, start: start.start.clone(), end: end.end.clone() })
    });
    let references = (!references.is_empty())
        .then(|| Box::new(ReferenceSection { part: footer.references, list: references }));
    ExtentMeta {
        id: ExtentId::default(),
        slots: 1,
        bytes: footer.bytes,
        raw_bytes: footer.raw_bytes,
        smallest,
        largest,
        seq_min: footer.seq_min,
        seq_max: footer.seq_max,
        entries: footer.entries,
        deletes: footer.deletes,
        blocks: footer.blocks,
        index: footer.index,
        filter: footer.filter,
        range_deletes,
        expiry: footer.expiry,
        references,
        value_table: footer.value_table,
        format_version: footer.form().version(),
        compression: footer.compression,
        collation: collation.clone(),
    }
}

/// First and last key over entries and fragments, if there are any.
#[must_use]
pub fn hull(
    entries: Option<(&[u8], &[u8])>,
    fragments: Option<(&Fragment, &Fragment)>,
    collation: &Collation,
) -> (Vec<u8>, Vec<u8>) {
    let ranged = fragments.map(|(first, last)| (Cow::Borrowed(&*first.start), last.last_key(collation)));
    let entries = entries.map(|(first, last)| (Cow::Borrowed(first), Cow::Borrowed(last)));
    let (smallest, largest) = match (entries, ranged) {
        (Some(entries), Some(ranged)) => {
            (collation.min(entries.0, ranged.0), collation.max(entries.1, ranged.1))
        }
        (entries, ranged) => entries.or(ranged).unwrap_or_default(),
    };
    (smallest.into_owned(), largest.into_owned())
}

fn slice(bytes: &[u8], handle: Handle) -> Result<&[u8]> {
    let range = handle.offset as usize..handle.end() as usize;
    let found = bytes.get(range);
    found.ok_or_else(|| {
        Error::corrupt(format!("extent of {} bytes: part {handle:?} lies outside", bytes.len()))
    })
}

fn part(bytes: &[u8], handle: Handle) -> Result<&[u8]> {
    let part = slice(bytes, handle)?;
    handle.check(part)?;
    Ok(part)
}
