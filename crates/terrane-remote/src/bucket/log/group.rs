//! The end of the log, and the records there that are written and not synced.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use terrane_base::Error;
use terrane_device::File;

use super::index::Object;
use super::record::{self, Header, padded};
use super::write::{Ended, Queued};

/// Bytes that are gathered before they are written.
const WRITE_BYTES: usize = 1 << 20;

/// By how much a time may lie before the one before it and count as that: a clock that went back further was
/// far ahead before, and all times would stand still until it is there again.
const STEP_BACK_MAX: u64 = 60_000_000;

/// The end of the log.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) log: u64,
    /// The last file; `None` before the first one.
    pub(super) current: Option<Current>,
    /// The number of the next record.
    pub(super) next: u64,
    /// The hash of the last record.
    pub(super) parent: u64,
    /// All records up to this one are durable.
    pub(super) durable: u64,
    /// The time of the last creation or deletion, in microseconds.
    pub(super) modified: u64,
    /// The number of the last record whose only purpose is its mark; 0 if there was none.
    pub(super) marked: u64,
    /// The number of the next record when it was last looked whether the log is idle.
    pub(super) looked: u64,
    /// The error after which the end of the last file is unknown.
    pub(super) failed: Option<Error>,
}

/// The file that is written.
pub(super) struct Current {
    pub(super) number: u64,
    pub(super) file: Arc<dyn File>,
    /// Where the next record begins.
    pub(super) at: u64,
    /// Bytes that are reserved on the device.
    pub(super) bytes: u64,
}

/// Records that are written and not synced.
#[derive(Default)]
pub(super) struct Group {
    pub(super) ended: Vec<(Arc<Queued>, Ended)>,
    /// Changes of the index, in the order of the records: where an object lies, or `None` if it is deleted.
    pub(super) applied: Vec<(String, Option<Object>)>,
    pub(super) created: BTreeSet<String>,
    pub(super) deleted: BTreeSet<String>,
    /// A write failed.
    pub(super) broken: Option<Error>,
    /// Bytes that no call has written, which lie at `at` of the file.
    pub(super) gathered: Vec<u8>,
    pub(super) at: u64,
    /// Bytes of records in the current file.
    pub(super) bytes: u64,
    /// Where the group's first record lies; none if it has no record.
    pub(super) before: Option<Start>,
}

/// The end of the log before a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    /// Where its first record begins in the file.
    pub(super) at: u64,
    /// The number of its first record.
    pub(super) next: u64,
    /// The parent of that record.
    pub(super) parent: u64,
}

impl Writer {
    /// The number of the file that is written.
    pub(super) fn number(&self) -> u64 {
        self.current.as_ref().map_or(0, |current| current.number)
    }

    /// Returns true if a record of so many bytes has room in the last file.
    pub(super) fn has_room(&self, bytes: u64, reserved: u64) -> bool {
        self.current.as_ref().is_some_and(|current| current.at + bytes + reserved <= current.bytes)
    }

    /// Bytes that are left in the last file.
    pub(super) fn room(&self) -> u64 {
        self.current.as_ref().map_or(0, |current| current.bytes.saturating_sub(current.at))
    }

    /// The time of a change that is made at `now`.
    pub(super) fn time(&mut self, now: u64) -> u64 {
        let is_small = self.modified.saturating_sub(now) <= STEP_BACK_MAX;
        self.modified = if is_small { self.modified.max(now) } else { now };
        self.modified
    }

    /// Writes what was gathered.
    pub(super) fn flush(&self, group: &mut Group) {
        if group.gathered.is_empty() || group.broken.is_some() {
            return;
        }
        let current = self.current.as_ref().expect("records were gathered for a file");
        group.broken = current.file.write_at(group.at, &group.gathered).err();
        group.at += group.gathered.len() as u64;
        group.gathered.clear();
    }

    /// Adds a record at the end of the last file, which has room; returns where its payload lies.
    pub(super) fn add(&mut self, group: &mut Group, header: &Header, name: &str, parts: &[Bytes]) -> u64 {
        let front = header.encode(name);
        let (hash, front_bytes) = (record::hash(&front), front.len() as u64);
        let current = self.current.as_mut().expect("it has room");
        let at = current.at;
        if group.gathered.is_empty() {
            group.at = at;
        }
        group.before.get_or_insert(Start { at, next: self.next, parent: self.parent });
        group.gathered.extend_from_slice(&front);
        for part in parts {
            group.gathered.extend_from_slice(part);
            if group.gathered.len() >= WRITE_BYTES {
                self.flush(group);
            }
        }
        let end = padded(at + front_bytes + header.len);
        group.gathered.resize((end - group.at) as usize, 0);
        assert_eq!(header.number, self.next, "records are numbered in their order");
        self.current.as_mut().expect("as above").at = end;
        group.bytes += end - at;
        (self.next, self.parent) = (self.next + 1, hash);
        at + front_bytes
    }
}
