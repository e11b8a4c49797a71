//! Allocations of reads past the cache. A program of its own beside the `suite`, as the allocator is the
//! process's.
#![allow(unsafe_code, reason = "counts allocations")]
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]

#[path = "suite/support/mod.rs"]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use support::Row;
use support::store::{TestStore, write_extents};
use terrane_base::options::Compression;
use terrane_base::{Cursor, SeqNo};
use terrane_table::{Cache, CursorOptions, ExtentCursor, ExtentScanner, WriterSettings};

/// A shorter allocation is not a block.
const SHORT_BYTES: usize = 4 << 10;

/// The system's allocator, and how many long pieces this thread asked it for.
struct Counting;

thread_local! {
    static LONG: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= SHORT_BYTES {
            let _ = LONG.try_with(|long| long.set(long.get() + 1));
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn key(number: u64) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

fn long_in(work: impl FnOnce()) -> u64 {
    let before = LONG.get();
    work();
    LONG.get() - before
}

/// One test, because what another one of the process does with its buffers would count.
#[test]
fn a_read_for_which_the_cache_has_no_room_takes_buffers_that_were_used_before() {
    let store = TestStore::new();
    let rows: Vec<_> = (0..12_000).map(|number| Row::put(&key(number), number + 1, &[7; 100])).collect();
    for compression in [Compression::Lz4, Compression::None] {
        let settings = WriterSettings { compression, ..WriterSettings::default() };
        let extents = write_extents(&rows, settings, 4_000_000, &store);
        let extent = &extents[0];
        assert!(extent.meta.blocks > 20 && extent.meta.filter.len as usize > SHORT_BYTES);
        // It has room for nothing: filter, index block and data block are read again for each get.
        let cache = Cache::new(0);
        let get = |number: u64| {
            let mut value = Vec::new();
            let found = extent.get(&cache, &key(number), SeqNo::MAX, &mut value).unwrap();
            assert!(found.is_some() && value == [7; 100], "{number}");
        };
        get(0);
        let reads = store.reads();
        assert_eq!(long_in(|| (0..200).for_each(|number| get(number * 7))), 0, "{compression:?}: gets");
        assert!(store.reads() - reads >= 3 * 200, "every get reads all parts of the extent");

        // It has room, but each part is too large for its arena: an eighth of a chunk is the most.
        let outside = Cache::with_memory(16 << 20, 16 << 20, Some(SHORT_BYTES));
        // An extent belongs to one cache.
        let extents = write_extents(&rows, settings, 4_000_000, &store);
        let of_outside = &extents[0];
        let evicted = |number: u64| {
            let mut value = Vec::new();
            assert!(of_outside.get(&outside, &key(number), SeqNo::MAX, &mut value).unwrap().is_some());
            let used = outside.used_bytes();
            assert!(used > u64::from(of_outside.meta.filter.len), "the parts are in the cache");
            outside.clear();
            assert_eq!(outside.used_bytes(), 0, "and leave it");
        };
        evicted(0);
        let again = long_in(|| (0..50).for_each(|number| evicted(number * 7)));
        assert_eq!(again, 0, "{compression:?}: parts that were evicted and are loaded again");

        let scan = || {
            let options = CursorOptions { fill_cache: true, read_ahead_bytes: 256 << 10 };
            let mut cursor = ExtentCursor::new(extent.clone(), cache.clone(), options);
            cursor.seek_first().unwrap();
            for number in 0..2_000 {
                assert_eq!(cursor.entry().unwrap().key, key(number));
                cursor.next().unwrap();
            }
        };
        scan();
        assert_eq!(long_in(scan), 0, "{compression:?}: a scan that reads ahead");

        let merge = || {
            let mut scanner = ExtentScanner::ahead(extent.clone(), 256 << 10).unwrap();
            for at in 0..extent.meta.blocks as usize {
                let block = scanner.block(at).unwrap();
                assert!(!block.bytes().is_empty());
                ExtentScanner::keep(block);
            }
        };
        merge();
        let index_alone = u64::from(extent.meta.index.len as usize >= SHORT_BYTES);
        assert!(long_in(merge) <= 2 * index_alone, "{compression:?}: a job has one index block");
    }
}
