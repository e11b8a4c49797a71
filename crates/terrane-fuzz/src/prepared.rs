//! Target: the record of a prepared transaction.

use std::ops::Bound;

use terrane_base::{Batch, Kind, TableId, record::Record};
use terrane_format::prepared::{Claim, Prepared, Scanned};

use crate::Seed;

/// Decodes a record; an accepted record is written again, read again, and made into a batch.
///
/// # Panics
/// If an encoded record is not decoded to the same, or an error is not one of damage or of a later version.
pub fn run(bytes: &[u8]) {
    let decoded = match Prepared::decode(bytes) {
        Ok(decoded) => decoded,
        Err(error) => {
            let is_later = bytes.first().is_some_and(|version| *version != 1);
            let expected = if is_later { Kind::Invalid } else { Kind::Corrupt };
            assert_eq!(error.kind(), expected, "{error}");
            return;
        }
    };
    let again = decoded.encode();
    assert!(Prepared::decode(&again).expect("what was encoded is decoded") == decoded);
    let (mut batch, mut rest) = (Batch::new(), decoded.batch);
    while !rest.is_empty() {
        let (record, len) = Record::decode(rest).expect("the records were decoded before");
        if batch.push(record).is_err() {
            return;
        }
        rest = &rest[len..];
    }
}

/// Corpus of [`run`].
#[must_use]
pub fn seeds() -> Vec<Seed> {
    let mut batch = Batch::new();
    batch.put(TableId(0), b"key", b"value").expect("within the limits");
    batch.put(TableId(300), b"", &[7; 300]).expect("within the limits");
    batch.delete(TableId(1), b"gone").expect("within the limits");
    let claims = vec![
        Claim { table: TableId(0), is_exclusive: false, key: b"read" },
        Claim { table: TableId(300), is_exclusive: true, key: b"" },
    ];
    let scans = vec![
        Scanned { table: TableId(0), lower: Bound::Unbounded, upper: Bound::Excluded(b"m") },
        Scanned { table: TableId(1), lower: Bound::Included(b"a"), upper: Bound::Unbounded },
    ];
    let whole = Prepared { claims: claims.clone(), scans: scans.clone(), batch: batch.bytes() };
    let seeds = [
        ("empty", Prepared::default()),
        ("locks", Prepared { claims, ..Prepared::default() }),
        ("ranges", Prepared { scans, ..Prepared::default() }),
        ("changes", Prepared { batch: batch.bytes(), ..Prepared::default() }),
        ("whole", whole),
    ];
    seeds.into_iter().map(|(name, prepared)| (name.to_owned(), prepared.encode())).collect()
}
