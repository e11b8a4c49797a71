//! Damaged extents: every damaged byte is found or harmless, errors name the place, nothing panics.
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]
#![cfg(not(feature = "shuttle"))]

use crate::support;

use std::sync::Arc;

use support::Row;
use support::store::{TestStore, write_extent};
use terrane_base::options::Compression;
use terrane_base::{Cursor, Kind, Result, SeqNo};
use terrane_table::{
    Cache, CursorOptions, Extent, ExtentCursor, ExtentScanner, WriterSettings, verify_extent,
};

fn rows() -> Vec<Row> {
    (0..60u64).map(|i| Row::put(format!("key{i:03}").as_bytes(), i + 1, &[b'v'; 20])).collect()
}

fn settings(compression: Compression) -> WriterSettings {
    WriterSettings { block_bytes: 600, compression, ..WriterSettings::default() }
}

/// Reads the extent in every way; whatever is read without an error must be right.
fn read_all(extent: &Arc<Extent>, rows: &[Row]) -> Vec<Result<()>> {
    let cache = Cache::new(1 << 20);
    let mut results = Vec::new();
    for row in rows {
        let mut value = Vec::new();
        let found = extent.get(&cache, &row.key, SeqNo::MAX, &mut value);
        if let Ok(found) = &found {
            assert_eq!((*found, &value), (Some(row.seq_kind), &row.value));
        }
        results.push(found.map(drop));
    }
    let mut cursor = ExtentCursor::new(extent.clone(), cache, CursorOptions::default());
    let mut moved = cursor.seek_first();
    for row in rows {
        if moved.is_err() {
            assert!(cursor.entry().is_none(), "no position after an error");
            break;
        }
        assert_eq!(cursor.entry(), Some(row.entry()));
        moved = cursor.next();
    }
    results.push(moved);
    results.push(scan_all(ExtentScanner::new(extent.clone(), 1 << 20), rows));
    results.push(scan_all(ExtentScanner::ahead(extent.clone(), 1 << 10), rows));
    results
}

fn scan_all(scanner: Result<ExtentScanner>, rows: &[Row]) -> Result<()> {
    let mut scanner = scanner?;
    let mut entries = 0;
    for at in 0..scanner.rows().len() {
        scanner.stored(at)?;
        entries += scanner.block(at)?.entry_count();
    }
    assert_eq!(entries, rows.len());
    Ok(())
}

#[test]
fn damage_at_every_byte_is_found_or_harmless() {
    for compression in [Compression::None, Compression::Lz4] {
        let store = TestStore::new();
        let rows = rows();
        let meta = write_extent(&rows, settings(compression), &store).meta.clone();
        let whole = store.bytes(meta.id);
        assert!(verify_extent(&meta, &*store).is_empty());
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            store.set_bytes(meta.id, bytes);
            let findings = verify_extent(&meta, &*store);
            assert!(!findings.is_empty(), "damage at byte {at} is not found");
            for error in &findings {
                assert_eq!(error.kind(), Kind::Corrupt);
                let place = error.place().expect("a finding has a place");
                assert_eq!(place.file, "data/000001.ext");
            }
            let extent = Extent::new(meta.clone(), store.clone());
            for error in read_all(&extent, &rows).into_iter().filter_map(Result::err) {
                assert_eq!(error.kind(), Kind::Corrupt, "{error}");
                assert!(error.place().is_some(), "{error}");
            }
            if at < meta.filter.end() as usize {
                let extent = Extent::new(meta.clone(), store.clone());
                assert!(read_all(&extent, &rows).iter().any(Result::is_err), "byte {at} is in use");
            }
        }
    }
}

#[test]
fn a_cut_extent_and_another_one_in_its_place_are_found() {
    let store = TestStore::new();
    let rows = rows();
    let meta = write_extent(&rows, settings(Compression::None), &store).meta.clone();
    let whole = store.bytes(meta.id);
    for len in [0, 1, 100, whole.len() / 2, whole.len() - 1] {
        store.set_bytes(meta.id, whole[..len].to_vec());
        assert!(!verify_extent(&meta, &*store).is_empty());
        read_all(&Extent::new(meta.clone(), store.clone()), &rows);
    }
    // A whole extent of the same shape, with other values: only the manifest's checksums tell.
    let others: Vec<Row> =
        (0..60u64).map(|i| Row::put(format!("key{i:03}").as_bytes(), i + 1, &[b'w'; 20])).collect();
    let other = write_extent(&others, settings(Compression::None), &store).meta.clone();
    store.set_bytes(meta.id, store.bytes(other.id));
    assert!(!verify_extent(&meta, &*store).is_empty());
    let extent = Extent::new(meta.clone(), store.clone());
    let errors = read_all(&extent, &rows);
    assert!(errors.iter().all(Result::is_err), "nothing of the other extent is read as this one's");
}

/// A manifest that lies: no panic, no allocation beyond the extent, an error.
#[test]
fn a_meta_that_does_not_fit_is_an_error() {
    let store = TestStore::new();
    let rows = rows();
    let meta = write_extent(&rows, settings(Compression::None), &store).meta.clone();
    let lies: [fn(&mut terrane_format::extent::ExtentMeta); 7] = [
        |meta| meta.index.len = u32::MAX,
        |meta| meta.index.offset = u32::MAX,
        |meta| meta.filter.len = u32::MAX,
        |meta| meta.blocks += 1,
        |meta| meta.bytes = 10,
        |meta| meta.slots = 0,
        |meta| meta.index = meta.filter,
    ];
    for lie in lies {
        let mut meta = meta.clone();
        lie(&mut meta);
        assert!(!verify_extent(&meta, &*store).is_empty());
        let extent = Extent::new(meta, store.clone());
        let result = extent.get(&Cache::new(1 << 20), &rows[0].key, SeqNo::MAX, &mut Vec::new());
        assert_eq!(result.unwrap_err().kind(), Kind::Corrupt);
    }
}
