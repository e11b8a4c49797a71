//! Helpers of the tests of this crate: a sorted vector as the model and as a cursor, and extents in memory.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]

pub(crate) mod store;

use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::{Cursor, Entry, RecordKind, Result, Rng, SeqKind, SeqNo};

/// Not a figure: memory that is not free after as many looks, a fifth of a millisecond and more apart, never
/// will be.
const LOOKS_MAX: u32 = 200_000;

/// Gives epochs time to end, until it is free: threads that were in one, of other tests of the process as
/// well, may not be running just now. Says whether it is.
pub(crate) fn until_free(is_free: impl Fn() -> bool) -> bool {
    let clock = Env::real().clock;
    (0..LOOKS_MAX).any(|look| {
        if look > 0 {
            clock.sleep(Duration::from_micros(200));
        }
        terrane_table::swip::enter().collect();
        is_free()
    })
}

/// One version of one key, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) key: Vec<u8>,
    pub(crate) seq_kind: SeqKind,
    pub(crate) value: Vec<u8>,
}

impl Row {
    pub(crate) fn put(key: &[u8], seq: u64, value: &[u8]) -> Row {
        Row { key: key.to_vec(), seq_kind: SeqKind::new(SeqNo(seq), RecordKind::Put), value: value.to_vec() }
    }

    pub(crate) fn delete(key: &[u8], seq: u64) -> Row {
        Row { key: key.to_vec(), seq_kind: SeqKind::new(SeqNo(seq), RecordKind::Delete), value: Vec::new() }
    }

    pub(crate) fn entry(&self) -> Entry<'_> {
        Entry { key: &self.key, seq_kind: self.seq_kind, value: &self.value }
    }

    pub(crate) fn of(entry: Entry<'_>) -> Row {
        Row { key: entry.key.to_vec(), seq_kind: entry.seq_kind, value: entry.value.to_vec() }
    }
}

/// Sorts into internal order and keeps the first of several rows with the same key and number.
pub(crate) fn sort(rows: &mut Vec<Row>) {
    rows.sort_by(|a, b| a.key.cmp(&b.key).then(b.seq_kind.seq().cmp(&a.seq_kind.seq())));
    rows.dedup_by(|next, kept| next.key == kept.key && next.seq_kind.seq() == kept.seq_kind.seq());
}

/// The model of a cursor: an index into sorted rows.
#[derive(Clone, Debug)]
pub(crate) struct RowCursor {
    pub(crate) rows: Vec<Row>,
    /// `rows.len()` for "no position".
    at: usize,
}

impl RowCursor {
    pub(crate) fn new(rows: Vec<Row>) -> RowCursor {
        RowCursor { at: rows.len(), rows }
    }

    fn before(&mut self, end: usize) {
        self.at = end.checked_sub(1).unwrap_or(self.rows.len());
    }
}

impl Cursor for RowCursor {
    fn entry(&self) -> Option<Entry<'_>> {
        self.rows.get(self.at).map(Row::entry)
    }

    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        self.at = self
            .rows
            .partition_point(|row| row.key.as_slice() < key || (row.key == key && row.seq_kind.seq() > seq));
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.before(self.rows.partition_point(|row| row.key.as_slice() < key));
        Ok(())
    }

    fn seek_first(&mut self) -> Result<()> {
        self.at = 0;
        Ok(())
    }

    fn seek_last(&mut self) -> Result<()> {
        self.before(self.rows.len());
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        assert!(self.at < self.rows.len(), "moved without a position");
        self.at += 1;
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        assert!(self.at < self.rows.len(), "moved without a position");
        self.before(self.at);
        Ok(())
    }
}

/// Short keys over few letters, so that prefixes, zero bytes, equal heads and repeats are common.
pub(crate) fn random_key(rng: &mut Rng) -> Vec<u8> {
    let len = rng.index(12);
    let lead = if rng.one_in(2) { "shared/prefix/" } else { "" };
    lead.bytes().chain((0..len).map(|_| b"\0ab\xff"[rng.index(4)]).collect::<Vec<_>>()).collect()
}

/// Walks `cursor` and `model` side by side through `moves` random placements and steps.
pub(crate) fn walk(cursor: &mut impl Cursor, model: &mut RowCursor, rng: &mut Rng, moves: usize) {
    for turn in 0..moves {
        let key = match rng.index(3) {
            0 => random_key(rng),
            _ if model.rows.is_empty() => Vec::new(),
            _ => model.rows[rng.index(model.rows.len())].key.clone(),
        };
        // Mostly steps, in runs of one direction, from a position that both have.
        let choice = if model.entry().is_some() { rng.index(20) } else { rng.index(4) };
        let name = match choice {
            0 => {
                let seq = SeqNo(rng.index(64) as u64);
                cursor.seek(&key, seq).unwrap();
                model.seek(&key, seq).unwrap();
                "seek"
            }
            1 => {
                cursor.seek_before(&key).unwrap();
                model.seek_before(&key).unwrap();
                "seek_before"
            }
            2 => {
                cursor.seek_first().unwrap();
                model.seek_first().unwrap();
                "seek_first"
            }
            3 => {
                cursor.seek_last().unwrap();
                model.seek_last().unwrap();
                "seek_last"
            }
            choice => {
                let forward = choice < 12;
                for _ in 0..rng.index(6) {
                    if model.entry().is_some() {
                        if forward {
                            cursor.next().unwrap()
                        } else {
                            cursor.prev().unwrap()
                        }
                        if forward {
                            model.next().unwrap()
                        } else {
                            model.prev().unwrap()
                        }
                        assert_eq!(cursor.entry(), model.entry(), "turn {turn}, forward: {forward}");
                    }
                }
                "steps"
            }
        };
        assert_eq!(cursor.entry(), model.entry(), "turn {turn}: {name} {key:?}");
    }
}
