//! Records in segments without a journal, and the model that a memtable is held against.
#![expect(unsafe_code, reason = "writes segment memory as the journal would")]
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "each test binary uses its part")]

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_base::record::Record;
use terrane_base::{
    Collation, Comparator, Cursor, KeyOrders, RecordKind, SegmentId, SeqKind, SeqNo, TableId,
};
use terrane_device::{Region, SegmentMemory};
use terrane_memtable::Memtable;

/// A record in its place, with its number.
#[derive(Clone, Debug)]
pub struct Placed {
    pub segment: Arc<SegmentMemory>,
    pub offset: usize,
    pub seq: SeqNo,
    pub kind: RecordKind,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    pub len: usize,
}

impl Placed {
    pub fn insert_into(&self, memtable: &Memtable) {
        // SAFETY: `Segments::append` wrote the record there and no thread writes it again.
        unsafe { memtable.insert(&self.segment, self.offset, self.seq) }
    }
}

/// Heap segments, filled one after the other without gaps between records.
pub struct Segments {
    segment_bytes: usize,
    next_id: u64,
    current: Arc<SegmentMemory>,
    offset: usize,
}

impl Segments {
    pub fn new(segment_bytes: usize) -> Self {
        Segments::beginning_with(1, segment_bytes)
    }

    /// Segments with ids from `id` on: all that one memtable points to have different ids.
    pub fn beginning_with(id: u64, segment_bytes: usize) -> Self {
        Segments { segment_bytes, next_id: id + 1, current: segment(id, segment_bytes), offset: 0 }
    }

    pub fn append(&mut self, seq: u64, kind: RecordKind, key: &[u8], value: &[u8]) -> Placed {
        // Table numbers of different lengths, so that headers differ.
        let table = TableId(if seq.is_multiple_of(3) { 300 } else { 1 });
        let mut bytes = Vec::new();
        Record { kind, table, key, value }.encode(&mut bytes);
        if self.offset + bytes.len() > self.current.region.len() {
            self.current = segment(self.next_id, self.segment_bytes.max(bytes.len()));
            self.next_id += 1;
            self.offset = 0;
        }
        let offset = self.offset;
        // SAFETY: heap memory beyond everything written so far; within the region, as just checked.
        unsafe { self.current.region.write(offset, &bytes) };
        self.offset += bytes.len();
        Placed {
            segment: self.current.clone(),
            offset,
            seq: SeqNo(seq),
            kind,
            key: key.to_vec(),
            value: value.to_vec(),
            len: bytes.len(),
        }
    }

    pub fn put(&mut self, seq: u64, key: &[u8], value: &[u8]) -> Placed {
        self.append(seq, RecordKind::Put, key, value)
    }
}

fn segment(id: u64, bytes: usize) -> Arc<SegmentMemory> {
    Arc::new(SegmentMemory { id: SegmentId(id), region: Region::heap(bytes) })
}

/// An expected entry: key, number and kind, value.
pub type Expected = (Vec<u8>, SeqKind, Vec<u8>);

/// All versions in internal order.
#[derive(Clone, Default)]
pub struct Model(pub BTreeMap<Position, Stored>);

/// Internal order is the order of this.
type Position = (Vec<u8>, Reverse<SeqNo>);
type Stored = (RecordKind, Vec<u8>);

impl Model {
    pub fn insert(&mut self, placed: &Placed) {
        let place = (placed.key.clone(), Reverse(placed.seq));
        self.0.insert(place, (placed.kind, placed.value.clone()));
    }

    pub fn get(&self, key: &[u8], seq: SeqNo) -> Option<Expected> {
        let (place, version) = self.0.range((key.to_vec(), Reverse(seq))..).next()?;
        (place.0 == key).then(|| expected((place, version)))
    }

    pub fn rows(&self) -> Vec<Expected> {
        self.0.iter().map(expected).collect()
    }
}

fn expected(((key, Reverse(seq)), (kind, value)): (&Position, &Stored)) -> Expected {
    (key.clone(), SeqKind::new(*seq, *kind), value.clone())
}

/// The entry at a cursor's position.
pub fn row(cursor: &impl Cursor) -> Option<Expected> {
    cursor.entry().map(|entry| (entry.key.to_vec(), entry.seq_kind, entry.value.to_vec()))
}

/// Everything a cursor shows from the first entry on.
pub fn rows_forward(cursor: &mut impl Cursor) -> Vec<Expected> {
    cursor.seek_first().unwrap();
    let mut rows = Vec::new();
    while let Some(row) = row(cursor) {
        rows.push(row);
        cursor.next().unwrap();
    }
    rows
}

/// Everything a cursor shows from the last entry back.
pub fn rows_backward(cursor: &mut impl Cursor) -> Vec<Expected> {
    cursor.seek_last().unwrap();
    let mut rows = Vec::new();
    while let Some(row) = row(cursor) {
        rows.push(row);
        cursor.prev().unwrap();
    }
    rows
}

/// The order of bytes once more, as that of a comparator: keys have a mark of zero behind them, and lie as
/// without.
#[derive(Debug)]
struct AsBytes;

impl Comparator for AsBytes {
    fn name(&self) -> &str {
        "as bytes"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> std::cmp::Ordering {
        left.cmp(right)
    }
}

/// See [`AsBytes`].
pub fn by_comparator() -> Collation {
    KeyOrders::new().with_comparator(Arc::new(AsBytes)).unwrap().collation("as bytes")
}
