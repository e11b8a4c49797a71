//! Point requests that one thread has at the same time: their bytes lie in one buffer; they are done together
//! and recorded one by one.

use std::time::Duration;

use super::recorder::Recorder;
use crate::engine::{Ask, Request, Session, Visit};
use crate::error::Result;
use crate::generate::operation::OperationKind;
use crate::generate::space::KeySpace;

/// One request: where its bytes lie.
#[derive(Clone, Copy, Debug)]
struct Entry {
    table: u32,
    number: u64,
    kind: OperationKind,
    /// When it arrived.
    from: Duration,
    at: usize,
    /// Length of the value of a write.
    value_len: usize,
}

/// The requests that wait to be done together.
#[derive(Debug)]
pub(super) struct Window {
    key_bytes: usize,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

impl Window {
    pub(super) fn new(key_bytes: usize) -> Self {
        Window { key_bytes, bytes: Vec::new(), entries: Vec::new() }
    }

    pub(super) fn push(
        &mut self,
        table: u32,
        key: &[u8],
        value: Option<&[u8]>,
        (number, kind, from): (u64, OperationKind, Duration),
    ) {
        let value = value.unwrap_or_default();
        let (at, value_len) = (self.bytes.len(), value.len());
        self.entries.push(Entry { table, number, kind, from, at, value_len });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Reads of keys that should exist.
    pub(super) fn reads(&self) -> u64 {
        self.entries.iter().filter(|entry| entry.kind == OperationKind::Read).count() as u64
    }

    /// Does all of them.
    pub(super) fn perform(&self, session: &mut dyn Session, sync: bool, visit: &mut Visit<'_>) -> Result<()> {
        let requests: Vec<Request<'_>> = self.entries.iter().map(|entry| self.request(entry)).collect();
        session.requests(&requests, sync, visit)
    }

    fn request(&self, entry: &Entry) -> Request<'_> {
        let (key, rest) = self.bytes[entry.at..].split_at(self.key_bytes);
        let ask = match entry.kind {
            OperationKind::Update | OperationKind::Insert => Ask::Put(&rest[..entry.value_len]),
            OperationKind::Delete => Ask::Delete,
            _ => Ask::Get,
        };
        Request { table: entry.table, key, ask }
    }

    /// Records each as done at `now`.
    pub(super) fn record(&self, recorder: &mut Recorder, space: &KeySpace, now: Duration) {
        for entry in &self.entries {
            recorder.record(entry.kind, now.saturating_sub(entry.from).as_nanos() as u64);
            match entry.kind {
                OperationKind::Insert => space.acknowledge(entry.number),
                OperationKind::Delete => recorder.deleted = true,
                _ => {}
            }
            if !matches!(entry.kind, OperationKind::Read | OperationKind::ReadMissing) {
                recorder.bytes_written += (self.key_bytes + entry.value_len) as u64;
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
    }
}
