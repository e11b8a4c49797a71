//! Ends groups, and begins files.
//!
//! A group is written, synced, and visible then. What fails before the sync is cut off again; a sync that
//! fails ends the log, and so does anything behind which it is unknown what lies in the files.

use terrane_base::sync::atomic::Ordering;
use terrane_base::{Error, Kind, Result};
use terrane_device::OpenMode;

use super::Shared;
use super::group::{Current, Group, Start, Writer};
use super::record::{self, FILE_HEADER_BYTES, FileHeader, padded};

impl Shared {
    /// Syncs the group so far, and begins a file with room for a record of so many bytes.
    pub(super) fn next_file(&self, writer: &mut Writer, group: &mut Group, bytes: u64) -> Result<()> {
        self.commit(writer, group);
        if let Some(error) = &writer.failed {
            return Err(error.clone());
        }
        let number = writer.number() + 1;
        let needed = padded(FILE_HEADER_BYTES as u64) + bytes + self.settings.reserved_bytes();
        let len = self.settings.file_bytes.max(needed);
        let header = FileHeader { log: writer.log, number, first: writer.next, parent: writer.parent };
        let (path, made) = (self.dir.join(record::file_name(number)), self.dir.join(super::open::NEW));
        if self.disk.exists(&made)? {
            self.disk.remove(&made)?;
        }
        let file = self.disk.open(&made, OpenMode::Create, false)?;
        let begun = file
            .allocate(0, len)
            .and_then(|()| file.write_at(0, &header.encode()))
            .and_then(|()| file.sync())
            .and_then(|()| self.disk.rename(&made, &path))
            .and_then(|()| self.disk.sync_dir(&self.dir));
        if let Err(error) = begun {
            return Err(self.give_up_file(writer, &made, &path, error));
        }
        // By its name from now on, for messages. No further record may go into the file before it.
        let opened = self.disk.open(&path, OpenMode::Write, false);
        let file = opened.map_err(|error| self.poison(writer, &error))?;
        // Relaxed: it only decides how soon files are emptied.
        self.is_full.store(false, Ordering::Relaxed);
        writer.current = Some(Current { number, file, at: FILE_HEADER_BYTES as u64, bytes: len });
        self.index.lock().grow(number, 0);
        Ok(())
    }

    /// A file could not be begun: nothing of it stays, so that the log goes on when there is room. Where its
    /// name may stay, the log ends.
    #[cold]
    fn give_up_file(
        &self,
        writer: &mut Writer,
        made: &std::path::Path,
        path: &std::path::Path,
        error: Error,
    ) -> Error {
        let is_named = self.disk.exists(path).unwrap_or(true);
        if is_named {
            return self.poison(writer, &error);
        }
        // What stays is removed by the next file or opening.
        let _ = self.disk.remove(made);
        let place = self.dir.display();
        self.is_full.store(error.kind() == Kind::Full, Ordering::Relaxed);
        match error.kind() {
            Kind::Full => error.context(format!("the device of {place} is full: free space on it")),
            _ => error.with_kind(Kind::Io),
        }
    }

    /// Syncs a group, makes it visible and gives each change its outcome.
    pub(super) fn commit(&self, writer: &mut Writer, group: &mut Group) {
        let is_synced = match (&writer.failed, &group.before) {
            (Some(error), _) => Err(error.clone()),
            (None, None) => Ok(()),
            (None, Some(_)) => {
                writer.flush(group);
                match group.broken.take() {
                    Some(error) => return self.undo(writer, group, &error),
                    None => self.sync(writer),
                }
            }
        };
        let group = std::mem::take(group);
        if let Err(error) = is_synced {
            group.ended.iter().for_each(|(queued, _)| queued.end(Err(error.clone())));
            return;
        }
        debug_assert!(writer.durable < writer.next, "no mark covers a record that is not written");
        writer.durable = writer.next - 1;
        let mut index = self.index.lock();
        if group.bytes > 0 {
            index.grow(writer.number(), group.bytes);
        }
        for (name, object) in &group.applied {
            match object {
                Some(object) => index.add(name, *object),
                None => index.remove(name),
            }
        }
        drop(index);
        group.ended.iter().for_each(|(queued, created)| queued.end(Ok(*created)));
    }

    fn sync(&self, writer: &mut Writer) -> Result<()> {
        let current = writer.current.as_ref().expect("a group was written to it");
        if terrane_base::planted!(AcknowledgeBeforeLogSync) {
            return Ok(());
        }
        match current.file.sync() {
            Ok(()) => Ok(()),
            Err(error) => Err(self.poison(writer, &error)),
        }
    }

    /// A call of a group failed: cuts off what it wrote, so that none of it ever counts. Where that fails,
    /// too, what an opening would find is unknown.
    #[cold]
    fn undo(&self, writer: &mut Writer, group: &mut Group, error: &Error) {
        let group = std::mem::take(group);
        let Some(Start { at, next, parent }) = group.before else { return };
        let current = writer.current.as_mut().expect("the group was written to it");
        let bytes = current.bytes;
        let cut = current.file.set_len(at).and_then(|()| current.file.sync());
        let outcome = match cut {
            Ok(()) => {
                let reserved =
                    super::open::reserve(&*current.file, at, bytes, self.settings.reserved_bytes());
                (current.at, current.bytes) = (at, reserved.unwrap_or(at));
                (writer.next, writer.parent) = (next, parent);
                writer.marked = if writer.marked < next { writer.marked } else { 0 };
                error.clone()
            }
            Err(_) => self.poison(writer, error),
        };
        group.ended.iter().for_each(|(queued, _)| queued.end(Err(outcome.clone())));
    }

    /// Nothing is written any more: an opening finds out which records are there.
    #[cold]
    pub(super) fn poison(&self, writer: &mut Writer, error: &Error) -> Error {
        let place = self.dir.display();
        let text = format!(
            "the log in {place} failed, and writes nothing more: start it again, after a look at its device"
        );
        let error = error.clone().context(text).with_kind(Kind::Io);
        self.has_failed.store(true, Ordering::Relaxed);
        self.note(error.clone());
        writer.failed.get_or_insert(error).clone()
    }
}
