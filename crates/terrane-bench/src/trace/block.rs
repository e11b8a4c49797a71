//! Operations to bytes and back, inside one block.
//!
//! Keys, times and lengths are stored as the difference from the operation before. Each block begins again,
//! so that it can be read alone.

use crate::engine::Direction;
use crate::generate::operation::Operation;

use super::MULTI_READ_MAX;

const READ: u8 = 0;
const READ_MISSING: u8 = 1;
const MULTI_READ: u8 = 2;
const UPDATE: u8 = 3;
const INSERT: u8 = 4;
const READ_MODIFY_WRITE: u8 = 5;
const DELETE: u8 = 6;
const SCAN: u8 = 7;

const KIND: u8 = 0b111;
const SAME_TIME: u8 = 1 << 3;
const SAME_EXTENT: u8 = 1 << 4;
const BACKWARD: u8 = 1 << 5;

/// The values from which the next operation of a block stores its differences.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    key: u64,
    micros: u64,
    length: u64,
    rows: u64,
    count: u64,
}

impl State {
    /// The state at the start of a block.
    pub(super) fn new(base: u64) -> Self {
        State { micros: base, ..State::default() }
    }

    /// Appends an operation that arrived at `micros`; a time before the last one counts as that one.
    pub(super) fn put(&mut self, out: &mut Vec<u8>, operation: &Operation, micros: u64) {
        let later = micros.saturating_sub(self.micros);
        self.micros += later;
        let time = if later == 0 { SAME_TIME } else { 0 };
        match operation {
            Operation::Read(key) => self.put_plain(out, READ | time, later, *key),
            Operation::ReadMissing(key) => self.put_plain(out, READ_MISSING | time, later, *key),
            Operation::Delete(key) => self.put_plain(out, DELETE | time, later, *key),
            Operation::Update(key, length) => self.put_value(out, UPDATE | time, later, *key, *length),
            Operation::Insert(key, length) => self.put_value(out, INSERT | time, later, *key, *length),
            Operation::ReadModifyWrite(key, length) => {
                self.put_value(out, READ_MODIFY_WRITE | time, later, *key, *length);
            }
            Operation::Scan(key, rows, direction) => {
                let backward = if *direction == Direction::Backward { BACKWARD } else { 0 };
                let (same, rows) = same(&mut self.rows, *rows);
                self.put_plain(out, SCAN | time | backward | same, later, *key);
                put_some(out, rows);
            }
            Operation::Transaction(..) | Operation::DeleteRange(..) => {
                unreachable!("a plan that records transactions or range deletes is refused")
            }
            Operation::MultiRead(keys) => {
                let (same, count) = same(&mut self.count, keys.len() as u64);
                out.push(MULTI_READ | time | same);
                put_some(out, (later > 0).then_some(later));
                put_some(out, count);
                keys.iter().for_each(|key| self.put_key(out, *key));
            }
        }
    }

    fn put_plain(&mut self, out: &mut Vec<u8>, tag: u8, later: u64, key: u64) {
        out.push(tag);
        put_some(out, (later > 0).then_some(later));
        self.put_key(out, key);
    }

    fn put_value(&mut self, out: &mut Vec<u8>, tag: u8, later: u64, key: u64, length: usize) {
        let (same, length) = same(&mut self.length, length as u64);
        self.put_plain(out, tag | same, later, key);
        put_some(out, length);
    }

    fn put_key(&mut self, out: &mut Vec<u8>, key: u64) {
        let step = key.wrapping_sub(self.key) as i64;
        self.key = key;
        put_long(out, ((step << 1) ^ (step >> 63)) as u64);
    }

    /// Takes an operation from the front of `bytes`; also returns when it arrived. `None`: the bytes are not
    /// an operation, or its value is longer than `longest`. The vector of a `MultiRead` in `operation` is
    /// reused.
    pub(super) fn get(
        &mut self,
        bytes: &mut &[u8],
        longest: usize,
        operation: &mut Operation,
    ) -> Option<u64> {
        let (&tag, rest) = bytes.split_first()?;
        *bytes = rest;
        if tag & !(KIND | SAME_TIME | SAME_EXTENT | BACKWARD) != 0 {
            return None;
        }
        if tag & SAME_TIME == 0 {
            self.micros = self.micros.checked_add(get_long(bytes)?)?;
        }
        let kind = tag & KIND;
        if kind == MULTI_READ {
            self.get_many(bytes, tag, operation)?;
            return Some(self.micros);
        }
        let key = self.get_key(bytes)?;
        *operation = match kind {
            READ => Operation::Read(key),
            READ_MISSING => Operation::ReadMissing(key),
            DELETE => Operation::Delete(key),
            SCAN => {
                let direction = if tag & BACKWARD == 0 { Direction::Forward } else { Direction::Backward };
                Operation::Scan(key, extent(&mut self.rows, tag, bytes)?, direction)
            }
            _ => {
                let length = usize::try_from(extent(&mut self.length, tag, bytes)?).ok()?;
                if length > longest {
                    return None;
                }
                match kind {
                    UPDATE => Operation::Update(key, length),
                    INSERT => Operation::Insert(key, length),
                    _ => Operation::ReadModifyWrite(key, length),
                }
            }
        };
        Some(self.micros)
    }

    fn get_many(&mut self, bytes: &mut &[u8], tag: u8, operation: &mut Operation) -> Option<()> {
        let count = usize::try_from(extent(&mut self.count, tag, bytes)?).ok()?;
        // A key takes at least a byte, so a count that the bytes cannot hold takes no memory.
        if count == 0 || count > MULTI_READ_MAX || count > bytes.len() {
            return None;
        }
        let mut keys = match operation {
            Operation::MultiRead(keys) => std::mem::take(keys),
            _ => Vec::with_capacity(count),
        };
        keys.clear();
        for _ in 0..count {
            keys.push(self.get_key(bytes)?);
        }
        *operation = Operation::MultiRead(keys);
        Some(())
    }

    fn get_key(&mut self, bytes: &mut &[u8]) -> Option<u64> {
        let zigzag = get_long(bytes)?;
        let step = (zigzag >> 1) ^ (zigzag & 1).wrapping_neg();
        self.key = self.key.wrapping_add(step);
        Some(self.key)
    }
}

/// The flag and the field for a value that may be the same as the last.
fn same(last: &mut u64, value: u64) -> (u8, Option<u64>) {
    if std::mem::replace(last, value) == value { (SAME_EXTENT, None) } else { (0, Some(value)) }
}

fn extent(last: &mut u64, tag: u8, bytes: &mut &[u8]) -> Option<u64> {
    if tag & SAME_EXTENT == 0 {
        *last = get_long(bytes)?;
    }
    Some(*last)
}

fn put_some(out: &mut Vec<u8>, value: Option<u64>) {
    if let Some(value) = value {
        put_long(out, value);
    }
}

fn put_long(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn get_long(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        // The tenth byte has room for one bit.
        if shift == 63 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
