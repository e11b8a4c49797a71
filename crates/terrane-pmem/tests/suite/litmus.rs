//! Which contents the shadow allows, on small programs whose answers follow from the rules of the processor.

use std::collections::BTreeSet;

use terrane_base::Rng;
use terrane_device::pm::{PmRegion, conformance};
use terrane_pmem::{LineState, Shadowed};

/// The possible contents of the words at `offsets`.
fn outcomes(region: &Shadowed, offsets: &[u64]) -> BTreeSet<Vec<u64>> {
    let images = region.images();
    let mut outcomes = BTreeSet::new();
    images.each(1 << 16, &mut Rng::new(1), |image| {
        let word = |at: &u64| u64::from_le_bytes(image[*at as usize..*at as usize + 8].try_into().unwrap());
        outcomes.insert(offsets.iter().map(word).collect());
    });
    outcomes
}

fn set<const N: usize>(words: &[[u64; N]]) -> BTreeSet<Vec<u64>> {
    words.iter().map(|words| words.to_vec()).collect()
}

#[test]
fn the_shadow_conforms() {
    conformance::run(&Shadowed::new(8192));
}

#[test]
fn stores_without_a_fence_may_be_lost_or_not() {
    let region = Shadowed::new(256);
    region.store(0, 1).unwrap();
    region.store(64, 2).unwrap();
    let all = set(&[[0, 0], [0, 2], [1, 0], [1, 2]]);
    assert_eq!(outcomes(&region, &[0, 64]), all);
    // A flush alone promises nothing.
    region.flush(0, 128).unwrap();
    assert_eq!(outcomes(&region, &[0, 64]), all);
    region.fence().unwrap();
    assert_eq!(outcomes(&region, &[0, 64]), set(&[[1, 2]]));
}

#[test]
fn a_fence_without_a_flush_promises_nothing() {
    let region = Shadowed::new(256);
    region.store(0, 1).unwrap();
    region.fence().unwrap();
    assert_eq!(outcomes(&region, &[0]), set(&[[0], [1]]));
    // Nor does a flush before the store.
    region.flush(64, 8).unwrap();
    region.store(64, 1).unwrap();
    region.fence().unwrap();
    assert_eq!(outcomes(&region, &[64]), set(&[[0], [1]]));
}

#[test]
fn a_flush_covers_its_line_and_what_was_stored_before_it() {
    let region = Shadowed::new(256);
    region.store(0, 1).unwrap();
    region.store(56, 2).unwrap();
    region.store(64, 3).unwrap();
    region.flush(8, 8).unwrap();
    region.store(0, 4).unwrap();
    region.fence().unwrap();
    assert_eq!(outcomes(&region, &[0, 56, 64]), set(&[[1, 2, 0], [1, 2, 3], [4, 2, 0], [4, 2, 3]]));
}

#[test]
fn words_of_a_line_persist_alone_and_in_order() {
    let region = Shadowed::new(64);
    region.store(0, 1).unwrap();
    region.store(0, 2).unwrap();
    region.store(8, 3).unwrap();
    let words = [[0, 0], [0, 3], [1, 0], [1, 3], [2, 0], [2, 3]];
    assert_eq!(outcomes(&region, &[0, 8]), set(&words));
    // Back to what it was: a crash may leave what it was in between.
    region.persist(0, 16).unwrap();
    region.store(0, 7).unwrap();
    region.store(0, 2).unwrap();
    assert_eq!(outcomes(&region, &[0]), set(&[[2], [7]]));
    assert_eq!(region.images().newest()[0], 2);
}

#[test]
fn a_stream_needs_the_fence_only() {
    let region = Shadowed::new(256);
    region.stream(0, &[1; 128]).unwrap();
    let one = u64::from_le_bytes([1; 8]);
    assert_eq!(outcomes(&region, &[0, 120]), set(&[[0, 0], [0, one], [one, 0], [one, one]]));
    region.fence().unwrap();
    assert_eq!(outcomes(&region, &[0, 120]), set(&[[one, one]]));
}

#[test]
#[cfg(not(feature = "shuttle"))]
fn a_fence_is_for_its_own_thread() {
    let region = Shadowed::new(256);
    let elsewhere = |step: &(dyn Fn() + Sync)| {
        std::thread::scope(|scope| scope.spawn(step).join().unwrap());
    };
    // Another thread's fence makes neither this thread's flush nor its stream durable.
    region.store(0, 1).unwrap();
    region.flush(0, 8).unwrap();
    region.stream(64, &2u64.to_le_bytes()).unwrap();
    elsewhere(&|| region.fence().unwrap());
    assert_eq!(outcomes(&region, &[0, 64]), set(&[[0, 0], [0, 2], [1, 0], [1, 2]]));
    region.fence().unwrap();
    assert_eq!(outcomes(&region, &[0, 64]), set(&[[1, 2]]));
    // Another thread's flush writes the whole line back, but not what this thread only streamed.
    region.store(128, 3).unwrap();
    region.stream(136, &4u64.to_le_bytes()).unwrap();
    elsewhere(&|| region.persist(128, 16).unwrap());
    assert_eq!(outcomes(&region, &[128, 136]), set(&[[3, 0], [3, 4]]));
}

#[test]
fn a_line_says_where_it_stands() {
    let region = Shadowed::new(128);
    assert_eq!(region.line_state(0).unwrap(), LineState::Clean);
    region.store(8, 1).unwrap();
    assert_eq!(region.line_state(0).unwrap(), LineState::Dirty);
    region.flush(0, 64).unwrap();
    assert_eq!(region.line_state(63).unwrap(), LineState::Flushed);
    region.store(8, 2).unwrap();
    assert_eq!(region.line_state(0).unwrap(), LineState::Dirty);
    region.persist(0, 64).unwrap();
    assert_eq!(region.line_state(0).unwrap(), LineState::Fenced);
    region.stream(64, &[1; 8]).unwrap();
    assert_eq!(region.line_state(64).unwrap(), LineState::Flushed);
    assert!(region.line_state(128).is_err());
}

#[test]
fn images_are_counted_and_sampled() {
    let region = Shadowed::new(1024);
    region.write(0, &[9; 800]).unwrap();
    let images = region.images();
    assert_eq!(images.count(), u64::MAX, "100 words, each there or not");
    let mut seen = Vec::new();
    images.each(20, &mut Rng::new(2), |image| seen.push(image));
    assert_eq!(seen.len(), 20);
    assert_eq!((&seen[0], &seen[1][..800]), (&vec![0; 1024], &[9; 800][..]));
    assert!(seen[2..].iter().all(|image| image.contains(&9) && image[..800].contains(&0)));
    region.persist(0, 800).unwrap();
    assert_eq!((region.images().count(), region.images().image(0)), (1, seen[1].clone()));
}
