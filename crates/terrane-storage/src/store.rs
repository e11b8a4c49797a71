//! The trait every store of extents offers.

use std::fmt::Debug;
use std::path::Path;

use terrane_base::{Error, ExtentId, Result};
use terrane_device::{PendingRead, ReadBytes};

/// Bytes of a slot, the unit in which space is given out. A plain extent takes one slot; one that holds a value
/// longer than a slot takes several, side by side.
pub const SLOT_BYTES: usize = 2 << 20;

/// Most slots of one extent.
pub const EXTENT_SLOTS_MAX: u32 = 512;

/// How much space a store uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreUsage {
    /// Bytes of all data files: `live_bytes + free_bytes + punched_bytes + sealed_bytes`.
    pub file_bytes: u64,
    /// Bytes of the slots that belong to extents.
    pub live_bytes: u64,
    /// Bytes of free slots that still take space on the device, ready for reuse.
    pub free_bytes: u64,
    /// Bytes of free slots whose space went back to the device.
    pub punched_bytes: u64,
    /// Bytes of free slots that are not used, because their data file has another name: a checkpoint shares it.
    pub sealed_bytes: u64,
    /// Data files.
    pub files: u32,
}

/// What [`Store::copy_to`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCopy {
    /// Data files that got another name.
    pub files_linked: u64,
    /// Bytes of extents that were copied, because linking was not possible.
    pub bytes_copied: u64,
}

/// One read of [`Store::read_batch`].
#[derive(Debug)]
pub struct ReadRequest<'b> {
    /// The extent.
    pub id: ExtentId,
    /// Its first byte to read.
    pub offset: u32,
    /// What is to be filled; undefined after a failure.
    pub buf: &'b mut [u8],
    /// How it went, once the batch has been read.
    pub result: Result<()>,
}

impl<'b> ReadRequest<'b> {
    /// Fills `buf` with the bytes from `offset` of extent `id`.
    pub fn new(id: ExtentId, offset: u32, buf: &'b mut [u8]) -> Self {
        ReadRequest { id, offset, buf, result: Ok(()) }
    }
}

/// A read that is not pending any more.
#[derive(Debug)]
struct Whole(ReadBytes);

impl PendingRead for Whole {
    fn finish(self: Box<Self>) -> Result<ReadBytes> {
        Ok(self.0)
    }
}

/// Owns extents: gives out space, stores their bytes and reads them back.
///
/// What an implementer guarantees:
/// 1. An id that [`Store::allocate`] returned is not returned again before [`Store::free`] or a restart.
/// 2. What was written is readable at once, and durable after [`Store::sync`] returned without error.
/// 3. After a failed [`Store::sync`] every write is refused as `Poisoned`; reads go on.
/// 4. Reads wait for no writer, and [`Store::free`] for no device: it may be called from any thread.
/// 5. Errors name the file, and the offset where there is one.
pub trait Store: Send + Sync + Debug {
    /// Reserves `slots` (1 to [`EXTENT_SLOTS_MAX`]) contiguous slots for a new extent, with real space, so that
    /// writing it cannot run out of space. Its bytes are undefined until written.
    ///
    /// # Errors
    /// `Full`, naming the directory and the bytes wanted; `Invalid` if `slots` is out of range, the store is
    /// read-only or not restored yet; `Poisoned`, `Io`.
    fn allocate(&self, slots: u32) -> Result<ExtentId>;

    /// Writes `bytes` from the extent's first byte. Requires: they fit its slots.
    ///
    /// # Errors
    /// `Invalid` if the extent is not allocated that far or the store is read-only; `Full`, `Poisoned`, `Io`.
    fn write(&self, id: ExtentId, bytes: &[u8]) -> Result<()>;

    /// Makes everything written so far durable, directory entries of new data files too.
    ///
    /// # Errors
    /// `Io`, and `Poisoned` from then on; `Invalid` if the store is read-only.
    fn sync(&self) -> Result<()>;

    /// Fills `buf` with the bytes from `offset` of the extent.
    ///
    /// # Errors
    /// `Corrupt` if the data file is missing or ends before; `Io`.
    fn read(&self, id: ExtentId, offset: u32, buf: &mut [u8]) -> Result<()>;

