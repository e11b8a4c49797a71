//! The merge against one sorted vector of all rows.
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]
#![cfg(not(feature = "shuttle"))]

use crate::support;

use support::{Row, RowCursor, random_key, sort, walk};
use terrane_base::{Cursor, Entry, Error, Kind, Result, Rng, SeqNo};
use terrane_table::MergeCursor;

/// Sources in which duplicates are common; the value tells the source, so that a wrong winner shows.
fn sources(rng: &mut Rng, count: usize, rows_max: usize) -> (Vec<RowCursor>, RowCursor) {
    let mut all = Vec::new();
    let mut sources = Vec::new();
    for source in 0..count {
        let mut rows: Vec<Row> = (0..rng.index(rows_max + 1))
            .map(|_| Row::put(&random_key(rng), rng.index(8) as u64, format!("from {source}").as_bytes()))
            .collect();
        sort(&mut rows);
        all.extend(rows.iter().cloned());
        sources.push(RowCursor::new(rows));
    }
    // The sort is stable, so the highest source comes first among equals and is the one that is kept.
    all.reverse();
    sort(&mut all);
    (sources, RowCursor::new(all))
}

#[test]
fn random_moves_match_the_model() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let count = rng.index(18);
        let rows_max = [0, 1, 5, 60][rng.index(4)];
        let (sources, mut model) = sources(&mut rng, count, rows_max);
        let mut merge = MergeCursor::new(sources);
        assert!(merge.entry().is_none(), "no position before the first placement");
        walk(&mut merge, &mut model, &mut rng, 300);
    }
}

#[test]
fn runs_from_one_source_match_the_model() {
    // Disjoint ranges in shuffled order: the winner stays the winner for long.
    let mut rng = Rng::new(7);
    let mut all = Vec::new();
    let mut sources = Vec::new();
    for source in 0..9u64 {
        let rows: Vec<Row> =
            (0..50).map(|i| Row::put(format!("{:03}/{i:05}", source * 7 % 9).as_bytes(), i, b"v")).collect();
        all.extend(rows.iter().cloned());
        sources.push(RowCursor::new(rows));
    }
    sort(&mut all);
    let mut model = RowCursor::new(all);
    let mut merge = MergeCursor::new(sources);
    walk(&mut merge, &mut model, &mut rng, 2000);
}

#[test]
fn the_oldest_place_wins_ties_in_both_directions() {
    let rows = |value: &[u8]| RowCursor::new(vec![Row::put(b"a", 1, value), Row::put(b"b", 1, value)]);
    let mut merge = MergeCursor::new(vec![rows(b"newest"), rows(b"middle"), rows(b"oldest")]);
    for backward in [false, true] {
        if backward {
            merge.seek_last().unwrap()
        } else {
            merge.seek_first().unwrap()
        }
        let mut seen = 0;
        while let Some(entry) = merge.entry() {
            assert_eq!(entry.value, b"oldest");
            assert_eq!(merge.source_index(), Some(2));
            seen += 1;
            if backward { merge.prev().unwrap() } else { merge.next().unwrap() }
        }
        assert_eq!(seen, 2);
    }
}

#[test]
fn steps_from_key_to_key_meet_the_newest_version_of_each() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let count = 1 + rng.index(6);
        let (sources, model) = sources(&mut rng, count, 40);
        let skipping = |inner| Waiting { inner, waits: false, begun: None };
        let mut merge = MergeCursor::new(sources.into_iter().map(skipping).collect());
        merge.seek_first().unwrap();
        for rows in model.rows.chunk_by(|a, b| a.key == b.key) {
            assert_eq!(merge.entry().map(Row::of).as_ref(), Some(&rows[0]), "seed {seed}");
            // Sometimes the merge turns around: the entries that it skipped are there on the way back.
            if rng.index(4) == 0 && rows.len() > 1 {
                merge.next_key().unwrap();
                if let Some(at) = merge.entry().map(Row::of) {
                    let before = model.rows.iter().rposition(|row| {
                        (&row.key, std::cmp::Reverse(row.seq_kind.seq()))
                            < (&at.key, std::cmp::Reverse(at.seq_kind.seq()))
                    });
                    merge.prev().unwrap();
                    assert_eq!(merge.entry().map(Row::of).as_ref(), before.map(|before| &model.rows[before]));
                }
                merge.seek(&rows[0].key, SeqNo::MAX).unwrap();
            }
            while merge.entry().is_some_and(|entry| entry.key == rows[0].key) {
                merge.next_key().unwrap();
            }
        }
        assert!(merge.entry().is_none());
    }
}

/// Has to be asked twice for a placement, as a source that waits for memory or a device.
struct Waiting {
    inner: RowCursor,
    waits: bool,
    /// Seeks that were begun and must be repeated.
    begun: Option<(Vec<u8>, SeqNo)>,
}

