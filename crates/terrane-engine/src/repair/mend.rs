//! Damaged parts of an extent by which its blocks are found and rows are hidden: the index block, the range
//! deletes. Blocks have their checksums in the index block, so without it none is known to be sound.
//!
//! 1. One wrong byte is found by the part's checksum, which the meta or the footer repeats, and set right.
//! 2. Of an index block with more damage, or that is unreadable in part, those rows stay that their blocks
//!    prove (`remains_of`); the blocks of the others are a loss.
//! 3. A whole part that is not the one that the meta names is another extent's: what an older one left in
//!    the slot is never read.
//!
//! The damaged files stay as they are: a [`MendedStore`] reads them so. Filter and footer are not needed
//! where a manifest lists the extent.

use std::sync::Arc;

use terrane_base::{Collation, Error, ExtentId, Result};
use terrane_format::block::BlockCursor;
use terrane_format::extent::check::inspect_parts;
use terrane_format::extent::mend::{Part, State, state_of};
use terrane_format::extent::{ALIGN_BYTES, ExtentMeta, Footer, Handle, RangeSection, references};
use terrane_format::index::{IndexBlock, IndexRow, Remains, remains_of};
use terrane_format::range_deletes::Fragments;
use terrane_storage::{SLOT_BYTES, Store};

use crate::repair::Repair;
use crate::repair::mended_store::MendedStore;

