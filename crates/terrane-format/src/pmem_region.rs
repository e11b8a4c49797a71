//! A region of persistent memory under an allocator: the superblock, the table of chunks and the words that
//! name owners (`docs/format/pmem-region.md`).
//!
//! Everything here is a function of bytes and words. The allocator (`terrane-pmem`) says in which order they
//! become durable.

use terrane_base::{Error, Result, rng};

use crate::checksum::crc32c;
use crate::wire::Fields;

/// Bytes of the superblock, in front of the table of chunks.
pub const SUPERBLOCK_BYTES: u64 = 4096;
/// Bytes of the superblock's header, which is written once.
pub const HEADER_BYTES: usize = 64;
/// Root words in the superblock.
pub const ROOTS: u32 = 16;
/// Least and greatest bytes of a chunk; a power of two between them.
pub const CHUNK_BYTES: std::ops::RangeInclusive<u64> = 4096..=1 << 30;
/// Bytes of the smallest class of objects.
pub const OBJECT_BYTES_MIN: u64 = 64;
/// Bytes of the largest class of objects, if a chunk has room for four of them.
pub const OBJECT_BYTES_MAX: u64 = 64 << 10;

const MAGIC: &[u8; 8] = b"terrpmem";
const VERSION: u32 = 1;
/// Start value of the header's checksum.
const SEED: u32 = 0x7e44_a131;
/// Offset of the first root word, and bytes from one to the next: each has a cache line.
const ROOTS_AT: u64 = 1024;
const ROOT_STRIDE: u64 = 64;
const WORD: u64 = 8;
/// Bits of a word that check the others.
const CHECK_BITS: u32 = 12;
const KIND_ZONE: u64 = 1;
const KIND_OBJECTS: u64 = 2;
const KIND_OBJECT: u64 = 3;

/// The header of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Random number of the region.
    pub region_id: u128,
    /// Where things lie.
    pub geometry: Geometry,
}

/// Where the chunks of a region lie: a function of the region's length and the bytes of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    region_bytes: u64,
    chunk_bytes: u64,
    chunk_count: u32,
    chunks_at: u64,
}

impl Geometry {
    /// The geometry of a region.
    ///
    /// # Errors
    /// `Invalid` if `chunk_bytes` is not a power of two within [`CHUNK_BYTES`], or the region has no room for
    /// a chunk, or for more than 2^32 - 1 of them.
    pub fn new(region_bytes: u64, chunk_bytes: u64) -> Result<Self> {
        if !chunk_bytes.is_power_of_two() || !CHUNK_BYTES.contains(&chunk_bytes) {
            let (least, most) = (CHUNK_BYTES.start(), CHUNK_BYTES.end());
            let why =
                format!("chunks of {chunk_bytes} bytes: a chunk has a power of two from {least} to {most}");
            return Err(Error::invalid(why));
        }
        let all = region_bytes / chunk_bytes;
        // As if every chunk of the region had a word: a few words too many where the table takes chunks.
        let heads = (SUPERBLOCK_BYTES + all.saturating_mul(WORD)).div_ceil(chunk_bytes);
        let count = all.saturating_sub(heads);
        match u32::try_from(count) {
            Ok(chunk_count) if chunk_count > 0 => {
                Ok(Geometry { region_bytes, chunk_bytes, chunk_count, chunks_at: heads * chunk_bytes })
            }
            _ => Err(Error::invalid(format!(
                "a region of {region_bytes} bytes has {count} chunks of {chunk_bytes} bytes: it may have from 1 to {}",
                u32::MAX
            ))),
        }
    }

    /// Bytes of the region.
    #[must_use]
    pub fn region_bytes(&self) -> u64 {
        self.region_bytes
    }

    /// Bytes of a chunk.
    #[must_use]
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// Number of chunks.
    #[must_use]
    pub fn chunk_count(&self) -> u32 {
        self.chunk_count
    }

    /// Bytes of superblock and table.
    #[must_use]
    pub fn head_bytes(&self) -> u64 {
        SUPERBLOCK_BYTES + u64::from(self.chunk_count) * WORD
    }

    /// Offset of the word of a chunk in the table.
    ///
    /// # Panics
    /// If there is no such chunk.
    #[must_use]
    pub fn word_at(&self, chunk: u32) -> u64 {
        assert!(chunk < self.chunk_count, "chunk {chunk} of {}", self.chunk_count);
        SUPERBLOCK_BYTES + u64::from(chunk) * WORD
    }

    /// Offset of a chunk.
    ///
    /// # Panics
    /// If there is no such chunk.
    #[must_use]
    pub fn chunk_at(&self, chunk: u32) -> u64 {
        assert!(chunk < self.chunk_count, "chunk {chunk} of {}", self.chunk_count);
        self.chunks_at + u64::from(chunk) * self.chunk_bytes
    }

