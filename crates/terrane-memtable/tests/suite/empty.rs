//! Memory of a memtable that holds nothing, or little: a database may have thousands of tables.
#![cfg(not(feature = "shuttle"))]
#![allow(clippy::unwrap_used, reason = "a failed test may say so by a panic")]

use crate::support::Segments;
use terrane_base::{Cursor, SeqNo};
use terrane_memtable::Memtable;

const KIB: u64 = 1 << 10;

#[test]
fn an_empty_memtable_takes_less_than_a_kilobyte_and_one_record_less_than_six() {
    let memtable = Memtable::with_filter(SeqNo(0), true);
    assert!(memtable.index_bytes() < KIB, "{} bytes", memtable.index_bytes());
    assert_eq!(memtable.index_bytes(), Memtable::EMPTY_BYTES);
    Segments::new(4096).put(1, b"key", b"value").insert_into(&memtable);
    assert!(memtable.index_bytes() < 6 * KIB, "{} bytes", memtable.index_bytes());
}

/// The first insertion makes the root, behind cursors that were made before.
#[test]
fn a_cursor_of_an_empty_memtable_sees_what_comes_later() {
    let memtable = Memtable::with_filter(SeqNo(0), true);
    let mut cursor = memtable.cursor();
    cursor.prepare_seek(b"key");
    cursor.seek(b"key", SeqNo::MAX).unwrap();
    assert!(cursor.entry().is_none() && memtable.get(b"key", SeqNo::MAX).is_none());
    let mut found = vec![None; 2];
    memtable.get_many(&[b"key", b"other"], SeqNo::MAX, &mut found);
    assert_eq!(found, [None, None]);
    Segments::new(4096).put(1, b"key", b"value").insert_into(&memtable);
    cursor.seek(b"key", SeqNo::MAX).unwrap();
    assert_eq!(cursor.entry().unwrap().key, b"key");
    cursor.seek_before(b"kez").unwrap();
    assert_eq!(cursor.entry().unwrap().key, b"key");
}
