//! Writes groups of changes: one after the other to the last file, then one sync.
//!
//! A thread that waits for a change writes: the first one takes all that is queued, the others wait for their
//! outcome, and one of them takes what came meanwhile. If a thread panics while it writes, what it took has
//! no outcome: a thread that waits for that panics, too. An object is in the index, and so in reads and
//! lists, once it is durable.

use std::sync::Arc;

use bytes::Bytes;
use terrane_base::sync::Mutex;
use terrane_base::{Error, Kind, Result};

use super::Shared;
use super::group::{Group, Writer};
use super::index::Object;
use super::record::{self, Header, Tag, padded};
use crate::bucket::Create;

/// Most names of one deletion.
pub(super) const NAMES_MAX: usize = 1000;
/// Bytes of a fence: an object so short is taken although there are as many as may be, or the device is full,
/// because a writer can trim only behind its fence. One with bytes of a commit is longer.
const SHORT_BYTES: u64 = 128;

/// The change to write.
pub(super) enum Change {
    Create {
        name: String,
        parts: Vec<Bytes>,
        len: u64,
        checksum: u32,
    },
    Delete(Vec<String>),
    /// An object that lies here shall lie at the end of the log.
    Copy {
        name: String,
        object: Object,
        /// Its bytes are not those that were created.
        is_damaged: bool,
        checksum: u32,
        bytes: Bytes,
        /// It may lie where creations and deletions leave room.
        takes_reserve: bool,
    },
    /// The last record shall say that all before it is durable.
    Mark,
}

/// How a change ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// A creation.
    Create(Create),
    /// Another change.
    Done,
}

/// Changes that no group has taken yet.
#[derive(Default)]
pub(super) struct Queue {
    changes: Vec<Arc<Queued>>,
    /// A thread writes.
    is_writing: bool,
}

impl Change {
    pub(super) fn create(name: &str, parts: Vec<Bytes>) -> Change {
        let len = parts.iter().map(|part| part.len() as u64).sum();
        let checksum = parts.iter().fold(0, |checksum, part| crc32c::crc32c_append(checksum, part));
        Change::Create { name: name.to_owned(), parts, len, checksum }
    }
}

/// A change, and its outcome once there is one.
pub(super) struct Queued {
    change: Change,
    outcome: Mutex<Option<Result<Ended>>>,
}

impl Queued {
    pub(super) fn end(&self, outcome: Result<Ended>) {
        let before = self.outcome.lock().replace(outcome);
        debug_assert!(before.is_none(), "a change ends once");
    }
}

/// Says at its end, also by a panic, that another thread may write.
struct Leading<'s>(&'s Shared);

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let error = Error::new(Kind::Io, "a thread panicked while it wrote to the log");
            drop(self.0.poison(&mut self.0.writer.lock(), &error));
        }
        self.0.queue.lock().is_writing = false;
        self.0.written.notify_all();
    }
}

impl Shared {
    /// Puts a change behind those of before.
    pub(super) fn push(&self, change: Change) -> Arc<Queued> {
        let queued = Arc::new(Queued { change, outcome: Mutex::new(None) });
        self.queue.lock().changes.push(Arc::clone(&queued));
        queued
    }

    /// Waits for the outcome of a change; writes if no other thread does.
    pub(super) fn wait(&self, queued: &Queued) -> Result<Ended> {
        loop {
            let mut queue = self.queue.lock();
            let changes = loop {
                if let Some(outcome) = queued.outcome.lock().take() {
                    return outcome;
                }
                if !queue.is_writing {
                    break std::mem::take(&mut queue.changes);
                }
                self.written.wait(&mut queue);
            };
            assert!(!changes.is_empty(), "a change without outcome is queued, unless a thread panicked");
            queue.is_writing = true;
            drop(queue);
            let leading = Leading(self);
            self.write(&mut self.writer.lock(), changes);
            drop(leading);
        }
    }

    /// Waits for the outcome of a creation.
    pub(super) fn wait_created(&self, queued: &Queued) -> Result<Create> {
        match self.wait(queued)? {
            Ended::Create(created) => Ok(created),
            Ended::Done => unreachable!("a creation ends as one"),
        }
    }

    /// Writes and syncs changes; each of them has its outcome then.
    fn write(&self, writer: &mut Writer, changes: Vec<Arc<Queued>>) {
        let mut group = Group::default();
        for queued in changes {
            let taken = match &writer.failed {
                Some(error) => Err(error.clone()),
                None => self.take(writer, &mut group, &queued),
            };
            match taken {
                Ok(created) => group.ended.push((queued, created)),
                // Nothing of it was written; what was before it stays.
                Err(error) => queued.end(Err(error)),
            }
        }
        self.commit(writer, &mut group);
    }

