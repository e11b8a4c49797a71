//! Tests the arena against a model: spots never overlap, and every byte is returned.
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]
#![cfg(not(feature = "shuttle"))]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use terrane_base::Rng;

const CHUNK_BYTES: usize = 64 << 10;

#[derive(Clone, Debug)]
enum Step {
    Take { bytes: usize, is_fixed: bool, may_open: bool },
    GiveBack { at: usize },
    Drain,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let take = (1..=CHUNK_BYTES / LARGEST_SHARE, any::<bool>(), any::<bool>());
    let take = take.prop_map(|(bytes, is_fixed, may_open)| Step::Take { bytes, is_fixed, may_open });
    let give_back = any::<usize>().prop_map(|at| Step::GiveBack { at });
    prop::collection::vec(prop_oneof![5 => take, 3 => give_back, 1 => Just(Step::Drain)], 1..300)
}

/// A spot in the model: its bytes hold its own number throughout.
struct Taken {
    spot: Spot,
    mark: u8,
}

impl Taken {
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the spot is ours until it is given back.
        unsafe { std::slice::from_raw_parts_mut(self.spot.start.as_ptr(), self.spot.bytes()) }
    }
}

fn check(arena: &Arena, taken: &mut [Taken]) {
    let mut ranges = BTreeMap::new();
    for one in taken.iter_mut() {
        let mark = one.mark;
        let bytes = one.bytes();
        assert!(bytes.iter().all(|byte| *byte == mark), "another owner wrote to a spot");
        let start = bytes.as_ptr().addr();
        assert!(start.is_multiple_of(GRANULE_BYTES));
        assert!(ranges.insert(start, start + bytes.len()).is_none());
    }
    let ends = ranges.values();
    assert!(ends.zip(ranges.keys().skip(1)).all(|(end, next)| end <= next), "spots do not overlap");
    let state = arena.state.lock();
    let open: Vec<_> = state.chunks.iter().flatten().collect();
    assert_eq!(arena.resident_bytes(), (open.len() * CHUNK_BYTES) as u64);
    let free: usize = open.iter().map(|chunk| chunk.free * GRANULE_BYTES).sum();
    let gaps = arena.gap_bytes(Group::Movable) + arena.gap_bytes(Group::Fixed);
    assert_eq!(gaps, free as u64);
    let used: usize = taken.iter().map(|one| one.spot.bytes()).sum();
    assert_eq!(free + used, open.len() * CHUNK_BYTES, "a granule is free or in use");
    for chunk in open {
        assert!(chunk.free < chunk.taken.len(), "an empty chunk is unmapped");
        assert_eq!(chunk.longest, chunk.taken.gaps().map(|(_, len)| len).max().unwrap_or(0));
        assert_eq!(chunk.free, chunk.taken.gaps().map(|(_, len)| len).sum::<usize>());
    }
}

fn run(steps: Vec<Step>) {
    let arena = Arena::new(CHUNK_BYTES);
    let mut taken: Vec<Taken> = Vec::new();
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Take { bytes, is_fixed, may_open } => {
                let group = if is_fixed { Group::Fixed } else { Group::Movable };
                let Some(spot) = arena.take(bytes, group, || may_open) else {
                    assert!(!may_open, "a new chunk has room");
                    continue;
                };
                assert!((bytes..bytes + GRANULE_BYTES).contains(&spot.bytes()));
                let mut one = Taken { spot, mark: number as u8 };
                let mark = one.mark;
                one.bytes().fill(mark);
                taken.push(one);
            }
            Step::GiveBack { at } if !taken.is_empty() => {
                let before = arena.resident_bytes();
                let freed = arena.give_back(taken.swap_remove(at % taken.len()).spot);
                assert_eq!(before - arena.resident_bytes(), freed);
            }
            Step::GiveBack { .. } => {}
            Step::Drain => drain(&arena, &mut taken),
        }
        check(&arena, &mut taken);
    }
    taken.into_iter().for_each(|one| _ = arena.give_back(one.spot));
    assert_eq!(arena.resident_bytes(), 0);
    assert!(arena.state.lock().chunks.iter().all(Option::is_none));
}

