//! Faults of a device: failed or false syncs, misdirected writes, flipped bits.

use std::sync::Arc;

use super::Content;
use crate::mapping::PAGE_BYTES;
use crate::memory::outcome::Choices;

impl Content {
    /// Makes nothing durable, and no later sync tries again.
    pub(in crate::memory) fn fail_sync(&mut self) {
        self.absorb();
        for page in std::mem::take(&mut self.dirty).into_keys() {
            let bytes = Arc::new(*self.page(page));
            self.clean.insert(page, bytes);
        }
        self.older.clear();
    }

    /// Makes everything durable except one unsynced page, which is stored at the offset of another page of
    /// the file. Reads stay correct as long as the system keeps its pages.
    pub(in crate::memory) fn misdirect_sync(&mut self, choices: &Choices) {
        self.absorb();
        let unsynced: Vec<u64> = self.dirty.keys().copied().collect();
        let Some(&page) = unsynced.get(choices.below(unsynced.len().max(1) as u64) as usize) else {
            return self.sync();
        };
        let before = self.durable.get(&page).cloned();
        self.sync();
        match before {
            Some(before) => self.durable.insert(page, before),
            None => self.durable.remove(&page),
        };
        let meant = Arc::new(*self.page(page));
        self.clean.insert(page, Arc::clone(&meant));
        let others = self.len.div_ceil(PAGE_BYTES as u64).saturating_sub(1);
        if others > 0 {
            let elsewhere = (page + 1 + choices.below(others)) % (others + 1);
            self.clean.insert(elsewhere, Arc::new(*self.page(elsewhere)));
            self.durable.insert(elsewhere, meant);
        }
    }

    /// Flips one bit of a written page, on the device and in every cache; returns its offset. `None` if no
    /// page was written or the file is mapped, because readers use the mapped memory.
    pub(in crate::memory) fn rot(&mut self, choices: &Choices) -> Option<u64> {
        let is_mapped = self.mapped.as_ref().is_some_and(|mapped| Arc::strong_count(&mapped.region) > 1);
        if is_mapped {
            return None;
        }
        self.unmap();
        let pages: Vec<u64> = self.pages.keys().copied().collect();
        let page = *pages.get(choices.below(pages.len().max(1) as u64) as usize)?;
        let from = page * PAGE_BYTES as u64;
        let at = choices.below((self.len.checked_sub(from)?).clamp(1, PAGE_BYTES as u64)) as usize;
        let bit = 1u8 << choices.below(8);
        for pages in [&mut self.pages, &mut self.durable] {
            if let Some(bytes) = pages.get_mut(&page) {
                Arc::make_mut(bytes)[at] ^= bit;
            }
        }
        Some(from + at as u64)
    }
}
