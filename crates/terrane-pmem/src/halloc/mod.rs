//! Halloc: an allocator for persistent memory with one flush and one fence for each allocation.
//!
//! After the light allocator of X-Engine on persistent memory (Yan et al., Revisiting the design of LSM-tree
//! based OLTP storage engine with persistent memory, PVLDB 14(10), 2021), which is known by its two faces and
//! its costs only. The layout is `docs/format/pmem-region.md`.
//!
//! * *Zones*: [`Halloc::grant`] hands out adjacent chunks. [`Reserve`] keeps some granted beforehand.
//! * *Objects*: [`Halloc::allocate`] hands out a piece of a chunk of objects of one size.
//! * *Volatile zones*: [`Halloc::grant_volatile`] hands out chunks for content that is built again; nothing
//!   is stored.
//!
//! # Why one flush and one fence are enough
//! Whether memory is in use, and by which owner, is one word, and a word is durable as a whole or not at
//! all. There is no log and no list: [`Halloc::open`] reads the words. Owners are known elsewhere (to the
//! manifest) before anything is granted to them, so that a grant just before a crash to an owner that is not
//! known is freed at the next opening, and nothing leaks. The content of granted memory is undefined, and
//! durable when its owner says so: the owner writes bytes that prove themselves.
//!
//! # Invariants
//! 1. A chunk is in `free`, or in a volatile zone, or its word or that of the zone it is in is not free; the
//!    same for objects and the lists of their pool.
//! 2. Memory goes back to `free` or to its list only after the word that frees it is durable. Otherwise two
//!    words could claim it after a crash.
//! 3. A chunk of objects has words that are durably free before its own word says its kind.
//!
//! # Which thread may touch what
//! Any thread calls any method. The lists of free memory are behind locks, which are not held while memory is
//! accessed. A thread that took a chunk or an object from there is alone with its word; a word in use changes
//! by compare-and-swap, so of two threads that free the same thing one gets an error.

mod free_runs;
mod objects;
mod recover;
mod reserve;
mod salvage;
mod volatile_zone;

use terrane_base::sync::Mutex;
use terrane_base::{Error, Kind, Result};
use terrane_device::pm::{PmRegion, WORD_BYTES};
use terrane_format::pmem_region::{
    Class, Geometry, HEADER_BYTES, OwnerWord, SUPERBLOCK_BYTES, Superblock, root_at,
};

pub use free_runs::FreeRuns;
pub use objects::Object;
use objects::ObjectPool;
pub use recover::Recovered;
pub use reserve::Reserve;
pub use salvage::Salvaged;
pub use volatile_zone::VolatileZone;

/// The name in errors, in the place of a file.
const PLACE: &str = "persistent memory";

/// The number of an owner of zones and objects, such as a memtable or the journal. It is known to the
/// manifest before anything is granted to it, and never used again once it was dropped there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u32);

/// Adjacent chunks that an owner has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Zone {
    /// Offset of the first byte in the region.
    offset: u64,
    bytes: u64,
    chunks: u16,
    owner: Owner,
}

impl Zone {
    /// Offset of its first byte in the region; it stands for the zone in persistent memory.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its chunks.
    #[must_use]
    pub fn chunks(&self) -> u16 {
        self.chunks
    }

    /// Its owner.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.owner
    }

    fn word(&self) -> OwnerWord {
        OwnerWord::Zone { chunks: self.chunks, owner: self.owner.0 }
    }
}

/// The allocator of a region.
#[derive(Debug)]
pub struct Halloc<R> {
    region: R,
    superblock: Superblock,
    /// Chunks that are free.
    free: Mutex<FreeRuns>,
    /// By the index of the class.
    pools: Box<[ObjectPool]>,
}

