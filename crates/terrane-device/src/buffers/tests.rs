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
    let lens = buffers.parts.iter().map(|part| part.lock().warm.iter().map(Vec::len).sum::<usize>());
    assert_eq!(lens.sum::<usize>(), WARM_BYTES_MAX / 16_384);
    let again: Vec<_> = (0..WARM_BYTES_MAX / 16_384).map(|_| buffers.take(16_384)).collect();
    assert_eq!(buffers.warm_bytes.load(Ordering::Relaxed), 0);
    assert!(sorted(&again).iter().all(|start| before.binary_search(start).is_ok()));
}

#[test]
#[cfg_attr(miri, ignore = "frees such buffers, to find uses of them")]
fn short_buffers_of_many_readers_beyond_the_bound_keep_their_addresses_alone() {
    let buffers = Buffers::new();
    let (len, readers) = (41_000, 56);
    let warm_readers = WARM_BYTES_MAX / buffer_capacity(len);
    let cold_readers = readers - warm_readers;
    assert!((1..COLD_KEPT_MAX).contains(&cold_readers), "{cold_readers}: no part keeps as many of a class");
    let mut many: Vec<_> = (0..readers).map(|_| buffers.take(len)).collect();
    let mut starts: Vec<_> = many.iter().map(|buffer| buffer.as_ptr().addr()).collect();
    starts.sort_unstable();
    many.iter_mut().for_each(|buffer| buffer.fill(7));
    many.into_iter().for_each(|buffer| buffers.keep(buffer));
    assert_eq!(buffers.warm_bytes.load(Ordering::Relaxed), warm_readers * buffer_capacity(len));
    assert_eq!(buffers.cold_short.load(Ordering::Relaxed), cold_readers, "none went to the allocator");
    let again: Vec<_> = (0..readers).map(|_| buffers.take(len)).collect();
    assert!(again.iter().all(|buffer| starts.binary_search(&buffer.as_ptr().addr()).is_ok()), "none is new");
    let left: usize = again.iter().map(|buffer| buffer.iter().filter(|byte| **byte == 7).count()).sum();
    assert!(left >= warm_readers * len, "{left} bytes: the first ones have their pages");
    assert!(left <= warm_readers * len + cold_readers * COLD_LEFT_BYTES, "{left} bytes were not given back");
}

/// Every part has room for as many of each class: the ends of all of them would be 6 MiB.
#[test]
#[cfg_attr(miri, ignore = "frees such buffers, to find uses of them")]
fn the_ends_of_short_buffers_without_their_pages_have_a_bound_together() {
    let buffers = Buffers::new();
    let classes = class_for(COLD_BYTES).unwrap()..class_for(LONG_BYTES).unwrap();
    let take = |of_each: usize| -> Vec<_> {
        let lens = classes.clone().flat_map(|class| std::iter::repeat_n(bytes_of(class), of_each));
        lens.map(|len| buffers.take(len)).collect()
    };
    for own in 0..PARTS {
        let is_other = |at: &usize| *at != own;
        let others: Vec<_> = (0..PARTS).filter(is_other).map(|at| buffers.parts[at].lock()).collect();
        take(COLD_KEPT_MAX).into_iter().for_each(|buffer| buffers.keep(buffer));
        drop(others);
    }
    let of_part = |part: &Mutex<Part>| part.lock().cold.iter().map(Vec::len).sum::<usize>();
    let cold: usize = buffers.parts.iter().map(of_part).sum();
    assert_eq!(cold, COLD_LEFT_BYTES_MAX / COLD_LEFT_BYTES, "as many as may be");
    assert_eq!(buffers.cold_short.load(Ordering::Relaxed), cold);
    let all = take(PARTS * COLD_KEPT_MAX + WARM_BYTES_MAX / COLD_BYTES);
    assert_eq!(buffers.cold_short.load(Ordering::Relaxed), 0, "those in use are not counted");
    all.into_iter().for_each(|buffer| buffers.keep(buffer));
    let cold: usize = buffers.parts.iter().map(of_part).sum();
    assert_eq!(buffers.cold_short.load(Ordering::Relaxed), cold, "those that were freed are not, either");
}

#[test]
fn a_buffer_has_the_capacity_that_is_foretold() {
    let buffers = Buffers::new();
    for len in [1, 5_000, 33_000, 41_552, 200_000, LONGEST_BYTES, LONGEST_BYTES + 1] {
        assert_eq!(buffers.take(len).capacity(), buffer_capacity(len), "{len}");
    }
}

