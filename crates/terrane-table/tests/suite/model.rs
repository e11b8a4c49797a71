//! Point reads and cursors over extents against sorted rows.
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]
#![cfg(not(feature = "shuttle"))]

use crate::support;

use std::sync::Arc;

use support::store::{TestStore, write_extent, write_extents};
use support::{Row, RowCursor, random_key, sort, walk};
use terrane_base::options::Compression;
use terrane_base::{Cursor, Rng, SeqNo};
use terrane_format::block::BlockCursor;
use terrane_format::filter;
use terrane_table::{
    Cache, CursorOptions, Extent, ExtentCursor, ExtentList, ExtentScanner, LevelCursor, MergeCursor, Need,
    Probe, WriterSettings, enter, verify_extent,
};

/// Many versions of few keys, so that one key's versions fill several blocks.
fn rows(rng: &mut Rng, count: usize) -> Vec<Row> {
    let mut rows: Vec<Row> = (0..count)
        .map(|_| {
            let (key, seq) = (random_key(rng), 1 + rng.index(60) as u64);
            if rng.index(8) == 0 {
                Row::delete(&key, seq)
            } else {
                Row::put(&key, seq, &vec![seq as u8; rng.index(40)])
            }
        })
        .collect();
    sort(&mut rows);
    rows
}

fn settings(rng: &mut Rng) -> WriterSettings {
    WriterSettings {
        block_bytes: [64, 256, 4096][rng.index(3)],
        filter_bits_per_key: [0, 2, 10][rng.index(3)],
        compression: [Compression::None, Compression::Lz4][rng.index(2)],
        ..WriterSettings::default()
    }
}

fn options(rng: &mut Rng) -> CursorOptions {
    CursorOptions {
        fill_cache: rng.index(2) == 0,
        read_ahead_bytes: [0, 1, 5000, 100_000, 1 << 20][rng.index(5)],
    }
}

/// From "nothing fits" over "evicts all the time" to "everything fits".
fn cache(rng: &mut Rng) -> Arc<Cache> {
    Cache::new([0, 4 << 10, 32 << 10, 64 << 20][rng.index(4)])
}

#[test]
fn extent_and_level_cursors_match_the_model() {
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let count = 1 + rng.index(600);
        let rows = rows(&mut rng, count);
        let store = TestStore::new();
        let settings = settings(&mut rng);
        let cache = cache(&mut rng);

        let extent = write_extent(&rows, settings, &store);
        let mut cursor = ExtentCursor::new(extent, cache.clone(), options(&mut rng));
        assert!(cursor.entry().is_none(), "no position before the first placement");
        walk(&mut cursor, &mut RowCursor::new(rows.clone()), &mut rng, 150);

        let level: Arc<dyn ExtentList> = Arc::new(write_extents(&rows, settings, 4096, &store));
        let mut cursor = LevelCursor::new(level, cache, options(&mut rng));
        walk(&mut cursor, &mut RowCursor::new(rows.clone()), &mut rng, 150);
    }
}

#[test]
fn point_reads_match_the_model() {
    for seed in 0..100 {
        let mut rng = Rng::new(1000 + seed);
        let count = 1 + rng.index(600);
        let rows = rows(&mut rng, count);
        let store = TestStore::new();
        let extent = write_extent(&rows, settings(&mut rng), &store);
        let cache = cache(&mut rng);
        let mut model = RowCursor::new(rows.clone());
        for _ in 0..400 {
            let key = if rng.index(3) == 0 {
                random_key(&mut rng)
            } else {
                rows[rng.index(rows.len())].key.clone()
            };
            let seq = SeqNo(rng.index(64) as u64);
            model.seek(&key, seq).unwrap();
            let expected = model.entry().filter(|entry| entry.key == key);
            let mut value = b"kept:".to_vec();
            let found = extent.get(&cache, &key, seq, &mut value).unwrap();
            assert_eq!(found, expected.map(|entry| entry.seq_kind), "{key:?} at {seq}");
            assert_eq!(value, [&b"kept:"[..], expected.map_or(&b""[..], |entry| entry.value)].concat());
        }
    }
}

