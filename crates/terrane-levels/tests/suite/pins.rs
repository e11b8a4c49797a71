//! Pins alone and from many threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use terrane_base::SeqNo;
use terrane_levels::{Pin, Pins};

proptest! {
    #[test]
    fn pins_are_a_multiset(ops in prop::collection::vec((0u8..3, 0u64..20, any::<prop::sample::Index>()), 1..60)) {
        let pins = Pins::new();
        let mut held: Vec<Pin> = Vec::new();
        let mut model: BTreeMap<u64, u64> = BTreeMap::new();
        for (op, seq, index) in ops {
            if op == 0 || held.is_empty() {
                held.push(pins.pin(|| SeqNo(seq)));
                *model.entry(seq).or_default() += 1;
            } else {
                let index = index.index(held.len());
                let count = model.get_mut(&held[index].seq().0).unwrap();
                *count -= 1;
                if *count == 0 {
                    model.remove(&held[index].seq().0);
                }
                if op == 1 {
                    held.swap_remove(index);
                } else {
                    held[index].renew(|| SeqNo(seq));
                    prop_assert_eq!(held[index].seq(), SeqNo(seq));
                    *model.entry(seq).or_default() += 1;
                }
            }
            prop_assert_eq!(pins.count(), model.values().sum::<u64>());
            prop_assert_eq!(pins.oldest(), model.keys().next().map(|seq| SeqNo(*seq)));
            let mut list: Vec<SeqNo> = model.keys().map(|seq| SeqNo(*seq)).filter(|seq| seq.0 < 21).collect();
            list.push(SeqNo(21));
            prop_assert_eq!(pins.list(|| SeqNo(21)), list);
        }
    }
}

/// The rule that compaction relies on: a pin that a list does not contain is not below the list's last
/// number.
#[test]
fn a_pin_is_in_the_list_or_not_below_its_end() {
    let (pins, visible) = (Pins::new(), AtomicU64::new(1));
    let now = || SeqNo(visible.load(Ordering::SeqCst));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    let mut pin = pins.pin(now);
                    let copy = pin.clone();
                    pin.renew(now);
                    let list = pins.list(now);
                    assert!(list.contains(&pin.seq()), "{} not in {list:?}", pin.seq());
                    drop(pin);
                    // While it lives, every list keeps what it sees.
                    let list = pins.list(now);
                    assert!(list.contains(&copy.seq()), "{} not in {list:?}", copy.seq());
                    assert!(list.is_sorted_by(|a, b| a < b));
                }
            });
        }
        for _ in 0..5000 {
            let list = pins.list(now);
            let late = pins.pin(now);
            assert!(late.seq() >= *list.last().unwrap());
            visible.fetch_add(1, Ordering::SeqCst);
        }
    });
    assert_eq!((pins.count(), pins.oldest()), (0, None));
}
