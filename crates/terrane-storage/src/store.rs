//! The trait of every store of extents.

use std::fmt::Debug;
use std::path::Path;

use terrane_base::{Error, ExtentId, Result};
use terrane_device::{PendingRead, ReadBytes, buffer_at_least};

/// Bytes of a slot, the unit of allocation. A plain extent takes one slot; one with a value longer than a
/// slot takes several adjacent ones.
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
    /// Bytes of free slots whose space was freed on the device.
    pub punched_bytes: u64,
    /// Bytes of free slots that are not reused, because their data file has another name: a checkpoint shares
    /// it; or because it is an object of a bucket, which is never overwritten.
    pub sealed_bytes: u64,
    /// Data files.
    pub files: u32,
}

/// Counts of the reads of a store whose extents lie elsewhere, since it was opened, and the size of its
/// objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteReads {
    /// Reads that the cache on local disk, the tier, answered.
    pub tier_hits: u64,
    /// Reads that the tier did not answer.
    pub tier_misses: u64,
    /// Bytes with which the tier answered.
    pub tier_bytes_read: u64,
    /// Bytes of frames that were written to the tier.
    pub tier_bytes_written: u64,
    /// Bytes that were not written to the tier, because too many waited.
    pub tier_bytes_dropped: u64,
    /// Frames of the tier that were torn, damaged or exchanged.
    pub tier_frames_damaged: u64,
    /// Frames that left the tier for others.
    pub tier_frames_evicted: u64,
    /// Frames that the tier has now.
    pub tier_frames: u64,
    /// Reads that were asked for a second time because their answer took long.
    pub hedged: u64,
    /// Of these, reads that the second request answered.
    pub hedges_won: u64,
    /// Bytes of its own data objects now, with those of freed extents in them.
    pub object_bytes: u64,
}

/// The result of [`Store::copy_to`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCopy {
    /// Data files that were linked.
    pub files_linked: u64,
    /// Bytes of extents that were copied, because linking was not possible.
    pub bytes_copied: u64,
}

/// One read of [`Store::read_batch`].
#[derive(Debug)]
pub struct ReadRequest<'b> {
    /// The extent.
    pub id: ExtentId,
    /// Offset of the first byte to read.
    pub offset: u32,
    /// The buffer to fill; its content is undefined after a failure.
    pub buf: &'b mut [u8],
    /// The outcome, after the batch has been read.
    pub result: Result<()>,
}

impl<'b> ReadRequest<'b> {
    /// Fills `buf` with the bytes from `offset` of extent `id`.
    pub fn new(id: ExtentId, offset: u32, buf: &'b mut [u8]) -> Self {
        ReadRequest { id, offset, buf, result: Ok(()) }
    }
}

/// A read that is complete already.
#[derive(Debug)]
struct Whole(ReadBytes);

impl PendingRead for Whole {
    fn finish(self: Box<Self>) -> Result<ReadBytes> {
        Ok(self.0)
    }
}

/// Owns extents: allocates space, stores their bytes and reads them.
///
/// An implementer guarantees:
/// 1. An id that [`Store::allocate`] returned is not returned again before [`Store::free`] or a restart.
/// 2. Written bytes are readable at once, and durable after [`Store::sync`] returned without error.
/// 3. After a failed [`Store::sync`] every write is refused as `Poisoned`; reads continue.
/// 4. Reads wait for no writer, and [`Store::free`] for no device: any thread may call it.
/// 5. Errors name the file and, if there is one, the offset.
pub trait Store: Send + Sync + Debug {
    /// Reserves `slots` (1 to [`EXTENT_SLOTS_MAX`]) contiguous slots for a new extent, with real space, so
    /// that writing it cannot run out of space. Its bytes are undefined until written.
    ///
    /// # Errors
    /// `Full`, naming the directory and the bytes wanted; `Invalid` if `slots` is out of range, the store is
    /// read-only or not restored yet; `Poisoned`, `Io`.
    fn allocate(&self, slots: u32) -> Result<ExtentId>;

    /// As [`Store::allocate`], for an extent that has at most `bytes`: what its slots have beyond them need
    /// take no space.
    ///
    /// # Errors
    /// As [`Store::allocate`].
    fn allocate_for(&self, slots: u32, bytes: u64) -> Result<ExtentId> {
        let _ = bytes;
        self.allocate(slots)
    }

    /// Writes `bytes` from the extent's first byte. Requires: they fit its slots; an extent that was written
    /// before does not become longer while [`Store::reclaim_all`] runs.
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

