//! The offer of a writer: the job, and how large the objects of its database are.
//!
//! ```text
//! offer = magic:8 object_bytes:u64 request
//! ```
//!
//! The object in the table of jobs and the request have checksums of their own:
//! `docs/format/job-payloads.md`.

use terrane_base::{Error, Result};
use terrane_format::wire::Fields;

const WHAT: &str = "offer of a job";
const MAGIC: &[u8; 8] = b"TRNJOBF1";

/// A request as it is offered.
pub(super) fn encode(object_bytes: u64, request: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 + request.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&object_bytes.to_le_bytes());
    out.extend_from_slice(request);
    out
}

/// The size of objects, and the request.
///
/// # Errors
/// `Corrupt` if it is not an offer; `Invalid` if a later version made it.
pub(super) fn decode(payload: &[u8]) -> Result<(u64, &[u8])> {
    let mut fields = Fields::new(WHAT, payload);
    let magic = fields.take(MAGIC.len())?;
    if magic != MAGIC {
        let is_later = magic[..7] == MAGIC[..7];
        let wrong = || Error::corrupt(format!("{WHAT}: the first bytes are those of something else"));
        let later = || Error::invalid(format!("{WHAT}: a later version made it; use a newer program"));
        return Err(if is_later { later() } else { wrong() });
    }
    Ok((fields.u64()?, fields.rest()))
}

#[cfg(test)]
mod tests {
    use terrane_base::Kind;

    use super::*;

    #[test]
    fn an_offer_comes_back_and_others_are_refused() {
        let offer = encode(5 << 20, b"request");
        assert_eq!(decode(&offer).expect("an offer"), (5 << 20, &b"request"[..]));
        for len in 0..16 {
            assert_eq!(decode(&offer[..len]).expect_err("cut").kind(), Kind::Corrupt, "{len}");
        }
        for (at, expected) in (0..8).map(|at| (at, if at == 7 { Kind::Invalid } else { Kind::Corrupt })) {
            let mut other = offer.clone();
            other[at] ^= 3;
            assert_eq!(decode(&other).expect_err("another magic").kind(), expected, "{at}");
        }
    }
}
