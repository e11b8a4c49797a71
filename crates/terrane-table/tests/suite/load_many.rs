//! Parts that many lookups lack come in few batches, each once, and one that is damaged keeps none of the
//! others away.
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]

use crate::support;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use support::Row;
use support::store::{TestStore, write_extents};
use terrane_base::SeqNo;
use terrane_format::filter;
use terrane_table::{Cache, Extent, Need, Probe, WriterSettings, enter, load_many};

fn key(number: u64) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

fn extents(store: &Arc<TestStore>) -> Vec<Arc<Extent>> {
    let rows: Vec<_> = (0..4000).map(|number| Row::put(&key(number), number + 1, &[7; 100])).collect();
    let extents = write_extents(&rows, WriterSettings::default(), 60_000, store);
    assert!(extents.len() > 3);
    extents
}

/// All data blocks of the extents, whose index blocks are loaded first.
fn blocks<'e>(cache: &Arc<Cache>, extents: &'e [Arc<Extent>]) -> Vec<(&'e Extent, Need)> {
    let parts = |need: Need| extents.iter().map(|extent| (&**extent, need)).collect::<Vec<_>>();
    assert!(load_many(cache, &parts(Need::Filter)).iter().all(Option::is_some));
    assert!(load_many(cache, &parts(Need::Index)).iter().all(Option::is_some));
    extents
        .iter()
        .flat_map(|extent| (0..extent.meta.blocks as usize).map(|at| (&**extent, Need::Block(at))))
        .collect()
}

fn probe(extent: &Extent, key: &[u8]) -> Probe {
    extent.probe(&enter(), key, Some(filter::hash(key)), SeqNo::MAX, &mut Vec::new())
}

#[test]
fn missing_blocks_come_in_few_batches_and_once() {
    let store = TestStore::new();
    let extents = extents(&store);
    let cache = Cache::new(64 << 20);
    let needs = blocks(&cache, &extents);
    let (reads, batches) = (store.reads(), store.batches.load(Ordering::Relaxed));
    let doubled: Vec<_> = needs.iter().flat_map(|need| [*need, *need]).collect();
    assert!(load_many(&cache, &doubled).iter().all(Option::is_some));
    // A run of neighbours ends with its extent and with its batch.
    let runs = |batch: &[(&Extent, Need)]| batch.chunk_by(|a, b| std::ptr::eq(a.0, b.0)).count();
    let runs: usize = needs.chunks(64).map(runs).sum();
    assert!(runs * 2 < needs.len(), "{runs} runs of {} blocks", needs.len());
    assert_eq!(
        store.reads() - reads,
        runs as u64,
        "a part that is wanted twice is read once, neighbours together"
    );
    assert_eq!(store.batches.load(Ordering::Relaxed) - batches, (needs.len() as u64).div_ceil(64));
    for number in 0..4000 {
        let extent = extents.iter().find(|extent| extent.meta.largest >= key(number)).unwrap();
        assert!(matches!(probe(extent, &key(number)), Probe::Found(_)), "what was loaded is cached");
    }
    let reads = store.reads();
    assert!(load_many(&cache, &needs).iter().all(Option::is_some));
    assert_eq!(store.reads(), reads, "a cached block is not read again");
}

#[test]
fn a_part_that_finds_no_room_is_in_hand_all_the_same() {
    let store = TestStore::new();
    let extents = extents(&store);
    // Room for index blocks and filters, not for the data.
    let cache = Cache::new(48 << 10);
    let extent = &extents[..1];
    let needs = blocks(&cache, extent);
    let loaded = load_many(&cache, &needs);
    let found = (0..4000).filter(|number| {
        let hit = |loaded: &Option<_>| {
            let loaded = loaded.as_ref().unwrap();
            extent[0].find_in(loaded, &key(*number), None, SeqNo::MAX).is_some()
        };
        loaded.iter().filter(|loaded| hit(loaded)).count() == 1
    });
    assert_eq!(found.count() as u64, extent[0].meta.entries);
    assert!(extent[0].cached_blocks() < needs.len(), "the cache took less than all");
}

#[test]
fn a_damaged_part_is_left_out() {
    let store = TestStore::new();
    let extents = extents(&store);
    let cache = Cache::new(64 << 20);
    let needs = blocks(&cache, &extents);
    let id = extents[1].meta.id;
    let mut bytes = store.bytes(id);
    bytes[20] ^= 1;
    store.set_bytes(id, bytes);
    let loaded = load_many(&cache, &needs);
    let is_damaged = |need: &(&Extent, Need)| need.0.meta.id == id && need.1 == Need::Block(0);
    for (need, loaded) in needs.iter().zip(&loaded) {
        assert_eq!(loaded.is_none(), is_damaged(need), "{:?} of {}", need.1, need.0.meta.id);
    }
    let first = &extents[1].meta.smallest;
    let error = extents[1].get(&cache, first, SeqNo::MAX, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), terrane_base::Kind::Corrupt, "a single read gets the error: {error}");
}