impl<R: PmRegion> Halloc<R> {
    /// Makes a region ready: all of it is free. `region_id` is a random number. Cut at any point, it leaves a
    /// region that is not ready, and may be called again.
    ///
    /// # Errors
    /// `Invalid` if the region begins with anything but a zero word, or chunks of this size do not fit (see
    /// [`Geometry::new`]); any error of the region.
    pub fn create(region: R, chunk_bytes: u64, region_id: u128) -> Result<Self> {
        let superblock = Superblock { region_id, geometry: Geometry::new(region.len(), chunk_bytes)? };
        if region.load(0)? != 0 {
            let message = "the region is in use: make a new one, or remove its content first";
            return Err(Error::invalid(message).at(PLACE, 0));
        }
        let (word, header) = (WORD_BYTES as usize, superblock.encode());
        let table = superblock.geometry.head_bytes() - SUPERBLOCK_BYTES;
        region.stream(0, &[0; SUPERBLOCK_BYTES as usize])?;
        region.stream(SUPERBLOCK_BYTES, &vec![0; table as usize])?;
        region.stream(WORD_BYTES, &header[word..])?;
        region.fence()?;
        // The word with the magic last: a region that has it is ready.
        let magic = u64::from_le_bytes(header[..word].try_into().expect("a word of the header"));
        region.store(0, magic)?;
        region.persist(0, WORD_BYTES)?;
        let mut free = FreeRuns::default();
        free.insert(0, superblock.geometry.chunk_count());
        Ok(Halloc::of(region, superblock, free))
    }

    fn of(region: R, superblock: Superblock, free: FreeRuns) -> Self {
        let pools = (0..Class::COUNT).map(|_| ObjectPool::default()).collect();
        Halloc { region, superblock, free: Mutex::new(free), pools }
    }

    /// The region. Owners access what was granted to them through it.
    #[must_use]
    pub fn region(&self) -> &R {
        &self.region
    }

    /// Number of the region.
    #[must_use]
    pub fn region_id(&self) -> u128 {
        self.superblock.region_id
    }

    /// Bytes of a chunk, the unit of zones.
    #[must_use]
    pub fn chunk_bytes(&self) -> u64 {
        self.geometry().chunk_bytes()
    }

    /// Number of chunks of the region.
    #[must_use]
    pub fn chunk_count(&self) -> u32 {
        self.geometry().chunk_count()
    }

    /// Number of chunks that are free.
    #[must_use]
    pub fn free_chunk_count(&self) -> u32 {
        self.free.lock().count()
    }

    fn geometry(&self) -> &Geometry {
        &self.superblock.geometry
    }

    /// Hands out adjacent chunks to an owner, durably; their content is undefined.
    ///
    /// # Errors
    /// `Full` if there are not as many adjacent free chunks; `Invalid` for 0 chunks; any error of the region.
    pub fn grant(&self, chunks: u16, owner: Owner) -> Result<Zone> {
        let first = self.take(chunks)?;
        let zone = self.zone_of(first, chunks, owner);
        self.claim(self.geometry().word_at(first), zone.word())?;
        Ok(zone)
    }

    /// Takes back a zone, durably.
    ///
    /// # Errors
    /// `Invalid` if the zone is not in use as it says; any error of the region.
    pub fn free_zone(&self, zone: Zone) -> Result<()> {
        let first = self.first_chunk(&zone)?;
        self.change(self.geometry().word_at(first), zone.word(), OwnerWord::Free)?;
        self.give_back(first, u32::from(zone.chunks));
        Ok(())
    }

    /// Makes a zone that of another owner, durably and at once.
    ///
    /// # Errors
    /// As [`Halloc::free_zone`].
    pub fn assign(&self, zone: Zone, owner: Owner) -> Result<Zone> {
        let first = self.first_chunk(&zone)?;
        let assigned = Zone { owner, ..zone };
        self.change(self.geometry().word_at(first), zone.word(), assigned.word())?;
        Ok(assigned)
    }

    /// The zone that begins at an offset which was read from somewhere.
    ///
    /// # Errors
    /// `Corrupt` if no zone in use begins there.
    pub fn zone_at(&self, offset: u64) -> Result<Zone> {
        let chunk =
            self.geometry().chunk_of(offset).filter(|chunk| self.geometry().chunk_at(*chunk) == offset);
        match chunk.map(|chunk| Ok((chunk, self.word(self.geometry().word_at(chunk))?))).transpose()? {
            Some((chunk, OwnerWord::Zone { chunks, owner })) => Ok(self.zone_of(chunk, chunks, Owner(owner))),
            _ => Err(Error::corrupt("no zone begins here").at(PLACE, offset)),
        }
    }