#[test]
fn levels_and_memory_merge_like_one_sorted_vector() {
    let mut rng = Rng::new(99);
    let store = TestStore::new();
    let cache = Cache::new(256 << 10);
    let mut all = Vec::new();
    let mut sources: Vec<Box<dyn Cursor>> = Vec::new();
    for number in 0..5 {
        let rows = rows(&mut rng, 400);
        all.extend(rows.iter().cloned());
        if number == 0 {
            sources.push(Box::new(RowCursor::new(rows)));
        } else {
            let level: Arc<dyn ExtentList> = Arc::new(write_extents(&rows, settings(&mut rng), 4096, &store));
            sources.push(Box::new(LevelCursor::new(level, cache.clone(), CursorOptions::default())));
        }
    }
    // The sort is stable: of equals the oldest place is kept.
    all.reverse();
    sort(&mut all);
    walk(&mut MergeCursor::new(sources), &mut RowCursor::new(all), &mut rng, 3000);
}

fn plain_rows(count: u64) -> Vec<Row> {
    (0..count).map(|i| Row::put(format!("key{i:08}").as_bytes(), i + 1, &[b'v'; 100])).collect()
}

#[test]
fn a_cached_read_touches_no_store_and_an_absent_key_no_block() {
    let store = TestStore::new();
    let rows = plain_rows(5000);
    let extent = write_extent(&rows, WriterSettings::default(), &store);
    let cache = Cache::new(64 << 20);
    let probe = |extent: &Extent, key: &[u8]| {
        extent.probe(&enter(), key, Some(filter::hash(key)), SeqNo::MAX, &mut Vec::new())
    };
    assert_eq!(probe(&extent, b"key00000007"), Probe::Unknown(Need::Filter), "nothing is cached yet");
    assert_eq!(store.reads(), 0, "a probe reads nothing");

    extent.warm(&cache).unwrap();
    assert_eq!(store.reads(), 2, "filter and index block");
    let absent = (0..1000).filter(|i| {
        let key = format!("key{i:08}x");
        extent.get(&cache, key.as_bytes(), SeqNo::MAX, &mut Vec::new()).unwrap().is_none()
    });
    assert_eq!(absent.count(), 1000);
    let false_positives = extent.cached_blocks();
    assert!(false_positives <= 40, "{false_positives} blocks were read for 1000 absent keys");

    for row in &rows {
        assert!(extent.get(&cache, &row.key, SeqNo::MAX, &mut Vec::new()).unwrap().is_some());
    }
    assert_eq!(extent.cached_blocks(), extent.meta.blocks as usize);
    let reads = store.reads();
    for row in &rows {
        let mut value = Vec::new();
        let found = extent.probe(&enter(), &row.key, Some(filter::hash(&row.key)), SeqNo::MAX, &mut value);
        assert_eq!(found, Probe::Found(row.seq_kind));
        assert_eq!(value, row.value);
    }
    assert!(matches!(probe(&extent, b"zzz"), Probe::Absent | Probe::Refused));
    assert_eq!(
        extent.get(&cache, b"key00000007", SeqNo(3), &mut Vec::new()).unwrap(),
        None,
        "newer than asked for"
    );
    assert_eq!(store.reads(), reads, "everything came from the cache");
}

#[test]
fn scans_read_ahead_and_do_not_fill_the_cache_on_request() {
    let store = TestStore::new();
    let rows = plain_rows(10_000);
    let extent = write_extent(&rows, WriterSettings::default(), &store);
    for backward in [false, true] {
        let cache = Cache::new(64 << 20);
        // An extent belongs to one cache, so each round opens its own.
        let extent = Extent::new(extent.meta.clone(), store.clone());
        let options = CursorOptions { fill_cache: false, read_ahead_bytes: 256 << 10 };
        let mut cursor = ExtentCursor::new(extent.clone(), cache.clone(), options);
        let (reads, bytes) = (store.reads(), store.bytes_read());
        if backward {
            cursor.seek_last().unwrap()
        } else {
            cursor.seek_first().unwrap()
        }
        let mut count = 0;
        while cursor.entry().is_some() {
            count += 1;
            if backward { cursor.prev().unwrap() } else { cursor.next().unwrap() }
        }
        assert_eq!(count, rows.len());
        assert_eq!(extent.cached_blocks(), 0);
        let (reads, bytes) = (store.reads() - reads, store.bytes_read() - bytes);
        let data = u64::from(extent.meta.index.offset);
        let whole = data + u64::from(extent.meta.index.len);
        assert_eq!(bytes, whole, "every byte once");
        // The index block, two blocks by themselves, windows of 32, 64 and 128 KiB, then 256 KiB each.
        let windows = (data.saturating_sub((2 * 16 + 32 + 64 + 128) << 10)).div_ceil(230 << 10);
        assert!(reads <= 3 + 3 + windows + 1, "{reads} reads of {data} bytes");
    }
}

