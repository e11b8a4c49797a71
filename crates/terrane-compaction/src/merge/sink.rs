//! Where merged entries go: through the version filter, and what stays into the output.

use terrane_base::{Entry, Result};

use super::output::Output;
use super::ranges::Ranges;
use crate::job::{JobSpec, Work};
use crate::range::KeyRange;
use crate::versions::{Verdict, VersionFilter};

/// See the [module](self).
pub(super) struct Sink<'a> {
    pub(super) output: Output<'a>,
    pub(super) work: Work,
    pub(super) ranges: Ranges,
    filter: VersionFilter,
    below: Below<'a>,
    /// The key that went through the filter last, and its head.
    key: Vec<u8>,
    head: u64,
    has_key: bool,
    /// Whether a version of it stays.
    is_kept: bool,
}

impl<'a> Sink<'a> {
    pub(super) fn new(spec: &'a JobSpec, output: Output<'a>, ranges: Ranges) -> Self {
        Sink {
            output,
            work: Work::default(),
            ranges,
            filter: VersionFilter::new(&spec.snapshots),
            below: Below { ranges: &spec.below, at: 0 },
            key: Vec::new(),
            head: 0,
            has_key: false,
            is_kept: false,
        }
    }

    /// Whether `key` is the one that went through the filter last.
    pub(super) fn is_at(&self, key: &[u8]) -> bool {
        self.has_key && self.key == key
    }

    /// Takes the next entry in internal order; `head` is its key's.
    #[inline]
    pub(super) fn take(&mut self, entry: Entry<'_>, head: u64) -> Result<()> {
        if head != self.head || !self.is_at(entry.key) {
            self.filter.start_key();
            self.key.clear();
            self.key.extend_from_slice(entry.key);
            (self.head, self.has_key, self.is_kept) = (head, true, false);
            if terrane_base::planted!(ForgetNewestVersion) {
                return Ok(());
            }
        }
        if !self.ranges.is_empty() && self.ranges.hides(entry.key, entry.seq_kind.seq()) {
            return Ok(());
        }
        let below = &mut self.below;
        match self.filter.next(entry.seq_kind, || !below.may_hold(entry.key)) {
            Verdict::Drop | Verdict::Hold => Ok(()),
            Verdict::Keep => self.keep(entry),
        }
    }

    #[inline]
    fn keep(&mut self, entry: Entry<'_>) -> Result<()> {
        if !self.filter.held().is_empty() {
            self.keep_held()?;
        }
        self.add(entry)
    }

    /// Gives the held deletes out.
    fn keep_held(&mut self) -> Result<()> {
        let key = std::mem::take(&mut self.key);
        for index in 0..self.filter.held().len() {
            let seq_kind = self.filter.held()[index];
            self.add(Entry { key: &key, seq_kind, value: &[] })?;
        }
        self.key = key;
        self.filter.clear_held();
        Ok(())
    }

    #[inline]
    fn add(&mut self, entry: Entry<'_>) -> Result<()> {
        if self.is_kept {
            return self.output.add_next(entry, &mut self.work);
        }
        self.is_kept = true;
        self.output.add_first(entry, &mut self.work)
    }
}

/// Ranges of keys that deeper levels may hold, asked for ascending keys.
struct Below<'a> {
    ranges: &'a [KeyRange],
    at: usize,
}

impl Below<'_> {
    fn may_hold(&mut self, key: &[u8]) -> bool {
        while self.ranges.get(self.at).is_some_and(|range| range.ends_before(key)) {
            self.at += 1;
        }
        self.ranges.get(self.at).is_some_and(|range| range.start.as_slice() <= key)
    }
}
