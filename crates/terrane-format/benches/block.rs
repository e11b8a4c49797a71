//! Costs of a block in each encoding: building it, decoding it, finding a key in it, walking it; 16 B keys
//! and 100 B values. Digits are keys whose last digits differ; hashes are random bytes.
#![allow(clippy::unwrap_used, reason = "benches may panic")]
#![allow(missing_docs, reason = "criterion's macros")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use terrane_base::options::{BlockEncoding, Compression, SearchKernel};
use terrane_base::{Entry, RecordKind, SeqKind, SeqNo, rng};
use terrane_format::block::{self, Block, BlockBuilder, BlockCursor};
use terrane_format::codec::{self, Encoder};
use terrane_format::index::{IndexBlock, IndexBuilder, IndexRow};
use terrane_format::{filter, rank};

const BLOCK_BYTES: usize = 16 << 10;
const VALUE: usize = 100;

/// The same numbers in every run.
fn mix(seed: u64) -> u64 {
    rng::mix(seed.wrapping_mul(rng::STEP))
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

/// Sorted random keys of 16 bytes, with the same values.
fn hashed(count: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries = entries(count);
    let mut keys: Vec<Vec<u8>> =
        (0..count).map(|i| (u128::from(mix(i)) << 64 | u128::from(i)).to_be_bytes().to_vec()).collect();
    keys.sort();
    entries.iter_mut().zip(keys).for_each(|(entry, key)| entry.0 = key);
    entries
}

const ENCODINGS: [(&str, BlockEncoding); 2] =
    [("plain", BlockEncoding::Plain), ("two-layer", BlockEncoding::TwoLayer)];

/// Fills a block as a table writer does; sequence numbers as of ten million puts.
fn fill(builder: &mut BlockBuilder, entries: &[(Vec<u8>, Vec<u8>)]) -> usize {
    for (count, (key, value)) in entries.iter().enumerate() {
        if builder.estimated_bytes() + key.len() + value.len() + 24 > BLOCK_BYTES {
            return count;
        }
        let seq_kind = SeqKind::new(SeqNo(mix(count as u64) % 10_000_000), RecordKind::Put);
        builder.add(Entry { key, seq_kind, value }).unwrap();
    }
    entries.len()
}

fn built(encoding: BlockEncoding, entries: &[(Vec<u8>, Vec<u8>)]) -> (Vec<u8>, usize) {
    let mut builder = BlockBuilder::new(encoding);
    let count = fill(&mut builder, entries);
    (builder.finish().to_vec(), count)
}

fn build(c: &mut Criterion) {
    for (keys, entries) in [("digits", entries(1000)), ("hashes", hashed(1000))] {
        let mut group = c.benchmark_group("block_build");
        for (name, encoding) in ENCODINGS {
            let (bytes, count) = built(encoding, &entries);
            eprintln!(
                "{name} {keys}: {count} entries in {} bytes, {:.2} each",
                bytes.len(),
                bytes.len() as f64 / count as f64
            );
            group.throughput(Throughput::Elements(count as u64));
            let mut builder = BlockBuilder::new(encoding);
            group.bench_function(format!("{name}/{keys}"), |b| {
                b.iter(|| {
                    builder.reset();
                    fill(&mut builder, &entries);
                    black_box(builder.finish().len())
                });
            });
            group.bench_function(format!("decode/{name}/{keys}"), |b| {
                b.iter_batched(
                    || bytes.clone(),
                    |bytes| Block::decode(bytes).unwrap(),
                    BatchSize::LargeInput,
                );
            });
        }
        group.finish();
    }
    let (bytes, _) = built(BlockEncoding::TwoLayer, &entries(1000));
    c.bench_function("block_checksum", |b| b.iter(|| block::checksum(black_box(&bytes))));
}

/// Blocks of many entries, each with its keys' numbers.
fn many(encoding: BlockEncoding, entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<(Block, usize, usize)> {
    let (mut made, mut from) = (Vec::new(), 0);
    while from < entries.len() {
        let (bytes, count) = built(encoding, &entries[from..]);
        made.push((Block::decode(bytes).unwrap(), from, count));
        from += count;
    }
    made
}

/// Random keys with their blocks, in a row, so that the processor prefetches the questions.
fn asked(made: &[(Block, usize, usize)], entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<(usize, [u8; 16])> {
    let ask = |turn: u64| {
        let random = mix(turn);
        let at = random as usize % made.len();
        let (_, from, count) = made[at];
        (at, entries[from + (random >> 32) as usize % count].0.as_slice().try_into().unwrap())
    };
    (0..1 << 20).map(ask).collect()
}

/// Finds in one block that stays in the processor's cache, and in 200 MiB of blocks that do not; with each
/// kernel.
fn find(c: &mut Criterion) {
    for (keys, entries) in [
        ("digits/cached", entries(140)),
        ("hashes/cached", hashed(140)),
        ("digits/memory", entries(140 * 12800)),
        ("hashes/memory", hashed(140 * 12800)),
    ] {
        let mut group = c.benchmark_group(format!("block_find/{keys}"));
        for (name, encoding) in ENCODINGS {
            let made = many(encoding, &entries);
            let asked = asked(&made, &entries);
            for kernel in kernels(encoding) {
                rank::choose(kernel).unwrap();
                for (what, is_seek) in [("find", false), ("seek", true)] {
                    let (mut turn, mut cursor) = (0, BlockCursor::new());
                    group.bench_function(format!("{name}/{what}/{kernel:?}"), |b| {
                        b.iter(|| {
                            turn = (turn + 1) % asked.len();
                            let (block, key) = &asked[turn];
                            let block = &made[*block].0;
                            if !is_seek {
                                return block.find(key, SeqNo::MAX).unwrap().value.len();
                            }
                            cursor.seek(block, key, SeqNo::MAX);
                            cursor.entry(block).unwrap().value.len()
                        });
                    });
                }
            }
        }
        group.finish();
    }
    rank::choose(SearchKernel::Auto).unwrap();
}

/// Every kernel for the encoding that leans on them; the best one for the other.
fn kernels(encoding: BlockEncoding) -> Vec<SearchKernel> {
    match encoding {
        BlockEncoding::Plain => vec![SearchKernel::Auto],
        BlockEncoding::TwoLayer => rank::available().collect(),
    }
}

fn scan(c: &mut Criterion) {
    for (keys, entries) in [("digits", entries(1000)), ("hashes", hashed(1000))] {
        for (name, encoding) in ENCODINGS {
            let (bytes, count) = built(encoding, &entries);
            let block = Block::decode(bytes).unwrap();
            let mut group = c.benchmark_group(format!("block_scan/{name}"));
            group.throughput(Throughput::Elements(count as u64));
            let mut cursor = BlockCursor::new();
            group.bench_function(format!("forward/{keys}"), |b| {
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
            group.bench_function(format!("backward/{keys}"), |b| {
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
    }
}

/// The cost to learn the hashes of a stored block's keys when it is reused: the price of not storing them.
fn rehash(c: &mut Criterion) {
    let entries = entries(1000);
    let (bytes, count) = built(BlockEncoding::TwoLayer, &entries);
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
    let (bytes, _) = built(BlockEncoding::TwoLayer, &entries);
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
