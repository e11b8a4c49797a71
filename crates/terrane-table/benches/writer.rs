//! Cost of building extents, for each raw byte: 16 B keys, 100 B values, filter of 10 bits per key.
#![allow(clippy::unwrap_used, reason = "benches may panic")]
#![allow(missing_docs, reason = "criterion's macros")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use terrane_base::options::Compression;
use terrane_base::{Entry, RecordKind, SeqKind, SeqNo, rng};
use terrane_format::index::IndexBlock;
use terrane_table::{ExtentWriter, WriterSettings};

const VALUE: usize = 100;

/// The same numbers in every run.
fn mix(seed: u64) -> u64 {
    rng::mix(seed.wrapping_mul(rng::STEP))
}

/// Keys in order, scattered versions, values of which half compresses; in one piece each, as a merge sees
/// them.
struct Source {
    keys: Vec<[u8; 16]>,
    values: Vec<u8>,
}

impl Source {
    fn new(count: usize) -> Source {
        let keys = (0..count as u64).map(|i| {
            let mut key = *b"user000000000000";
            key[8..].copy_from_slice(&(i * 1000 + mix(i) % 1000).to_be_bytes());
            key
        });
        let words = (0..count * VALUE / 8 + 16)
            .map(|i| if i % 2 == 0 { mix(i as u64) } else { 0x2020_2020_2020_2020 });
        Source { keys: keys.collect(), values: words.flat_map(u64::to_le_bytes).collect() }
    }

    fn entry(&self, i: usize) -> Entry<'_> {
        let seq_kind = SeqKind::new(SeqNo(mix(i as u64) >> 20), RecordKind::Put);
        Entry { key: &self.keys[i], seq_kind, value: &self.values[i * VALUE..(i + 1) * VALUE] }
    }

    /// Adds entries until the extent is full; returns how many.
    fn fill(&self, writer: &mut ExtentWriter) -> usize {
        let mut count = 0;
        while count < self.keys.len() && writer.fits(16, VALUE) {
            writer.add(self.entry(count)).unwrap();
            count += 1;
        }
        count
    }
}

fn settings(compression: Compression) -> WriterSettings {
    WriterSettings { compression, ..WriterSettings::default() }
}

fn write(c: &mut Criterion) {
    let source = Source::new(40_000);
    let mut group = c.benchmark_group("extent_write");
    for compression in [Compression::None, Compression::Lz4] {
        let mut writer = ExtentWriter::new(settings(compression)).unwrap();
        let count = source.fill(&mut writer);
        writer.reset();
        group.throughput(Throughput::Bytes((count * (16 + VALUE)) as u64));
        group.bench_function(format!("{compression:?}"), |b| {
            b.iter(|| {
                source.fill(&mut writer);
                let (bytes, meta) = writer.finish_bytes().unwrap();
                writer.recycle(bytes);
                meta.bytes
            });
        });
    }
    group.finish();
}

/// All blocks of one extent copied undecoded into another.
fn reuse(c: &mut Criterion) {
    let source = Source::new(40_000);
    let mut group = c.benchmark_group("extent_reuse");
    for (name, compression, bits) in [
        ("None", Compression::None, 10),
        ("None, no filter", Compression::None, 0),
        ("Lz4", Compression::Lz4, 10),
    ] {
        let settings = WriterSettings { filter_bits_per_key: bits, ..settings(compression) };
        let mut writer = ExtentWriter::new(settings).unwrap();
        let count = source.fill(&mut writer);
        let (bytes, meta) = writer.finish_bytes().unwrap();
        let index = bytes[meta.index.offset as usize..meta.index.end() as usize].to_vec();
        let index = IndexBlock::decode(index).unwrap();
        group.throughput(Throughput::Bytes((count * (16 + VALUE)) as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                for row in index.rows() {
                    let stored = &bytes[row.offset as usize..][..row.stored_len as usize];
                    writer.add_block(&row, stored, false).unwrap();
                }
                let (bytes, meta) = writer.finish_bytes().unwrap();
                writer.recycle(bytes);
                meta.bytes
            });
        });
    }
    group.finish();
}

criterion_group!(benches, write, reuse);
criterion_main!(benches);
