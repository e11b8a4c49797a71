//! A device that reads one bit wrong, once: the manifest looks torn where it is not.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::sync::Arc;

use common::{add, database, dir, open, read_file, still, with_manifest};
use terrane_device::{Call, Failure, Fault, FaultyDisk, MemDisk};
use terrane_format::manifest::record::RECORD_HEADER_BYTES;
use terrane_levels::Manifest;

/// The last record, behind which no mark is durable, looks torn wherever a bit of it is wrong.
#[test]
fn a_bit_that_is_read_wrong_once_loses_no_edit() {
    let device = MemDisk::new();
    let (manifest, states) = database(&device, &[add(1, 1), add(2, 2)]);
    drop(manifest);
    let whole = read_file(&device, &dir().join("MANIFEST-000001"));
    // A mark is a header without a payload.
    let bytes = &whole[..whole.len() - RECORD_HEADER_BYTES];
    let (one_edit, _) = database(&MemDisk::new(), &[add(1, 1)]);
    let size = one_edit.size();
    let last_start = (size.snapshot_bytes + size.edit_bytes) as usize;
    assert!(last_start < bytes.len(), "{last_start}: the last edit is in the file");
    for at in last_start..bytes.len() {
        let inner = with_manifest(&device, 1, bytes);
        let disk = FaultyDisk::new(Arc::new(inner.clone()));
        let bit = (at * 8 + at % 8) as u64;
        disk.fail(Fault::new(Call::Read, Failure::WrongBit(bit)).on("MANIFEST"));
        let (manifest, state) = Manifest::open_with(Arc::new(disk.clone()), dir(), still()).unwrap();
        assert_eq!(disk.wrong_bits(), 1, "byte {at} was read");
        assert!(state == states[2] && manifest.torn_bytes() == 0, "byte {at}");
        manifest.append(&add(3, 1)).unwrap();
        drop(manifest);
        let (_, found) = open(&inner.crash(1)).unwrap();
        assert!(found == states[2].apply(&add(3, 1)).unwrap(), "byte {at}");
    }
}
