//! One open data file: its number, its name, and whether it was written since the last sync.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use terrane_base::sync::atomic::{AtomicBool, Ordering};

use terrane_base::Result;
use terrane_device::{Announced, Disk, File, FileRead, PendingRead};

use crate::slots::FILE_SLOTS;
use crate::store::{ReadRequest, SLOT_BYTES};

/// Ending of the names of data files.
const SUFFIX: &str = ".ext";
/// Digits of the number in a name, at least.
const DIGITS: usize = 6;

#[derive(Debug)]
pub(crate) struct DataFile {
    file: Arc<dyn File>,
    /// Set after a write has ended, cleared before a sync begins: a sync that clears it covers the write.
    dirty: AtomicBool,
}

impl DataFile {
    pub(crate) fn new(file: Arc<dyn File>) -> Self {
        DataFile { file, dirty: AtomicBool::new(false) }
    }

    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, buf)
    }

    /// Starts a read, or announces it to a device that cannot run it concurrently.
    pub(crate) fn begin_read(
        &self,
        disk: &dyn Disk,
        offset: u64,
        len: usize,
        memory: Vec<u8>,
        may_use_ring: bool,
    ) -> Box<dyn PendingRead> {
        if may_use_ring {
            disk.begin_read(&self.file, offset, len, memory)
        } else {
            Box::new(Announced::new(self.file.clone(), offset, len, memory))
        }
    }

    /// Returns true if the file has another name; then no store may write to it.
    pub(crate) fn is_shared(&self) -> Result<bool> {
        Ok(self.file.names()? > 1)
    }

    /// Copies slots to the same offset of another file.
    pub(crate) fn copy_to(&self, to: &dyn File, from: u32, until: u32) -> Result<u64> {
        debug_assert!(from < until, "an extent has at least one slot: {from}..{until}");
        // The last extent of a file need not fill its slots.
        let end = slot_offset(until).min(self.file.len()?);
        let len = end.saturating_sub(slot_offset(from));
        self.file.copy_to(to, slot_offset(from), len)?;
        Ok(len)
    }

    pub(crate) fn prefetch(&self, offset: u64, len: u64) {
        self.file.prefetch(offset, len);
    }

    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        debug_assert!(offset.is_multiple_of(SLOT_BYTES as u64), "an extent begins with a slot: {offset}");
        let result = self.file.write_at(offset, bytes);
        // Release: pairs with the Acquire in `sync`. Also after a failure, because a part may be written.
        self.dirty.store(true, Ordering::Release);
        result
    }

    /// Reserves space for the slots from `from` to `to`.
    pub(crate) fn hold(&self, from: u32, to: u32) -> Result<()> {
        self.hold_bytes(slot_offset(from), slot_offset(to))
    }

    /// Reserves space for the bytes from `from` to `to`.
    pub(crate) fn hold_bytes(&self, from: u64, to: u64) -> Result<()> {
        assert!(from <= to, "bytes {from}..{to} are held");
        let result = self.file.allocate(from, to - from);
        self.dirty.store(true, Ordering::Release);
        result
    }

    /// Makes the file longer without space for it.
    pub(crate) fn extend(&self, slots: u32) -> Result<()> {
        assert!(slots <= FILE_SLOTS, "a file of {slots} slots: the next opening would refuse it");
        let result = self.file.set_len(slot_offset(slots));
        self.dirty.store(true, Ordering::Release);
        result
    }

    pub(crate) fn punch(&self, from: u32, to: u32) -> Result<()> {
        assert!(from < to, "slots {from}..{to} are punched");
        self.punch_bytes(slot_offset(from), slot_offset(to))
    }

    /// Gives the space of the bytes from `from` to `to` back to the device.
    pub(crate) fn punch_bytes(&self, from: u64, to: u64) -> Result<()> {
        debug_assert!(from < to, "bytes {from}..{to} are punched");
        self.file.punch(from, to - from)
    }

    pub(crate) fn shrink(&self, slots: u32) -> Result<()> {
        assert!(slots <= FILE_SLOTS, "a file of {slots} slots: the next opening would refuse it");
        self.file.set_len(slot_offset(slots))
    }

    /// Makes the file durable if it was written since the last time.
    pub(crate) fn sync(&self) -> Result<()> {
        // Acquire: pairs with the Release in `write`.
        if self.dirty.swap(false, Ordering::Acquire) { self.file.sync() } else { Ok(()) }
    }

    /// Whole slots in the file.
    pub(crate) fn slots(&self) -> Result<u64> {
        Ok(self.file.len()? / SLOT_BYTES as u64)
    }

    /// Truncates the part after the last whole slot, which a growth left at a power cut; returns the number
    /// of bytes. Requires: no thread grows the file.
    pub(crate) fn cut_tail(&self) -> Result<u64> {
        let len = self.file.len()?;
        let tail = len % SLOT_BYTES as u64;
        if tail > 0 {
            let slots = (len / SLOT_BYTES as u64) as u32;
            assert!(slot_offset(slots) == len - tail, "a file of {len} bytes would lose whole slots");
            self.shrink(slots)?;
        }
        Ok(tail)
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }
}

/// Makes the reads as one batch of `disk`, each in its file; a read whose file is missing gets that error.
pub(crate) fn read_batch(disk: &dyn Disk, files: &[Result<Arc<DataFile>>], reads: &mut [ReadRequest<'_>]) {
    assert_eq!(files.len(), reads.len(), "a file for each read");
    let mut begun: Vec<FileRead<'_>> = Vec::with_capacity(reads.len());
    let mut results = Vec::with_capacity(reads.len());
    for (ReadRequest { id, offset, buf, result }, file) in reads.iter_mut().zip(files) {
        match file {
            Ok(file) => {
                begun.push(FileRead::new(&*file.file, slot_offset(id.slot) + u64::from(*offset), buf));
                results.push(result);
            }
            Err(error) => *result = Err(error.clone()),
        }
    }
    debug_assert_eq!(results.len(), begun.len(), "a place for the result of each read");
    disk.read_batch(&mut begun);
    for (result, read) in results.into_iter().zip(begun) {
        *result = read.result;
    }
}

/// Offset of a slot in its file.
pub(crate) fn slot_offset(slot: u32) -> u64 {
    u64::from(slot) * SLOT_BYTES as u64
}

/// The name of a data file: `000001.ext`.
pub(crate) fn name(number: u32) -> String {
    format!("{number:0DIGITS$}{SUFFIX}")
}

/// The data files in the directory of a store, in the order of their numbers: for programs that look for
/// extents without a manifest.
///
/// # Errors
/// `NotFound` if there is no such directory; `Io`.
pub fn data_files(disk: &dyn Disk, dir: &Path) -> Result<Vec<(u32, PathBuf)>> {
    let names = disk.list(dir)?;
    let mut files: Vec<_> =
        names.iter().filter_map(|file| Some((parse_name(file)?, dir.join(file)))).collect();
    files.sort_unstable_by_key(|(number, _)| *number);
    Ok(files)
}

/// The number in the name of a data file; `None` for every other name.
pub(crate) fn parse_name(file_name: &str) -> Option<u32> {
    let number = file_name.strip_suffix(SUFFIX)?.parse().ok()?;
    (number > 0 && name(number) == file_name).then_some(number)
}