    /// The chunk that an offset is in; `None` in front of the first one and behind the last one.
    #[must_use]
    pub fn chunk_of(&self, offset: u64) -> Option<u32> {
        let chunk = offset.checked_sub(self.chunks_at)? / self.chunk_bytes;
        u32::try_from(chunk).ok().filter(|chunk| *chunk < self.chunk_count)
    }

    /// Where objects of a class lie within a chunk; `None` if there is no such class for these chunks.
    #[must_use]
    pub fn objects(&self, class: Class) -> Option<ObjectLayout> {
        let bytes = class.bytes();
        if bytes > OBJECT_BYTES_MAX.min(self.chunk_bytes / 4) {
            return None;
        }
        // The most objects that lie behind their words, which fill whole lines.
        let mut count = self.chunk_bytes / (bytes + WORD);
        while (count * WORD).next_multiple_of(OBJECT_BYTES_MIN) + count * bytes > self.chunk_bytes {
            count -= 1;
        }
        let objects_at = (count * WORD).next_multiple_of(OBJECT_BYTES_MIN);
        Some(ObjectLayout { count: count as u32, objects_at, object_bytes: bytes })
    }
}

/// A class of objects: all have the same power of two of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(u8);

impl Class {
    /// The number of classes.
    pub const COUNT: usize = (OBJECT_BYTES_MAX.ilog2() - OBJECT_BYTES_MIN.ilog2() + 1) as usize;

    /// The smallest class whose objects have room for `bytes`; `None` if no class has.
    #[must_use]
    pub fn of(bytes: u64) -> Option<Self> {
        let bytes = bytes.max(OBJECT_BYTES_MIN);
        (bytes <= OBJECT_BYTES_MAX).then(|| Class(bytes.next_power_of_two().ilog2() as u8))
    }

    /// Bytes of an object.
    #[must_use]
    pub fn bytes(self) -> u64 {
        1 << self.0
    }

    /// From 0 for the smallest class on.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0) - OBJECT_BYTES_MIN.ilog2() as usize
    }

    fn decode(log: u64) -> Option<Self> {
        let class = Class(u8::try_from(log).ok()?);
        (OBJECT_BYTES_MIN.ilog2()..=OBJECT_BYTES_MAX.ilog2()).contains(&u32::from(class.0)).then_some(class)
    }
}

/// Where the objects of a chunk lie: their words first, then the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectLayout {
    /// Objects in the chunk, and words in front of them.
    pub count: u32,
    /// Offset of the first object within the chunk.
    pub objects_at: u64,
    /// Bytes of each object.
    pub object_bytes: u64,
}

impl ObjectLayout {
    /// Offset of an object's word within the chunk.
    #[must_use]
    pub fn word_at(&self, index: u32) -> u64 {
        debug_assert!(index < self.count, "object {index} of {}", self.count);
        u64::from(index) * WORD
    }

    /// Offset of an object within the chunk.
    #[must_use]
    pub fn object_at(&self, index: u32) -> u64 {
        debug_assert!(index < self.count, "object {index} of {}", self.count);
        self.objects_at + u64::from(index) * self.object_bytes
    }

    /// The object that begins at an offset within the chunk; `None` if none begins there.
    #[must_use]
    pub fn index_of(&self, within: u64) -> Option<u32> {
        let behind = within.checked_sub(self.objects_at)?;
        let index = behind / self.object_bytes;
        (behind.is_multiple_of(self.object_bytes) && index < u64::from(self.count)).then_some(index as u32)
    }
}

/// The meaning of a word of the table or of a chunk of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerWord {
    /// Free, or within a zone.
    Free,
    /// The first chunk of a zone.
    Zone {
        /// Chunks in the zone, at least 1.
        chunks: u16,
        /// Number of the owner.
        owner: u32,
    },
    /// A chunk of objects.
    Objects {
        /// Class of the objects.
        class: Class,
    },
    /// An object that is in use.
    Object {
        /// Class of the object, that of its chunk.
        class: Class,
        /// Number of the owner.
        owner: u32,
    },
}

impl OwnerWord {
    /// The word as it is stored at offset `place` of region `region_id`.
    #[must_use]
    pub fn encode(self, place: u64, region_id: u128) -> u64 {
        let (kind, length, owner) = match self {
            OwnerWord::Free => return 0,
            OwnerWord::Zone { chunks, owner } => (KIND_ZONE, u64::from(chunks), owner),
            OwnerWord::Objects { class } => (KIND_OBJECTS, u64::from(class.0), 0),
            OwnerWord::Object { class, owner } => (KIND_OBJECT, u64::from(class.0), owner),
        };
        let fields = u64::from(owner) << 32 | length << 16 | kind << CHECK_BITS;
        fields | check(fields, place, region_id)
    }

