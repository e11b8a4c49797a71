//! Objects: pieces of chunks that hold one size.
//!
//! A pool has the free objects of one class, in lists that threads usually do not share; a thread whose list
//! is empty looks into the others and then takes a chunk. A chunk of objects goes back to the free chunks
//! when an opening finds it without any object in use.

use terrane_base::sync::{Mutex, thread_number};
use terrane_base::{Error, Result};
use terrane_device::pm::PmRegion;
use terrane_format::pmem_region::{Class, ObjectLayout, OwnerWord};

use super::{Halloc, Owner, PLACE, not_in_use};

/// Lists of free objects of a class.
const LISTS: usize = 8;

/// A piece of a chunk that an owner has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Object {
    offset: u64,
    class: Class,
    owner: Owner,
}

impl Object {
    /// Offset of its first byte in the region, a multiple of 64; it stands for the object in persistent
    /// memory.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Its bytes: those that were asked for, rounded up to a power of two.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.class.bytes()
    }

    /// Its owner.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.owner
    }

    fn word(&self) -> OwnerWord {
        OwnerWord::Object { class: self.class, owner: self.owner.0 }
    }
}

/// The free objects of one class, by their offsets.
#[derive(Debug)]
pub(super) struct ObjectPool {
    lists: [Mutex<Vec<u64>>; LISTS],
}

impl Default for ObjectPool {
    fn default() -> Self {
        ObjectPool { lists: std::array::from_fn(|_| Mutex::new(Vec::new())) }
    }
}

impl ObjectPool {
    /// Takes a free object: of this thread's list, or of another one.
    fn take(&self) -> Option<u64> {
        let first = thread_number();
        (0..LISTS).find_map(|step| self.lists[(first + step) % LISTS].lock().pop())
    }

    /// Adds objects that became free to this thread's list.
    pub(super) fn give_back(&self, offsets: impl IntoIterator<Item = u64>) {
        self.lists[thread_number() % LISTS].lock().extend(offsets);
    }
}

impl<R: PmRegion> Halloc<R> {
    /// Hands out an object of at least `bytes` to an owner, durably; its content is undefined.
    ///
    /// # Errors
    /// `Invalid` if `bytes` is more than the largest class has: 64 KiB, at most a quarter of a chunk; grant a
    /// zone then. `Full` if no object and no chunk is free; any error of the region.
    pub fn allocate(&self, bytes: u64, owner: Owner) -> Result<Object> {
        let class = Class::of(bytes).and_then(|class| Some((class, self.geometry().objects(class)?)));
        let (class, layout) = class.ok_or_else(|| too_large(bytes))?;
        let offset = match self.pools[class.index()].take() {
            Some(offset) => offset,
            None => self.make_objects(class, &layout)?,
        };
        let object = Object { offset, class, owner };
        self.claim(self.object_word_at(&layout, offset)?, object.word())?;
        Ok(object)
    }

    /// Takes back an object, durably.
    ///
    /// # Errors
    /// `Invalid` if the object is not in use as it says; any error of the region.
    pub fn free_object(&self, object: Object) -> Result<()> {
        let layout = self.geometry().objects(object.class).ok_or_else(|| not_in_use(object.offset))?;
        self.change(self.object_word_at(&layout, object.offset)?, object.word(), OwnerWord::Free)?;
        self.pools[object.class.index()].give_back([object.offset]);
        Ok(())
    }

    /// The object that begins at an offset which was read from somewhere.
    ///
    /// # Errors
    /// `Corrupt` if no object in use begins there.
    pub fn object_at(&self, offset: u64) -> Result<Object> {
        let missing = || Error::corrupt("no object begins here").at(PLACE, offset);
        let chunk = self.geometry().chunk_of(offset).ok_or_else(missing)?;
        let OwnerWord::Objects { class } = self.word(self.geometry().word_at(chunk))? else {
            return Err(missing());
        };
        let layout = self.geometry().objects(class).ok_or_else(missing)?;
        let place = self.object_word_at(&layout, offset).map_err(|_| missing())?;
        match self.word(place)? {
            OwnerWord::Object { class: own, owner } if own == class => {
                Ok(Object { offset, class, owner: Owner(owner) })
            }
            _ => Err(missing()),
        }
    }

    /// Makes a free chunk one of objects; returns one of them, the others become free.
    fn make_objects(&self, class: Class, layout: &ObjectLayout) -> Result<u64> {
        let chunk = self.take(1)?;
        let start = self.geometry().chunk_at(chunk);
        self.region.stream(start, &vec![0; layout.objects_at as usize])?;
        // The words must be free for certain before the chunk is one of objects: what was there would count.
        if !terrane_base::planted!(ClaimBeforeWords) {
            self.region.fence()?;
        }
        self.claim(self.geometry().word_at(chunk), OwnerWord::Objects { class })?;
        let others = (1..layout.count).rev().map(|index| start + layout.object_at(index));
        self.pools[class.index()].give_back(others);
        Ok(start + layout.object_at(0))
    }

    /// The place of an object's word.
    fn object_word_at(&self, layout: &ObjectLayout, offset: u64) -> Result<u64> {
        let chunk = self.geometry().chunk_of(offset).ok_or_else(|| not_in_use(offset))?;
        let start = self.geometry().chunk_at(chunk);
        let index = layout.index_of(offset - start).ok_or_else(|| not_in_use(offset))?;
        Ok(start + layout.word_at(index))
    }
}

impl Object {
    pub(super) fn new(offset: u64, class: Class, owner: Owner) -> Self {
        Object { offset, class, owner }
    }
}

#[cold]
fn too_large(bytes: u64) -> Error {
    Error::invalid(format!(
        "an object of {bytes} bytes: more than the largest class has, grant a zone instead"
    ))
}
