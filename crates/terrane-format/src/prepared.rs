//! The record of a prepared transaction: the value under the transaction's name in the hidden table
//! (`docs/format/prepared.md`).
//!
//! ```text
//! version u8 | claims varint | scans varint | claims.. | scans.. | records of the batch, to the end
//! claim: mode u8 | table varint | key length varint | key
//! scan:  lower kind u8 | upper kind u8 | table varint | lower length varint | lower
//!        | upper length varint | upper
//! ```
//!
//! The record has no checksum of its own: the journal's groups and the extents' blocks have one.

use std::ops::Bound;

use terrane_base::record::Record;
use terrane_base::{Error, Result, TableId, key, varint};

/// The format version that is written.
const VERSION: u8 = 1;

/// A locked key that the transaction does not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim<'a> {
    /// The table.
    pub table: TableId,
    /// True if no other transaction may read the key for update.
    pub is_exclusive: bool,
    /// User key.
    pub key: &'a [u8],
}

/// A scanned range that must not change before the commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scanned<'a> {
    /// The table.
    pub table: TableId,
    /// Lower bound.
    pub lower: Bound<&'a [u8]>,
    /// Upper bound.
    pub upper: Bound<&'a [u8]>,
}

/// A prepared transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared<'a> {
    /// Locks on keys that the transaction does not write.
    pub claims: Vec<Claim<'a>>,
    /// Ranges that it scanned.
    pub scans: Vec<Scanned<'a>>,
    /// Its changes, encoded as a batch.
    pub batch: &'a [u8],
}

fn bound_kind(bound: Bound<&[u8]>) -> (u8, &[u8]) {
    match bound {
        Bound::Unbounded => (0, &[]),
        Bound::Included(key) => (1, key),
        Bound::Excluded(key) => (2, key),
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::put(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
}

impl<'a> Prepared<'a> {
    /// Encodes the record.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        varint::put(&mut out, self.claims.len() as u32);
        varint::put(&mut out, self.scans.len() as u32);
        for claim in &self.claims {
            out.push(u8::from(claim.is_exclusive));
            varint::put(&mut out, claim.table.0);
            put_bytes(&mut out, claim.key);
        }
        for scan in &self.scans {
            let ((lower_kind, lower), (upper_kind, upper)) = (bound_kind(scan.lower), bound_kind(scan.upper));
            out.extend_from_slice(&[lower_kind, upper_kind]);
            varint::put(&mut out, scan.table.0);
            put_bytes(&mut out, lower);
            put_bytes(&mut out, upper);
        }
        out.extend_from_slice(self.batch);
        out
    }

    /// Decodes and checks a record.
    ///
    /// # Errors
    /// `Invalid` for a later version, `Corrupt` for bytes that are not a record.
    pub fn decode(bytes: &'a [u8]) -> Result<Prepared<'a>> {
        let mut rest = Rest(bytes);
        match rest.byte()? {
            VERSION => {}
            version => {
                let message = format!(
                    "a prepared transaction of format version {version}: open it with a later version"
                );
                return Err(Error::invalid(message));
            }
        }
        let (claim_count, scan_count) = (rest.number()?, rest.number()?);
        let claims = (0..claim_count).map(|_| rest.claim()).collect::<Result<_>>()?;
        let scans = (0..scan_count).map(|_| rest.scan()).collect::<Result<_>>()?;
        let batch = rest.0;
        let mut records = batch;
        while !records.is_empty() {
            let (_, len) = Record::decode(records)?;
            records = &records[len..];
        }
        Ok(Prepared { claims, scans, batch })
    }
}

/// The bytes that are not decoded yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn byte(&mut self) -> Result<u8> {
        let (&byte, rest) = self.0.split_first().ok_or_else(cut)?;
        self.0 = rest;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u32> {
        let (number, len) = varint::get(self.0).ok_or_else(cut)?;
        self.0 = &self.0[len..];
        Ok(number)
    }

    fn key(&mut self) -> Result<&'a [u8]> {
        let len = self.number()? as usize;
        // One byte more than a key: the end of a range of keys with a common prefix may be longer than a key.
        if len > key::KEY_BYTES_MAX + 1 || len > self.0.len() {
            return Err(cut());
        }
        let (key, rest) = self.0.split_at(len);
        self.0 = rest;
        Ok(key)
    }

    fn claim(&mut self) -> Result<Claim<'a>> {
        let is_exclusive = match self.byte()? {
            0 => false,
            1 => true,
            _ => return Err(Error::corrupt("a lock of a prepared transaction has an unknown mode")),
        };
        Ok(Claim { table: TableId(self.number()?), is_exclusive, key: self.key()? })
    }

    fn scan(&mut self) -> Result<Scanned<'a>> {
        let (lower_kind, upper_kind) = (self.byte()?, self.byte()?);
        let table = TableId(self.number()?);
        let (lower, upper) = (self.key()?, self.key()?);
        Ok(Scanned { table, lower: bound(lower_kind, lower)?, upper: bound(upper_kind, upper)? })
    }
}

fn bound(kind: u8, key: &[u8]) -> Result<Bound<&[u8]>> {
    match kind {
        0 if key.is_empty() => Ok(Bound::Unbounded),
        1 => Ok(Bound::Included(key)),
        2 => Ok(Bound::Excluded(key)),
        _ => Err(Error::corrupt("a range of a prepared transaction has an unknown kind of bound")),
    }
}

#[cold]
fn cut() -> Error {
    Error::corrupt("the record of a prepared transaction is cut")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(batch: &[u8]) -> Prepared<'_> {
        Prepared {
            claims: vec![
                Claim { table: TableId(0), is_exclusive: false, key: b"read" },
                Claim { table: TableId(300), is_exclusive: true, key: b"" },
            ],
            scans: vec![
                Scanned { table: TableId(0), lower: Bound::Unbounded, upper: Bound::Excluded(b"m") },
                Scanned { table: TableId(1), lower: Bound::Included(b"a"), upper: Bound::Unbounded },
            ],
            batch,
        }
    }

    fn batch() -> terrane_base::Batch {
        let mut batch = terrane_base::Batch::new();
        batch.put(TableId(0), b"k", b"value").expect("within the limits");
        batch.delete(TableId(7), b"gone").expect("within the limits");
        batch
    }

    #[test]
    fn an_encoded_record_is_decoded() {
        let batch = batch();
        for prepared in [Prepared::default(), example(batch.bytes())] {
            assert_eq!(Prepared::decode(&prepared.encode()).expect("it was encoded"), prepared);
        }
    }

    #[test]
    fn cut_and_flipped_bytes_are_refused_or_decoded_but_never_trusted() {
        let batch = batch();
        let bytes = example(batch.bytes()).encode();
        for len in 0..bytes.len() - batch.bytes().len() {
            assert!(Prepared::decode(&bytes[..len]).is_err(), "{len} bytes");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << bit;
                if let Ok(decoded) = Prepared::decode(&bytes) {
                    assert_eq!(Prepared::decode(&decoded.encode()).expect("it was decoded"), decoded);
                }
            }
        }
        let mut huge = vec![VERSION];
        varint::put(&mut huge, u32::MAX);
        assert!(Prepared::decode(&huge).is_err());
    }
}