    /// The meaning of a word at offset `place` of region `region_id`.
    ///
    /// # Errors
    /// `Corrupt` if it is not a word that belongs there.
    pub fn decode(word: u64, place: u64, region_id: u128) -> Result<Self> {
        if word == 0 {
            return Ok(OwnerWord::Free);
        }
        let fields = word & !((1 << CHECK_BITS) - 1);
        let (owner, length) = ((word >> 32) as u32, word >> 16 & 0xffff);
        let is_sound =
            word == fields | check(fields, place, region_id) || terrane_base::planted!(IgnoreWordCheck);
        let meaning = match (word >> CHECK_BITS) & 0xf {
            KIND_ZONE if length > 0 => Some(OwnerWord::Zone { chunks: length as u16, owner }),
            KIND_OBJECTS if owner == 0 => Class::decode(length).map(|class| OwnerWord::Objects { class }),
            KIND_OBJECT => Class::decode(length).map(|class| OwnerWord::Object { class, owner }),
            _ => None,
        };
        meaning.filter(|_| is_sound).ok_or_else(|| {
            Error::corrupt(format!("{word:#018x} is not an owner word for offset {place} of this region"))
        })
    }
}

/// The check bits of a word: they differ from place to place and from region to region, so that a word does
/// not pass elsewhere.
fn check(fields: u64, place: u64, region_id: u128) -> u64 {
    let region = region_id as u64 ^ (region_id >> 64) as u64;
    rng::mix(fields ^ rng::mix(place ^ rng::mix(region))) >> (64 - CHECK_BITS)
}

/// Offset of a root word.
///
/// # Errors
/// `Invalid` if there is no such root word.
pub fn root_at(root: u32) -> Result<u64> {
    if root < ROOTS {
        Ok(ROOTS_AT + u64::from(root) * ROOT_STRIDE)
    } else {
        Err(Error::invalid(format!("root word {root}: there are {ROOTS}, from 0")))
    }
}

impl Superblock {
    /// The header as it is stored at the start of the region.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.region_id.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.geometry.region_bytes.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.geometry.chunk_bytes.to_le_bytes());
        let sum = header_sum(&bytes);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The header of a region of `region_bytes`.
    ///
    /// # Errors
    /// `NotFound` if the magic is zeros, as in a region that was never made ready; `Corrupt` if they are not
    /// a header, or one of a region of another length; `Invalid` if the version is not known.
    pub fn decode(bytes: &[u8; HEADER_BYTES], region_bytes: u64) -> Result<Self> {
        let superblock = Superblock::decode_of_any(bytes)?;
        let stored = superblock.geometry.region_bytes;
        if stored != region_bytes {
            return Err(Error::corrupt(format!(
                "the region was made with {stored} bytes and has {region_bytes}: it is cut, or a copy that does not fit; copy it whole, or repair the database"
            )));
        }
        Ok(superblock)
    }

    /// The header of a region whatever its memory has left of it: for a repair.
    ///
    /// # Errors
    /// As [`Superblock::decode`], but for the length.
    pub fn decode_of_any(bytes: &[u8; HEADER_BYTES]) -> Result<Self> {
        if bytes[..MAGIC.len()].iter().all(|byte| *byte == 0) {
            let message = "the region has no superblock: it was never made ready for use";
            return Err(Error::new(terrane_base::Kind::NotFound, message));
        }
        let mut fields = Fields::new("the superblock", bytes);
        if fields.take(8)? != MAGIC {
            return Err(Error::corrupt("the region does not begin with a superblock"));
        }
        let version = fields.u32()?;
        let sum = fields.u32()?;
        if sum != header_sum(bytes) {
            return Err(Error::corrupt("the superblock has a wrong checksum"));
        }
        if version != VERSION {
            let why = format!(
                "the region has format version {version}, and this version of Terrane knows {VERSION}: open it with the version that made it"
            );
            return Err(Error::invalid(why));
        }
        let region_id = u128::from(fields.u64()?) | u128::from(fields.u64()?) << 64;
        let geometry = Geometry::new(fields.u64()?, fields.u64()?)
            .map_err(|error| error.with_kind(terrane_base::Kind::Corrupt).context("the superblock"))?;
        Ok(Superblock { region_id, geometry })
    }
}

/// The checksum of a header: over all of it but the checksum.
fn header_sum(bytes: &[u8; HEADER_BYTES]) -> u32 {
    crc32c(crc32c(SEED, &bytes[..12]), &bytes[16..])
}