impl Repair<'_> {
    /// The meta by which as much of the extent as can be is read from `store`; the same one if nothing of it
    /// had to change.
    pub(super) fn mend(&mut self, meta: &Arc<ExtentMeta>, store: &MendedStore) -> Arc<ExtentMeta> {
        if terrane_base::planted!(RepairNeedsIndex) {
            return meta.clone();
        }
        if let Some(section) = &meta.range_deletes {
            self.mend_range_deletes(meta, section, store);
        }
        let mended = self.mend_index(meta, store).unwrap_or_else(|| meta.clone());
        debug_assert_eq!(
            mended.filter, meta.filter,
            "extent {}: nothing else than its index block changes",
            meta.id
        );
        mended
    }

    fn mend_range_deletes(&mut self, meta: &ExtentMeta, section: &RangeSection, store: &MendedStore) {
        let Ok(bytes) = read(meta, store, section.part) else { return };
        let mut is_right = |bytes: &[u8]| {
            let fragments = Fragments::decode_ordered(bytes, &meta.collation);
            fragments.is_ok_and(|fragments| is_section(&fragments, section))
        };
        if let State::Mended(right) = state_of(Part::RangeDeletes, section.part, &bytes, &mut is_right) {
            store.mend(meta.id, section.part, (&bytes, &right));
            self.report.mended(placed(meta, store, section.part, "its range deletes are set right"));
        }
    }

    /// Sets the index block right; the meta with another one if that is not possible and rows of it are left.
    fn mend_index(&mut self, meta: &Arc<ExtentMeta>, store: &MendedStore) -> Option<Arc<ExtentMeta>> {
        let bytes = read(meta, store, meta.index).or_else(|_| read_pages(meta, store, meta.index)).ok()?;
        match state_of(Part::Index, meta.index, &bytes, &mut |bytes| is_index(bytes, meta)) {
            State::Sound | State::Another => None,
            State::Mended(right) => {
                store.mend(meta.id, meta.index, (&bytes, &right));
                self.report.salvaged += meta.entries;
                self.report.mended(placed(meta, store, meta.index, &by_checksum(meta)));
                None
            }
            State::Damaged => {
                let remains = remains_of(&bytes, meta, &mut |row| is_block(row, meta, store))?;
                self.read_remains(meta, store, remains)
            }
        }
    }

    fn read_remains(
        &mut self,
        meta: &ExtentMeta,
        store: &MendedStore,
        Remains { bytes, blocks, gaps, entries }: Remains,
    ) -> Option<Arc<ExtentMeta>> {
        debug_assert!(gaps.len() < blocks, "extent {}: no row of its index block is left", meta.id);
        // Ends where the extent does: no block and no other part is read so.
        let offset = meta.bytes.checked_sub(u32::try_from(bytes.len()).ok()?)?;
        let index = Handle::of(offset, &bytes);
        if !store.replace(meta.id, index, bytes) {
            return None;
        }
        let found = blocks - gaps.len();
        let done = format!(
            "its index block is damaged: {entries} versions are found in {found} of {} blocks",
            meta.blocks
        );
        self.report.salvaged += entries;
        self.report.mended(placed(meta, store, meta.index, &done));
        self.report.doubt(placed(
            meta,
            store,
            meta.index,
            "blocks are found by the rest of its index block: if the device lost a write of the extent, they may be older ones",
        ));
        self.gaps.insert(meta.id, gaps);
        Some(Arc::new(ExtentMeta { index, blocks: blocks as u32, ..meta.clone() }))
    }

    /// The meta of an extent that no manifest lists, if the damage of its parts can be set right by its
    /// footer.
    pub(super) fn inspect_mended(
        &mut self,
        (footer, id, slots): (&Footer, ExtentId, u32),
        collation: &Collation,
        read: &mut dyn FnMut(Handle) -> Result<Vec<u8>>,
        store: &MendedStore,
    ) -> Option<ExtentMeta> {
        let kinds = [
            (Part::Index, footer.index),
            (Part::RangeDeletes, footer.range_deletes),
            (Part::References, footer.references),
        ];
        let mut mends = Vec::new();
        for (kind, handle) in kinds.into_iter().filter(|(_, handle)| !handle.is_empty()) {
            let bytes = read(handle).ok()?;
            if let Some(right) = mended_part(kind, handle, &bytes, collation) {
                mends.push((kind, handle, bytes, right));
            }
        }
        let mut right_part = |part: Handle| match mends.iter().find(|(_, handle, ..)| *handle == part) {
            Some((.., right)) => Ok(right.clone()),
            None => read(part),
        };
        let meta = inspect_parts(footer, id, slots, collation, &mut right_part).ok()?;
        for (kind, handle, wrong, right) in mends {
            store.mend(id, handle, (&wrong, &right));
            let done = match kind {
                Part::Index => by_checksum(&meta),
                Part::RangeDeletes => "its range deletes are set right".to_owned(),
                Part::References => "its list of value tables is set right".to_owned(),
            };
            self.report.salvaged += if kind == Part::Index { meta.entries } else { 0 };
            self.report.mended(placed(&meta, store, handle, &done));
        }
        Some(meta)
    }

    /// The loss of the blocks of row `at` of the index block, if that row stands for blocks whose rows are
    /// damaged: how many versions they have if it is known, and why they are lost.
    pub(super) fn loss_of_gap(
        &self,
        meta: &ExtentMeta,
        at: usize,
        row: &IndexRow<'_>,
        store: &dyn Store,
    ) -> Option<(Option<u64>, Error)> {
        let gaps = self.gaps.get(&meta.id)?;
        debug_assert!(gaps.is_sorted(), "a gap that is passed over would be reported as a damaged block");
        gaps.binary_search(&at).ok()?;
        let entries = (gaps.len() == 1).then_some(u64::from(row.entries));
        let (file, offset) = store.place(meta.id, row.offset);
        let why = format!(
            "extent {}: its index block is damaged where it says which blocks lie in these {} bytes",
            meta.id, row.stored_len
        );
        Some((entries, Error::corrupt(why).at(file, offset)))
    }
}

/// The part that a footer names, if one wrong byte in it can be set right.
fn mended_part(kind: Part, handle: Handle, bytes: &[u8], collation: &Collation) -> Option<Vec<u8>> {
    let mut is_right = |bytes: &[u8]| match kind {
        Part::Index => IndexBlock::decode_ordered(bytes.to_vec(), collation).is_ok(),
        Part::RangeDeletes => Fragments::decode_ordered(bytes, collation).is_ok(),
        Part::References => references::decode(bytes).is_ok(),
    };
    match state_of(kind, handle, bytes, &mut is_right) {
        State::Mended(right) => Some(right),
        State::Sound | State::Damaged | State::Another => None,
    }
}