/// A scan that ends has read at most twice what it used, and the first window over small blocks.
#[test]
fn a_short_scan_reads_at_most_twice_what_it_uses() {
    for block_bytes in [1 << 10, 4 << 10, 16 << 10] {
        let store = TestStore::new();
        let settings = WriterSettings { block_bytes, ..WriterSettings::default() };
        let extent = write_extent(&plain_rows(10_000), settings, &store);
        for backward in [false, true] {
            let extent = Extent::new(extent.meta.clone(), store.clone());
            let options = CursorOptions { fill_cache: true, read_ahead_bytes: 256 << 10 };
            let mut cursor = ExtentCursor::new(extent.clone(), Cache::new(64 << 20), options);
            cursor.seek(b"key00005000", SeqNo::MAX).unwrap();
            // The index block and the first block.
            let before = store.bytes_read();
            for _ in 0..3000 {
                if backward {
                    cursor.prev().unwrap()
                } else {
                    cursor.next().unwrap()
                }
                let read = store.bytes_read() - before;
                let used = (extent.cached_blocks() * block_bytes * 9 / 8) as u64;
                // An established scan has the next window under way: it is twice as long as the one in use.
                let times = if used < 48 << 10 { 2 } else { 6 };
                let first = if block_bytes <= 8 << 10 { 18 << 10 } else { 0 };
                assert!(read <= times * used + first, "{read} bytes beside the first block for {used} used");
            }
            assert!(extent.cached_blocks() > 10, "the scan was a long one in the end");
        }
    }
}

/// A scan of 100 rows waits twice with small blocks: for its first one, and for the others together.
#[test]
fn a_short_scan_over_small_blocks_waits_twice() {
    let reads_of = |block_bytes: usize, backward: bool| {
        let store = TestStore::new();
        let settings = WriterSettings { block_bytes, compression: Compression::None, ..Default::default() };
        let rows: Vec<Row> =
            (0..10_000).map(|n| Row::put(format!("key{n:08}").as_bytes(), 1, &[b'v'; 100])).collect();
        let extent = write_extent(&rows, settings, &store);
        let (mut reads, mut scans) = (0, 0);
        for start in (500..9_500).step_by(37) {
            let extent = Extent::new(extent.meta.clone(), store.clone());
            let options = CursorOptions { fill_cache: true, read_ahead_bytes: 256 << 10 };
            let mut cursor = ExtentCursor::new(extent, Cache::new(64 << 20), options);
            let before = store.reads();
            cursor.seek(format!("key{start:08}").as_bytes(), SeqNo::MAX).unwrap();
            for _ in 0..99 {
                if backward { cursor.prev().unwrap() } else { cursor.next().unwrap() }
            }
            // Without the index block.
            (reads, scans) = (reads + store.reads() - before - 1, scans + 1);
        }
        (reads, scans)
    };
    for backward in [false, true] {
        for block_bytes in [8 << 10, 4 << 10, 2 << 10] {
            let (reads, scans) = reads_of(block_bytes, backward);
            assert!(reads <= 2 * scans, "blocks of {block_bytes}: {reads} reads for {scans} scans");
        }
    }
}

#[test]
fn a_level_is_read_ahead_over_the_borders_of_its_extents() {
    let store = TestStore::new();
    let rows = plain_rows(10_000);
    let extents = write_extents(&rows, WriterSettings::default(), 300_000, &store);
    assert!(extents.len() > 3);
    for backward in [false, true] {
        // Extents belong to one cache, so each round opens its own.
        let open = |extent: &Arc<Extent>| Extent::new(extent.meta.clone(), store.clone());
        let list: Vec<Arc<Extent>> = extents.iter().map(open).collect();
        let options = CursorOptions { fill_cache: true, read_ahead_bytes: 1 << 20 };
        // Room for the index blocks and hardly more: data blocks come by the windows only.
        let cache = Cache::new(64 << 10);
        let mut cursor = LevelCursor::new(Arc::new(list), cache, options);
        let (reads, bytes) = (store.reads(), store.bytes_read());
        if backward {
            cursor.seek_last().unwrap()
        } else {
            cursor.seek_first().unwrap()
        }
        let mut seen: Vec<Row> = Vec::new();
        while let Some(entry) = cursor.entry() {
            seen.push(Row::of(entry));
            if backward { cursor.prev().unwrap() } else { cursor.next().unwrap() }
        }
        if backward {
            seen.reverse();
        }
        assert!(seen == rows);
        let (reads, bytes) = (store.reads() - reads, store.bytes_read() - bytes);
        let data: u64 = extents.iter().map(|extent| u64::from(extent.meta.index.offset)).sum();
        let indexes: u64 = extents.iter().map(|extent| u64::from(extent.meta.index.len)).sum();
        assert!(bytes >= data + indexes && bytes <= data + 3 * indexes, "{bytes} bytes, {data} of data");
        assert!(reads <= 5 * extents.len() as u64 + 4, "{reads} reads of {} extents", extents.len());
    }
}