    /// Makes several reads, in any order and as many at once as the device supports. Each succeeds or fails
    /// on its own, as [`Store::read`] would; returns when all have ended. For scattered bytes: a contiguous
    /// range is one read.
    fn read_batch(&self, reads: &mut [ReadRequest<'_>]) {
        for ReadRequest { id, offset, buf, result } in reads {
            *result = self.read(*id, *offset, buf);
        }
    }

    /// Starts to read `len` bytes from `offset` of the extent while the caller continues. `memory` is the
    /// buffer if it is long enough.
    ///
    /// # Errors
    /// As [`Store::read`]; most errors occur when the caller waits for the bytes.
    fn begin_read(
        &self,
        id: ExtentId,
        offset: u32,
        len: usize,
        memory: Vec<u8>,
    ) -> Result<Box<dyn PendingRead>> {
        let mut memory = buffer_at_least(memory, len);
        self.read(id, offset, &mut memory[..len])?;
        Ok(Box::new(Whole(ReadBytes::new(memory, 0, len))))
    }

    /// Hints that a range of the extent will be read soon.
    fn prefetch(&self, id: ExtentId, offset: u32, len: u32);

    /// Frees an extent's slots; they may be reused at once. Requires: no durable manifest names the extent
    /// and no thread reads it.
    ///
    /// # Errors
    /// `Invalid` if these slots are not allocated (nothing changes then), or the store is read-only.
    fn free(&self, id: ExtentId, slots: u32) -> Result<()>;

    /// From now on freed extents keep their bytes and are not reused, until [`Store::release`] was called as
    /// often: so that extents can be copied while they leave the database.
    fn hold(&self);

    /// Ends a [`Store::hold`]; after the last one, the extents freed meanwhile are reusable.
    fn release(&self);

    /// Creates, in the empty directory `dir` of the same device, the files of a store that holds exactly the
    /// extents `live`: (id, slots), under the same ids. Durable on return, except for the entry of `dir`
    /// itself.
    ///
    /// If the device supports links, no byte is copied. The two stores then share files, and neither writes
    /// to a file while the other uses it, so that its free slots are not reused. Requires: a [`Store::hold`]
    /// that began before `live` was determined.
    ///
    /// # Errors
    /// `Invalid` if this store has no files; `Full`, `Io`. Files created so far stay, for the caller to
    /// remove.
    fn copy_to(&self, dir: &Path, live: &[(ExtentId, u32)]) -> Result<StoreCopy> {
        let _ = (dir, live);
        Err(Error::invalid("this store has no files to copy"))
    }

    /// Adopts a file whose extents lie in slots as in a data file, without a copy: it gets another name here,
    /// and neither side writes to it while both names exist. `extents` are (first slot, slots). Returns the
    /// number of the file, by which its extents are named from now on; they are allocated, and durable after
    /// the next [`Store::sync`].
    ///
    /// `None`, without any change, if that is not possible: the extents must be written instead.
    ///
    /// # Errors
    /// `Corrupt` if the file is shorter than its extents; `Full`, `Poisoned`, `Io`, `Invalid` if the store is
    /// read-only. After an error nothing stays, or only what the next opening finds free.
    fn adopt(&self, path: &Path, extents: &[(u32, u32)]) -> Result<Option<u32>> {
        let _ = (path, extents);
        Ok(None)
    }

    /// Tells the store, once and before other calls, which extents exist: (id, slots). All other space is
    /// free.
    ///
    /// # Errors
    /// `Corrupt` if extents overlap or lie outside the data files (nothing changes then); `Invalid` if the
    /// store was restored or written to before.
    fn restore(&self, live: &mut dyn Iterator<Item = (ExtentId, u32)>) -> Result<()>;

    /// Frees space beyond a reserve on the device; returns the number of bytes. [`Store::sync`] does this
    /// too; call it when many extents were freed and little will be written.
    ///
    /// # Errors
    /// `Poisoned`, `Io`; the space stays free and is tried again later.
    fn reclaim(&self) -> Result<u64>;

    /// As [`Store::reclaim`], the reserve and what slots have behind the ends of their extents too: for a
    /// store that rests. The next extents find space more slowly.
    ///
    /// # Errors
    /// As [`Store::reclaim`].
    fn reclaim_all(&self) -> Result<u64> {
        self.reclaim()
    }

    /// How much space is used.
    fn usage(&self) -> StoreUsage;

    /// Counts of the reads of extents elsewhere; zeros if the extents lie on a device of this machine.
    fn remote_reads(&self) -> RemoteReads {
        RemoteReads::default()
    }

    /// The error to tell where something of the extent could not be read or is not what it should be: a store
    /// whose extents may vanish under their reader says so instead.
    fn explain(&self, id: ExtentId, error: Error) -> Error {
        let _ = id;
        error
    }

    /// Where a byte of an extent lies, for messages: the file's path and the offset in it.
    fn place(&self, id: ExtentId, offset: u32) -> (String, u64);
}
