//! Removes files whose objects are gone, the first one first, and copies what lives in a first file to the
//! end when most records of the files are no longer needed.
//!
//! A deletion lies behind the creation that it ends, so a first file can go once it has no object: what later
//! files say of its objects says nothing any more. The removal is durable before the next one, so that no
//! file is ever missing between others; where that is unknown, no file goes until the log is opened again.
//!
//! An object that is damaged is copied as it is, and stays damaged: it must not keep all files behind it.

use terrane_base::sync::atomic::Ordering;
use terrane_base::{Error, Kind, Result};
use terrane_device::{File, OpenMode};

use super::Shared;
use super::index::Object;
use super::record;
use super::write::Change;

/// Bytes of objects that are copied by one group, at least one object.
const COPIED_BYTES: u64 = 4 << 20;

impl Shared {
    /// Deletes objects; their files stay.
    pub(super) fn delete_some(&self, names: &[String]) -> Result<()> {
        let queued = self.push(Change::Delete(names.to_vec()));
        self.wait(&queued).map(drop)
    }

    /// Removes what can go behind a deletion, which is durable: what fails here, a later call does.
    pub(super) fn clean_after_deletion(&self) {
        if let Err(error) = self.clean() {
            self.note(error.context("files of the log whose objects are gone stay"));
        }
    }

    /// Removes what can go, unless another thread does.
    ///
    /// # Errors
    /// `Full`, `Io`: a later call goes on, unless the error says that none does.
    pub(super) fn clean(&self) -> Result<()> {
        let Some(mut cleaning) = self.cleaning.try_lock() else { return Ok(()) };
        cleaning.clone().map_or(Ok(()), Err)?;
        loop {
            let (written, room) = {
                let writer = self.writer.lock();
                (writer.number(), writer.room())
            };
            let (front, is_wasteful) = {
                let index = self.index.lock();
                (index.front(written), index.is_wasteful(4 * self.settings.file_bytes))
            };
            let Some((number, used)) = front else { return Ok(()) };
            // Relaxed: see where it is stored.
            let is_full = self.is_full.load(Ordering::Relaxed);
            if used.objects == 0 || terrane_base::planted!(DropLiveObjects) {
                self.remove_file(number, &mut cleaning)?;
            } else if is_full && used.live <= room && used.live * 2 <= used.bytes {
                // The removal that follows frees more bytes than the copies of kept objects take.
                self.empty_file(number, true)?;
            } else if is_wasteful && !is_full {
                self.empty_file(number, false)?;
            } else {
                return Ok(());
            }
        }
    }

    fn remove_file(&self, number: u64, failed: &mut Option<Error>) -> Result<()> {
        let path = self.dir.join(record::file_name(number));
        match self.disk.remove(&path) {
            // A call before failed although it had its effect.
            Err(error) if error.kind() == Kind::NotFound => {}
            removed => removed?,
        }
        if let Err(error) = self.disk.sync_dir(&self.dir) {
            // A further sync may report success for nothing. Were a later file removed then, this one could
            // come back without it.
            let text = "no file of the log is removed any more until it is opened again";
            return Err(failed.insert(error.context(text)).clone());
        }
        let gone = self.index.lock().files.remove(&number);
        debug_assert!(gone.is_some(), "a file goes once");
        Ok(())
    }

    /// The objects of a file, in its order.
    fn objects_in(&self, number: u64) -> Vec<(String, Object)> {
        let mut living = Vec::new();
        let mut after = self.index.lock().part_in(number, None, &mut living);
        while let Some(last) = after {
            after = self.index.lock().part_in(number, Some(&last), &mut living);
        }
        living.sort_unstable_by_key(|(_, object)| object.at);
        living
    }

    /// Copies the objects of a file to the end of the log.
    fn empty_file(&self, number: u64, takes_reserve: bool) -> Result<()> {
        let file = self.disk.open(&self.dir.join(record::file_name(number)), OpenMode::Read, false)?;
        let (mut queued, mut bytes) = (Vec::new(), 0);
        for (name, object) in self.objects_in(number) {
            let change = self.copy(&*file, (name, object), takes_reserve)?;
            bytes += object.len;
            queued.push(self.push(change));
            if bytes >= COPIED_BYTES {
                queued.drain(..).try_for_each(|queued| self.wait(&queued).map(drop))?;
                bytes = 0;
            }
        }
        queued.into_iter().try_for_each(|queued| self.wait(&queued).map(drop))
    }

    /// The copy of an object that lies in `file`.
    fn copy(&self, file: &dyn File, (name, object): (String, Object), takes_reserve: bool) -> Result<Change> {
        let mut bytes = vec![0; object.len as usize];
        let is_read = match file.read_at(object.at, &mut bytes) {
            Ok(()) => true,
            // The file ends before it.
            Err(error) if error.kind() == Kind::Corrupt => false,
            Err(error) => return Err(error),
        };
        let checksum = crc32c::crc32c(&bytes);
        let is_found = !object.is_damaged && (!is_read || checksum != object.checksum);
        if is_found {
            let text = format!("object {name:?} is damaged: its reading fails; the log goes on without it");
            self.note(Error::corrupt(text).at(file.path().display().to_string(), object.at));
        }
        let is_damaged = object.is_damaged || is_found;
        Ok(Change::Copy { name, object, is_damaged, checksum, bytes: bytes.into(), takes_reserve })
    }
}