    /// Root word number `root`, from 0 to 15; 0 until it is set. Its meaning is that of its user.
    ///
    /// # Errors
    /// `Invalid` if there is no such root word.
    pub fn root(&self, root: u32) -> Result<u64> {
        self.region.load(root_at(root)?)
    }

    /// Sets a root word, durably and at once.
    ///
    /// # Errors
    /// As [`Halloc::root`]; any error of the region.
    pub fn set_root(&self, root: u32, word: u64) -> Result<()> {
        let place = root_at(root)?;
        self.region.store(place, word)?;
        self.region.persist(place, WORD_BYTES)
    }

    fn zone_of(&self, first: u32, chunks: u16, owner: Owner) -> Zone {
        let (offset, bytes) = (self.geometry().chunk_at(first), u64::from(chunks) * self.chunk_bytes());
        debug_assert!(bytes <= self.region.len() - offset, "zone of {chunks} chunks from {first} on");
        Zone { offset, bytes, chunks, owner }
    }

    /// The first chunk of a zone; the zone may be one of another region.
    fn first_chunk(&self, zone: &Zone) -> Result<u32> {
        let chunk = self.geometry().chunk_of(zone.offset);
        chunk.ok_or_else(|| not_in_use(zone.offset))
    }

    /// Takes free chunks; nothing is stored.
    fn take(&self, chunks: u16) -> Result<u32> {
        if chunks == 0 {
            return Err(Error::invalid("a zone has at least one chunk"));
        }
        let mut free = self.free.lock();
        free.take(u32::from(chunks)).ok_or_else(|| {
            let message = format!(
                "persistent memory has no {chunks} adjacent free chunks of {} bytes ({} are free): enlarge it, or free zones",
                self.chunk_bytes(),
                free.count()
            );
            Error::new(Kind::Full, message).of_space()
        })
    }

    fn give_back(&self, first: u32, chunks: u32) {
        self.free.lock().insert(first, chunks);
    }

    /// The owner word at a place.
    fn word(&self, place: u64) -> Result<OwnerWord> {
        let word = self.region.load(place)?;
        OwnerWord::decode(word, place, self.region_id()).map_err(|error| error.at(PLACE, place))
    }

    /// Makes the free word at `place` one that is in use, durably. The caller took what it stands for.
    fn claim(&self, place: u64, to: OwnerWord) -> Result<()> {
        self.change(place, OwnerWord::Free, to).map_err(|error| match error.kind() {
            Kind::Invalid => Error::corrupt("an owner word changed though it is free").at(PLACE, place),
            _ => error,
        })
    }

    /// Replaces an owner word, durably: one flush and one fence.
    fn change(&self, place: u64, from: OwnerWord, to: OwnerWord) -> Result<()> {
        let id = self.region_id();
        let from = from.encode(place, id);
        if self.region.exchange(place, from, to.encode(place, id))? != from {
            return Err(not_in_use(place));
        }
        if !terrane_base::planted!(SkipOwnerFlush) {
            self.region.flush(place, WORD_BYTES)?;
        }
        if terrane_base::planted!(SkipOwnerFence) { Ok(()) } else { self.region.fence() }
    }
}

/// Reads the header of a region.
fn read_superblock(region: &impl PmRegion) -> Result<Superblock> {
    let mut header = [0; HEADER_BYTES];
    region.read(0, &mut header)?;
    Superblock::decode(&header, region.len()).map_err(|error| error.at(PLACE, 0))
}

#[cold]
fn not_in_use(offset: u64) -> Error {
    Error::invalid(
        "persistent memory is not in use as the caller says: it was freed, or belongs to another owner",
    )
    .at(PLACE, offset)
}
