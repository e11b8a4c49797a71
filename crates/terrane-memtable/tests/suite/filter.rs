//! The filter of a memtable: what was inserted is never denied, most of what was not is.
#![cfg(not(feature = "shuttle"))]

use std::thread;

use crate::support::{Placed, Segments};
use terrane_base::SeqNo;
use terrane_format::filter::hash;
use terrane_memtable::{GlobalIndex, Memtable};

fn key(number: usize) -> Vec<u8> {
    format!("key{number:08}").into_bytes()
}

fn records(count: usize) -> Vec<Placed> {
    let mut segments = Segments::new(1 << 20);
    (0..count).map(|number| segments.put(number as u64 + 1, &key(number), b"value")).collect()
}

/// Through several layers, by threads that find a full layer at the same time.
#[test]
fn no_key_is_denied_and_few_absent_keys_pass() {
    let count = if cfg!(miri) { 2_000 } else { 100_000 };
    let memtable = Memtable::with_filter(SeqNo(1), true);
    assert!(!memtable.may_contain(hash(&key(0))), "an empty memtable holds nothing");
    let records = records(count);
    thread::scope(|scope| {
        for part in records.chunks(count / 4) {
            let memtable = &memtable;
            scope.spawn(move || {
                for record in part {
                    record.insert_into(memtable);
                    assert!(memtable.may_contain(hash(&record.key)), "visible as soon as it is inserted");
                }
            });
        }
    });
    for record in &records {
        let found = memtable.get_hashed(&record.key, hash(&record.key), SeqNo::MAX).unwrap();
        assert_eq!(found.value, b"value");
    }
    let passed = (count..2 * count).filter(|number| memtable.may_contain(hash(&key(*number)))).count();
    assert!(passed * 30 < count, "{passed} of {count} strangers pass");
    assert!(memtable.index_bytes() > Memtable::new(SeqNo(1)).index_bytes() + 2 * count as u64);
}

/// A merge by pointer notes its keys too.
#[test]
fn a_generation_knows_what_was_merged_into_it() {
    let records = records(3_000);
    let (first, second) = (Memtable::with_filter(SeqNo(1), true), Memtable::with_filter(SeqNo(1001), true));
    records[..1000].iter().for_each(|record| record.insert_into(&first));
    records[1000..].iter().for_each(|record| record.insert_into(&second));
    let generation = GlobalIndex::from_frozen(first);
    assert!(generation.merge(&second, &[SeqNo::MAX], &mut |_| true));
    for record in &records {
        assert!(generation.get_hashed(&record.key, hash(&record.key), SeqNo::MAX).is_some());
    }
}