impl Cursor for Waiting {
    fn entry(&self) -> Option<Entry<'_>> {
        assert!(self.begun.is_none(), "a source that waits has no position");
        self.inner.entry()
    }

    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        if let Some(begun) = self.begun.take() {
            assert_eq!(begun, (key.to_vec(), seq));
        }
        self.inner.seek(key, seq)
    }

    fn begin_seek(&mut self, key: &[u8], seq: SeqNo) -> Result<bool> {
        if !self.waits {
            return self.inner.seek(key, seq).map(|()| true);
        }
        self.begun = Some((key.to_vec(), seq));
        Ok(false)
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.inner.seek_before(key)
    }

    fn seek_first(&mut self) -> Result<()> {
        self.inner.seek_first()
    }

    fn seek_last(&mut self) -> Result<()> {
        self.inner.seek_last()
    }

    fn next(&mut self) -> Result<()> {
        self.inner.next()
    }

    fn next_key(&mut self) -> Result<()> {
        let left = self.inner.entry().unwrap().key.to_vec();
        while self.inner.entry().is_some_and(|entry| entry.key == left) {
            self.inner.next()?;
        }
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        self.inner.prev()
    }
}

#[test]
fn sources_that_wait_for_their_placement_match_the_model() {
    for seed in 0..100 {
        let mut rng = Rng::new(seed);
        let count = 2 + rng.index(6);
        let (sources, mut model) = sources(&mut rng, count, 40);
        let waiting = |inner| Waiting { inner, waits: rng.index(2) == 0, begun: None };
        let mut merge = MergeCursor::new(sources.into_iter().map(waiting).collect());
        walk(&mut merge, &mut model, &mut Rng::new(seed), 300);
    }
}

#[test]
fn keys_behind_long_shared_prefixes_match_the_model() {
    // Shorter, as long as and longer than the prefix that is compared without a call.
    for prefix_len in [0, 1, 7, 8, 9, 15, 40] {
        let mut rng = Rng::new(prefix_len as u64);
        let prefix = vec![b'p'; prefix_len];
        let mut all = Vec::new();
        let mut sources = Vec::new();
        for source in 0..4u64 {
            // Some keys leave the prefix early, or end in it, so that it shrinks on the way.
            let key = |number: u64| match number % 17 {
                16 => prefix[..(number as usize / 17).min(prefix_len)].to_vec(),
                _ => [prefix.as_slice(), format!("{number:06}").as_bytes()].concat(),
            };
            let mut rows: Vec<Row> =
                (0..80).map(|row| Row::put(&key(row * 4 + source), source + 1, b"v")).collect();
            sort(&mut rows);
            all.extend(rows.iter().cloned());
            sources.push(RowCursor::new(rows));
        }
        sort(&mut all);
        let mut model = RowCursor::new(all);
        walk(&mut MergeCursor::new(sources), &mut model, &mut rng, 2000);
    }
}

/// Fails at the n-th call.
struct Failing {
    inner: RowCursor,
    calls_left: usize,
}

impl Failing {
    fn count(&mut self) -> Result<()> {
        if self.calls_left == 0 {
            return Err(Error::corrupt("a block went bad"));
        }
        self.calls_left -= 1;
        Ok(())
    }
}

impl Cursor for Failing {
    fn entry(&self) -> Option<Entry<'_>> {
        self.inner.entry()
    }

    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        self.count()?;
        self.inner.seek(key, seq)
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.count()?;
        self.inner.seek_before(key)
    }

    fn seek_first(&mut self) -> Result<()> {
        self.count()?;
        self.inner.seek_first()
    }

    fn seek_last(&mut self) -> Result<()> {
        self.count()?;
        self.inner.seek_last()
    }

    fn next(&mut self) -> Result<()> {
        self.count()?;
        self.inner.next()
    }

    fn prev(&mut self) -> Result<()> {
        self.count()?;
        self.inner.prev()
    }
}

#[test]
fn an_error_takes_the_position_and_a_new_placement_gives_it_back() {
    for fail_at in 0..20 {
        let rows: Vec<Row> = (0..10).map(|i| Row::put(format!("k{i}").as_bytes(), 1, b"v")).collect();
        let healthy = Failing { inner: RowCursor::new(rows.clone()), calls_left: usize::MAX };
        let failing = Failing { inner: RowCursor::new(rows), calls_left: fail_at };
        let mut merge = MergeCursor::new(vec![healthy, failing]);
        let mut outcome = merge.seek_first();
        while outcome.is_ok() && merge.entry().is_some() {
            outcome = merge.next();
        }
        if fail_at < 11 {
            assert_eq!(outcome.unwrap_err().kind(), Kind::Corrupt);
            assert!(merge.entry().is_none());
        }
        let mut sources = merge.into_sources();
        sources[1].calls_left = usize::MAX;
        let mut merge = MergeCursor::new(sources);
        merge.seek(b"k3", SeqNo::MAX).unwrap();
        assert_eq!(merge.entry().unwrap().key, b"k3");
    }
}
