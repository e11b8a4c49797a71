//! What a block costs: building it, decoding it, finding a key in it, walking it; 16 B keys and 100 B values.
#![allow(clippy::unwrap_used, reason = "benches may panic")]
#![allow(missing_docs, reason = "criterion's macros")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use terrane_base::options::Compression;
use terrane_base::{Entry, RecordKind, SeqKind, SeqNo};
use terrane_format::block::{self, Block, BlockBuilder, BlockCursor};
use terrane_format::codec::{self, Encoder};
use terrane_format::filter;
use terrane_format::index::{IndexBlock, IndexBuilder, IndexRow};

const BLOCK_BYTES: usize = 16 << 10;
const VALUE: usize = 100;

/// SplitMix64: the same numbers in every run.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Sorted 16-byte keys of ten million, spread as after random puts, and values that compress to about half.
fn entries(count: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let value = |i: u64| {
        let words = (0..VALUE as u64 / 8 + 1).flat_map(|word| match word % 2 {
            0 => mix(i * 100 + word).to_le_bytes(),
            _ => *b"terrane ",
        });
        words.take(VALUE).collect::<Vec<u8>>()
    };
    (0..count).map(|i| (key(i).to_vec(), value(i))).collect()
}

/// The `i`th of the sorted keys: 16 digits.
fn key(i: u64) -> [u8; 16] {
    let mut number = i * 7 + mix(i) % 7;
    let mut key = [b'0'; 16];
    for digit in key.iter_mut().rev() {
        *digit += (number % 10) as u8;
        number /= 10;
    }
    key
}

fn fill(builder: &mut BlockBuilder, entries: &[(Vec<u8>, Vec<u8>)]) -> usize {
    for (count, (key, value)) in entries.iter().enumerate() {
        if builder.estimated_bytes() + key.len() + value.len() + 24 > BLOCK_BYTES {
            return count;
        }
        let seq_kind = SeqKind::new(SeqNo(mix(count as u64) >> 20), RecordKind::Put);
        builder.add(Entry { key, seq_kind, value }).unwrap();
    }
    entries.len()
}

fn built(entries: &[(Vec<u8>, Vec<u8>)]) -> (Vec<u8>, usize) {
    let mut builder = BlockBuilder::new();
    let count = fill(&mut builder, entries);
    (builder.finish().to_vec(), count)
}

fn build(c: &mut Criterion) {
    let entries = entries(1000);
    let (bytes, _) = built(&entries);
    let mut group = c.benchmark_group("block_build");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    let mut builder = BlockBuilder::new();
    group.bench_function("16K", |b| {
        b.iter(|| {
            builder.reset();
            fill(&mut builder, &entries);
            black_box(builder.finish().len())
        });
    });
    group.bench_function("checksum", |b| b.iter(|| block::checksum(black_box(&bytes))));
    group.bench_function("decode", |b| {
        b.iter_batched(|| bytes.clone(), |bytes| Block::decode(bytes).unwrap(), BatchSize::LargeInput);
    });
    group.finish();
}

/// Finds in one block that stays in the processor's cache, and in 64 MiB of blocks that do not.
fn find(c: &mut Criterion) {
    let mut group = c.benchmark_group("block_find");
    for (name, blocks) in [("cached", 1), ("memory", 4096)] {
        let entries = entries(140 * blocks);
        let (mut made, mut from) = (Vec::new(), 0);
        while from < entries.len() {
            let (bytes, count) = built(&entries[from..]);
            made.push((Block::decode(bytes).unwrap(), from, count));
            from += count;
        }
        let mut turn = 0u64;
        group.bench_function(name, |b| {
            b.iter(|| {
                turn += 1;
                let random = mix(turn);
                let (block, from, count) = &made[random as usize % made.len()];
                let key = key((from + (random >> 32) as usize % count) as u64);
                block.find(&key, SeqNo::MAX).unwrap().value.len()
            });
        });
    }
    group.finish();
}

