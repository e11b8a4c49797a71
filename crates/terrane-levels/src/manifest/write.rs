//! Writes a manifest file: records, their durability, and rolling over to a new file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::{Error, Kind, Result};
use terrane_device::{Disk, File, OpenMode};
use terrane_format::manifest::file::{Current, FILE_HEADER_BYTES, FileHeader, file_name};
use terrane_format::manifest::record::{Link, RECORD_HEADER_BYTES, RecordHeader, RecordTag};

use super::ManifestSize;
use super::log::ManifestLog;
use super::read::Loaded;
use crate::directory::{CURRENT, CURRENT_NEW};
use crate::state::{Pieces, State};

/// Payload bytes of a snapshot record; the last operation may exceed it.
const PIECE_BYTES: usize = 256 << 10;

/// The end of the manifest file that `CURRENT` names.
#[derive(Debug)]
pub(crate) struct Writer {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    file: Arc<dyn File>,
    header: FileHeader,
    link: Link,
    /// End of the snapshot.
    snapshot_end: u64,
    /// Offset of the next record. A durable-end mark may be there.
    end: u64,
    /// Reused for later records.
    buffer: Vec<u8>,
}

impl Writer {
    /// Creates the first manifest file of a database, durable except for its directory entry.
    pub(crate) fn create(disk: Arc<dyn Disk>, dir: &Path, state: &State) -> Result<Writer> {
        let header = FileHeader::new(1, state.database, 0).of_version(state.format_version);
        let (file, link, end) = write_snapshot(&*disk, dir, header, state)?;
        let (dir, buffer) = (dir.to_path_buf(), Vec::new());
        Ok(Writer { disk, dir, file, header, link, snapshot_end: end, end, buffer })
    }

    /// Continues where a file ended: cuts a torn tail off and makes everything that was read durable.
    pub(crate) fn resume(disk: Arc<dyn Disk>, dir: &Path, loaded: &Loaded) -> Result<Writer> {
        let Loaded { file, header, link, snapshot_end, end, .. } = loaded;
        let (dir, buffer) = (dir.to_path_buf(), Vec::new());
        let (file, header, link) = (file.clone(), *header, *link);
        let writer = Writer { disk, dir, file, header, link, snapshot_end: *snapshot_end, end: *end, buffer };
        if loaded.torn > 0 {
            writer.file.set_len(*end)?;
        }
        if loaded.torn > 0 || !loaded.marked {
            writer.rewrite_last(loaded.last)?;
            writer.file.sync()?;
            writer.mark();
        }
        Ok(writer)
    }

    /// Writes the last record again. Its append may have failed in a sync, after which the system treats the
    /// pages as clean: then a sync alone would make nothing durable.
    fn rewrite_last(&self, last: u64) -> Result<()> {
        assert!(
            self.snapshot_end <= self.end && last < self.end,
            "the last record {last} lies before {}",
            self.end
        );
        let mut bytes = vec![0; (self.end - last) as usize];
        self.file.read_at(last, &mut bytes)?;
        // Checked again: a bit that was misread now must not be stored.
        let damaged = |error: Error| error.at(self.file.path().display().to_string(), last);
        let seed = self.header.checksum();
        let header = RecordHeader::decode(seed, &bytes).map_err(damaged)?;
        header.check_payload(seed, &bytes[RECORD_HEADER_BYTES..]).map_err(damaged)?;
        self.file.write_at(last, &bytes)
    }

    /// Removes half a record, so that a full device can be used once there is space.
    fn undo(&self, error: Error) -> Error {
        debug_assert!(self.end >= self.snapshot_end, "a part of the snapshot would be cut off");
        if error.kind() != Kind::Full || self.file.set_len(self.end).is_err() {
            return error.with_kind(Kind::Poisoned);
        }
        self.mark();
        error
    }

    /// Writes a durable-end mark after the last record; not durable until the next sync.
    fn mark(&self) {
        let mut bytes = Vec::new();
        let mut link = self.link;
        link.append(RecordTag::Mark, &[], &mut bytes);
        debug_assert!(link.number == self.link.number, "the next edit takes the place of the mark");
        // A mark only helps to judge the end after a crash. If it cannot be written, the next append finds
        // the same error and reports it.
        let _ = self.file.write_at(self.end, &bytes);
    }

    /// The header of the file.
    pub(crate) fn header(&self) -> FileHeader {
        self.header
    }
}

impl ManifestLog for Writer {
    fn number(&self) -> u64 {
        self.link.number
    }

