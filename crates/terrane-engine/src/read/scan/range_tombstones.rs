//! Hides from a scan, source by source, the versions that range deletes cover.
//!
//! A source of a scan is *veiled*: it shows no version that a range delete of its own or of a newer source
//! hides. What a newer source deletes is older here, all of it, so the source is sought past the end of the
//! whole stretch: a scan over a deleted range costs as much as there are stretches, not as there are keys.
//! Versions that its own source deletes are stepped over one by one, for it may have newer ones of the same
//! keys; such are in memory, which is flushed where scans pass many (`background/flush/scan_trigger.rs`), or
//! kept for snapshots.
//!
//! A veil remembers the *region* around the last key that it looked up, in which its answer stays the same,
//! so that a scan of keys that nothing hides compares each with two keys and looks nothing up.
//!
//! Where no source has range deletes there are no veils at all.

use std::sync::Arc;

use terrane_base::counters::{add, count};
use terrane_base::key::head;
use terrane_base::{Collation, Cursor, Entry, Result, SeqNo};
use terrane_levels::Level;
use terrane_memtable::{Around, Memtable, RangeView};
use terrane_table::Cache;

use crate::read::scan::iterator::Source;
use crate::table::skipped_versions::SkippedVersions;

/// The range deletes of one source, as a scan at one number sees them.
#[derive(Clone, Debug)]
pub(crate) enum Ranges {
    /// Of a memtable or generation.
    Memory(RangeView),
    /// Of an overflow run or level, at a number, read through the cache.
    Level(Arc<Level>, SeqNo, Arc<Cache>),
}

/// The state of a key in one source.
enum Word {
    /// Hidden from here to before there, by this number.
    Hidden(Vec<u8>, Vec<u8>, SeqNo),
    /// Not hidden, and nothing else from here to before there.
    Clear(Vec<u8>, Option<Vec<u8>>),
}

impl Ranges {
    /// Those of a memtable that a scan at `at` sees, if there are any.
    pub(crate) fn of_memory(memtable: &Memtable, at: SeqNo) -> Option<Ranges> {
        let view = memtable.range_deletes()?.view(at);
        (!view.is_empty()).then_some(Ranges::Memory(view))
    }

    /// Those of a level, if there are any.
    pub(crate) fn of_level(level: &Arc<Level>, at: SeqNo, cache: &Arc<Cache>) -> Option<Ranges> {
        (level.totals().range_deletes > 0).then(|| Ranges::Level(level.clone(), at, cache.clone()))
    }

    fn word(&self, key: &[u8]) -> Result<Word> {
        match self {
            Ranges::Memory(view) => Ok(match view.around(key) {
                Around::Hidden(by) => Word::Hidden(by.start.to_vec(), by.end.to_vec(), by.seq),
                Around::Clear(from, to) => {
                    Word::Clear(from.map_or_else(Vec::new, |from| from.to_vec()), to.map(|to| to.to_vec()))
                }
            }),
            Ranges::Level(level, at, cache) => word_of_level(level, key, *at, cache),
        }
    }
}

fn word_of_level(level: &Level, key: &[u8], at: SeqNo, cache: &Arc<Cache>) -> Result<Word> {
    let index = level.find(key);
    if index >= level.len() {
        return Ok(Word::Clear(key.to_vec(), None));
    }
    let extent = level.get(index);
    let (smallest, largest) = (&extent.meta.smallest, &extent.meta.largest);
    let collation = &extent.meta.collation;
    if collation.lt(key, smallest) {
        return Ok(Word::Clear(key.to_vec(), Some(smallest.clone())));
    }
    let behind = || Some(collation.successor(largest));
    let Some(fragments) = extent.range_deletes(cache)? else {
        return Ok(Word::Clear(smallest.clone(), behind()));
    };
    let found = fragments.find(key);
    let next = fragments.all().get(found);
    if let Some(over) = next.filter(|next| collation.le(&next.start, key)) {
        return Ok(match over.newest(at) {
            Some(seq) => Word::Hidden(over.start.clone(), over.end.clone(), seq),
            None => Word::Clear(over.start.clone(), Some(over.end.clone())),
        });
    }
    let before = found.checked_sub(1).and_then(|before| fragments.all().get(before));
    let from = before.map_or_else(|| smallest.clone(), |before| before.end.clone());
    Ok(Word::Clear(from, next.map(|next| next.start.clone()).or_else(behind)))
}

/// Keys among which the same is hidden.
#[derive(Debug)]
struct Region {
    from: Vec<u8>,
    /// First key behind; `None`: no end.
    to: Option<Vec<u8>>,
    /// Versions older than this are hidden.
    hidden_below: SeqNo,
    /// Keys whose first bytes lie between these, both exclusive, are within.
    heads: (u64, u64),
    collation: Collation,
}

impl Region {
    /// All keys.
    fn whole(collation: &Collation) -> Region {
        let collation = collation.clone();
        Region { from: Vec::new(), to: None, hidden_below: SeqNo(0), heads: (0, 0), collation }
    }

    #[inline]
    fn holds(&self, key: &[u8]) -> bool {
        let head = self.collation.head(key);
        (self.heads.0 < head && head < self.heads.1) || self.holds_whole(key)
    }

    fn holds_whole(&self, key: &[u8]) -> bool {
        self.collation.le(&self.from, key) && self.to.as_ref().is_none_or(|to| self.collation.lt(key, to))
    }

    /// Returns the region with its heads; it is not narrowed any more.
    fn with_heads(mut self) -> Region {
        if self.collation.is_bytes() {
            self.heads = (head(&self.from), self.to.as_deref().map_or(u64::MAX, head));
        }
        self
    }

