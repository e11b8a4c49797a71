//! Reading a damaged region: what its sound words say, for a repair. Nothing is stored.
//!
//! 1. the superblock; without one the chunks lie where a region of this length has them 2. the table, page by
//!    page: a page that cannot be read says nothing 3. sound words name zones; a chunk whose word is not a
//!    sound one is *unclear*: the owner's own format may tell what begins there.

use terrane_base::{Error, Kind, Result};
use terrane_device::pm::{PmRegion, WORD_BYTES};
use terrane_format::pmem_region::{Geometry, HEADER_BYTES, OwnerWord, SUPERBLOCK_BYTES, Superblock};

use super::free_runs::FreeRuns;
use super::{Halloc, Owner, PLACE, Zone};

/// Words of the table that are read at once: what a damaged page takes with it.
const PAGE_WORDS: u32 = 512;
/// Stands for a word that cannot be read; no word in use has all bits.
const UNREADABLE: u64 = u64::MAX;

/// The rest of a region.
#[derive(Debug, Default)]
pub struct Salvaged {
    /// Zones by their owners' sound words, as far as the region has bytes for them; two may overlap.
    pub zones: Vec<Zone>,
    /// Offsets of the chunks of which it is not known what begins there.
    pub unclear: Vec<u64>,
    /// The damage.
    pub damage: Vec<Error>,
}

impl<R: PmRegion> Halloc<R> {
    /// Reads the rest of a region, which may be shorter than it was made. `chunk_bytes` is the size of its
    /// chunks if the superblock is damaged. The allocator has no free memory.
    ///
    /// # Errors
    /// `Invalid` if the superblock is sound and of another version of the format, or if the region is too
    /// short for any.
    pub fn salvage(region: R, chunk_bytes: u64) -> Result<(Self, Salvaged)> {
        let mut found = Salvaged::default();
        let mut header = [0; HEADER_BYTES];
        let decoded = region.read(0, &mut header).and_then(|()| Superblock::decode_of_any(&header));
        let superblock = match decoded {
            Ok(superblock) => superblock,
            Err(error) if error.kind() == Kind::Invalid => return Err(error.at(PLACE, 0)),
            Err(error) => {
                found.damage.push(error.at(PLACE, 0));
                Superblock { region_id: 0, geometry: Geometry::new(region.len(), chunk_bytes)? }
            }
        };
        let has_id = found.damage.is_empty();
        let stored = superblock.geometry.region_bytes();
        if stored > region.len() {
            let why = format!("the region was made with {stored} bytes and has {}: it is cut", region.len());
            found.damage.push(Error::corrupt(why).at(PLACE, region.len()));
        }
        let halloc = Halloc::of(region, superblock, FreeRuns::default());
        halloc.salvage_table(has_id, &mut found);
        Ok((halloc, found))
    }

    /// The zone that an owner's own format says begins at `offset` with room for `bytes`; `None` if the
    /// region has no such chunks.
    #[must_use]
    pub fn presumed_zone(&self, offset: u64, bytes: u64, owner: Owner) -> Option<Zone> {
        let first = self.geometry().chunk_of(offset)?;
        let chunks = u16::try_from(bytes.div_ceil(self.chunk_bytes())).ok().filter(|chunks| *chunks > 0)?;
        let is_start = self.geometry().chunk_at(first) == offset;
        if is_start { self.readable_zone(first, chunks, owner) } else { None }
    }

    fn salvage_table(&self, has_id: bool, found: &mut Salvaged) {
        let room = self.region().len().saturating_sub(SUPERBLOCK_BYTES) / WORD_BYTES;
        let count = u64::from(self.chunk_count()).min(room) as u32;
        for first in (0..count).step_by(PAGE_WORDS as usize) {
            let words = PAGE_WORDS.min(count - first);
            let place = self.geometry().word_at(first);
            let mut bytes = vec![0; words as usize * WORD_BYTES as usize];
            if let Err(error) = self.region().read_checked(place, &mut bytes) {
                found.damage.push(error.context("a page of the table of chunks cannot be read"));
                bytes.fill(u8::MAX);
            }
            for (chunk, word) in (first..).zip(bytes.chunks_exact(WORD_BYTES as usize)) {
                let word = u64::from_le_bytes(word.try_into().expect("a chunk of a word"));
                self.salvage_word(chunk, word, has_id, found);
            }
        }
        debug_assert!(
            found.zones.iter().all(|zone| zone.offset + zone.bytes <= self.region().len()),
            "a zone that is salvaged can be read"
        );
    }

    fn salvage_word(&self, chunk: u32, word: u64, has_id: bool, found: &mut Salvaged) {
        let place = self.geometry().word_at(chunk);
        let decoded = match word {
            0 => return,
            UNREADABLE => Err(None),
            word if has_id => OwnerWord::decode(word, place, self.region_id()).map_err(Some),
            // Its check bits depend on the number of the region, which is lost.
            _ => Err(None),
        };
        match decoded {
            Ok(OwnerWord::Zone { chunks, owner }) => {
                found.zones.extend(self.readable_zone(chunk, chunks, Owner(owner)));
            }
            Ok(OwnerWord::Free | OwnerWord::Objects { .. }) => {}
            Ok(OwnerWord::Object { .. }) | Err(_) => {
                if let Err(Some(error)) = decoded {
                    found.damage.push(error.at(PLACE, place));
                }
                found.unclear.push(self.geometry().chunk_at(chunk));
            }
        }
    }

    /// A zone, cut where the region ends; `None` if nothing of it is left.
    fn readable_zone(&self, first: u32, chunks: u16, owner: Owner) -> Option<Zone> {
        let offset = self.geometry().chunk_at(first);
        let left = self.region().len().checked_sub(offset).filter(|left| *left > 0)?;
        let bytes = (u64::from(chunks) * self.chunk_bytes()).min(left);
        Some(Zone { offset, bytes, chunks, owner })
    }
}
