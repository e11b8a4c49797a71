//! Inputs with right checksums and contents that no writer makes: indexes and metas that contradict the
//! blocks. A job ends with `Corrupt`, or with a sound output; it never panics, and after an error none of its
//! output stays.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use crate::support;

use support::{Row, World};
use terrane_base::{Kind, Rng, SeqNo};
use terrane_compaction::{Compactor, JobSpec};
use terrane_format::checksum::crc32c;
use terrane_format::extent::{ExtentMeta, Handle};

/// Jobs that are tried.
const CASES: u64 = 160;

fn rows(step: usize, seq: u64) -> Vec<Row> {
    let numbers = (0..3_000).step_by(step).enumerate();
    numbers.map(|(index, n)| Row::put(format!("key-{n:08}"), seq + index as u64, vec![b'v'; 1000])).collect()
}

/// A table with a job that merges two levels.
fn world() -> (World, JobSpec) {
    let mut world = World::new();
    world.limits.level_base_bytes = 1;
    world.limits.job_bytes_max = 1 << 30;
    world.flush(&rows(2, 1));
    let spec = world.pick().unwrap();
    world.run(&spec);
    world.flush(&rows(3, 100_000));
    let spec = world.pick().unwrap();
    assert_eq!(spec.inputs.len(), 2);
    (world, spec)
}

/// Changes some bytes of the index, and sets its checksum and its description right.
fn change_index(world: &World, meta: &mut ExtentMeta, numbers: &mut Rng) {
    let mut bytes = vec![0; meta.bytes as usize];
    world.store.read(meta.id, 0, &mut bytes).unwrap();
    let from = meta.index.offset as usize;
    let index = &mut bytes[from..from + meta.index.len as usize];
    let (body, checksum) = index.split_last_chunk_mut::<4>().unwrap();
    for _ in 0..1 + numbers.below(3) {
        let at = numbers.below(body.len() as u64) as usize;
        // Digits stay digits now and then: then only the order of the keys is wrong.
        body[at] =
            if body[at].is_ascii_digit() { b'0' + numbers.below(10) as u8 } else { numbers.below(256) as u8 };
    }
    *checksum = crc32c(u32::from_le_bytes(*b"INDX"), body).to_le_bytes();
    meta.index = Handle::of(meta.index.offset, index);
    world.store.write(meta.id, &bytes).unwrap();
}

/// Changes what the manifest says of an extent.
fn change_meta(meta: &mut ExtentMeta, numbers: &mut Rng) {
    match numbers.below(6) {
        0 => meta.smallest = format!("key-{:08}", numbers.below(3_000)).into_bytes(),
        1 => meta.largest = format!("key-{:08}", numbers.below(3_000)).into_bytes(),
        2 => meta.entries = numbers.below(1 << 40),
        3 => meta.deletes = numbers.below(1 << 40),
        4 => meta.raw_bytes = u64::MAX / (1 + numbers.below(1 << 20)),
        _ => (meta.seq_min, meta.seq_max) = (SeqNo(numbers.below(1 << 50)), SeqNo(numbers.below(1 << 50))),
    }
}

#[test]
fn inputs_that_contradict_themselves_are_corrupt() {
    let (world, spec) = world();
    let mut numbers = Rng::new(7);
    let (mut refused, mut done) = (0, 0);
    for case in 0..CASES {
        let mut spec = spec.clone();
        let input = numbers.below(2) as usize;
        let extents = &mut spec.inputs[input].extents;
        let at = numbers.below(extents.len() as u64) as usize;
        let meta = &mut extents[at];
        let (before, mut whole) = (meta.clone(), vec![0; meta.bytes as usize]);
        world.store.read(meta.id, 0, &mut whole).unwrap();
        if case % 3 > 0 {
            change_index(&world, meta, &mut numbers)
        } else {
            change_meta(meta, &mut numbers)
        }
        match world.compactor.run(&spec, &World::control()) {
            Ok(result) => {
                done += 1;
                for meta in result.added.iter().filter(|meta| !result.relinked.contains(&meta.id)) {
                    world.store.free(meta.id, meta.slots).unwrap();
                }
            }
            Err(error) => {
                refused += 1;
                assert_eq!(error.kind(), Kind::Corrupt, "case {case}: {error}");
            }
        }
        world.check_space();
        world.store.write(before.id, &whole).unwrap();
    }
    assert!(refused > 20 && done > 5, "{refused} refused, {done} done");
    world.check_content();
}
