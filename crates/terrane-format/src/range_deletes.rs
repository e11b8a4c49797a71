//! The range deletes of an extent: a part after the filter (`docs/format/extent.md`).
//!
//! ```text
//! part     = fragment* count:u32 version:u8 checksum:u32
//! fragment = start_len:varint end_len:varint numbers:varint start end number:u64*
//! ```
//!
//! A fragment hides, for every key in `start..end` and each of its numbers, the older versions from readers
//! that see that number. Fragments are sorted and disjoint; numbers descend. An end may be one byte longer
//! than a key: where a range delete was cut after a key, the next fragment begins with that key and a zero
//! byte.

use std::borrow::Cow;

use terrane_base::{Collation, Error, Result, SeqNo, key, varint};

use crate::dump::{self, FIELDS_MAX, Field};
use crate::extent::UNNUMBERED_SEQ;
use crate::wire::{self, Fields};

/// Version of the part that this module writes.
pub const VERSION: u8 = 1;
/// Longest end of a fragment, in bytes.
pub const END_BYTES_MAX: usize = key::KEY_BYTES_MAX + 1;
/// Bytes behind the fragments: count, version, checksum.
pub const TRAILER_BYTES: usize = 4 + 1 + 4;

pub(crate) const SEED: u32 = u32::from_le_bytes(*b"RDEL");

/// A range of keys with the numbers of the range deletes that cover it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// First key.
    pub start: Vec<u8>,
    /// First key after the range.
    pub end: Vec<u8>,
    /// Numbers of the range deletes, newest first; at least one.
    pub seqs: Vec<SeqNo>,
}

impl Fragment {
    /// The newest range delete that a reader at `at` sees.
    #[inline]
    #[must_use]
    pub fn newest(&self, at: SeqNo) -> Option<SeqNo> {
        self.seqs.iter().copied().find(|seq| *seq <= at)
    }

    /// The oldest range delete that is newer than `seq`.
    #[inline]
    #[must_use]
    pub fn next_above(&self, seq: SeqNo) -> Option<SeqNo> {
        self.seqs.iter().rev().copied().find(|number| *number > seq)
    }

    /// Bytes that the fragment takes in the part.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let lens = [self.start.len(), self.end.len(), self.seqs.len()];
        lens.iter().map(|len| varint::len(*len as u32)).sum::<usize>()
            + self.start.len()
            + self.end.len()
            + 8 * self.seqs.len()
    }

    /// A key that is not less than any key of the fragment; the least such key that can be written down.
    #[must_use]
    pub fn last_key(&self, collation: &Collation) -> Cow<'_, [u8]> {
        collation.last_before(&self.end)
    }
}

/// The range deletes of an extent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragments(Vec<Fragment>, Collation);

impl Fragments {
    /// Appends the part with these fragments to `out`. Requires: they are sorted and disjoint, their numbers
    /// descend.
    pub fn encode(fragments: &[Fragment], out: &mut Vec<u8>) {
        let start = out.len();
        for fragment in fragments {
            varint::put(out, fragment.start.len() as u32);
            varint::put(out, fragment.end.len() as u32);
            varint::put(out, fragment.seqs.len() as u32);
            out.extend_from_slice(&fragment.start);
            out.extend_from_slice(&fragment.end);
            fragment.seqs.iter().for_each(|seq| out.extend_from_slice(&seq.0.to_le_bytes()));
        }
        out.extend_from_slice(&(fragments.len() as u32).to_le_bytes());
        out.push(VERSION);
        let checksum = crate::checksum::crc32c(SEED, &out[start..]);
        out.extend_from_slice(&checksum.to_le_bytes());
    }

    /// Checks and decodes the part.
    ///
    /// # Errors
    /// `Corrupt` if checksum or version are wrong, a fragment is cut, empty or too long, or they are out of
    /// order.
    pub fn decode(bytes: &[u8]) -> Result<Fragments> {
        Fragments::decode_ordered(bytes, &Collation::BYTES)
    }

    /// [`Fragments::decode`] for a table with this key order.
    ///
    /// # Errors
    /// As [`Fragments::decode`].
    pub fn decode_ordered(bytes: &[u8], collation: &Collation) -> Result<Fragments> {
        let body = wire::checked_body("range deletes", SEED, bytes)?;
        let Some((body, trailer)) = body.split_last_chunk::<{ TRAILER_BYTES - 4 }>() else {
            return Err(Error::corrupt(format!("range deletes of {} bytes are cut", bytes.len())));
        };
        let [count @ .., version] = *trailer;
        if version != VERSION {
            return Err(Error::corrupt(format!(
                "range deletes: expected version {VERSION}, found {version}"
            )));
        }
        let mut fields = Fields::new("range deletes", body);
        let mut fragments: Vec<Fragment> = Vec::new();
        while !fields.rest().is_empty() {
            let fragment = decode_fragment(&mut fields, collation)?;
            let is_behind =
                |last: &Fragment| collation.lt(&fragment.start, &last.end) && !collation.is_missing();
            if fragments.last().is_some_and(is_behind) {
                return Err(Error::corrupt("range deletes are out of order").of_order());
            }
            fragments.push(fragment);
        }
        let count = u32::from_le_bytes(count) as usize;
        if fragments.len() != count || count == 0 {
            return Err(Error::corrupt(format!(
                "range deletes: expected {count} fragments, at least 1, found {}",
                fragments.len()
            )));
        }
        fragments.shrink_to_fit();
        Ok(Fragments(fragments, collation.clone()))
    }

