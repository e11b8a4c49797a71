//! The reserved fields for encryption: bytes that use them are refused by name, also with right checksums.
//! The page is `docs/format/encryption.md`.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use crate::common;

use terrane_base::{ExtentId, Kind, SegmentId};
use terrane_format::checksum::crc32c;
use terrane_format::extent::{ExtentMeta, FOOTER_BYTES, Footer, check};
use terrane_format::manifest::file::{DatabaseId, FileHeader};
use terrane_format::segment::{ChainLink, SegmentHeader};

#[test]
fn an_encrypted_database_is_refused_by_name() {
    let mut bytes = FileHeader::new(1, DatabaseId(7), 0).encode();
    bytes[48] = 3;
    let checksum = crc32c(0x7e44_a11e, &bytes[..60]);
    bytes[60..].copy_from_slice(&checksum.to_le_bytes());
    let error = FileHeader::decode(&bytes).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid, "{error}");
    assert!(error.to_string().contains("encrypted (scheme 3)"), "{error}");
}

#[test]
fn an_encrypted_segment_is_refused_by_name() {
    let previous = ChainLink::default();
    let header =
        SegmentHeader { id: SegmentId(1), file: 1, bytes: 4096, previous, edit: 0, salt: Some(u32::MAX) };
    let mut bytes = header.encode();
    assert_eq!(SegmentHeader::decode(&bytes).unwrap().0, header);
    bytes[10] = 7;
    let checksum = crc32c(0, &bytes[..60]);
    bytes[60..].copy_from_slice(&checksum.to_le_bytes());
    let error = SegmentHeader::decode(&bytes).unwrap_err();
    assert!(error.to_string().contains("encrypted with key 7"), "{error}");
}

#[test]
fn an_encrypted_extent_is_refused_by_name() {
    let extent = common::example_extent();
    let mut footer = extent[extent.len() - FOOTER_BYTES..].to_vec();
    assert!(Footer::decode(&footer).is_ok());
    footer[3] = 1;
    let body = FOOTER_BYTES - 12;
    let checksum = crc32c(u32::from_le_bytes(*b"FOOT"), &footer[..body]);
    footer[body..body + 4].copy_from_slice(&checksum.to_le_bytes());
    let error = Footer::decode(&footer).unwrap_err();
    assert!(error.to_string().contains("encrypted with key 1"), "{error}");
    let mut meta = Vec::new();
    check::inspect(&extent, ExtentId::default(), 1).unwrap().encode(&mut meta);
    meta[3] = 255;
    let error = ExtentMeta::decode(&meta).unwrap_err();
    assert!(error.to_string().contains("encrypted with key 255"), "{error}");
}