fn by_checksum(ExtentMeta { entries, blocks, .. }: &ExtentMeta) -> String {
    format!(
        "its index block is damaged and set right by its checksum: it leads to {entries} versions in {blocks} blocks"
    )
}

fn placed(meta: &ExtentMeta, store: &MendedStore, part: Handle, done: &str) -> Error {
    let (file, offset) = store.place(meta.id, part.offset);
    Error::corrupt(format!("extent {}: {done}", meta.id)).at(file, offset)
}

fn read(meta: &ExtentMeta, store: &dyn Store, part: Handle) -> Result<Vec<u8>> {
    if part.end() > u64::from(meta.bytes).min(u64::from(meta.slots) * SLOT_BYTES as u64) {
        return Err(Error::corrupt(format!("extent {}: part {part:?} lies outside", meta.id)));
    }
    let mut bytes = vec![0; part.len as usize];
    store.read(meta.id, part.offset, &mut bytes)?;
    Ok(bytes)
}

/// The part, with zeros where it cannot be read: behind the end of a file that was cut, in a sector that the
/// device does not read.
fn read_pages(meta: &ExtentMeta, store: &dyn Store, part: Handle) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut failed = None;
    while bytes.len() < part.len as usize {
        let offset = part.offset + bytes.len() as u32;
        let len = (ALIGN_BYTES as u32 - offset % ALIGN_BYTES as u32).min(part.len - bytes.len() as u32);
        match read(meta, store, Handle { offset, len, checksum: 0 }) {
            Ok(page) => bytes.extend(page),
            Err(error) => {
                failed = Some(error);
                bytes.resize(bytes.len() + len as usize, 0);
            }
        }
    }
    let is_empty = bytes.iter().all(|byte| *byte == 0);
    failed.filter(|_| is_empty).map_or(Ok(bytes), Err)
}

fn is_section(fragments: &Fragments, section: &RangeSection) -> bool {
    let (first, last) = (fragments.all().first(), fragments.all().last());
    let ends = first.zip(last).map(|(first, last)| (&first.start, &last.end));
    ends == Some((&section.start, &section.end)) && fragments.all().len() == section.fragments as usize
}

/// Returns true if `bytes` are an index block with the sums that the meta has.
fn is_index(bytes: &[u8], meta: &ExtentMeta) -> bool {
    let Ok(index) = IndexBlock::decode_ordered(bytes.to_vec(), &meta.collation) else { return false };
    let sum = |count: fn(&IndexRow<'_>) -> u32| index.rows().map(|row| u64::from(count(&row))).sum::<u64>();
    let found = (
        index.len() as u64,
        index.data_bytes(),
        sum(|row| row.raw_len),
        sum(|row| row.entries),
        sum(|row| row.deletes),
    );
    let (blocks, data_bytes) = (u64::from(meta.blocks), u64::from(meta.index.offset));
    found == (blocks, data_bytes, meta.raw_bytes, meta.entries, meta.deletes)
}

/// Returns true if the bytes that the row names are its block, with its first and its last key.
fn is_block(row: &IndexRow<'_>, meta: &ExtentMeta, store: &dyn Store) -> bool {
    let part = Handle { offset: row.offset, len: row.stored_len, checksum: 0 };
    let Ok(block) = read(meta, store, part).and_then(|stored| row.open_block(stored)) else { return false };
    let block = block.ordered(&meta.collation);
    let mut cursor = BlockCursor::new();
    cursor.seek_first(&block);
    let starts = cursor.entry(&block).is_some_and(|first| first.key == row.first_key);
    cursor.seek_last(&block);
    starts && cursor.entry(&block).is_some_and(|last| last.key == row.last_key) && block.check_order().is_ok()
}
