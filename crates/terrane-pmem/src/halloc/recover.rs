//! Opening a region: reads all owner words and frees the memory of owners that are not known.
//!
//! 1. the superblock; 2. the table, chunk by chunk; 3. of each chunk of objects its words; 4. freed words are
//!    flushed, and one fence ends the opening.
//!
//! A crash anywhere in it is harmless: each word is freed on its own, and whether a word is freed does not
//! depend on another one. A word that does not belong where it stands, or zones that overlap, are damage,
//! and the opening fails without a change.

use terrane_base::{Error, Result};
use terrane_device::pm::{PmRegion, WORD_BYTES};
use terrane_format::pmem_region::{Class, OwnerWord, SUPERBLOCK_BYTES, Superblock};

use super::free_runs::FreeRuns;
use super::{Halloc, Object, Owner, PLACE, Zone, read_superblock};

/// The result of an opening.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Zones of owners that are known, by offset.
    pub zones: Vec<Zone>,
    /// Objects of owners that are known, by offset.
    pub objects: Vec<Object>,
    /// Zones that were freed because their owner is not known.
    pub freed_zones: u64,
    /// Objects that were freed because their owner is not known.
    pub freed_objects: u64,
    /// Chunks of objects that were freed because no object in them is in use.
    pub freed_object_chunks: u64,
}

/// An opening under way.
struct Scan<'a, R> {
    region: &'a R,
    superblock: Superblock,
    found: Recovered,
    /// Offsets of words that become free.
    freed: Vec<u64>,
    /// Runs of free chunks: the first one and how many.
    free_chunks: Vec<(u32, u32)>,
    /// Free objects of chunks that stay.
    free_objects: Vec<(Class, u64)>,
}

impl<R: PmRegion> Halloc<R> {
    /// Opens a region that [`Halloc::create`] made ready. What belongs to an owner that is not known is
    /// freed.
    ///
    /// # Errors
    /// `NotFound` if the region was never made ready; `Invalid` if it has another version of the format;
    /// `Corrupt` if its bytes are not those of a region of this length; any error of the region.
    pub fn open(region: R, is_known: impl Fn(Owner) -> bool) -> Result<(Self, Recovered)> {
        let superblock = read_superblock(&region)?;
        let found = Recovered::default();
        let (freed, free_chunks, free_objects) = (Vec::new(), Vec::new(), Vec::new());
        let mut scan = Scan { region: &region, superblock, found, freed, free_chunks, free_objects };
        scan.read_table(&is_known)?;
        scan.free()?;
        let Scan { found, free_chunks, free_objects, .. } = scan;
        let mut free = FreeRuns::default();
        free_chunks.into_iter().for_each(|(first, chunks)| free.insert(first, chunks));
        let halloc = Halloc::of(region, superblock, free);
        for (class, offset) in free_objects {
            halloc.pools[class.index()].give_back([offset]);
        }
        Ok((halloc, found))
    }
}

