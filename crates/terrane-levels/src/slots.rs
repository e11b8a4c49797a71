//! Which slots of the data files are taken: a bitmap in pages that versions share.
//!
//! It answers "does this extent overlap another one?" for a whole database in constant time.

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_base::{Error, ExtentId, Result};

const PAGE_SLOTS: u64 = 4096;
/// Most slots of one extent: above the largest value, and small enough that a hostile number does no harm.
const EXTENT_SLOTS_MAX: u32 = 4096;

type Page = [u64; (PAGE_SLOTS / 64) as usize];

/// A set of slots. Cloning shares all pages.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    /// By file and index of the page.
    pages: BTreeMap<(u32, u32), Arc<Page>>,
}

impl Slots {
    /// Takes the slots of an extent.
    ///
    /// # Errors
    /// `Invalid` if the extent has no slots or too many, or if one is taken. Some may be taken then.
    pub fn take(&mut self, id: ExtentId, count: u32) -> Result<()> {
        if count == 0 || count > EXTENT_SLOTS_MAX || id.slot.checked_add(count).is_none() {
            return Err(Error::invalid(format!(
                "extent {id} of {count} slots: 1 to {EXTENT_SLOTS_MAX} are possible"
            )));
        }
        let taken = self.each_bit(id, count, |word, bit| {
            let free = *word & bit == 0 || terrane_base::planted!(OwnTwice);
            *word |= bit;
            free
        });
        debug_assert!(taken.is_err() || self.contains(id), "an extent owns the slots that it took: {id}");
        taken.map_err(|slot| {
            Error::invalid(format!("extent {id} is owned twice: slot {}:{slot} is taken", id.file))
        })
    }

    /// Frees the slots of an extent.
    ///
    /// # Errors
    /// `Invalid` if one is not taken. Some may be freed then.
    pub fn free(&mut self, id: ExtentId, count: u32) -> Result<()> {
        let freed = self.each_bit(id, count, |word, bit| {
            let taken = *word & bit != 0;
            *word &= !bit;
            taken
        });
        debug_assert!(
            freed.is_err() || count == 0 || !self.contains(id),
            "an extent owns no slot that it freed: {id}"
        );
        freed.map_err(|slot| {
            Error::invalid(format!("extent {id} is not owned: slot {}:{slot} is free", id.file))
        })
    }

    /// Returns true if a slot is taken.
    #[must_use]
    pub fn contains(&self, id: ExtentId) -> bool {
        let (page, bit) = (u64::from(id.slot) / PAGE_SLOTS, u64::from(id.slot) % PAGE_SLOTS);
        let page = self.pages.get(&(id.file, page as u32));
        page.is_some_and(|page| page[(bit / 64) as usize] >> (bit % 64) & 1 == 1)
    }

    /// Applies `change` to the word and bit of each slot until it returns false for one, which is the error.
    fn each_bit(
        &mut self,
        id: ExtentId,
        count: u32,
        change: impl Fn(&mut u64, u64) -> bool,
    ) -> std::result::Result<(), u64> {
        debug_assert!(
            count <= EXTENT_SLOTS_MAX,
            "extent {id} of {count} slots was not checked when it was taken"
        );
        for slot in u64::from(id.slot)..u64::from(id.slot) + u64::from(count) {
            let page = self.pages.entry((id.file, (slot / PAGE_SLOTS) as u32));
            let page = page.or_insert_with(|| Arc::new([0; (PAGE_SLOTS / 64) as usize]));
            let bit = slot % PAGE_SLOTS;
            if !change(&mut Arc::make_mut(page)[(bit / 64) as usize], 1 << (bit % 64)) {
                return Err(slot);
            }
        }
        Ok(())
    }
}
