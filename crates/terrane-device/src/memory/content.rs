//! The bytes of a file in memory: the current ones, the durable ones, and the unsynced changes.
//!
//! Pages that were never written are absent and read as zeros. The first pages live in the region that
//! mappings share. All other pages are shared between the current and the durable version until one changes.
#![expect(unsafe_code, reason = "mapped pages are raw memory that other threads store to")]

mod damage;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::Region;
use crate::mapping::PAGE_BYTES;
use crate::memory::outcome::{Choices, Fate, Mode};

/// The unit in which a power cut keeps or loses unsynced bytes.
pub const SECTOR_BYTES: usize = 512;
/// Sectors of a page: one bit each in a dirty mask.
const PAGE_SECTORS: usize = PAGE_BYTES / SECTOR_BYTES;
const _: () = assert!(PAGE_SECTORS == 8); // the masks are `u8`
/// Most earlier unsynced versions of one sector that are kept.
const OLDER_MAX: usize = 4;

type Page = [u8; PAGE_BYTES];
type Sector = [u8; SECTOR_BYTES];
type Pages = BTreeMap<u64, Arc<Page>>;

static ZEROS: Page = [0; PAGE_BYTES];

/// The memory that all mappings of a file share: its first `pages` pages.
#[derive(Clone, Debug)]
struct Mapped {
    region: Arc<Region>,
    pages: u64,
}

#[derive(Debug, Default)]
pub(super) struct Content {
    len: u64,
    pages: Pages,
    mapped: Option<Mapped>,
    durable_len: u64,
    durable: Pages,
    /// Unsynced sectors, by page.
    dirty: BTreeMap<u64, u8>,
    /// Earlier unsynced versions of unsynced sectors, oldest first, by sector.
    older: BTreeMap<u64, Vec<Sector>>,
    /// Pages that the system believes to be clean though they differ from the stored ones: visible, not
    /// durable, and not synced again until they change.
    clean: Pages,
}