/// The rows of all blocks, in order.
fn scanned(scanner: &mut ExtentScanner) -> Vec<Row> {
    let mut seen = Vec::new();
    for at in 0..scanner.rows().len() {
        let stored = scanner.stored(at).unwrap().to_vec();
        let row = scanner.rows().row(at);
        assert_eq!(stored.len(), row.stored_len as usize);
        let block = scanner.block(at).unwrap();
        let mut cursor = BlockCursor::new();
        cursor.seek_first(&block);
        while let Some(entry) = cursor.entry(&block) {
            seen.push(Row::of(entry));
            cursor.next(&block);
        }
    }
    seen
}

#[test]
fn the_scanner_gives_every_block_in_few_reads() {
    let mut rng = Rng::new(5);
    for _ in 0..30 {
        let rows = rows(&mut rng, 500);
        let store = TestStore::new();
        let extent = write_extent(&rows, settings(&mut rng), &store);
        let chunk_bytes = [1, 700, 1 << 20][rng.index(3)];
        for is_ahead in [false, true] {
            let reads = store.reads();
            let open = if is_ahead { ExtentScanner::ahead } else { ExtentScanner::new };
            let mut scanner = open(extent.clone(), chunk_bytes).unwrap();
            assert_eq!(scanned(&mut scanner), rows);
            if chunk_bytes == 1 << 20 {
                assert_eq!(store.reads() - reads, 2, "the index block and one chunk");
            }
            // Any order: back, and over blocks that were read ahead.
            scanner.stored(0).unwrap();
            for _ in 0..10 {
                let at = rng.index(scanner.rows().len());
                let first_key = scanner.rows().row(at).first_key.to_vec();
                let block = scanner.block(at).unwrap();
                let mut cursor = BlockCursor::new();
                cursor.seek_first(&block);
                assert_eq!(cursor.entry(&block).unwrap().key, first_key);
            }
        }
        assert_eq!(verify_extent(&extent.meta, &*store).len(), 0);
    }
}

#[test]
fn the_next_chunk_is_being_read_while_one_is_used() {
    const CHUNKS_BYTES: u32 = 16 << 10;
    let store = TestStore::new();
    let rows: Vec<_> = (0..800).map(|at| Row::put(format!("{at:05}").as_bytes(), 1, &[7; 90])).collect();
    let settings = WriterSettings { block_bytes: 1 << 10, ..WriterSettings::default() };
    let extent = write_extent(&rows, settings, &store);
    let (index, block_max) = (extent.meta.index, 2 << 10);
    assert!(index.offset > 4 * CHUNKS_BYTES, "{} bytes of data are several chunks", index.offset);
    let mut scanner = ExtentScanner::ahead(extent, CHUNKS_BYTES).unwrap();
    for at in 0..scanner.rows().len() {
        let row = scanner.rows().row(at);
        let end = row.offset + row.stored_len;
        scanner.stored(at).unwrap();
        let read = store.bytes_read() - u64::from(index.len);
        let next = (end + CHUNKS_BYTES / 2 - 2 * block_max).min(index.offset);
        assert!(read >= u64::from(next), "{read} bytes are read at block {at}, which ends at {end}");
        let memory_max = CHUNKS_BYTES as usize + (16 << 10);
        assert!(scanner.memory_bytes() - scanner.rows().memory_bytes() <= memory_max, "memory is bounded");
    }
    let read = store.bytes_read() - u64::from(index.len);
    assert!(read <= u64::from(index.offset + block_max), "{read} bytes: one block twice at most");
    let chunks = u64::from(index.offset.div_ceil(CHUNKS_BYTES / 2 - block_max));
    assert!(store.reads() <= 1 + chunks, "{} reads, {chunks} chunks", store.reads());
}
