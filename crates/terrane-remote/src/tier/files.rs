//! The files of a tier: `frames`, in which slot follows slot, and `headers`, which has a copy of the header
//! of each, so that an opening reads a thousandth of the bytes. Nothing is synced: a frame is checked when it
//! is read, by the header and the checksum that lie in it, so it does not matter which writes a crash leaves.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::{Error, Kind, Result};
use terrane_device::{Disk, DiskLock, File, OpenMode};

use super::header::{self, BYTES_PER_FRAME, FRAME_BYTES, HEAD_BYTES, HEADER_BYTES, Header};
use super::index::StoredFrame;

const LOCK: &str = "LOCK";
const FRAMES: &str = "frames";
const HEADERS: &str = "headers";
/// Bytes that belong to no frame: the head of `headers`, and the lock file.
const OTHER_BYTES: u64 = HEAD_BYTES as u64 + 4096;
/// Bytes that one read of an opening reads.
const READ_BYTES: usize = 1 << 20;

/// The slots of a tier of so many bytes.
pub(super) fn slots(bytes: u64) -> u32 {
    u32::try_from(bytes.saturating_sub(OTHER_BYTES) / BYTES_PER_FRAME).unwrap_or(u32::MAX)
}

/// Holds the directory of a tier against other processes.
#[derive(Debug)]
pub(super) struct Held {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    _lock: Box<dyn DiskLock>,
}

impl Held {
    /// Takes the directory; makes it if it does not exist.
    ///
    /// # Errors
    /// `Busy` if another process has it; `Invalid` if it has files of something else; `Io`, `Full`.
    pub(super) fn take(disk: Arc<dyn Disk>, dir: &Path) -> Result<Held> {
        disk.create_dir(dir)?;
        check_names(&*disk, dir)?;
        let lock = disk.lock(&dir.join(LOCK)).map_err(|error| match error.kind() {
            Kind::Busy => error.context(
                "the directory of the cache is in use; give each process a [cache] directory of its own",
            ),
            _ => error,
        })?;
        Ok(Held { disk, dir: dir.to_owned(), _lock: lock })
    }
}

/// Refuses a directory that has anything else: the files of a tier are overwritten.
pub(super) fn check_names(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let names = disk.list(dir)?;
    match names.iter().find(|name| ![LOCK, FRAMES, HEADERS].contains(&name.as_str())) {
        None => Ok(()),
        Some(other) => {
            let dir = dir.display();
            let message =
                format!("{dir} has {other:?}, which is not a cache file: name a directory of its own");
            Err(Error::invalid(message))
        }
    }
}

/// Tries a directory that exists without changing it, and says what was found.
///
/// # Errors
/// `Invalid` if it has files of something else; `Full` if there is no room; `Io`.
pub(super) fn try_directory(disk: &dyn Disk, dir: &Path, bytes: u64) -> Result<String> {
    check_names(disk, dir)?;
    let len = |name: &str| -> Result<u64> {
        let path = dir.join(name);
        if disk.exists(&path)? { disk.open(&path, OpenMode::Read, false)?.len() } else { Ok(0) }
    };
    let has = len(FRAMES)? + len(HEADERS)?;
    let (missing, free) = (bytes.saturating_sub(has), disk.free_bytes(dir)?);
    if missing > free {
        let message = format!(
            "{}: {bytes} bytes are wanted, {has} are there and {free} free; free space, or lower [cache] bytes",
            dir.display()
        );
        return Err(Error::new(Kind::Full, message));
    }
    let use_of = match disk.lock_shared(&dir.join(LOCK)) {
        Err(error) if error.kind() == Kind::Busy => "a process has it open",
        Err(error) => return Err(error),
        Ok(_) => "no process has it open",
    };
    Ok(format!("{} MiB are there, {} MiB free; {use_of}", has >> 20, free >> 20))
}

/// The open files.
#[derive(Debug)]
pub(super) struct Files {
    frames: Arc<dyn File>,
    headers: Arc<dyn File>,
    _held: Held,
}

impl Files {
    /// Opens the files with room for so many slots, and reads the headers.
    ///
    /// # Errors
    /// `Invalid` if one of them is a file of something else; `Full`, `Io`.
    pub(super) fn open(held: Held, slots: u32) -> Result<(Files, Vec<StoredFrame>)> {
        let headers = open_or_create(&*held.disk, &held.dir.join(HEADERS))?;
        let frames = open_or_create(&*held.disk, &held.dir.join(FRAMES))?;
        let len = headers.len()?;
        let mut head = vec![0; len.min(HEAD_BYTES as u64) as usize];
        headers.read_at(0, &mut head)?;
        let is_own = header::check_head(&head).map_err(|error| {
            error.context(format!("{}: name a directory of its own for the cache", headers.path().display()))
        })?;
        if !is_own {
            headers.set_len(0)?;
            headers.write_at(0, &header::head())?;
        }
        resize(&*headers, HEAD_BYTES as u64 + u64::from(slots) * HEADER_BYTES as u64)?;
        resize(&*frames, u64::from(slots) * FRAME_BYTES)?;
        let found = read_headers(&*headers, slots)?;
        Ok((Files { frames, headers, _held: held }, found))
    }

    /// Reads the bytes of a frame from `start` on; `None` if the slot has something else.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn read(&self, place: &StoredFrame) -> Result<Option<Vec<u8>>> {
        let mut frame = vec![0; HEADER_BYTES + place.header.len as usize];
        match self.frames.read_at(u64::from(place.slot) * FRAME_BYTES, &mut frame) {
            // The file was cut.
            Err(error) if error.kind() == Kind::Corrupt => Ok(None),
            Err(error) => Err(error),
            Ok(()) if place.header.payload_of(&frame).is_none() => Ok(None),
            Ok(()) => Ok(Some(frame)),
        }
    }

    /// Writes a frame and the copy of its header.
    ///
    /// # Errors
    /// `Full`, `Io`.
    pub(super) fn write(&self, slot: u32, header: &Header, payload: &[u8]) -> Result<()> {
        let encoded = header.encode(payload);
        let mut frame = Vec::with_capacity(HEADER_BYTES + payload.len());
        frame.extend_from_slice(&encoded);
        frame.extend_from_slice(payload);
        self.frames.write_at(u64::from(slot) * FRAME_BYTES, &frame)?;
        self.headers.write_at(HEAD_BYTES as u64 + u64::from(slot) * HEADER_BYTES as u64, &encoded)
    }
}

fn open_or_create(disk: &dyn Disk, path: &Path) -> Result<Arc<dyn File>> {
    let mode = if disk.exists(path)? { OpenMode::Write } else { OpenMode::Create };
    disk.open(path, mode, false)
}

/// Gives the file this length, all of which is allocated.
fn resize(file: &dyn File, len: u64) -> Result<()> {
    if file.len()? > len {
        return file.set_len(len);
    }
    file.allocate(0, len)
}

fn read_headers(file: &dyn File, slots: u32) -> Result<Vec<StoredFrame>> {
    let (mut found, mut slot) = (Vec::new(), 0);
    while slot < slots {
        let count = (slots - slot).min((READ_BYTES / HEADER_BYTES) as u32);
        let mut bytes = vec![0; count as usize * HEADER_BYTES];
        file.read_at(HEAD_BYTES as u64 + u64::from(slot) * HEADER_BYTES as u64, &mut bytes)?;
        let headers = bytes.chunks_exact(HEADER_BYTES).zip(slot..);
        found.extend(
            headers.filter_map(|(bytes, slot)| Some(StoredFrame { slot, header: Header::decode(bytes)?.0 })),
        );
        slot += count;
    }
    Ok(found)
}