    /// Narrows the region to what lies within other ends, too.
    fn narrow(&mut self, from: Vec<u8>, to: Option<Vec<u8>>) {
        debug_assert!(self.heads == (0, 0), "a region whose heads are known is not narrowed");
        let by_bytes = terrane_base::planted!(NarrowByBytes);
        let collation = if by_bytes { Collation::bytes() } else { &self.collation };
        if collation.lt(&self.from, &from) {
            self.from = from;
        }
        if let Some(to) = to
            && self.to.as_ref().is_none_or(|own| collation.lt(&to, own))
        {
            self.to = Some(to);
        }
    }
}

/// The next step at an entry.
enum Step {
    Show,
    /// It is hidden, and older versions of its key are too.
    Pass,
    /// All from here to before there is hidden.
    Skip(Vec<u8>, Vec<u8>),
}

/// See the [module](self).
#[derive(Debug)]
pub struct RangeTombstoneIter {
    inner: Source,
    /// Of newer sources.
    newer: Vec<Ranges>,
    own: Option<Ranges>,
    region: Option<Region>,
    /// Where steps over what the source itself hides are counted.
    passed: Option<Arc<SkippedVersions>>,
    collation: Collation,
}

impl RangeTombstoneIter {
    /// `passed` counts the versions of a source in memory that the scan steps over.
    pub(crate) fn new(
        inner: Source,
        newer: Vec<Ranges>,
        own: Option<Ranges>,
        passed: &Arc<SkippedVersions>,
        collation: &Collation,
    ) -> Self {
        let passed = matches!(own, Some(Ranges::Memory(_))).then(|| passed.clone());
        RangeTombstoneIter { inner, newer, own, region: None, passed, collation: collation.clone() }
    }

    /// Moves on to the first entry from here on that is not hidden.
    fn skip_hidden(&mut self, backward: bool) -> Result<()> {
        let mut skipped = 0;
        let done = self.skip_hidden_counting(backward, &mut skipped);
        if skipped > 0 {
            count(|cells| add(&cells.versions_skipped, skipped));
            if let Some(passed) = &self.passed {
                passed.add(skipped);
            }
        }
        done
    }

    fn skip_hidden_counting(&mut self, backward: bool, skipped: &mut u64) -> Result<()> {
        loop {
            match self.step()? {
                Step::Show => return Ok(()),
                Step::Pass if backward => self.inner.prev()?,
                Step::Pass => self.inner.next()?,
                Step::Skip(start, _) if backward => self.inner.seek_before(&start)?,
                Step::Skip(_, end) => self.inner.seek(&end, SeqNo::MAX)?,
            }
            *skipped += 1;
        }
    }

    /// The next step at the position of the source.
    fn step(&mut self) -> Result<Step> {
        let Some(entry) = self.inner.entry() else { return Ok(Step::Show) };
        let seq = entry.seq_kind.seq();
        if let Some(region) = self.region.as_ref().filter(|region| region.holds(entry.key)) {
            return Ok(if seq < region.hidden_below { Step::Pass } else { Step::Show });
        }
        let mut region = Region::whole(&self.collation);
        for ranges in &self.newer {
            match ranges.word(entry.key)? {
                Word::Hidden(start, end, _) => return Ok(Step::Skip(start, self.hidden_to(end)?)),
                Word::Clear(from, to) => region.narrow(from, to),
            }
        }
        match self.own.as_ref().map(|own| own.word(entry.key)).transpose()? {
            Some(Word::Hidden(start, end, by)) => {
                let by = if terrane_base::planted!(VeilHidesNewer) { SeqNo::MAX } else { by };
                region.narrow(start, Some(end));
                region.hidden_below = by;
            }
            Some(Word::Clear(from, to)) => region.narrow(from, to),
            None => {}
        }
        let is_hidden = seq < region.hidden_below;
        self.region = Some(region.with_heads());
        Ok(if is_hidden { Step::Pass } else { Step::Show })
    }

    /// Where what begins before `end` and is hidden by newer sources comes to its end.
    fn hidden_to(&self, mut end: Vec<u8>) -> Result<Vec<u8>> {
        let mut at = 0;
        let mut clear = 0;
        while clear < self.newer.len() {
            match self.newer[at].word(&end)? {
                Word::Hidden(_, further, _) => {
                    let is_further = !self.collation.is_bytes() || further > end;
                    debug_assert!(is_further, "a range delete ends behind the keys that it hides");
                    end = further;
                    clear = 0;
                }
                Word::Clear(..) => {
                    clear += 1;
                    at = (at + 1) % self.newer.len();
                }
            }
        }
        Ok(end)
    }
}

impl Cursor for RangeTombstoneIter {
    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        self.inner.entry()
    }

    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        self.inner.seek(key, seq)?;
        self.skip_hidden(false)
    }

    fn prepare_seek(&mut self, key: &[u8]) {
        self.inner.prepare_seek(key);
    }

    fn begin_seek(&mut self, key: &[u8], seq: SeqNo) -> Result<bool> {
        if !self.inner.begin_seek(key, seq)? {
            return Ok(false);
        }
        self.skip_hidden(false).map(|()| true)
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.inner.seek_before(key)?;
        self.skip_hidden(true)
    }

    fn seek_first(&mut self) -> Result<()> {
        self.inner.seek_first()?;
        self.skip_hidden(false)
    }

    fn seek_last(&mut self) -> Result<()> {
        self.inner.seek_last()?;
        self.skip_hidden(true)
    }

    fn next(&mut self) -> Result<()> {
        self.inner.next()?;
        self.skip_hidden(false)
    }

    fn next_key(&mut self) -> Result<()> {
        self.inner.next_key()?;
        self.skip_hidden(false)
    }

    fn prev(&mut self) -> Result<()> {
        self.inner.prev()?;
        self.skip_hidden(true)
    }
}
