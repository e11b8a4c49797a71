//! The report of a worker about a job: the objects that it uploaded, then the result of the job.
//!
//! ```text
//! outcome = magic:8 nonce:u128 count:u32 (number:u32 part:u32 bytes:u64)* checksum:u32 report
//! ```
//!
//! The report has a checksum of its own: `docs/format/job-payloads.md`.

use terrane_base::{Error, Result};
use terrane_format::checksum::crc32c;
use terrane_format::wire::Fields;

use crate::store::{Written, WrittenObject};

const WHAT: &str = "outcome of a job";
const MAGIC: &[u8; 8] = b"TRNJOBO1";
const SEED: u32 = u32::from_le_bytes(*b"JOBO");
/// Most objects of one outcome.
const OBJECTS_MAX: usize = 1 << 16;

/// An outcome as bytes.
///
/// # Errors
/// `Invalid` if it has more objects than a reader takes.
pub(super) fn encode(written: &Written, report: &[u8]) -> Result<Vec<u8>> {
    let count = written.objects.len();
    if count > OBJECTS_MAX {
        return Err(Error::invalid(format!("{WHAT}: {count} objects, the limit is {OBJECTS_MAX}")));
    }
    let mut out = Vec::with_capacity(64 + report.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&written.nonce.to_le_bytes());
    out.extend_from_slice(&(written.objects.len() as u32).to_le_bytes());
    for object in &written.objects {
        out.extend_from_slice(&object.number.to_le_bytes());
        out.extend_from_slice(&object.part.to_le_bytes());
        out.extend_from_slice(&object.bytes.to_le_bytes());
    }
    let checksum = crc32c(SEED, &out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(report);
    Ok(out)
}

/// The objects of an outcome, and the report.
///
/// # Errors
/// `Corrupt` if the bytes are not a report.
pub(super) fn decode(outcome: &[u8]) -> Result<(Written, &[u8])> {
    let mut fields = Fields::new(WHAT, outcome);
    if fields.take(MAGIC.len())? != MAGIC {
        return Err(Error::corrupt(format!("{WHAT}: the first bytes are those of something else")));
    }
    let nonce = u128::from(fields.u64()?) | u128::from(fields.u64()?) << 64;
    let count = fields.u32()? as usize;
    if count > OBJECTS_MAX {
        return Err(Error::corrupt(format!("{WHAT}: {count} objects, the limit is {OBJECTS_MAX}")));
    }
    // Grows as rows are read, never by the count that the bytes claim.
    let mut objects = Vec::new();
    for _ in 0..count {
        objects.push(WrittenObject { number: fields.u32()?, part: fields.u32()?, bytes: fields.u64()? });
    }
    let expected = crc32c(SEED, &outcome[..fields.at()]);
    let found = fields.u32()?;
    if found != expected {
        let message = format!("{WHAT} fails its checksum: expected {expected:08x}, found {found:08x}");
        return Err(Error::corrupt(message));
    }
    Ok((Written { nonce, objects }, fields.rest()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(count: u32) -> Written {
        let object = |number| WrittenObject { number, part: number % 3, bytes: u64::from(number) << 33 };
        Written { nonce: 7 << 70 | 9, objects: (1..=count).map(object).collect() }
    }

    #[test]
    fn every_field_of_an_outcome_comes_back() {
        for count in [0, 1, 300] {
            for report in [&b""[..], b"report"] {
                let outcome = encode(&written(count), report).expect("few objects");
                let (objects, rest) = decode(&outcome).expect("an outcome");
                assert_eq!((objects.nonce, rest), (written(count).nonce, report));
                let rows = |written: &Written| {
                    let row = |object: &WrittenObject| (object.number, object.part, object.bytes);
                    written.objects.iter().map(row).collect::<Vec<_>>()
                };
                assert_eq!(rows(&objects), rows(&written(count)));
            }
        }
    }

    #[test]
    fn every_cut_and_every_flipped_bit_of_an_outcome_is_found() {
        let outcome = encode(&written(3), b"").expect("few objects");
        for len in 0..outcome.len() {
            decode(&outcome[..len]).expect_err("cut");
        }
        for bit in 0..outcome.len() * 8 {
            let mut flipped = outcome.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            decode(&flipped).expect_err("flipped");
        }
    }
}