impl Content {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Fills `buf` from `offset`; bytes after the end are zeros.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) {
        for (page, at, piece) in pieces(offset, buf.len()) {
            let len = piece.len();
            buf[piece].copy_from_slice(&self.page(page)[at..at + len]);
        }
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (page, at, piece) in pieces(offset, bytes.len()) {
            self.touch(page, at..at + piece.len());
            self.store(page, at, &bytes[piece]);
        }
        self.len = self.len.max(offset + bytes.len() as u64);
    }

    /// Writes zeros; whole pages become absent.
    pub(super) fn zero(&mut self, range: Range<u64>) {
        let end = range.end.min(self.len.max(self.durable_len).next_multiple_of(PAGE_BYTES as u64));
        let len = end.saturating_sub(range.start) as usize;
        for (page, at, piece) in pieces(range.start, len) {
            if !self.is_absent(page) {
                self.touch(page, at..at + piece.len());
                self.store(page, at, &ZEROS[..piece.len()]);
                if piece.len() == PAGE_BYTES {
                    self.pages.remove(&page);
                }
            }
        }
    }

    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.zero(len..self.len);
        }
        self.len = len;
    }

    /// Memory shared by all mappings of the first `len` bytes; `None` while a shorter mapping exists, whose
    /// address cannot change.
    pub(super) fn map(&mut self, len: usize) -> Option<Arc<Region>> {
        let pages = len.div_ceil(PAGE_BYTES) as u64;
        match &self.mapped {
            Some(mapped) if mapped.pages >= pages => return Some(Arc::clone(&mapped.region)),
            Some(mapped) if Arc::strong_count(&mapped.region) > 1 => return None,
            _ => {}
        }
        self.unmap();
        let region = Region::heap(pages as usize * PAGE_BYTES);
        let beyond = self.pages.split_off(&pages);
        for (page, bytes) in std::mem::replace(&mut self.pages, beyond) {
            // SAFETY: the page is below `pages`, and no other thread has the new region yet.
            unsafe { region.write(page as usize * PAGE_BYTES, bytes.as_slice()) };
        }
        let region = Arc::new(region);
        self.mapped = Some(Mapped { region: Arc::clone(&region), pages });
        Some(region)
    }

    /// Makes everything durable.
    pub(super) fn sync(&mut self) {
        self.absorb();
        let dirty = std::mem::take(&mut self.dirty);
        for page in dirty.into_keys() {
            self.make_durable(page);
        }
        self.older.clear();
        self.durable_len = self.len;
        self.durable.split_off(&self.len.div_ceil(PAGE_BYTES as u64));
    }

    /// Number of outcomes of a power cut for the file, page by page.
    pub(super) fn outcomes(&mut self) -> u64 {
        self.absorb();
        let pages = 1u64.checked_shl(self.dirty.len() as u32).unwrap_or(u64::MAX);
        pages.saturating_mul(1 + u64::from(self.len != self.durable_len))
    }

    /// Makes some pages durable, and maybe the length.
    pub(super) fn write_back(&mut self, choices: &Choices) {
        self.absorb();
        let pages: Vec<u64> = self.dirty.keys().copied().filter(|_| choices.below(2) == 0).collect();
        for page in pages {
            self.make_durable(page);
            self.dirty.remove(&page);
            let first = page * PAGE_SECTORS as u64;
            for sector in first..first + PAGE_SECTORS as u64 {
                self.older.remove(&sector);
            }
        }
        if choices.below(2) == 0 {
            self.durable_len = self.len;
        }
    }

    /// A copy with the same bytes and the same durability, without mappings.
    pub(super) fn killed(&mut self) -> Content {
        self.absorb();
        let mut pages = self.pages.clone();
        for page in 0..self.mapped.as_ref().map_or(0, |mapped| mapped.pages) {
            if *self.page(page) != ZEROS {
                pages.insert(page, Arc::new(*self.page(page)));
            }
        }
        Content {
            len: self.len,
            pages,
            mapped: None,
            durable_len: self.durable_len,
            durable: self.durable.clone(),
            dirty: self.dirty.clone(),
            older: self.older.clone(),
            clean: self.clean.clone(),
        }
    }

    /// The content after a power cut.
    pub(super) fn crashed(&mut self, choices: &Choices) -> Content {
        self.absorb();
        let (mode, cut) = if choices.is_counted() {
            (Mode::Pages, 0)
        } else {
            (choices.mode(), choices.below(self.dirty.len() as u64 + 1) as usize)
        };
        let mut durable = self.durable.clone();
        for (index, (&page, &mask)) in self.dirty.iter().enumerate() {
            let fates = self.fates(mode, index.cmp(&cut), choices);
            let mut bytes = durable.get(&page).map_or(ZEROS, |bytes| **bytes);
            for (sector, fate) in fates.into_iter().enumerate().filter(|(sector, _)| mask >> sector & 1 == 1)
            {
                self.apply(page, sector, fate, &mut bytes);
            }
            durable.insert(page, Arc::new(bytes));
        }
        let len = self.len_after(mode, choices);
        let longest = self.len.max(self.durable_len);
        let mut content = Content {
            len: longest,
            pages: durable.clone(),
            durable_len: longest,
            durable,
            ..Content::default()
        };
        // Through `set_len`, so that no bytes stay after the end.
        content.set_len(len);
        content.sync();
        content
    }

    fn fates(&self, mode: Mode, place: std::cmp::Ordering, choices: &Choices) -> [Fate; PAGE_SECTORS] {
        let mixed = || std::array::from_fn(|_| choices.fate(SECTOR_BYTES));
        match (mode, place) {
            (Mode::Lost, _) | (Mode::Prefix, std::cmp::Ordering::Greater) => [Fate::Lost; PAGE_SECTORS],
            (Mode::Kept, _) | (Mode::Prefix, std::cmp::Ordering::Less) => [Fate::Kept; PAGE_SECTORS],
            (Mode::Prefix, std::cmp::Ordering::Equal) => mixed(),
            (Mode::Pages, _) if choices.below(2) == 0 => [Fate::Lost; PAGE_SECTORS],
            (Mode::Pages, _) => [Fate::Kept; PAGE_SECTORS],
            (Mode::Scattered, _) => match choices.below(3) {
                0 => [Fate::Lost; PAGE_SECTORS],
                1 => [Fate::Kept; PAGE_SECTORS],
                _ => mixed(),
            },
        }
    }

    /// Writes the part of a sector that `fate` keeps into `bytes`, which hold the durable page.
    fn apply(&self, page: u64, sector: usize, fate: Fate, bytes: &mut Page) {
        let range = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
        let new = &self.page(page)[range.clone()];
        let old = &mut bytes[range];
        match fate {
            Fate::Lost => {}
            Fate::Kept => old.copy_from_slice(new),
            Fate::Torn(len) => old[..len].copy_from_slice(&new[..len]),
            Fate::Older(pick) => {
                if let Some(older) = self.older.get(&(page * PAGE_SECTORS as u64 + sector as u64)) {
                    old.copy_from_slice(&older[(pick % older.len() as u64) as usize]);
                }
            }
        }
    }

    fn len_after(&self, mode: Mode, choices: &Choices) -> u64 {
        let (low, high) = (self.len.min(self.durable_len), self.len.max(self.durable_len));
        if mode == Mode::Pages {
            return if low != high && choices.below(2) == 1 { self.len } else { self.durable_len };
        }
        match (mode, choices.below(3)) {
            (Mode::Lost, _) | (Mode::Prefix | Mode::Scattered, 0) => self.durable_len,
            (Mode::Kept, _) | (Mode::Prefix | Mode::Scattered, 1) => self.len,
            _ => low + choices.below(high - low + 1),
        }
    }

    /// Finds stores through mappings since the last sync.
    fn absorb(&mut self) {
        let mapped_pages = self.mapped.as_ref().map_or(0, |mapped| mapped.pages);
        for page in 0..mapped_pages.min(self.len.div_ceil(PAGE_BYTES as u64)) {
            let mut mask = self.dirty.get(&page).copied().unwrap_or(0);
            let (now, durable) = (self.page(page), self.durable.get(&page).map_or(&ZEROS, |bytes| &**bytes));
            if now == durable || self.clean.get(&page).is_some_and(|clean| **clean == *now) {
                continue;
            }
            // A page is written as a whole, so a change also writes what a failed sync left.
            for sector in 0..PAGE_SECTORS {
                let range = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
                mask |= u8::from(now[range.clone()] != durable[range]) << sector;
            }
            self.dirty.insert(page, mask);
            self.clean.remove(&page);
        }
    }

    fn make_durable(&mut self, page: u64) {
        self.clean.remove(&page);
        let mapped = self.mapped.as_ref().is_some_and(|mapped| page < mapped.pages);
        let bytes = if mapped { Some(Arc::new(*self.page(page))) } else { self.pages.get(&page).cloned() };
        match bytes {
            Some(bytes) => self.durable.insert(page, bytes),
            None => self.durable.remove(&page),
        };
    }

    /// Marks the sectors of a range of a page as unsynced, and keeps unsynced versions that will be
    /// overwritten.
    fn touch(&mut self, page: u64, range: Range<usize>) {
        let mut mask = self.dirty.get(&page).copied().unwrap_or(0);
        for sector in range.start / SECTOR_BYTES..range.end.div_ceil(SECTOR_BYTES) {
            if mask >> sector & 1 == 1 {
                let mut bytes = [0; SECTOR_BYTES];
                bytes.copy_from_slice(&self.page(page)[sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES]);
                let older = self.older.entry(page * PAGE_SECTORS as u64 + sector as u64).or_default();
                if older.len() == OLDER_MAX {
                    older.remove(0);
                }
                older.push(bytes);
            }
            mask |= 1 << sector;
        }
        if self.clean.remove(&page).is_some() {
            mask = u8::MAX;
        }
        self.dirty.insert(page, mask);
    }

    fn store(&mut self, page: u64, at: usize, bytes: &[u8]) {
        match &self.mapped {
            // SAFETY: the page is in the region; by the rules of regions no other thread uses bytes that are
            // being written.
            Some(mapped) if page < mapped.pages => unsafe {
                mapped.region.write(page as usize * PAGE_BYTES + at, bytes);
            },
            _ => {
                let page = self.pages.entry(page).or_insert_with(|| Arc::new(ZEROS));
                Arc::make_mut(page)[at..at + bytes.len()].copy_from_slice(bytes);
            }
        }
    }

    fn page(&self, page: u64) -> &Page {
        match &self.mapped {
            Some(mapped) if page < mapped.pages => {
                // SAFETY: the page is in the region; the device requires that no thread stores to it
                // meanwhile.
                let bytes = unsafe { mapped.region.slice(page as usize * PAGE_BYTES, PAGE_BYTES) };
                bytes.try_into().expect("a slice of a page's length")
            }
            _ => self.pages.get(&page).map_or(&ZEROS, |bytes| &**bytes),
        }
    }

    /// Returns true if a page is zero, also durably, and was never written.
    fn is_absent(&self, page: u64) -> bool {
        let mapped = self.mapped.as_ref().is_some_and(|mapped| page < mapped.pages);
        !mapped
            && !self.pages.contains_key(&page)
            && !self.durable.contains_key(&page)
            && !self.dirty.contains_key(&page)
    }

    /// Moves the pages of a region that no mapping uses any more back into the map.
    fn unmap(&mut self) {
        self.absorb();
        let pages = self.mapped.as_ref().map_or(0, |mapped| mapped.pages);
        let kept: Vec<_> = (0..pages)
            .filter(|&page| *self.page(page) != ZEROS)
            .map(|page| (page, Arc::new(*self.page(page))))
            .collect();
        self.mapped = None;
        self.pages.extend(kept);
    }
}

/// Splits a byte range by page: (page, offset in the page, range in the buffer).
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = offset + done as u64;
        let in_page = (at % PAGE_BYTES as u64) as usize;
        let piece = done..len.min(done + PAGE_BYTES - in_page);
        done = piece.end;
        Some((at / PAGE_BYTES as u64, in_page, piece))
    })
}
