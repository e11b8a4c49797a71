//! Removes files whose objects are gone, the first one first, and copies what lives in a first file to the
//! end when most of what the files have is needed no more.
//!
//! A deletion lies behind the creation that it ends, so a first file can go once it has no object: what later
//! files say of its objects says nothing any more. The removal is durable before the next one, so that no
//! file is ever missing between others.

use terrane_base::sync::atomic::Ordering;
use terrane_base::{Error, Kind, Result};
use terrane_device::OpenMode;

use super::Shared;
use super::index::Object;
use super::record;
use super::write::Change;

/// Bytes of objects that are copied by one group, at least one object.
const COPIED_BYTES: u64 = 4 << 20;

impl Shared {
    /// Removes what can go, unless another thread does.
    ///
    /// # Errors
    /// `Corrupt` if an object that lives is damaged; `Full`, `Io`: a later call goes on.
    pub(super) fn clean(&self) -> Result<()> {
        let Some(_one_at_a_time) = self.cleaning.try_lock() else { return Ok(()) };
        loop {
            let written = self.writer.lock().number();
            let (front, is_wasteful) = {
                let index = self.index.lock();
                (index.front(written), index.is_wasteful(4 * self.settings.file_bytes))
            };
            let Some((number, used)) = front else { return Ok(()) };
            // Relaxed: see where it is stored.
            let is_short = self.is_full.load(Ordering::Relaxed) && used.live * 2 <= used.bytes;
            if used.objects == 0 || terrane_base::planted!(DropLiveObjects) {
                self.remove_file(number)?;
            } else if is_wasteful || is_short {
                self.empty_file(number)?;
            } else {
                return Ok(());
            }
        }
    }

    fn remove_file(&self, number: u64) -> Result<()> {
        let path = self.dir.join(record::file_name(number));
        match self.disk.remove(&path) {
            // By a call before whose sync of the directory failed.
            Err(error) if error.kind() == Kind::NotFound => {}
            removed => removed?,
        }
        self.disk.sync_dir(&self.dir)?;
        let gone = self.index.lock().files.remove(&number);
        debug_assert!(gone.is_some(), "a file goes once");
        Ok(())
    }

    /// Copies the objects of a file to the end of the log.
    fn empty_file(&self, number: u64) -> Result<()> {
        let mut living: Vec<(String, Object)> = {
            let index = self.index.lock();
            let inside = index.objects.iter().filter(|(_, object)| object.file == number);
            inside.map(|(name, object)| (name.clone(), *object)).collect()
        };
        living.sort_unstable_by_key(|(_, object)| object.at);
        let file = self.disk.open(&self.dir.join(record::file_name(number)), OpenMode::Read, false)?;
        let (mut queued, mut bytes) = (Vec::new(), 0);
        for (name, object) in living {
            let mut copied = vec![0; object.len as usize];
            file.read_at(object.at, &mut copied)?;
            if crc32c::crc32c(&copied) != object.checksum {
                let text = format!("the checksum of object {name:?} is wrong: restore the directory");
                return Err(Error::corrupt(text).at(file.path().display().to_string(), object.at));
            }
            bytes += object.len;
            queued.push(self.push(Change::Copy { name, object, bytes: copied.into() }));
            if bytes >= COPIED_BYTES {
                queued.drain(..).try_for_each(|queued| self.wait(&queued).map(drop))?;
                bytes = 0;
            }
        }
        queued.into_iter().try_for_each(|queued| self.wait(&queued).map(drop))
    }
}