#[test]
fn buffers_of_an_unused_size_make_room_for_others() {
    let buffers = Buffers::new();
    let many = |bytes, count: usize| (0..count).map(|_| buffers.take(bytes)).collect::<Vec<_>>();
    many(16_384, WARM_BYTES_MAX / 16_384).into_iter().for_each(|buffer| buffers.keep(buffer));
    many(32_768, 40).into_iter().for_each(|buffer| buffers.keep(buffer));
    let class = class_for(32_768).unwrap();
    let kept: usize = buffers.parts.iter().map(|part| part.lock().warm[class].len()).sum();
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
    assert!(buffers.parts.iter().all(|part| part.lock().cold[class].len() <= LONG_KEPT_MAX));
}

#[test]
#[cfg_attr(miri, ignore = "frees long buffers, to find uses of them")]
fn the_long_buffers_that_were_kept_last_have_their_pages_still() {
    let buffers = Buffers::new();
    let fitting = LATEST_BYTES_MAX / (256 << 10);
    let many: Vec<_> = (0..2 * fitting).map(|_| buffers.take(256 << 10)).collect();
    let starts: Vec<_> = many.iter().map(|buffer| buffer.as_ptr().addr()).collect();
    for mut buffer in many {
        buffer.fill(7);
        buffers.keep(buffer);
    }
    let latest = |buffers: &Buffers| buffers.latest.lock().iter().map(Vec::capacity).sum::<usize>();
    assert_eq!(latest(&buffers), LATEST_BYTES_MAX);
    for start in starts[fitting..].iter().rev() {
        let buffer = buffers.take(256 << 10);
        assert_eq!(buffer.as_ptr().addr(), *start, "the one that was kept last is the next one");
        assert!(buffer.iter().all(|byte| *byte == 7), "it has its pages");
    }
    let older = buffers.take(256 << 10);
    assert!(starts[..fitting].contains(&older.as_ptr().addr()), "an older one has its addresses");
    let left = older.iter().filter(|byte| **byte == 7).count();
    assert!(left < 2 * mapping::PAGE_BYTES, "{left} bytes were not given back");
}

#[test]
#[cfg_attr(miri, ignore = "frees long buffers, to find uses of them")]
fn long_buffers_of_another_length_take_the_place_of_the_oldest() {
    let buffers = Buffers::new();
    let keep_together = |bytes: usize, count: usize| {
        let many: Vec<_> = (0..count).map(|_| buffers.take(bytes)).collect();
        many.into_iter().for_each(|buffer| buffers.keep(buffer));
    };
    keep_together(256 << 10, 2 * LATEST_BYTES_MAX / (256 << 10));
    keep_together(LATEST_LEN_MAX, LATEST_BYTES_MAX / LATEST_LEN_MAX);
    let lens: Vec<_> = buffers.latest.lock().iter().map(Vec::capacity).collect();
    assert_eq!(lens, vec![LATEST_LEN_MAX; LATEST_BYTES_MAX / LATEST_LEN_MAX]);
    // The next class is too long.
    keep_together(LATEST_LEN_MAX + 1, 1);
    assert_eq!(buffers.latest.lock().len(), LATEST_BYTES_MAX / LATEST_LEN_MAX);
}

#[test]
fn a_read_that_is_longer_than_the_last_one_takes_the_same_buffer_where_it_fits() {
    // Of no class: what gives it up frees it, and takes another one.
    let mut buffer = vec![0; SHORTEST_BYTES + 1];
    let (start, capacity) = (buffer.as_ptr().addr(), buffer.capacity());
    assert!(class_for(capacity).is_some_and(|class| bytes_of(class) != capacity));
    buffer.truncate(100);
    for (len, expected) in [(200, 200), (50, 200), (capacity, capacity)] {
        buffer = crate::buffer_at_least(buffer, len);
        assert_eq!((buffer.len(), buffer.capacity()), (expected, capacity));
        assert_eq!(buffer.as_ptr().addr(), start);
    }
    buffer = crate::buffer_at_least(buffer, capacity + 1);
    assert_eq!(buffer.len(), capacity + 1);
}

#[test]
fn buffers_of_other_sizes_are_not_kept() {
    let buffers = Buffers::new();
    let kept = |part: &Part| part.warm.iter().chain(&part.cold).map(Vec::len).sum::<usize>();
    for bytes in [0, 100, SHORTEST_BYTES + 1, LONGEST_BYTES + 1] {
        buffers.keep(Vec::with_capacity(bytes));
        // Before the next one takes it.
        assert_eq!(buffers.parts.iter().map(|part| kept(&part.lock())).sum::<usize>(), 0, "{bytes}");
        assert_eq!(buffers.take(bytes).len(), bytes);
    }
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
        part.lock().cold[class].iter().any(|buffer| buffer.as_ptr().addr() == start)
    });
    assert!(found);
}
