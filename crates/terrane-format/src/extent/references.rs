//! Which value tables the entries of an extent point into: a part behind the range deletes.
//!
//! ```text
//! part      = list version:u8 checksum:u32
//! list      = count:varint reference*
//! reference = table:varint entries:varint bytes:varint
//! ```
//!
//! `bytes` are those of the values themselves. From the lists of all extents of a table follows how much of
//! each value table is live, and nothing else has to be kept for that: an edit that removes an extent removes
//! its references.
//!
//! Invariants: tables ascend strictly; a reference stands for at least one entry.

use std::collections::BTreeMap;

use terrane_base::{Entry, Error, Result, Stored, ValuePointer, ValueTableId, varint};

use crate::dump::{self, FIELDS_MAX, Field};
use crate::wire::{self, Fields};

/// Version of the part that this module writes.
pub const VERSION: u8 = 1;
/// Bytes behind the list: version, checksum.
pub const TRAILER_BYTES: usize = 1 + 4;
/// Most bytes that one more value table adds to the part.
pub const REFERENCE_BYTES_MAX: usize = 3 * varint::LONG_BYTES_MAX;

/// Most references for which room is made before they are read.
const RESERVED_MAX: usize = 256;
pub(super) const SEED: u32 = u32::from_le_bytes(*b"REFS");

/// Pointers of an extent into one value table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The value table.
    pub table: ValueTableId,
    /// Number of entries that point into it; at least one.
    pub entries: u64,
    /// Bytes of their values.
    pub bytes: u64,
}

/// The references of an extent, collected entry by entry.
#[derive(Clone, Debug, Default)]
pub struct References(BTreeMap<ValueTableId, (u64, u64)>);

impl References {
    /// Counts an entry, if it is a pointer. A value that is not a pointer although its kind says so is not
    /// counted: the reader that follows it finds that out.
    #[inline]
    pub fn note(&mut self, entry: &Entry<'_>) {
        if entry.seq_kind.is_pointer() {
            self.note_pointer(entry);
        }
    }

