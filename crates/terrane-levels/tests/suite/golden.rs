//! The worked example of `docs/format/manifest.md` is what the code writes. An accidental change of the
//! format fails here; an intended one raises the version and changes the page.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::sync::Arc;

use common::{dir, env, read_file, still};
use terrane_base::env::{Env, Random};
use terrane_base::{SegmentId, SeqNo, TableId};
use terrane_device::MemDisk;
use terrane_format::manifest::{Edit, EditOp, SegmentSpec, describe};
use terrane_levels::Manifest;

#[derive(Debug)]
struct Fixed;

impl Random for Fixed {
    fn next_u64(&self) -> u64 {
        0x0011_2233_4455_6677
    }
}

/// The bytes of the `hex` fences of a page, in order. A line reads `offset: byte byte ... | meaning`.
fn examples(page: &str) -> Vec<Vec<u8>> {
    let fences = page.split("```hex\n").skip(1).map(|fence| fence.split("```").next().unwrap());
    fences.map(bytes_of).collect()
}

fn bytes_of(fence: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in fence.lines() {
        let (offset, rest) = line.split_once(':').unwrap();
        assert_eq!(usize::from_str_radix(offset.trim(), 16).unwrap(), bytes.len(), "offset of line {line:?}");
        let digits = rest.split('|').next().unwrap().split_whitespace();
        bytes.extend(digits.map(|byte| u8::from_str_radix(byte, 16).unwrap()));
    }
    bytes
}

/// A new database, and one edit: a segment becomes live.
fn example() -> MemDisk {
    let disk = MemDisk::new();
    let env = Env { random: Arc::new(Fixed), ..env() };
    let (manifest, _) =
        Manifest::create_with(Arc::new(disk.clone()), dir(), &env, Vec::new(), still()).unwrap();
    let spec = SegmentSpec { id: SegmentId(1), file: 1, bytes: 1 << 20 };
    manifest
        .append(&Edit { ops: vec![EditOp::AddSegment(spec), EditOp::Durable { seq: SeqNo(7) }] })
        .unwrap();
    disk
}

#[test]
fn manifest_file() {
    let bytes = read_file(&example(), &dir().join("MANIFEST-000001"));
    let expected = examples(include_str!("../../../../docs/format/manifest.md"));
    let mut shown: Vec<String> = Vec::new();
    describe(&bytes, &mut |field| {
        let part = &bytes[field.offset..field.offset + field.len];
        let hex: Vec<String> = part.iter().map(|byte| format!("{byte:02x}")).collect();
        shown.push(format!("{:02x}: {} | {}: {}", field.offset, hex.join(" "), field.name, field.value));
    });
    assert_eq!(expected, [bytes], "the page should read\n{}", shown.join("\n"));
}

#[test]
fn current_file() {
    let text = String::from_utf8(read_file(&example(), &dir().join("CURRENT"))).unwrap();
    let page = include_str!("../../../../docs/format/directory.md");
    assert!(page.contains(&text), "the page should have the line\n{text}");
}

/// Constants that the pages state in words.
#[test]
fn the_default_table_is_number_0() {
    let (_, state) = Manifest::open(Arc::new(example()), dir()).unwrap();
    assert_eq!(state.table_named(terrane_levels::DEFAULT_TABLE_NAME).unwrap().id, TableId::DEFAULT);
}
