//! The replacement, and the index against a model.

use terrane_base::Rng;

use super::*;

fn key(number: u32, frame: u32) -> FrameKey {
    FrameKey { object: ObjectKey { nonce: 1, epoch: 1, number, part: 0 }, frame }
}

fn add(index: &mut Index, key: FrameKey) -> u32 {
    let admitted = index.admit(key, 100).expect("a slot");
    index.written(&admitted);
    admitted.slot
}

fn read(index: &mut Index, key: &FrameKey) -> bool {
    index.find(key).is_some_and(|place| index.used(&place))
}

#[test]
fn frames_that_are_used_again_survive_a_scan() {
    let mut index = Index::new(1000, Vec::new());
    // A hundred frames that are used now and then, while others come in.
    for frame in 0..100 {
        add(&mut index, key(1, frame));
    }
    for round in 0..3 {
        for frame in 0..200 {
            add(&mut index, key(2 + round, frame));
        }
        assert!((0..100).all(|frame| read(&mut index, &key(1, frame))));
    }
    // A scan of ten times what fits; each frame is used four times at once, as by a scan of its blocks.
    for frame in 0..10_000 {
        add(&mut index, key(9, frame));
        assert!((0..4).all(|_| read(&mut index, &key(9, frame))));
    }
    let kept = (0..100).filter(|frame| index.find(&key(1, *frame)).is_some()).count();
    assert_eq!((kept, index.len()), (100, 1000));
}

#[test]
fn a_frame_that_comes_back_soon_stays() {
    let mut index = Index::new(100, Vec::new());
    (0..150).for_each(|frame| {
        add(&mut index, key(1, frame));
    });
    assert!(index.find(&key(1, 0)).is_none(), "it left");
    add(&mut index, key(1, 0));
    (0..1000).for_each(|frame| {
        add(&mut index, key(2, frame));
    });
    assert!(index.find(&key(1, 0)).is_some(), "its ghost was there");
}

#[test]
fn slots_of_a_deleted_object_are_filled_first() {
    let mut index = Index::new(20, Vec::new());
    (0..10).for_each(|frame| {
        add(&mut index, key(1, frame));
    });
    (0..10).for_each(|frame| {
        add(&mut index, key(2, frame));
    });
    index.forget_object(&key(1, 0).object);
    assert_eq!(index.len(), 10);
    (0..10).for_each(|frame| {
        add(&mut index, key(3, frame));
    });
    assert!((0..10).all(|frame| index.find(&key(2, frame)).is_some()));
    assert_eq!((index.len(), index.evicted()), (20, 0));
}

/// The index against a map from slots to identities, under random operations.
#[test]
fn random_operations_keep_one_frame_in_a_slot() {
    let mut rng = Rng::new(24);
    for slots in [1, 3, 10, 64] {
        let mut index = Index::new(slots, Vec::new());
        let mut model: BTreeMap<u32, FrameKey> = BTreeMap::new();
        for _ in 0..20_000 {
            let key = key(1 + rng.below(5) as u32, rng.below(30) as u32);
            match rng.below(10) {
                0 => {
                    index.forget_object(&key.object);
                    model.retain(|_, found| found.object != key.object);
                }
                1 => {
                    if let Some(place) = index.find(&key) {
                        index.forget(&place);
                        model.remove(&place.slot);
                    }
                }
                2..6 => {
                    read(&mut index, &key);
                }
                _ => {
                    if let Some(admitted) = index.admit(key, 1) {
                        assert!(admitted.slot < slots);
                        model.remove(&admitted.slot);
                        index.written(&admitted);
                        model.insert(admitted.slot, key);
                    }
                }
            }
            assert_eq!(index.len(), model.len());
            assert!(index.small.len() + index.main.len() <= 2 * slots as usize, "void entries go");
        }
        for (slot, key) in &model {
            assert_eq!(index.find(key).map(|place| place.slot), Some(*slot));
        }
    }
}

#[test]
fn frames_found_at_opening_keep_their_order() {
    let place = |slot: u32, frame: u32, order: u64| StoredFrame {
        slot,
        header: Header { key: key(1, frame), len: 1, order },
    };
    // Slots 3 and 4 have one identity; this index has no slot 9.
    let found = vec![place(0, 0, 50), place(1, 1, 3), place(3, 3, 7), place(4, 3, 9), place(9, 9, 1)];
    let mut index = Index::new(5, found);
    assert_eq!(index.len(), 3);
    assert_eq!(index.find(&key(1, 3)).map(|place| place.slot), Some(4), "the later one");
    assert_eq!(index.admit(key(1, 7), 1).map(|admitted| admitted.header.order), Some(51));
    assert_eq!(add(&mut index, key(1, 8)), 3, "the free one");
    // Twenty frames that came in by falling number: the last two are in the small queue.
    let found = (0..20).map(|slot| place(slot, slot, 100 - u64::from(slot))).collect();
    let mut index = Index::new(20, found);
    assert_eq!(add(&mut index, key(1, 30)), 1, "the older one of the two");
}
