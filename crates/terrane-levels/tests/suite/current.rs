//! The text of CURRENT.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use terrane_base::Kind;
use terrane_format::manifest::DatabaseId;
use terrane_format::manifest::file::Current;

#[test]
fn current_is_checked_to_the_last_bit() {
    let database = DatabaseId(0x0123_4567_89ab_cdef_0011_2233_4455_6677);
    let current = Current { file: 7, database };
    let text = current.encode();
    assert_eq!(Current::decode(text.as_bytes()).unwrap(), current);
    for bit in 0..text.len() * 8 {
        let mut bytes = text.clone().into_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Current::decode(&bytes).unwrap_err().kind(), Kind::Corrupt, "bit {bit}");
    }
    for len in 0..text.len() {
        assert!(Current::decode(&text.as_bytes()[..len]).is_err());
    }
    assert!(Current::decode(format!("{text}\n").as_bytes()).is_err());
    assert!(Current::decode(&[b'x'; 300]).is_err());
}