    /// Adds the record of a change to a group.
    fn take(&self, writer: &mut Writer, group: &mut Group, queued: &Arc<Queued>) -> Result<Ended> {
        match &queued.change {
            Change::Create { name, parts, len, checksum } => {
                let created = self.add(writer, group, (name, parts), (*len, *checksum))?;
                return Ok(Ended::Create(created));
            }
            Change::Copy { name, object, is_damaged, checksum, bytes, takes_reserve } => {
                let is_there = self.index.lock().objects.get(name) == Some(object);
                if is_there && !group.deleted.contains(name) {
                    let tag = if *is_damaged { Tag::CopyDamaged } else { Tag::Copy };
                    let object = Object { is_damaged: *is_damaged, checksum: *checksum, ..*object };
                    let reserved = if *takes_reserve { 0 } else { self.settings.reserved_bytes() };
                    self.put(writer, group, (tag, name, reserved), object, std::slice::from_ref(bytes))?;
                }
            }
            Change::Delete(names) => {
                // What this group creates no caller knows yet.
                let index = self.index.lock();
                let there: Vec<String> =
                    names.iter().filter(|name| index.objects.contains_key(*name)).cloned().collect();
                drop(index);
                if !there.is_empty() {
                    self.remove(writer, group, &there)?;
                }
            }
            Change::Mark => self.mark(writer, group)?,
        }
        Ok(Ended::Done)
    }

    /// Adds a creation, unless its name is taken.
    fn add(
        &self,
        writer: &mut Writer,
        group: &mut Group,
        (name, parts): (&String, &[Bytes]),
        (len, checksum): (u64, u32),
    ) -> Result<Create> {
        if group.deleted.contains(name) {
            self.commit(writer, group);
            writer.failed.clone().map_or(Ok(()), Err)?;
        }
        let index = self.index.lock();
        let is_taken = group.created.contains(name) || index.objects.contains_key(name);
        let (all, inside) = (index.objects.len(), index.count_beside(name));
        drop(index);
        if is_taken && !terrane_base::planted!(ReplaceLoggedObject) {
            return Ok(Create::AlreadyExists);
        }
        let is_beyond = |count: usize, most: usize| {
            let count = count + group.created.len();
            count >= most && (len > SHORT_BYTES || count >= most + most / 40 + 16)
        };
        if is_beyond(all, self.settings.objects_max) || is_beyond(inside, self.folder_objects_max) {
            return Err(self.too_many());
        }
        let modified = writer.time(self.env.clock.wall().as_micros() as u64);
        let object = Object { file: 0, at: 0, len, checksum, modified, is_damaged: false };
        // A fence leads to space.
        let reserved = self.settings.reserved_bytes() / if len <= SHORT_BYTES { 2 } else { 1 };
        self.put(writer, group, (Tag::Create, name, reserved), object, parts)?;
        Ok(Create::Created)
    }

    /// Adds a record that says by its mark that all before it is durable, unless the last one does.
    fn mark(&self, writer: &mut Writer, group: &mut Group) -> Result<()> {
        // What this group has so far is covered by no mark before it is synced.
        self.commit(writer, group);
        writer.failed.clone().map_or(Ok(()), Err)?;
        let is_marked = writer.marked + 1 == writer.next;
        let has_room = writer.has_room(padded(Header::front_bytes("")), self.settings.copies_bytes());
        // Without room the next file says it: it is begun behind the sync of this one.
        if !is_marked && has_room {
            self.remove(writer, group, &[])?;
            writer.marked = writer.next - 1;
        }
        Ok(())
    }

    fn header(&self, writer: &Writer, tag: Tag, object: &Object) -> Header {
        Header {
            tag,
            log: writer.log,
            number: writer.next,
            durable: if terrane_base::planted!(MarkUnsyncedRecords) {
                writer.next - 1
            } else {
                writer.durable
            },
            parent: writer.parent,
            len: object.len,
            modified: object.modified,
            checksum: object.checksum,
        }
    }

    /// Adds an object; behind it so many bytes stay free in its file.
    fn put(
        &self,
        writer: &mut Writer,
        group: &mut Group,
        (tag, name, reserved): (Tag, &str, u64),
        object: Object,
        parts: &[Bytes],
    ) -> Result<()> {
        let bytes = padded(Header::front_bytes(name) + object.len);
        if !writer.has_room(bytes, reserved) {
            self.next_file(writer, group, bytes)?;
        }
        let header = self.header(writer, tag, &object);
        let at = writer.add(group, &header, name, parts);
        let object = Object { file: writer.number(), at, ..object };
        group.applied.push((name.to_owned(), Some(object)));
        if tag == Tag::Create {
            group.created.insert(name.to_owned());
        }
        Ok(())
    }

    /// Adds a deletion.
    fn remove(&self, writer: &mut Writer, group: &mut Group, names: &[String]) -> Result<()> {
        let payload = record::encode_names(names);
        let object = Object {
            file: 0,
            at: 0,
            len: payload.len() as u64,
            checksum: crc32c::crc32c(&payload),
            modified: writer.time(self.env.clock.wall().as_micros() as u64),
            is_damaged: false,
        };
        let bytes = padded(Header::front_bytes("") + object.len);
        if !writer.has_room(bytes, self.settings.copies_bytes()) {
            self.next_file(writer, group, bytes)?;
        }
        let header = self.header(writer, Tag::Delete, &object);
        writer.add(group, &header, "", &[payload]);
        group.applied.extend(names.iter().map(|name| (name.clone(), None)));
        group.deleted.extend(names.iter().cloned());
        Ok(())
    }

    #[cold]
    fn too_many(&self) -> Error {
        let most = self.settings.objects_max;
        let text = format!(
            "the log in {} has {most} objects, or {} in this folder, as many as it takes: flush the databases whose \
             journals it has, or lower their garbage_age_s",
            self.dir.display(),
            self.folder_objects_max
        );
        // A flush that gives segments back makes room for objects as well.
        Error::new(Kind::Full, text).of_space()
    }
}