    /// Makes several reads, in any order and as many at once as the device takes. Each succeeds or fails by itself
    /// and as [`Store::read`] would; returns when all have ended. For what is scattered: a range is one read.
    fn read_batch(&self, reads: &mut [ReadRequest<'_>]) {
        for ReadRequest { id, offset, buf, result } in reads {
            *result = self.read(*id, *offset, buf);
        }
    }

    /// Begins to read `len` bytes from `offset` of the extent while the caller goes on. `memory` is used for them if
    /// it is long enough.
    ///
    /// # Errors
    /// As [`Store::read`]; most show when the bytes are waited for.
    fn begin_read(
        &self,
        id: ExtentId,
        offset: u32,
        len: usize,
        mut memory: Vec<u8>,
    ) -> Result<Box<dyn PendingRead>> {
        memory.resize(len.max(memory.len()), 0);
        self.read(id, offset, &mut memory[..len])?;
        Ok(Box::new(Whole(ReadBytes::new(memory, 0, len))))
    }

    /// Hints that a range of the extent will be read soon.
    fn prefetch(&self, id: ExtentId, offset: u32, len: u32);

    /// Gives an extent's slots back; they may be reused at once. Requires: no durable manifest names the extent
    /// and nobody reads it.
    ///
    /// # Errors
    /// `Invalid` if these slots are not allocated (nothing changes then), or the store is read-only.
    fn free(&self, id: ExtentId, slots: u32) -> Result<()>;

    /// From now on what is freed stays as it is and is not reused, until as many [`Store::release`] were called: so that
    /// extents can be copied while they leave the database.
    fn hold(&self);

    /// Ends a [`Store::hold`]; with the last one, what was freed meanwhile is free.
    fn release(&self);

    /// Makes, in the directory `dir` of the same device, which exists and is empty, the files of a store that holds
    /// exactly the extents `live`: (id, slots), under the same ids. Durable on return but for the entry of `dir` itself.
    ///
    /// Where the device links files no byte is copied; the two stores then share files, and neither writes to a file
    /// while the other has it, so that free slots in it are not reused as long. Requires: a [`Store::hold`] that began
    /// before `live` was learned.
    ///
    /// # Errors
    /// `Invalid` if this store has no files of its own; `Full`, `Io`. What was made so far stays there, for the caller to
    /// remove.
    fn copy_to(&self, dir: &Path, live: &[(ExtentId, u32)]) -> Result<StoreCopy> {
        let _ = (dir, live);
        Err(Error::invalid("this store has no files that could be copied"))
    }

    /// Takes in a file whose extents lie in slots as in a data file, without a copy: it gets another name here, and neither
    /// side writes to it while both names are there. `extents` are (first slot, slots). Returns the number of the file, by
    /// which its extents are named from now on; they are allocated, and durable after the next [`Store::sync`].
    ///
    /// `None`, and nothing happened, if that is not possible here: the extents are to be written instead.
    ///
    /// # Errors
    /// `Corrupt` if the file is shorter than its extents; `Full`, `Poisoned`, `Io`, `Invalid` if the store is read-only.
    /// Nothing is left of it then, or what the next opening finds free.
    fn adopt(&self, path: &Path, extents: &[(u32, u32)]) -> Result<Option<u32>> {
        let _ = (path, extents);
        Ok(None)
    }

    /// Tells the store, once and first, which extents exist: (id, slots). All other space is free.
    ///
    /// # Errors
    /// `Corrupt` if extents overlap or lie outside the data files (nothing changes then); `Invalid` if the
    /// store was restored or written to before.
    fn restore(&self, live: &mut dyn Iterator<Item = (ExtentId, u32)>) -> Result<()>;

    /// Gives free space beyond a reserve back to the device; returns how many bytes. Called by
    /// [`Store::sync`] too; call it when many extents were freed and nothing will be written soon.
    ///
    /// # Errors
    /// `Poisoned`, `Io`; the space stays free then and is tried again later.
    fn reclaim(&self) -> Result<u64>;

    /// As [`Store::reclaim`], the reserve too: for a store that rests. The next extents find space more slowly.
    ///
    /// # Errors
    /// As [`Store::reclaim`].
    fn reclaim_all(&self) -> Result<u64> {
        self.reclaim()
    }

    /// How much space is used.
    fn usage(&self) -> StoreUsage;

    /// The error to tell where something of the extent could not be read or is not what it should be: a store whose extents
    /// may vanish under their reader says so instead.
    fn explain(&self, id: ExtentId, error: Error) -> Error {
        let _ = id;
        error
    }

    /// Where a byte of an extent lies, for messages: the file's path and the offset in it.
    fn place(&self, id: ExtentId, offset: u32) -> (String, u64);
}
