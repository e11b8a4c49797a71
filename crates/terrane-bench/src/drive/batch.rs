//! Writes gathered into a batch: bytes in one buffer, a batch per table.

use crate::engine::{Session, Write};
use crate::error::Result;
use crate::generate::operation::OperationKind;
use crate::generate::space::KeySpace;

/// One gathered write: where its bytes lie.
#[derive(Clone, Copy, Debug)]
struct Entry {
    table: u32,
    number: u64,
    at: usize,
    /// Length of the value; none for a delete.
    value: Option<usize>,
}

/// The writes of the batch that is being gathered.
#[derive(Debug)]
pub(super) struct Gathered {
    key_bytes: usize,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    inserted: bool,
    kind: OperationKind,
    /// A buffer that others may borrow between two batches.
    pub(super) scratch: Vec<u8>,
}

impl Gathered {
    pub(super) fn new(key_bytes: usize) -> Self {
        Gathered {
            key_bytes,
            bytes: Vec::new(),
            entries: Vec::new(),
            inserted: false,
            kind: OperationKind::Update,
            scratch: Vec::new(),
        }
    }

    pub(super) fn push(
        &mut self,
        table: u32,
        key: &[u8],
        value: Option<&[u8]>,
        number: u64,
        kind: OperationKind,
    ) {
        self.entries.push(Entry { table, number, at: self.bytes.len(), value: value.map(<[u8]>::len) });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.inserted |= kind == OperationKind::Insert;
        self.kind = kind;
    }

    pub(super) fn is_full(&self, batch: usize) -> bool {
        self.entries.len() >= batch
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Key and value bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The kind under which its latency is recorded.
    pub(super) fn kind(&self) -> OperationKind {
        self.kind
    }

    /// Commits what was gathered: one batch per table that it touches.
    pub(super) fn write(&mut self, session: &mut dyn Session, sync: bool) -> Result<()> {
        // A stable sort: writes of one key keep their order.
        self.entries.sort_by_key(|entry| entry.table);
        let mut writes = Vec::with_capacity(self.entries.len());
        for group in self.entries.chunk_by(|left, right| left.table == right.table) {
            writes.clear();
            writes.extend(group.iter().map(|entry| self.write_of(entry)));
            session.write(group[0].table, &writes, sync)?;
        }
        Ok(())
    }

    fn write_of(&self, entry: &Entry) -> Write<'_> {
        let key = &self.bytes[entry.at..entry.at + self.key_bytes];
        match entry.value {
            None => Write::Delete(key),
            Some(bytes) => Write::Put(key, &self.bytes[entry.at + self.key_bytes..][..bytes]),
        }
    }

    /// Tells the key space that the inserts of the batch exist.
    pub(super) fn acknowledge(&self, space: &KeySpace) {
        if self.inserted {
            for entry in &self.entries {
                space.acknowledge(entry.number);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
        self.inserted = false;
    }
}
