//! Memory that hostile bytes may cost: the most that a body takes, counted by the allocator, grows with its
//! input only. A body also builds the data that it compares with, so the bounds are wider than those of the
//! decoders.
//!
//! One test, for the count is of the whole process.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that is its own allocator"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use terrane_fuzz::mutate::mutated;
use terrane_fuzz::{TARGETS, corpus};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn grow(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(live, Relaxed);
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most memory that `work` has at once beyond the memory before it.
fn peak_of(work: impl FnOnce()) -> usize {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    work();
    PEAK.load(Relaxed) - before
}

/// Most memory for an input of `len` bytes.
fn bound(name: &str, len: usize) -> usize {
    const KIB: usize = 1 << 10;
    match name {
        // What a block decompresses to is bounded by its length field, which the body keeps below 4 MiB.
        "codec" => 5120 * KIB + 8 * len,
        // 255 bytes of a block for one stored byte; the cache that it is read through.
        "extent" | "index" => 1024 * KIB + 600 * len,
        // The state, written again and read again.
        "edit" | "manifest" => 256 * KIB + 300 * len,
        // The accounting of a data file has one size, however long its name is.
        "store" => 512 * KIB,
        // Values of TOML, and the states of a manifest that is read as it is and in a chain.
        "deployment" => 1024 * KIB + 300 * len,
        "objects" => 512 * KIB + 600 * len,
        // A device in memory, and what an opening reads at once.
        "object_log" => 4096 * KIB + 100 * len,
        // The runtime of the call, an object of the bucket, and what a stream may have under way.
        "service_request" | "service_answer" => 1024 * KIB + 100 * len,
        // A restore makes a data file, on a device in memory, and a segment.
        "backup" => 10 * 1024 * KIB + 300 * len,
        _ => 256 * KIB + 100 * len,
    }
}

#[test]
fn memory_grows_with_the_input_only() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    // The budget of a whole engine is an option; it is not measured here.
    for target in TARGETS.iter().filter(|target| !["database", "engine"].contains(&target.name)) {
        let inputs: Vec<Vec<u8>> = corpus::read(root, target).unwrap().into_values().collect();
        let mut most = (0, 0);
        let check = |input: &[u8], what: &str, most: &mut (usize, usize)| {
            let peak = peak_of(|| (target.run)(input));
            *most = (*most).max((peak, input.len()));
            let bound = bound(target.name, input.len());
            assert!(peak <= bound, "{} takes {peak} bytes for {} of {what}", target.name, input.len());
        };
        for input in &inputs {
            check(input, "its corpus", &mut most);
        }
        for seed in 0..400 {
            check(&mutated(&inputs, seed), &format!("seed {seed}"), &mut most);
        }
        println!("{}: at most {} bytes for an input of {}", target.name, most.0, most.1);
    }
    manifest_of_the_smallest_operations();
    dump_of_the_smallest_operations();
    dump_of_an_index_of_the_smallest_rows();
}

/// The operations that take most memory for their bytes, 1 MiB of each.
fn manifest_of_the_smallest_operations() {
    use terrane_format::manifest::edit::decode_edits;
    let edits: [(&str, Vec<u8>); 3] = [
        ("empty edits", vec![0; 1 << 20]),
        ("drops, an edit each", [1, 3, 5].repeat((1 << 20) / 3)),
        ("drops, one edit", [&[0xff, 0xff, 0x1f][..], &[3, 5].repeat((1 << 20) / 2)].concat()),
    ];
    for (name, payload) in edits {
        let peak = peak_of(|| drop(decode_edits(&payload)));
        println!(
            "{name}: {peak} bytes for {}, {:.1} times",
            payload.len(),
            peak as f64 / payload.len() as f64
        );
        assert!(peak < 50 * payload.len(), "{name}: {peak} bytes for {}", payload.len());
    }
}

/// A dump tells a manifest field by field.
fn dump_of_the_smallest_operations() {
    use terrane_format::manifest::file::{DatabaseId, FileHeader};
    use terrane_format::manifest::record::{Link, RecordTag};
    let header = FileHeader::new(1, DatabaseId(7), 0);
    let mut bytes = header.encode().to_vec();
    let seed = header.checksum();
    let mut link = Link { seed, previous: seed, number: 0 };
    link.append(
        RecordTag::Snapshot,
        &[&[0xff, 0xff, 0x1f][..], &[3, 5].repeat(1 << 19)].concat(),
        &mut bytes,
    );
    let mut count = 0;
    let peak = peak_of(|| terrane_format::manifest::describe(&bytes, &mut |_| count += 1));
    println!("a dump of {count} operations: {peak} bytes");
    assert!(count > 1 << 19 && peak < 64 << 10, "{peak} bytes for {count} fields");
}

/// Of an index with rows without end a dump tells some.
fn dump_of_an_index_of_the_smallest_rows() {
    let index = terrane_fuzz::parts::index_of_small_rows(200_000);
    let mut fields = Vec::new();
    let peak = peak_of(|| fields = terrane_format::index::describe(&index));
    let last = fields.iter().map(|field| field.offset + field.len).max();
    assert_eq!(last, Some(index.len()), "the fields cover it");
    println!("a dump of an index of {} bytes: {} fields, {peak} bytes", index.len(), fields.len());
    assert!(
        fields.len() < 70_000 && peak < 8 * index.len() + (64 << 20),
        "{peak} for {} fields",
        fields.len()
    );
}