    fn size(&self) -> ManifestSize {
        debug_assert!(self.snapshot_end <= self.end, "edits lie behind the snapshot");
        debug_assert!(self.header.base <= self.link.number, "edits are numbered from the base on");
        ManifestSize {
            file: self.header.file.into(),
            snapshot_bytes: self.snapshot_end,
            edit_bytes: self.end - self.snapshot_end,
            edits: self.link.number - self.header.base,
        }
    }

    /// # Errors
    /// `Full`: nothing happened. After any other error the file must not be written again.
    fn append(&mut self, payload: &[u8]) -> Result<()> {
        let mut link = self.link;
        self.buffer.clear();
        link.append(RecordTag::Edit, payload, &mut self.buffer);
        if let Err(error) = self.file.write_at(self.end, &self.buffer) {
            return Err(self.undo(error));
        }
        if !terrane_base::planted!(SkipManifestSync) {
            self.file.sync().map_err(|error| error.with_kind(Kind::Poisoned))?;
        }
        assert!(link.number == self.link.number + 1, "an edit takes the next number, {}", link.number);
        self.link = link;
        self.end += self.buffer.len() as u64;
        self.mark();
        Ok(())
    }

    /// # Errors
    /// `Poisoned` if it is unknown which file `CURRENT` names; after any other error the old file stays in
    /// use.
    fn roll(&mut self, state: &State) -> Result<()> {
        let number =
            self.header.file.checked_add(1).ok_or_else(|| Error::invalid("manifest numbers are used up"))?;
        let path = self.dir.join(file_name(number));
        if self.disk.exists(&path)? {
            // Left by an earlier attempt; `CURRENT` never named it.
            self.disk.remove(&path)?;
        }
        let header = FileHeader::new(number, state.database, self.link.number);
        let header = header.of_version(state.format_version);
        let (file, link, end) = write_snapshot(&*self.disk, &self.dir, header, state)?;
        self.disk.sync_dir(&self.dir)?;
        set_current(&*self.disk, &self.dir, &header)?;
        assert!(
            link.number == self.link.number,
            "a snapshot has the number of its last edit, {}",
            link.number
        );
        let old = std::mem::replace(&mut self.header, header).file;
        (self.file, self.link, self.snapshot_end, self.end) = (file, link, end, end);
        self.mark();
        // If it stays, the next opening removes it.
        let _ = self.disk.remove(&self.dir.join(file_name(old)));
        Ok(())
    }

    /// Makes the mark durable.
    fn close(&mut self) -> Result<()> {
        self.mark();
        self.file.sync()
    }
}

/// Creates a manifest file with a snapshot of `state`, durable except for its directory entry.
fn write_snapshot(
    disk: &dyn Disk,
    dir: &Path,
    header: FileHeader,
    state: &State,
) -> Result<(Arc<dyn File>, Link, u64)> {
    let file = disk.open(&dir.join(file_name(header.file)), OpenMode::Create, false)?;
    let seed = header.checksum();
    let mut link = Link { seed, previous: seed, number: header.base };
    file.write_at(0, &header.encode())?;
    let mut end = FILE_HEADER_BYTES as u64;
    let mut buffer = Vec::new();
    let mut write = |tag, payload: &[u8]| {
        buffer.clear();
        link.append(tag, payload, &mut buffer);
        file.write_at(end, &buffer)?;
        end += buffer.len() as u64;
        Ok(())
    };
    let op_count = Pieces::new(PIECE_BYTES, &mut |piece| write(RecordTag::Snapshot, piece)).write(state)?;
    write(RecordTag::SnapshotEnd, &op_count.to_le_bytes())?;
    file.sync()?;
    Ok((file, link, end))
}

/// Makes `CURRENT` name the file with this header: writes a new file, syncs and renames it, syncs the
/// directory.
///
/// # Errors
/// `Poisoned` from the rename on: `CURRENT` may name either file then.
pub(crate) fn set_current(disk: &dyn Disk, dir: &Path, header: &FileHeader) -> Result<()> {
    let new = dir.join(if terrane_base::planted!(CurrentInPlace) { CURRENT } else { CURRENT_NEW });
    let current = dir.join(CURRENT);
    if disk.exists(&new)? {
        disk.remove(&new)?;
    }
    let file = disk.open(&new, OpenMode::Create, false)?;
    file.write_at(0, Current { file: header.file, database: header.database }.encode().as_bytes())?;
    if !terrane_base::planted!(NameUnsyncedCurrent) {
        file.sync()?;
    }
    let sync_dir =
        || if terrane_base::planted!(SkipCurrentDirectorySync) { Ok(()) } else { disk.sync_dir(dir) };
    let renamed = disk.rename(&new, &current).and_then(|()| sync_dir());
    renamed.map_err(|error| error.with_kind(Kind::Poisoned))
}
