use super::*;

#[test]
fn every_length_has_the_class_of_the_shortest_buffers_that_hold_it() {
    for class in 0..CLASSES {
        let bytes = bytes_of(class);
        assert_eq!(class_for(bytes), Some(class));
        assert_eq!(class_for(bytes + 1), (class + 1 < CLASSES).then_some(class + 1));
        assert!(class == 0 || bytes_of(class - 1) >= bytes / 5 * 4, "at most a quarter more than asked for");
    }
    assert_eq!((bytes_of(0), bytes_of(CLASSES - 1)), (SHORTEST_BYTES, LONGEST_BYTES));
    assert_eq!(class_for(SHORTEST_BYTES / 2 - 1), None);
    assert_eq!(class_for(SHORTEST_BYTES / 2), Some(0));
}

#[test]
fn a_buffer_that_one_thread_has_kept_is_the_next_one_of_another() {
    let buffers = Buffers::new();
    let kept = std::thread::scope(|scope| {
        let keep = || {
            let mut buffer = buffers.take(20_000);
            buffer.fill(7);
            let start = buffer.as_ptr().addr();
            buffers.keep(buffer);
            start
        };
        scope.spawn(keep).join().unwrap()
    });
    let taken = buffers.take(19_000);
    assert_eq!((taken.as_ptr().addr(), taken.len()), (kept, 19_000));
    let other = buffers.take(19_000);
    assert_ne!(other.as_ptr().addr(), kept, "a buffer has one owner");
}

#[test]
fn short_buffers_are_kept_up_to_a_bound_together() {
    let buffers = Buffers::new();
    let many: Vec<_> = (0..2 * WARM_BYTES_MAX / 16_384).map(|_| buffers.take(16_384)).collect();
    let sorted = |all: &[Vec<u8>]| {
        let mut starts: Vec<_> = all.iter().map(|one| one.as_ptr().addr()).collect();
        starts.sort_unstable();
        starts
    };
    let before = sorted(&many);
    many.into_iter().for_each(|buffer| buffers.keep(buffer));
    assert_eq!(buffers.warm_bytes.load(Ordering::Relaxed), WARM_BYTES_MAX);
    let lens = buffers.parts.iter().map(|part| part.lock().iter().map(Vec::len).sum::<usize>());
    assert_eq!(lens.sum::<usize>(), WARM_BYTES_MAX / 16_384);
    let again: Vec<_> = (0..WARM_BYTES_MAX / 16_384).map(|_| buffers.take(16_384)).collect();
    assert_eq!(buffers.warm_bytes.load(Ordering::Relaxed), 0);
    assert!(sorted(&again).iter().all(|start| before.binary_search(start).is_ok()));
}

#[test]
fn a_size_that_is_asked_for_no_more_makes_room_for_another() {
    let buffers = Buffers::new();
    let many = |bytes, count: usize| (0..count).map(|_| buffers.take(bytes)).collect::<Vec<_>>();
    many(16_384, WARM_BYTES_MAX / 16_384).into_iter().for_each(|buffer| buffers.keep(buffer));
    many(32_768, 40).into_iter().for_each(|buffer| buffers.keep(buffer));
    let class = class_for(32_768).unwrap();
    let kept: usize = buffers.parts.iter().map(|part| part.lock()[class].len()).sum();
    assert!(kept >= 10, "{kept} of 40");
    assert!(buffers.warm_bytes.load(Ordering::Relaxed) <= WARM_BYTES_MAX);
}

#[test]
#[cfg_attr(miri, ignore = "frees long buffers, to find uses of them")]
fn long_buffers_give_their_pages_back_and_keep_their_addresses() {
    let buffers = Buffers::new();
    let mut buffer = buffers.take(3 << 20);
    buffer.fill(7);
    let start = buffer.as_ptr().addr();
    buffers.keep(buffer);
    assert_eq!(buffers.warm_bytes.load(Ordering::Relaxed), 0);
    let buffer = buffers.take(3 << 20);
    assert_eq!((buffer.as_ptr().addr(), buffer.len()), (start, 3 << 20));
    if !cfg!(miri) {
        // A page that was given back is one of zeros.
        let left = buffer.iter().filter(|byte| **byte == 7).count();
        assert!(left < 2 * mapping::PAGE_BYTES, "{left} bytes were not given back");
    }
    let many: Vec<_> = (0..2 * PARTS * LONG_KEPT_MAX).map(|_| buffers.take(1 << 20)).collect();
    many.into_iter().for_each(|buffer| buffers.keep(buffer));
    let class = class_for(1 << 20).unwrap();
    assert!(buffers.parts.iter().all(|part| part.lock()[class].len() <= LONG_KEPT_MAX));
}

#[test]
fn buffers_of_other_sizes_are_not_kept() {
    let buffers = Buffers::new();
    for bytes in [0, 100, SHORTEST_BYTES + 1, LONGEST_BYTES + 1] {
        buffers.keep(Vec::with_capacity(bytes));
        assert_eq!(buffers.take(bytes).len(), bytes);
    }
    let kept = buffers.parts.iter().map(|part| part.lock().iter().map(Vec::len).sum::<usize>());
    assert_eq!(kept.sum::<usize>(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "frees long buffers, to find uses of them")]
fn a_buffer_that_is_dropped_is_kept() {
    let mut buffer = Buffer::with_capacity(15 << 20);
    assert!(buffer.is_empty());
    buffer.push(1);
    let start = buffer.as_ptr().addr();
    drop(buffer);
    // No other test of this program has one of this class.
    let found = BUFFERS.parts.iter().any(|part| {
        let class = class_for(15 << 20).unwrap();
        part.lock()[class].iter().any(|buffer| buffer.as_ptr().addr() == start)
    });
    assert!(found);
}