impl<R: PmRegion> Scan<'_, R> {
    fn read_table(&mut self, is_known: &impl Fn(Owner) -> bool) -> Result<()> {
        let geometry = self.superblock.geometry;
        let words = self.words(SUPERBLOCK_BYTES, geometry.chunk_count())?;
        let mut chunk = 0;
        while chunk < geometry.chunk_count() {
            let place = geometry.word_at(chunk);
            let chunks = match self.meaning(words[chunk as usize], place)? {
                OwnerWord::Free => {
                    self.free_chunks.push((chunk, 1));
                    1
                }
                OwnerWord::Zone { chunks, owner } => {
                    let end =
                        chunk.checked_add(u32::from(chunks)).filter(|end| *end <= geometry.chunk_count());
                    let inside = end.map(|end| &words[chunk as usize + 1..end as usize]);
                    if inside.is_none_or(|words| words.iter().any(|word| *word != 0))
                        && !terrane_base::planted!(AcceptOverlappingZones)
                    {
                        let why = format!("a zone of {chunks} chunks goes over another one, or the end");
                        return Err(Error::corrupt(why).at(PLACE, place));
                    }
                    self.take_zone(chunk, chunks, Owner(owner), is_known);
                    u32::from(chunks)
                }
                OwnerWord::Objects { class } => {
                    self.take_objects(chunk, class, is_known)?;
                    1
                }
                OwnerWord::Object { .. } => {
                    return Err(Error::corrupt(
                        "the table of chunks holds the word of an object: the pool is damaged",
                    )
                    .at(PLACE, place));
                }
            };
            chunk += chunks;
        }
        Ok(())
    }

    fn take_zone(&mut self, chunk: u32, chunks: u16, owner: Owner, is_known: &impl Fn(Owner) -> bool) {
        let geometry = self.superblock.geometry;
        if is_known(owner) || terrane_base::planted!(KeepUnknownOwner) {
            let (offset, bytes) = (geometry.chunk_at(chunk), u64::from(chunks) * geometry.chunk_bytes());
            self.found.zones.push(Zone { offset, bytes, chunks, owner });
        } else {
            self.freed.push(geometry.word_at(chunk));
            self.free_chunks.push((chunk, u32::from(chunks)));
            self.found.freed_zones += 1;
        }
    }

    /// The words of a chunk of objects.
    fn take_objects(&mut self, chunk: u32, class: Class, is_known: &impl Fn(Owner) -> bool) -> Result<()> {
        let geometry = self.superblock.geometry;
        let place = geometry.word_at(chunk);
        let layout = geometry.objects(class).ok_or_else(|| {
            Error::corrupt(format!("objects of {} bytes do not fit a chunk", class.bytes())).at(PLACE, place)
        })?;
        let start = geometry.chunk_at(chunk);
        let words = self.words(start, layout.count)?;
        let (used, mut free) = (self.found.objects.len(), Vec::new());
        for (index, word) in (0..layout.count).zip(words) {
            let (at, offset) = (start + layout.word_at(index), start + layout.object_at(index));
            match self.meaning(word, at)? {
                OwnerWord::Free => free.push((class, offset)),
                OwnerWord::Object { class: own, owner } if own == class => {
                    if is_known(Owner(owner)) {
                        self.found.objects.push(Object::new(offset, class, Owner(owner)));
                    } else {
                        self.freed.push(at);
                        free.push((class, offset));
                        self.found.freed_objects += 1;
                    }
                }
                _ => {
                    return Err(Error::corrupt(
                        "the word of an object is of another class or kind: the pool is damaged",
                    )
                    .at(PLACE, at));
                }
            }
        }
        if self.found.objects.len() == used {
            // What its words say does not count any more, whichever of them is durable first.
            self.freed.push(place);
            self.free_chunks.push((chunk, 1));
            self.found.freed_object_chunks += 1;
        } else {
            self.free_objects.append(&mut free);
        }
        Ok(())
    }

    /// Writes the words that were found without an owner as free, durably.
    fn free(&self) -> Result<()> {
        for place in &self.freed {
            self.region.store(*place, 0)?;
            self.region.flush(*place, WORD_BYTES)?;
        }
        if self.freed.is_empty() { Ok(()) } else { self.region.fence() }
    }

    fn words(&self, offset: u64, count: u32) -> Result<Vec<u64>> {
        let mut bytes = vec![0; count as usize * WORD_BYTES as usize];
        self.region.read(offset, &mut bytes)?;
        let words = bytes.chunks_exact(WORD_BYTES as usize);
        Ok(words.map(|word| u64::from_le_bytes(word.try_into().expect("a chunk of a word"))).collect())
    }

    fn meaning(&self, word: u64, place: u64) -> Result<OwnerWord> {
        OwnerWord::decode(word, place, self.superblock.region_id).map_err(|error| error.at(PLACE, place))
    }
}
