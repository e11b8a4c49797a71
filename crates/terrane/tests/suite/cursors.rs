//! A cursor that is refreshed sees what a new one sees, whatever happened to the table in between, and keeps
//! what it saw until then.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;

use terrane::{Cursor, Db, Kind, Options, TableOptions};
use terrane_base::Rng;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(number: u64) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

/// A short scan from `start`, forward or back, compared with the model.
fn check(cursor: &mut Cursor, model: &Model, start: &[u8], backward: bool) {
    let mut expected: Vec<_> = if backward {
        model.range(..=start.to_vec()).rev().take(12).collect()
    } else {
        model.range(start.to_vec()..).take(12).collect()
    };
    expected.reverse();
    if backward {
        cursor.seek_back(start).unwrap()
    } else {
        cursor.seek(start).unwrap()
    }
    while let Some((key, value)) = expected.pop() {
        assert_eq!(cursor.row(), Some((key.as_slice(), value.as_slice())));
        if expected.is_empty() {
            return;
        }
        if backward { cursor.prev().unwrap() } else { cursor.next().unwrap() }
    }
    assert_eq!(cursor.row(), None);
}

#[test]
fn a_refreshed_cursor_sees_what_a_new_one_sees() {
    for direct_io in ["false", "true"] {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut options = Options::default();
        for (name, value) in [("memory_bytes", "16MiB"), ("block_bytes", "1KiB"), ("direct_io", direct_io)] {
            options.set(name, value).unwrap();
        }
        let db = Db::open_with(dir.path().join("db"), &options).unwrap();
        let table = db.default_table();
        let mut rng = Rng::new(7);
        let mut model = Model::new();
        let mut cursor = table.cursor();
        assert_eq!(cursor.row(), None);
        for round in 0..300u64 {
            let before = model.clone();
            for _ in 0..rng.below(60) {
                let (key, value) = (key(rng.below(3000)), vec![round as u8; rng.below(300) as usize]);
                if rng.below(6) == 0 {
                    db.delete(&key).unwrap();
                    model.remove(&key);
                } else {
                    db.put(&key, &value).unwrap();
                    model.insert(key, value);
                }
            }
            match rng.below(12) {
                0 => db.flush().unwrap(),
                1 => db.flush_to_run(table).unwrap(),
                2 => db.compact_range(table, ..).unwrap(),
                _ => {}
            }
            let (start, backward) = (key(rng.below(3100)), rng.below(2) == 0);
            check(&mut cursor, &before, &start, backward);
            cursor.refresh();
            assert_eq!(cursor.row(), None, "no position");
            check(&mut cursor, &model, &start, backward);
        }
        // One of a snapshot goes on to the present, and its snapshot stays.
        let snapshot = db.snapshot();
        let mut cursor = snapshot.cursor(table);
        let before = model.clone();
        db.put(b"zzz", b"new").unwrap();
        model.insert(b"zzz".to_vec(), b"new".to_vec());
        check(&mut cursor, &before, b"zz", false);
        cursor.refresh();
        check(&mut cursor, &model, b"zz", false);
        assert_eq!(snapshot.get(table, b"zzz").unwrap(), None);
        drop(cursor);
        db.close().unwrap();
    }
}

#[test]
fn a_scan_around_the_page_cache_has_reads_under_way() {
    for io_uring in ["on", "auto", "off"] {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut options = Options::default();
        let settings = [
            ("memory_bytes", "16MiB"),
            ("direct_io", "true"),
            ("io_uring", io_uring),
            ("compression", "none"),
            ("compression_last", "none"),
        ];
        for (name, value) in settings {
            options.set(name, value).unwrap();
        }
        let db = match Db::open_with(dir.path().join("db"), &options) {
            Ok(db) => db,
            Err(error) => {
                // A system without it: refused by name, and only where it must be had.
                assert_eq!((error.kind(), io_uring), (Kind::Invalid, "on"), "{error}");
                assert!(error.to_string().contains("io_uring=on"), "{error}");
                continue;
            }
        };
        for number in 0..40_000 {
            db.put(key(number), [number as u8; 800]).unwrap();
        }
        db.flush().unwrap();
        let table = db.default_table();
        let before = db.stats();
        assert!(table.iter().map(Result::unwrap).map(|(key, _)| key).eq((0..40_000).map(key)));
        assert!(table.iter().rev().map(Result::unwrap).map(|(key, _)| key).eq((0..40_000).rev().map(key)));
        let after = db.stats();
        let ring_reads = after.device_ring_reads - before.device_ring_reads;
        match io_uring {
            "on" => assert!(ring_reads > 100, "{ring_reads} reads by rings"),
            "off" => assert_eq!(ring_reads, 0),
            _ => {}
        }
        let reads = after.device_user_reads - before.device_user_reads;
        let bytes = after.device_user_bytes_read - before.device_user_bytes_read;
        assert!(bytes / reads > 40_000, "{bytes} bytes by {reads} reads: windows, not blocks");
        db.close().unwrap();
    }
}

/// The rows from `start` on, each as the step lends it; it is that where the cursor is then.
fn lent_rows(cursor: &mut Cursor, start: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let own = |row: Option<(&[u8], &[u8])>| row.map(|(key, value)| (key.to_vec(), value.to_vec()));
    let mut rows = Vec::new();
    let mut lent = cursor.seek_seen(start, own).unwrap();
    while let Some(row) = lent {
        assert_eq!(cursor.row(), Some((row.0.as_slice(), row.1.as_slice())));
        rows.push(row);
        lent = cursor.next_seen(own).unwrap();
    }
    assert_eq!(cursor.row(), None);
    assert_eq!(cursor.next_seen(own).unwrap(), None, "a step without a position leads nowhere");
    rows
}

#[test]
fn the_row_that_a_step_lends_is_that_where_it_leads() {
    // A cursor that may become too old takes its steps another way.
    for reader_age_max_ms in [0, 3_600_000] {
        let db = Db::open_in_memory_with(&Options { reader_age_max_ms, ..Options::default() }).unwrap();
        for order in ["bytewise", "reverse"] {
            let options = TableOptions::new().key_order(order).merge_operator("append");
            let table = db.create_table(order, &options).unwrap();
            for number in 0..60u64 {
                // Puts in extents, and above them deletes, puts and operands in the memtable.
                table.put(key(number), terrane::counter::encode(number as i64)).unwrap();
            }
            db.flush().unwrap();
            for number in (0..60u64).step_by(3) {
                match number % 4 {
                    0 => table.delete(key(number)).unwrap(),
                    1 => table.put(key(number), b"longer than a counter").unwrap(),
                    _ => table.merge(key(number), terrane::counter::encode(1)).unwrap(),
                }
            }
            for start in [key(0), key(7), b"l".to_vec(), Vec::new()] {
                let mut expected = Vec::new();
                let mut cursor = table.cursor();
                cursor.seek(&start).unwrap();
                while let Some((key, value)) = cursor.row() {
                    expected.push((key.to_vec(), value.to_vec()));
                    cursor.next().unwrap();
                }
                assert_eq!(lent_rows(&mut table.cursor(), &start), expected, "{order} from {start:?}");
            }
            assert_eq!(
                lent_rows(&mut table.cursor(), if order == "reverse" { b"z" } else { b"a" }).len(),
                55
            );
        }
    }
}
