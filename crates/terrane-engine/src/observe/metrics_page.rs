//! The file of the page of metrics that this process shares with others, and the thread that writes it.
//!
//! The thread waits, makes a page and writes it over the one before, in place and without a sync: the page is
//! worth nothing once the process has died. Bytes beyond the end of the file are appended before the rest is
//! written over, so a device without room leaves the page before as it was. An opening for writing removes
//! the page of a process that died. No reader and no writer of the database does anything for it. The first
//! page comes one interval after the opening, so a shorter opening leaves the device alone. The file is
//! opened again each time: if it is removed meanwhile, the next page is in a new one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::{Error, Kind, Result};
use terrane_device::{Disk, File, OpenMode};
use terrane_format::metrics_page::MAGIC;
use terrane_levels::directory::METRICS;

/// The file of the page.
pub(crate) struct PageFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
}

impl PageFile {
    /// The file of the database in `dir`; it need not exist.
    pub(crate) fn of(disk: &Arc<dyn Disk>, dir: &Path) -> PageFile {
        PageFile { disk: disk.clone(), path: dir.join(METRICS) }
    }

    /// Writes a page over the one before.
    ///
    /// # Errors
    /// `Full`, `Io`: the page before is whole unless the device failed in the middle of it. `Invalid` if
    /// something else has the name.
    pub(crate) fn write(&self, page: &[u8]) -> Result<()> {
        match self.open()? {
            Some(file) => write_over(&*file, page),
            None => self.create(page),
        }
    }

    /// Writes a page where no file is yet; on an error leaves no part of one.
    fn create(&self, page: &[u8]) -> Result<()> {
        debug_assert!(page.starts_with(&MAGIC), "no reader would know the page");
        let file = self.disk.open(&self.path, OpenMode::Create, false)?;
        file.write_at(0, page).inspect_err(|_| {
            // An empty file has no page for a reader, so nothing more is lost if it stays.
            let _ = self.disk.remove(&self.path);
        })
    }

    /// Removes it; fine if it is not there.
    ///
    /// # Errors
    /// As [`PageFile::write`].
    pub(crate) fn remove(&self) -> Result<()> {
        match self.open()? {
            Some(_) => self.disk.remove(&self.path),
            None => Ok(()),
        }
    }

    /// The file, if it is there. A database may be made beside files of other programs, which stay as they
    /// are.
    fn open(&self) -> Result<Option<Arc<dyn File>>> {
        let file = match self.disk.open(&self.path, OpenMode::Write, false) {
            Err(error) if error.kind() == Kind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut head = [0; MAGIC.len()];
        let len = file.len()?.min(head.len() as u64) as usize;
        file.read_at(0, &mut head[..len])?;
        // A power cut may leave zeros.
        let is_page = head[..len] == MAGIC[..len] || head == [0; MAGIC.len()];
        if is_page {
            return Ok(Some(file));
        }
        let path = self.path.display();
        Err(Error::invalid(format!("{path} is a file of another program: no metrics are shared there")))
    }
}

/// Writes a page over the one in `file`. The bytes behind that one come first, because a full device refuses
/// them.
fn write_over(file: &dyn File, page: &[u8]) -> Result<()> {
    let len = file.len()?.min(page.len() as u64);
    let (over, behind) = page.split_at(len as usize);
    if !behind.is_empty() {
        file.write_at(len, behind)?;
    }
    file.write_at(0, over)
}

#[cfg(test)]
mod tests {
    use terrane_device::{Call, Failure, Fault, FaultyDisk, MemDisk};
    use terrane_levels::directory::prepare;

    use super::*;

    #[test]
    fn a_failed_write_leaves_the_next_one_free_to_succeed() {
        let disk = Arc::new(FaultyDisk::new(Arc::new(MemDisk::new())));
        let dir = Path::new("/db");
        prepare(&*disk, dir).expect("a device without faults");
        let shared: Arc<dyn Disk> = disk.clone();
        let file = PageFile::of(&shared, dir);
        file.remove().expect("there is none");
        disk.fail(Fault::new(Call::Create, Failure::Broken));
        file.write(b"terrpage one").expect_err("the file cannot be made");
        disk.fail(Fault::new(Call::Write, Failure::Full));
        assert_eq!(file.write(b"terrpage two").map_err(|error| error.kind()), Err(Kind::Full));
        file.write(b"terrpage three").expect("there is room again");
        file.write(b"terrpage four").expect("the file is there");
        assert_eq!(bytes_of(&*shared, dir), b"terrpage foure", "a page is written over the one before");
        file.remove().expect("it is there");
        assert!(!shared.exists(&dir.join(METRICS)).expect("a device without faults"));
    }

    /// A full device accepts bytes that replace others, and refuses an append.
    #[test]
    fn a_longer_page_that_finds_no_room_leaves_the_page_before_whole() {
        let memory = MemDisk::new();
        let disk: Arc<dyn Disk> = Arc::new(memory.clone());
        let dir = Path::new("/db");
        prepare(&*disk, dir).expect("a device without faults");
        let file = PageFile::of(&disk, dir);
        let (short, long) = ([b's'; 5000], [b'l'; 9000]);
        let page = |rest: &[u8]| [&b"terrpage"[..], rest].concat();
        file.write(&page(&short)).expect("there is room");
        memory.set_capacity(memory.used_bytes());
        let error = file.write(&page(&long)).map_err(|error| error.kind());
        assert_eq!(error, Err(Kind::Full));
        assert_eq!(bytes_of(&*disk, dir), page(&short));
        memory.set_capacity(u64::MAX);
        file.write(&page(&long)).expect("there is room again");
        assert_eq!(bytes_of(&*disk, dir), page(&long));
        // Where there is no page, no part of one is left.
        file.remove().expect("it is there");
        memory.set_capacity(memory.used_bytes());
        let error = file.write(&page(&long)).map_err(|error| error.kind());
        assert_eq!(error, Err(Kind::Full));
        assert!(!disk.exists(&dir.join(METRICS)).expect("a device without faults"));
    }

    #[test]
    fn a_file_of_another_program_stays_as_it_is() {
        let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
        let dir = Path::new("/db");
        prepare(&*disk, dir).expect("a device without faults");
        let other = disk.open(&dir.join(METRICS), OpenMode::Create, false).expect("it is new");
        other.write_at(0, b"cpu 12").expect("there is room");
        let file = PageFile::of(&disk, dir);
        assert_eq!(file.write(b"terrpage").map_err(|error| error.kind()), Err(Kind::Invalid));
        assert_eq!(file.remove().map_err(|error| error.kind()), Err(Kind::Invalid));
        assert_eq!(bytes_of(&*disk, dir), b"cpu 12");
    }

    fn bytes_of(disk: &dyn Disk, dir: &Path) -> Vec<u8> {
        let file = disk.open(&dir.join(METRICS), OpenMode::Read, false).expect("it was written");
        let mut bytes = vec![0; file.len().expect("a device without faults") as usize];
        file.read_at(0, &mut bytes).expect("it is whole");
        bytes
    }
}
