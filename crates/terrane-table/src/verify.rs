//! All checks of one extent, without stopping at the first error.
//!
//! Steps:
//!
//! 1. the footer against the meta,
//! 2. index block and filter,
//! 3. every block: checksum, structure, order, its index row, its neighbours, and that the filter contains
//!    its keys,
//! 4. the sums over all blocks against the meta,
//! 5. the range deletes, and the list of value tables against the pointers,
//! 6. the zeros between the parts and the footer.

use terrane_base::{Error, Moment, Result, SeqNo};
use terrane_format::block::{Block, BlockCursor};
use terrane_format::extent::check::hull;
use terrane_format::extent::{
    Expiry, ExtentMeta, FOOTER_BYTES_MAX, Footer, Handle, Origin, References, references,
};
use terrane_format::filter::{self, Filter};
use terrane_format::index::{IndexBlock, IndexRow};
use terrane_format::range_deletes::Fragments;
use terrane_storage::Store;

use crate::loader::{open_block, placed, read, read_filter, read_index, read_range_deletes};

/// Checks the extent that `meta` describes, without the cache. Returns every error, with file and offset.
/// Takes the memory of one block and the index.
#[must_use]
pub fn verify_extent(meta: &ExtentMeta, store: &dyn Store) -> Vec<Error> {
    verify_extent_counting(meta, store).0
}

/// As [`verify_extent`], with the number of operands of merges among the entries.
#[must_use]
pub fn verify_extent_counting(meta: &ExtentMeta, store: &dyn Store) -> (Vec<Error>, u64) {
    let mut check = Check {
        meta,
        store,
        findings: Vec::new(),
        moments: Vec::new(),
        references: References::default(),
        operands: 0,
        origin_end: None,
    };
    check.footer();
    let filter = if meta.filter.is_empty() { None } else { check.note(read_filter(meta, store)) };
    if let Some(rows) = check.note(read_index(meta, store)) {
        check.blocks(&rows, filter.as_ref());
        let ranges = check.range_deletes();
        check.sums(&rows, ranges.as_ref());
    }
    check.padding();
    (check.findings, check.operands)
}

struct Check<'a> {
    meta: &'a ExtentMeta,
    store: &'a dyn Store,
    findings: Vec<Error>,
    /// Expiry times of the entries that were read.
    moments: Vec<Moment>,
    /// The value tables that they point into.
    references: References,
    /// The operands among them.
    operands: u64,
    /// Where the part ends that says where the extent comes from: only its footer tells.
    origin_end: Option<u64>,
}

/// Key and number of the last entry of a block.
type Last = (Vec<u8>, SeqNo);