fn scan(c: &mut Criterion) {
    let entries = entries(1000);
    let (bytes, count) = built(&entries);
    let block = Block::decode(bytes).unwrap();
    let mut group = c.benchmark_group("block_scan");
    group.throughput(Throughput::Elements(count as u64));
    let mut cursor = BlockCursor::new();
    group.bench_function("forward", |b| {
        b.iter(|| {
            let mut bytes = 0;
            cursor.seek_first(&block);
            while let Some(entry) = cursor.entry(&block) {
                bytes += entry.key.len() + entry.value.len();
                cursor.next(&block);
            }
            bytes
        });
    });
    group.bench_function("backward", |b| {
        b.iter(|| {
            let mut bytes = 0;
            cursor.seek_last(&block);
            while let Some(entry) = cursor.entry(&block) {
                bytes += entry.key.len() + entry.value.len();
                cursor.prev(&block);
            }
            bytes
        });
    });
    group.finish();
}

/// What it costs to learn the hashes of a stored block's keys when it is reused: the price of not storing them.
fn rehash(c: &mut Criterion) {
    let entries = entries(1000);
    let (bytes, count) = built(&entries);
    let mut group = c.benchmark_group("block_rehash");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    let mut hashes = Vec::with_capacity(count);
    for compression in codecs() {
        let mut stored = Vec::new();
        let used = Encoder::new(compression).unwrap().encode(&bytes, &mut stored).unwrap();
        group.bench_function(format!("{compression:?}"), |b| {
            b.iter(|| {
                let block = Block::decode(codec::decode(used, &stored, bytes.len()).unwrap()).unwrap();
                let mut cursor = BlockCursor::new();
                hashes.clear();
                cursor.seek_first(&block);
                while let Some(entry) = cursor.entry(&block) {
                    hashes.push(filter::hash(entry.key));
                    cursor.next(&block);
                }
                hashes.len()
            });
        });
    }
    group.finish();
}

fn codecs() -> Vec<Compression> {
    let all = [Compression::None, Compression::Lz4, Compression::Zstd];
    all.into_iter().filter(|compression| Encoder::new(*compression).is_ok()).collect()
}

fn codec(c: &mut Criterion) {
    let entries = entries(1000);
    let (bytes, _) = built(&entries);
    let mut group = c.benchmark_group("codec");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    for compression in codecs() {
        let mut encoder = Encoder::new(compression).unwrap();
        let mut stored = Vec::new();
        let used = encoder.encode(&bytes, &mut stored).unwrap();
        let len = stored.len();
        group.bench_function(format!("encode_{compression:?}_to_{}_of_{}", len, bytes.len()), |b| {
            b.iter(|| {
                stored.clear();
                encoder.encode(&bytes, &mut stored).unwrap()
            });
        });
        group.bench_function(format!("decode_{compression:?}"), |b| {
            b.iter(|| codec::decode(used, &stored, bytes.len()).unwrap().len());
        });
    }
    group.finish();
}

fn index(c: &mut Criterion) {
    let entries = entries(128 * 131);
    let mut builder = IndexBuilder::new();
    for (number, block) in entries.chunks(131).enumerate() {
        builder.add(&IndexRow {
            offset: number as u32 * 16_000,
            stored_len: 16_000,
            raw_len: 16_000,
            compression: Compression::None,
            checksum: 0,
            entries: 131,
            deletes: 0,
            seq_min: SeqNo(1),
            seq_max: SeqNo(2),
            first_key: &block[0].0,
            last_key: &block[block.len() - 1].0,
        });
    }
    let mut bytes = Vec::new();
    builder.finish(&mut bytes);
    let index = IndexBlock::decode(bytes.clone()).unwrap();
    let mut turn = 0;
    c.bench_function("index_find", |b| {
        b.iter(|| {
            turn += 1;
            index.find(&entries[mix(turn) as usize % entries.len()].0)
        });
    });
    c.bench_function("index_decode", |b| {
        b.iter_batched(|| bytes.clone(), |bytes| IndexBlock::decode(bytes).unwrap(), BatchSize::LargeInput);
    });
}

criterion_group!(benches, build, find, scan, rehash, codec, index);
criterion_main!(benches);
