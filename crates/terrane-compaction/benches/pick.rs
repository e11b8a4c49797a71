//! Picking a job of a table with 555,550 extents in five levels, about 1.1 TB.
//!
//! * `due`: a level is beyond its target.
//! * `nothing`: all is within limits and no extent has deletes: sums alone tell.
//! * `deletes`: the last level has deletes, but no extent has enough of them: chunks tell.
#![allow(clippy::unwrap_used, reason = "a failed step fails the bench")]
#![expect(missing_docs, reason = "criterion's macro makes a public function")]

use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use terrane_base::options::Options;
use terrane_base::{ExtentId, SeqNo, TableId};
use terrane_compaction::{Claims, Cursors, Limits, TableShape, debt_bytes, pick};
use terrane_format::extent::{self, ExtentMeta};
use terrane_format::manifest::Place;
use terrane_levels::{Change, Metasnapshot};
use terrane_storage::SLOT_BYTES;

const KEYS: u64 = 1 << 40;

fn meta(slot: u32, smallest: u64, largest: u64, deletes: u64) -> Arc<ExtentMeta> {
    Arc::new(ExtentMeta {
        id: ExtentId { file: 1 + slot / 500, slot: slot % 500 },
        bytes: SLOT_BYTES as u32,
        raw_bytes: SLOT_BYTES as u64,
        smallest: smallest.to_be_bytes().to_vec(),
        largest: largest.to_be_bytes().to_vec(),
        seq_min: SeqNo(1),
        seq_max: SeqNo(2),
        entries: 10_000,
        deletes,
        blocks: 128,
        format_version: extent::VERSION,
        compression: Options::default().compression_last,
        ..ExtentMeta::default()
    })
}

fn table(lens: &[u64], deletes: u64) -> Metasnapshot<Arc<ExtentMeta>> {
    let mut changes = Vec::new();
    let mut slot = 0;
    for (index, len) in lens.iter().enumerate() {
        let width = KEYS / len;
        let deletes = if index + 1 == lens.len() { deletes } else { 0 };
        for at in 0..*len {
            // Levels do not start at the same keys.
            let smallest = at * width + width / 7 * index as u64 / 8;
            let extent = meta(slot, smallest, smallest + width - 2, deletes);
            changes.push(Change::Add { place: Place::Level(index as u8 + 1), extent });
            slot += 1;
        }
    }
    Metasnapshot::new().apply(changes).unwrap()
}

fn picks(c: &mut Criterion) {
    let mut limits = Limits::from_options(&Options::default().resolve(1).unwrap());
    limits.level_base_bytes = 50 * SLOT_BYTES as u64;
    let mut group = c.benchmark_group("pick");
    group.sample_size(20);
    for (name, lens, deletes) in [
        ("due", [50, 500, 6000, 50_000, 500_000], 0),
        ("nothing", [50, 500, 5000, 50_000, 500_000], 0),
        ("deletes", [50, 500, 5000, 50_000, 500_000], 10),
    ] {
        let metasnapshot = table(&lens, deletes);
        let shape = TableShape::of(TableId(1), &metasnapshot, &[]);
        let (claims, cursors) = (Claims::new(), Cursors::new());
        assert_eq!(pick(&shape, &limits, &claims, &cursors).is_some(), name == "due");
        group.bench_function(name, |b| b.iter(|| pick(&shape, &limits, &claims, &cursors)));
        if name == "due" {
            group.bench_function("debt", |b| b.iter(|| debt_bytes(&shape, &limits)));
        }
    }
    group.finish();
}

criterion_group!(benches, picks);
criterion_main!(benches);