impl Check<'_> {
    /// Records an error as a finding.
    fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.findings.push(error)).ok()
    }

    /// Adds a finding of this module.
    fn find(&mut self, offset: u32, what: String) {
        self.findings.push(placed(self.meta, self.store, offset, Error::corrupt(what)));
    }

    /// Adds a finding that depends on how keys are compared.
    fn find_of_order(&mut self, offset: u32, what: String) {
        self.findings.push(placed(self.meta, self.store, offset, Error::corrupt(what).of_order()));
    }

    fn expect<T: PartialEq + std::fmt::Debug>(&mut self, offset: u32, what: &str, expected: &T, found: &T) {
        if expected != found {
            self.find(offset, format!("{what}: expected {expected:?}, found {found:?}"));
        }
    }

    fn footer(&mut self) {
        let meta = self.meta;
        let Some(start) = meta.bytes.checked_sub(FOOTER_BYTES_MAX as u32) else {
            return self.find(0, format!("extent of {} bytes has no room for a footer", meta.bytes));
        };
        let Some(bytes) = self.note(read(meta, self.store, start, FOOTER_BYTES_MAX as u32)) else {
            return;
        };
        let offset = meta.bytes - meta.form().footer_bytes() as u32;
        let footer = Footer::decode(&bytes).map_err(|error| placed(meta, self.store, offset, error));
        let Some(footer) = self.note(footer) else { return };
        self.expect(offset, "footer, bytes", &meta.bytes, &footer.bytes);
        self.expect(offset, "footer, blocks", &meta.blocks, &footer.blocks);
        self.expect(offset, "footer, index", &meta.index, &footer.index);
        self.expect(offset, "footer, filter", &meta.filter, &footer.filter);
        let section = meta.range_deletes.as_deref();
        let expected = section.map_or_else(Default::default, |section| (section.part, section.fragments));
        self.expect(offset, "footer, range deletes", &expected, &(footer.range_deletes, footer.fragments));
        self.expect(offset, "footer, compression", &meta.compression, &footer.compression);
        self.expect(offset, "footer, raw bytes", &meta.raw_bytes, &footer.raw_bytes);
        self.expect(offset, "footer, entries", &meta.entries, &footer.entries);
        self.expect(offset, "footer, deletes", &meta.deletes, &footer.deletes);
        let expected = meta.written_seqs();
        self.expect(offset, "footer, sequence numbers", &expected, &(footer.seq_min, footer.seq_max));
        self.expect(offset, "footer, entries that expire", &meta.expiry, &footer.expiry);
        let expected = meta.references.as_deref().map_or_else(Default::default, |section| section.part);
        self.expect(offset, "footer, references", &expected, &footer.references);
        self.expect(offset, "footer, value table", &meta.value_table, &footer.value_table);
        self.expect(offset, "footer, origin", &meta.has_origin(), &!footer.origin.is_empty());
        self.origin(footer.origin);
    }

    /// Checks the part that says where the extent comes from. The manifest does not say where it lies.
    fn origin(&mut self, part: Handle) {
        if part.is_empty() {
            return;
        }
        let meta = self.meta;
        let found = read(meta, self.store, part.offset, part.len).and_then(|bytes| {
            let origin = part.check(&bytes).and_then(|()| Origin::decode(&bytes));
            origin.map_err(|error| placed(meta, self.store, part.offset, error))
        });
        self.origin_end = Some(part.end());
        let _ = self.note(found);
    }

    fn blocks(&mut self, rows: &IndexBlock, filter: Option<&Filter>) {
        let mut last: Option<Last> = None;
        for row in rows.rows() {
            let stored = read(self.meta, self.store, row.offset, row.stored_len);
            let block = stored.and_then(|stored| open_block(self.meta, self.store, &row, stored));
            // After a damaged block the order of the next block relative to it is unknown.
            let Some(block) = self.note(block) else {
                last = None;
                continue;
            };
            last = self.block(&row, &block, filter, last.take());
        }
    }

    fn block(
        &mut self,
        row: &IndexRow<'_>,
        block: &Block,
        filter: Option<&Filter>,
        last: Option<Last>,
    ) -> Option<Last> {
        let ordered = block.check_order().map_err(|error| placed(self.meta, self.store, row.offset, error));
        self.note(ordered);
        let mut cursor = BlockCursor::new();
        cursor.seek_first(block);
        if let Some(first) = cursor.entry(block) {
            self.expect(row.offset, "first key of a block", &row.first_key, &first.key);
            let follows = last.is_none_or(|(key, seq)| {
                let collation = &self.meta.collation;
                collation.is_missing()
                    || collation.lt(&key, first.key)
                    || (key == first.key && seq > first.seq_kind.seq())
            });
            if !follows {
                self.find_of_order(row.offset, "block starts before the end of the block before it".into());
            }
        }
        let mut end = None;
        let (mut denied, mut strangers) = (0u32, 0u32);
        while let Some(entry) = cursor.entry(block) {
            denied += u32::from(filter.is_some_and(|filter| !filter.may_contain(filter::hash(entry.key))));
            end = Some((entry.key.len(), entry.seq_kind.seq()));
            Expiry::note(&mut self.moments, entry.seq_kind, entry.value);
            self.references.note(&entry);
            self.operands += u64::from(entry.seq_kind.is_merge());
            strangers += u32::from(self.meta.value_table.is_some() && !entry.seq_kind.is_plain_put());
            cursor.next(block);
        }
        if strangers > 0 {
            self.find(row.offset, format!("a value table has {strangers} entries that are not puts"));
        }
        if denied > 0 {
            self.find(row.offset, format!("filter does not contain {denied} keys of a block"));
        }
        cursor.seek_last(block);
        let last = cursor.entry(block).map(|entry| (entry.key.to_vec(), entry.seq_kind.seq()));
        if let Some((key, seq)) = &last {
            self.expect(row.offset, "last key of a block", &row.last_key, &key.as_slice());
            self.expect(row.offset, "last entry of a block", &end, &Some((key.len(), *seq)));
        }
        last
    }

    /// The range deletes, if there are any.
    fn range_deletes(&mut self) -> Option<Fragments> {
        self.meta.range_deletes.as_ref()?;
        self.note(read_range_deletes(self.meta, self.store))
    }

    fn sums(&mut self, rows: &IndexBlock, ranges: Option<&Fragments>) {
        let (meta, at) = (self.meta, self.meta.index.offset);
        let sum = |count: fn(&IndexRow<'_>) -> u64| rows.rows().map(|row| count(&row)).sum::<u64>();
        self.expect(at, "data bytes", &u64::from(meta.index.offset), &rows.data_bytes());
        self.expect(at, "raw bytes", &meta.raw_bytes, &sum(|row| u64::from(row.raw_len)));
        self.expect(at, "entries", &meta.entries, &sum(|row| u64::from(row.entries)));
        self.expect(at, "deletes", &meta.deletes, &sum(|row| u64::from(row.deletes)));
        self.expiry();
        self.references();
        if meta.range_deletes.is_some() && ranges.is_none() {
            // They could not be read, which was reported already.
            return;
        }
        let (least, greatest) = ranges.and_then(Fragments::seq_range).unzip();
        let (start, end) = ranges.and_then(|ranges| ranges.all().first().zip(ranges.all().last())).unzip();
        let least = rows.rows().map(|row| row.seq_min).chain(least).min();
        let greatest = rows.rows().map(|row| row.seq_max).chain(greatest).max();
        let (first, last) = (rows.rows().next(), rows.rows().next_back());
        let entries = first.as_ref().zip(last.as_ref()).map(|(first, last)| (first.first_key, last.last_key));
        let (smallest, largest) = hull(entries, start.zip(end), &meta.collation);
        self.expect(at, "smallest number", &Some(meta.seq_min), &least);
        self.expect(at, "largest number", &Some(meta.seq_max), &greatest);
        if !meta.collation.is_missing() {
            self.expect_end(at, "smallest key", &meta.smallest, &smallest);
            self.expect_end(at, "largest key", &meta.largest, &largest);
        }
    }

    /// Expects an outermost key. With range deletes, comparing has decided which key that is.
    fn expect_end(&mut self, offset: u32, what: &str, expected: &[u8], found: &[u8]) {
        if expected == found {
            return;
        }
        let what = format!("{what}: expected {expected:?}, found {found:?}");
        match self.meta.range_deletes {
            Some(_) => self.find_of_order(offset, what),
            None => self.find(offset, what),
        }
    }

    /// The recorded expiry must hold for some of the entries: copied blocks may not have been decoded.
    fn expiry(&mut self) {
        let Some(said) = self.meta.expiry else { return };
        self.moments.sort_unstable();
        if !said.is_true_of(&self.moments) && self.findings.is_empty() {
            let found = self.moments.len();
            self.find(
                self.meta.index.offset,
                format!("entries that expire: expected {said:?}, found {found}"),
            );
        }
    }

    /// The list of value tables must be that of the pointers, in the manifest and in the extent.
    fn references(&mut self) {
        let meta = self.meta;
        let found = self.references.to_list();
        if self.findings.is_empty() {
            self.expect(
                meta.index.offset,
                "value tables that entries point into",
                &meta.references(),
                &&*found,
            );
        }
        let Some(section) = &meta.references else { return };
        let part = read(meta, self.store, section.part.offset, section.part.len).and_then(|bytes| {
            let list = section.part.check(&bytes).and_then(|()| references::decode(&bytes));
            list.map_err(|error| placed(meta, self.store, section.part.offset, error))
        });
        if let Some(list) = self.note(part) {
            self.expect(section.part.offset, "list of value tables", &section.list, &list);
        }
    }

    fn padding(&mut self) {
        if self.meta.has_origin() && self.origin_end.is_none() {
            // Its footer, which cannot be read, would say where the zeros begin.
            return;
        }
        let section = self.meta.range_deletes.as_deref();
        let start = self.meta.index.end().max(self.meta.filter.end());
        let start = start.max(section.map_or(0, |section| section.part.end()));
        let references = self.meta.references.as_deref();
        let start = start.max(references.map_or(0, |section| section.part.end()));
        let start = start.max(self.origin_end.unwrap_or(0));
        let footer = self.meta.form().footer_bytes() as u64;
        let len = (u64::from(self.meta.bytes)).saturating_sub(footer).checked_sub(start);
        let (Ok(start), Some(Ok(len))) = (u32::try_from(start), len.map(u32::try_from)) else { return };
        if let Some(bytes) = self.note(read(self.meta, self.store, start, len))
            && let Some(at) = bytes.iter().position(|byte| *byte != 0)
        {
            self.find(start + at as u32, "byte between the parts and the footer is not zero".into());
        }
    }
}