    fn note_pointer(&mut self, entry: &Entry<'_>) {
        let stored = Stored::of_entry(entry.seq_kind, entry.value);
        if let Ok(pointer) = stored.and_then(|stored| ValuePointer::decode(stored.value)) {
            let (entries, bytes) = self.0.entry(pointer.table).or_default();
            *entries += 1;
            *bytes += u64::from(pointer.len);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns true if no pointer was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes that the part takes at most.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        match self.0.len() {
            0 => 0,
            tables => TRAILER_BYTES + varint::BYTES_MAX + tables * REFERENCE_BYTES_MAX,
        }
    }

    /// The references, by value table.
    #[must_use]
    pub fn to_list(&self) -> Vec<Reference> {
        let reference = |(table, (entries, bytes)): (&ValueTableId, &(u64, u64))| Reference {
            table: *table,
            entries: *entries,
            bytes: *bytes,
        };
        self.0.iter().map(reference).collect()
    }
}

/// Bytes that [`encode_list`] appends.
#[must_use]
pub fn list_len(references: &[Reference]) -> usize {
    let mut bytes = Vec::new();
    encode_list(references, &mut bytes);
    bytes.len()
}

/// Appends the list of references, as a meta has it.
pub fn encode_list(references: &[Reference], out: &mut Vec<u8>) {
    varint::put(out, references.len() as u32);
    for reference in references {
        varint::put_long(out, reference.table.0);
        varint::put_long(out, reference.entries);
        varint::put_long(out, reference.bytes);
    }
}

pub(super) fn decode_list(fields: &mut Fields<'_>) -> Result<Vec<Reference>> {
    let count = fields.varint()? as usize;
    // Grows as references are decoded, never by the count that the bytes claim.
    let mut references: Vec<Reference> = Vec::with_capacity(count.min(RESERVED_MAX));
    for _ in 0..count {
        let reference = Reference {
            table: ValueTableId(fields.varint_long()?),
            entries: fields.varint_long()?,
            bytes: fields.varint_long()?,
        };
        let ascends = references.last().is_none_or(|last| last.table < reference.table);
        if !ascends || reference.entries == 0 {
            return Err(Error::corrupt(format!(
                "references to value tables: {} with {} entries after {:?}",
                reference.table,
                reference.entries,
                references.last().map(|last| last.table)
            )));
        }
        references.push(reference);
    }
    if references.is_empty() {
        return Err(Error::corrupt("the extent's list of references to value tables is empty"));
    }
    Ok(references)
}

/// Appends the part with these references to `out`. Requires: at least one; value tables ascend.
pub fn encode(references: &[Reference], out: &mut Vec<u8>) {
    assert!(!references.is_empty(), "an extent without pointers has no part of references");
    debug_assert!(references.is_sorted_by(|a, b| a.table < b.table), "value tables ascend: {references:?}");
    let start = out.len();
    encode_list(references, out);
    out.push(VERSION);
    let checksum = crate::checksum::crc32c(SEED, &out[start..]);
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// Checks and decodes the part.
///
/// # Errors
/// `Corrupt` if checksum or version are wrong, or the list is cut, empty or out of order.
pub fn decode(bytes: &[u8]) -> Result<Vec<Reference>> {
    let body = wire::checked_body("references to value tables", SEED, bytes)?;
    let Some((version, list)) = body.split_last() else {
        return Err(Error::corrupt("references to value tables are cut"));
    };
    if *version != VERSION {
        return Err(Error::corrupt(format!(
            "references to value tables: expected version {VERSION}, found {version}"
        )));
    }
    let mut fields = Fields::new("references to value tables", list);
    let references = decode_list(&mut fields)?;
    match fields.rest().len() {
        0 => Ok(references),
        rest => Err(Error::corrupt(format!("references to value tables: {rest} bytes too many"))),
    }
}

/// The fields of the part, for `terrane dump`.
#[must_use]
pub fn describe(bytes: &[u8]) -> Vec<Field> {
    let references = match decode(bytes) {
        Ok(references) => references,
        Err(error) => return vec![dump::broken(0, bytes.len(), error)],
    };
    let mut at = varint::len(references.len() as u32);
    let mut fields = vec![Field::new(0, at, "count", references.len())];
    for (number, reference) in references.iter().take(FIELDS_MAX).enumerate() {
        let len = list_len(std::slice::from_ref(reference)) - 1;
        let Reference { table, entries, bytes } = reference;
        let text = format!("{table}: {entries} entries, {bytes} bytes");
        fields.push(Field::new(at, len, format!("reference[{number}]"), text));
        at += len;
    }
    let trailer = bytes.len() - TRAILER_BYTES;
    if references.len() > FIELDS_MAX {
        fields.push(dump::more(at, trailer - at, references.len() - FIELDS_MAX));
    }
    fields.push(Field::new(trailer, 1, "version", VERSION));
    fields.push(Field::new(trailer + 1, 4, "checksum", "holds"));
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use terrane_base::{RecordKind, SeqKind, SeqNo};

    fn some() -> Vec<Reference> {
        let reference = |table, entries, bytes| Reference { table: ValueTableId(table), entries, bytes };
        vec![reference(3, 1, 0), reference(4, 70_000, 1 << 40), reference(u64::MAX, u64::MAX, u64::MAX)]
    }

    #[test]
    fn a_part_is_decoded_as_it_was_encoded_and_every_cut_is_seen() {
        let mut bytes = Vec::new();
        encode(&some(), &mut bytes);
        assert_eq!(decode(&bytes).unwrap(), some());
        assert!((0..bytes.len()).all(|len| decode(&bytes[..len]).is_err()));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x40;
            assert!(decode(&changed).is_err(), "byte {at}");
        }
    }

    #[test]
    fn lists_out_of_order_or_empty_are_refused() {
        let refused = |references: &[Reference]| {
            let mut bytes = Vec::new();
            encode_list(references, &mut bytes);
            bytes.push(VERSION);
            let checksum = crate::checksum::crc32c(SEED, &bytes);
            bytes.extend_from_slice(&checksum.to_le_bytes());
            decode(&bytes).is_err()
        };
        let mut turned = some();
        turned.reverse();
        assert!(refused(&turned));
        assert!(refused(&[some()[0], some()[0]]));
        assert!(refused(&[]));
        assert!(refused(&[Reference { entries: 0, ..some()[0] }]));
    }

    #[test]
    fn pointers_are_counted_by_value_table_and_other_entries_are_not() {
        let mut references = References::default();
        let pointer = |table, len| {
            let mut bytes = Vec::new();
            ValuePointer { table: ValueTableId(table), len, position: None }.encode(&mut bytes);
            bytes
        };
        let note = |references: &mut References, kind, value: &[u8]| {
            references.note(&Entry { key: b"k", seq_kind: SeqKind::new(SeqNo(7), kind), value });
        };
        note(&mut references, RecordKind::Pointer, &pointer(9, 100));
        note(&mut references, RecordKind::Pointer, &pointer(2, 5));
        let mut until = vec![1];
        until.extend(pointer(9, 11));
        note(&mut references, RecordKind::PointerUntil, &until);
        note(&mut references, RecordKind::Put, &pointer(2, 5));
        note(&mut references, RecordKind::Pointer, b"");
        let of = |table, entries, bytes| Reference { table: ValueTableId(table), entries, bytes };
        assert_eq!(references.to_list(), [of(2, 1, 5), of(9, 2, 111)]);
    }
}
