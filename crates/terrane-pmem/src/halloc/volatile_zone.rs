//! Chunks for content that is built again after every opening, such as an index: memory that happens to
//! persist.

use terrane_base::sync::atomic::{AtomicU64, Ordering};
use terrane_base::{Error, Kind, Result};
use terrane_device::pm::PmRegion;

use super::Halloc;

/// Chunks without an owner: the table does not name them, so they are free at the next opening, and neither
/// taking them nor giving them back stores anything. They go back when this is dropped.
///
/// Memory is handed out from the front on and goes back as a whole, as that of a tree does. Any thread
/// allocates.
#[derive(Debug)]
pub struct VolatileZone<'a, R: PmRegion> {
    halloc: &'a Halloc<R>,
    first: u32,
    chunks: u16,
    /// Bytes handed out.
    used: AtomicU64,
}

impl<R: PmRegion> Halloc<R> {
    /// Hands out adjacent chunks until the result is dropped; their content is undefined.
    ///
    /// # Errors
    /// As [`Halloc::grant`].
    pub fn grant_volatile(&self, chunks: u16) -> Result<VolatileZone<'_, R>> {
        let first = self.take(chunks)?;
        Ok(VolatileZone { halloc: self, first, chunks, used: AtomicU64::new(0) })
    }
}

impl<R: PmRegion> VolatileZone<'_, R> {
    /// Offset of its first byte in the region.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.halloc.geometry().chunk_at(self.first)
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.chunks) * self.halloc.chunk_bytes()
    }

    /// Memory of `bytes`, rounded up to whole words: its offset in the region, a multiple of 8.
    ///
    /// # Errors
    /// `Full` if the zone has no room for it.
    pub fn allocate(&self, bytes: u64) -> Result<u64> {
        let all = self.bytes();
        let mut used = self.used.load(Ordering::Relaxed);
        loop {
            let end = bytes.checked_next_multiple_of(8).and_then(|bytes| used.checked_add(bytes));
            let Some(end) = end.filter(|end| *end <= all) else {
                let why = format!("a volatile zone has {} bytes left: {bytes} are asked for", all - used);
                return Err(Error::new(Kind::Full, why));
            };
            // Relaxed: the number hands out bytes; their users publish the content.
            match self.used.compare_exchange_weak(used, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(self.offset() + used),
                Err(found) => used = found,
            }
        }
    }
}

impl<R: PmRegion> Drop for VolatileZone<'_, R> {
    fn drop(&mut self) {
        self.halloc.give_back(self.first, u32::from(self.chunks));
    }
}