/// Empties a chunk as the cache does: moves its movable objects elsewhere, as far as there is room.
fn drain(arena: &Arena, taken: &mut [Taken]) {
    taken.iter().for_each(|one| arena.note(&one.spot, true));
    if let Some(chunk) = arena.drain_sparsest() {
        for start in arena.noted(chunk) {
            let at = taken.iter().position(|one| one.spot.start == start).unwrap();
            let Some(spot) = arena.take_elsewhere(taken[at].spot.bytes()) else { break };
            assert_ne!(spot.chunk, taken[at].spot.chunk, "elsewhere");
            let mark = taken[at].mark;
            let mut moved = Taken { spot, mark };
            moved.bytes().fill(mark);
            arena.note(&moved.spot, true);
            let old = std::mem::replace(&mut taken[at], moved);
            arena.note(&old.spot, false);
            arena.give_back(old.spot);
        }
    }
    taken.iter().for_each(|one| arena.note(&one.spot, false));
    arena.stop_draining();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 200 }, ..ProptestConfig::default() })]

    #[test]
    fn spots_never_overlap(steps in steps()) {
        run(steps);
    }

    #[test]
    fn runs_are_found(fills in prop::collection::vec((0usize..300, 0usize..200, any::<bool>()), 0..20), wanted in 1usize..200) {
        let mut bits = Bits::new(300);
        let mut model = vec![false; 300];
        for (start, len, value) in fills {
            let len = len.min(300 - start);
            bits.fill(start, len, value);
            model[start..start + len].fill(value);
        }
        let runs: Vec<(usize, usize)> = bits.gaps().collect();
        let free: Vec<usize> = runs.iter().flat_map(|(start, len)| *start..start + len).collect();
        let expected: Vec<usize> = (0..300).filter(|at| !model[*at]).collect();
        prop_assert_eq!(free, expected);
        prop_assert!(runs.windows(2).all(|pair| pair[0].0 + pair[0].1 < pair[1].0), "runs are whole");
        let (found, longest) = bits.fit(wanted);
        prop_assert_eq!(longest, runs.iter().map(|run| run.1).max().unwrap_or(0));
        let best = runs.iter().filter(|run| run.1 >= wanted).min_by_key(|run| run.1);
        prop_assert_eq!(found, best.map(|run| run.0));
        prop_assert_eq!(bits.ones().collect::<Vec<_>>(), (0..300).filter(|at| model[*at]).collect::<Vec<_>>());
    }
}

/// Objects of a few sizes come and go in a full arena: measures the share lost to gaps.
#[test]
fn a_full_arena_stays_dense() {
    const CHUNK: usize = 2 << 20;
    let arena = Arena::new(CHUNK);
    let mut taken = std::collections::VecDeque::new();
    let mut rng = Rng::new(1);
    let mut used = 0;
    let mut least = usize::MAX;
    for turn in 0..if cfg!(miri) { 300 } else { 20_000 } {
        // Blocks are nearly full, but for the last of each extent.
        let bytes = if turn % 128 == 0 { rng.below(16_000) } else { 16_200 + rng.below(700) } as usize + 1;
        loop {
            let room = arena.resident_bytes() < 32 * CHUNK as u64;
            if let Some(spot) = arena.take(bytes, Group::Movable, || room) {
                used += spot.bytes();
                taken.push_back(spot);
                break;
            }
            least = least.min(used);
            // Mostly the oldest object is freed, sometimes any other.
            let at = if rng.below(4) == 0 { rng.below(taken.len() as u64) as usize } else { 0 };
            let spot = taken.swap_remove_front(at).unwrap();
            used -= spot.bytes();
            arena.give_back(spot);
        }
    }
    assert!(cfg!(miri) || least > 32 * CHUNK / 100 * 93, "{least} of {} bytes in use", 32 * CHUNK);
}
