//! Many lookups side by side answer as one after the other would, whatever part of the extents is cached.
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]

use crate::support;

use std::sync::Arc;

use support::store::{TestStore, write_extents};
use support::{Row, sort};
use terrane_base::{Rng, SeqNo};
use terrane_format::filter;
use terrane_table::{Answer, Cache, Extent, Lookup, Probe, WriterSettings, enter, probe_many};

/// Several versions of some keys, so many of one that they fill blocks.
fn rows(rng: &mut Rng) -> Vec<Row> {
    let mut rows = Vec::new();
    for number in 0..4000u64 {
        let key = format!("key{:06}", number * 2).into_bytes();
        let versions = if number == 2000 { 600 } else { 1 + rng.index(3) as u64 };
        for version in 0..versions {
            let seq = 10 * number + 40_000 * version + 1;
            let value = vec![version as u8; rng.index(60)];
            let is_delete = rng.index(8) == 0;
            rows.push(if is_delete { Row::delete(&key, seq) } else { Row::put(&key, seq, &value) });
        }
    }
    sort(&mut rows);
    rows
}

fn single(extent: &Extent, key: &[u8], hash: Option<u64>, seq: SeqNo) -> (Probe, Vec<u8>) {
    let mut value = Vec::new();
    let probe = extent.probe(&enter(), key, hash, seq, &mut value);
    (probe, value)
}

#[test]
fn side_by_side_is_as_one_by_one() {
    let mut rng = Rng::new(7);
    let rows = rows(&mut rng);
    let extents = write_extents(&rows, WriterSettings::default(), 60_000, &TestStore::new());
    assert!(extents.len() > 3);
    let cache = Cache::new(64 << 20);
    let mut seen = [0; 4];
    for round in 0..400 {
        let seq = if round % 3 == 0 { SeqNo(rng.index(100_000) as u64) } else { SeqNo::MAX };
        let keys: Vec<Vec<u8>> =
            (0..1 + rng.index(40)).map(|_| format!("key{:06}", rng.index(8100)).into_bytes()).collect();
        let places: Vec<(&Arc<Extent>, Option<u64>)> = keys
            .iter()
            .map(|key| {
                let extent = extents.iter().find(|extent| extent.meta.largest >= *key);
                let hash = (rng.index(3) > 0).then(|| filter::hash(key));
                (extent.unwrap_or(&extents[0]), hash)
            })
            .collect();
        let expected: Vec<_> =
            keys.iter().zip(&places).map(|(key, (extent, hash))| single(extent, key, *hash, seq)).collect();
        {
            let epoch = enter();
            let mut lookups: Vec<_> = keys
                .iter()
                .zip(&places)
                .map(|(key, (extent, hash))| Lookup::new(extent, key, *hash))
                .collect();
            probe_many(&epoch, &mut lookups, seq);
            for (lookup, (probe, value)) in lookups.iter().zip(&expected) {
                let (kind, same) = match lookup.answer() {
                    Answer::Found(entry) => {
                        (0, *probe == Probe::Found(entry.seq_kind) && value == entry.value)
                    }
                    Answer::Absent => (1, *probe == Probe::Absent),
                    Answer::Refused => (2, *probe == Probe::Refused),
                    Answer::Unknown(need) => (3, *probe == Probe::Unknown(need)),
                };
                assert!(same, "{:?}: {:?}, alone {probe:?}", lookup.key.escape_ascii(), lookup.answer());
                seen[kind] += 1;
            }
        }
        // More is cached from round to round.
        for (key, (extent, hash)) in keys.iter().zip(&places).take(2) {
            extent.get_hashed(&cache, key, *hash, seq, &mut Vec::new()).unwrap();
        }
    }
    assert!(seen.iter().all(|count| *count > 50), "every kind of answer was met: {seen:?}");
}