    /// Replaces [`UNNUMBERED_SEQ`] by `seq` in every range delete, for an extent that is numbered as a whole.
    ///
    /// # Errors
    /// `Corrupt` if a range delete has another number.
    pub fn number(&mut self, seq: SeqNo) -> Result<()> {
        for fragment in &mut self.0 {
            if fragment.seqs != [UNNUMBERED_SEQ] {
                return Err(Error::corrupt(format!(
                    "range delete from {}: expected the number {UNNUMBERED_SEQ} alone in an extent that is numbered as a whole, \
                     found {:?}",
                    dump::text(&fragment.start),
                    fragment.seqs
                )));
            }
            fragment.seqs[0] = seq;
        }
        Ok(())
    }

    /// All fragments, in key order.
    #[must_use]
    pub fn all(&self) -> &[Fragment] {
        &self.0
    }

    /// Index of the first fragment that ends after `key`.
    #[inline]
    #[must_use]
    pub fn find(&self, key: &[u8]) -> usize {
        self.0.partition_point(|fragment| self.1.le(&fragment.end, key))
    }

    /// The fragment that covers `key`.
    #[inline]
    #[must_use]
    pub fn covering(&self, key: &[u8]) -> Option<&Fragment> {
        self.0.get(self.find(key)).filter(|fragment| self.1.le(&fragment.start, key))
    }

    /// Smallest and largest number.
    #[must_use]
    pub fn seq_range(&self) -> Option<(SeqNo, SeqNo)> {
        seq_range(&self.0)
    }

    /// Bytes of memory that the fragments take.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let bytes = |fragment: &Fragment| fragment.start.len() + fragment.end.len() + 8 * fragment.seqs.len();
        self.0.iter().map(|fragment| size_of::<Fragment>() + bytes(fragment)).sum()
    }
}

/// Smallest and largest number of some fragments.
#[must_use]
pub fn seq_range(fragments: &[Fragment]) -> Option<(SeqNo, SeqNo)> {
    let least = fragments.iter().filter_map(|fragment| fragment.seqs.last()).min()?;
    let greatest = fragments.iter().filter_map(|fragment| fragment.seqs.first()).max()?;
    Some((*least, *greatest))
}

fn decode_fragment(fields: &mut Fields<'_>, collation: &Collation) -> Result<Fragment> {
    let [start_len, end_len] = [fields.varint()? as usize, fields.varint()? as usize];
    let numbers = fields.varint()? as usize;
    if start_len.max(end_len) > END_BYTES_MAX {
        return Err(Error::corrupt("range delete with an end beyond the limit of keys"));
    }
    let (start, end) = (fields.take(start_len)?.to_vec(), fields.take(end_len)?.to_vec());
    if collation.le(&end, &start) && !collation.is_missing() {
        return Err(Error::corrupt("range delete of an empty range").of_order());
    }
    // Bounded by the bytes that are left, whatever the count claims.
    let mut seqs: Vec<SeqNo> = Vec::with_capacity(numbers.min(fields.rest().len() / 8));
    for _ in 0..numbers {
        let seq = SeqNo(fields.u64()?);
        if seq > SeqNo::MAX || seqs.last().is_some_and(|last| *last <= seq) {
            return Err(Error::corrupt(
                "range delete with sequence numbers out of order or beyond the limit",
            ));
        }
        seqs.push(seq);
    }
    if seqs.is_empty() {
        return Err(Error::corrupt("range delete without a sequence number"));
    }
    Ok(Fragment { start, end, seqs })
}

/// Describes the part for `terrane dump`.
#[must_use]
pub fn describe(bytes: &[u8]) -> Vec<Field> {
    // The key order of the table is unknown here.
    let fragments = match Fragments::decode_ordered(bytes, &Collation::missing("")) {
        Ok(fragments) => fragments,
        Err(error) => return vec![dump::broken(0, bytes.len(), error)],
    };
    let mut at = 0;
    let mut fields = Vec::new();
    for (number, fragment) in fragments.0.iter().enumerate().take(FIELDS_MAX) {
        let seqs: Vec<String> = fragment.seqs.iter().take(8).map(ToString::to_string).collect();
        let (start, end) = (dump::text(&fragment.start), dump::text(&fragment.end));
        let value = format!("{start} to before {end} at {}", seqs.join(" "));
        fields.push(Field::new(at, fragment.encoded_len(), format!("fragment[{number}]"), value));
        at += fragment.encoded_len();
    }
    let trailer_at = bytes.len() - TRAILER_BYTES;
    if fragments.0.len() > FIELDS_MAX {
        fields.push(dump::more(at, trailer_at - at, fragments.0.len() - FIELDS_MAX));
    }
    fields.push(Field::new(trailer_at, 4, "count", fragments.0.len()));
    fields.push(Field::new(trailer_at + 4, 1, "version", VERSION));
    fields.push(Field::new(trailer_at + 5, 4, "checksum", "holds"));
    fields
}
