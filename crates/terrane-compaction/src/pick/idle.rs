//! Work that is worth doing when nothing is due, in this order: remaining overflow runs, ranges in which
//! scans met too many value tables, a tree that is too deep, extents full of deletes and expired entries,
//! small neighbours.

use std::ops::Range;

use terrane_base::Moment;
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::Place;
use terrane_storage::SLOT_BYTES;

use super::Picker;
use super::build::{JobDraft, Slice};
use super::level::bytes_of_slice;
use super::room::is_scarce;
use crate::job::{JobKind, JobSpec};
use crate::range::Hull;
use crate::versions::in_one_stripe;

/// Stored bytes that certainly fit into one slot together: rows and filter of the whole are at most the sum
/// of the parts', and an eighth is left for the filter's rounding and the padding before the footer.
const GATHERED_BYTES_MAX: u64 = SLOT_BYTES as u64 / 8 * 7;

impl<'a> Picker<'a> {
    pub(super) fn idle_job(&self) -> Option<JobSpec> {
        let levels = || (1..=self.shape.deepest()).rev();
        self.runs_job()
            .or_else(|| self.mend_job())
            .or_else(|| self.collapse_job())
            .or_else(|| levels().find_map(|number| self.deletes_job(number, self.limits.deletes_permille)))
            .or_else(|| levels().find_map(|number| self.gather_job(number)))
    }

    /// Moves extents of the deepest level up, if the tree is deeper than necessary and no request moves
    /// extents down.
    pub(super) fn collapse_job(&self) -> Option<JobSpec> {
        if self.shape.keeps_depth { None } else { self.rising_job(JobKind::Collapse) }
    }

    /// Moves extents of the deepest level up, if the tree is deeper than necessary. The extents that they
    /// overlap above are newer and stay above the rest below, so the order of versions holds.
    pub(super) fn rising_job(&self, kind: JobKind) -> Option<JobSpec> {
        let deepest = self.shape.deepest();
        if deepest <= self.targets.depth {
            return None;
        }
        let len = self.shape.level(deepest).len();
        let start = (0..len.min(super::WINDOW)).find(|start| self.can_rise(deepest, *start..start + 1))?;
        let mut range = start..start;
        let mut is_relink = true;
        while range.end < len {
            let wider = range.start..range.end + 1;
            let slices = self.rising(deepest, wider.clone());
            is_relink =
                is_relink && slices[0].range.is_empty() && self.is_as_written(&slices[1], deepest - 1);
            let fits = if is_relink {
                wider.len() <= self.limits.job_relinks_max
            } else {
                slices.iter().map(bytes_of_slice).sum::<u64>() <= self.limits.job_bytes_max
            };
            // One extent and what it overlaps always make a job.
            let joins = range.is_empty() || (fits && self.can_rise(deepest, wider.clone()));
            if !joins {
                break;
            }
            range = wider;
        }
        assert!(!range.is_empty(), "one extent and what it overlaps always make a job");
        let slices = self.rising(deepest, range).into();
        self.build(JobDraft { kind, slices, target: deepest - 1, drops_deletes: false, rewrites: false })
    }

    /// Extents of a level, after those of the level above that they overlap.
    fn rising(&self, number: u8, range: Range<usize>) -> [Slice<'a>; 2] {
        debug_assert!(number > 1, "level {number} cannot rise");
        let lower = self.slice(Place::Level(number), range);
        let mut hull = Hull::default();
        lower.add_to(&mut hull);
        [self.slice_over(Place::Level(number - 1), hull), lower]
    }

    fn can_rise(&self, number: u8, range: Range<usize>) -> bool {
        debug_assert!(range.end <= self.shape.level(number).len(), "extents {range:?} of level {number}");
        let slices = self.rising(number, range);
        let mut hull = Hull::default();
        slices.iter().for_each(|slice| slice.add_to(&mut hull));
        hull.to_range().is_some_and(|range| self.is_free(&slices, number - 1, &range))
    }

    /// Extents with `permille` deletes or expired entries: in the last level these are dropped in place,
    /// elsewhere they move down.
    pub(super) fn deletes_job(&self, number: u8, permille: u64) -> Option<JobSpec> {
        let level = self.shape.level(number);
        let totals = level.totals();
        let may_have_expired = totals.expiring > 0 && self.shape.now > Moment(0);
        if totals.deletes == 0 && totals.range_deletes == 0 && !may_have_expired {
            return None;
        }
        let first = self.cursors.start(self.shape, number);
        debug_assert!(first == 0 || first < level.len(), "a round over a level begins at one of its extents");
        let is_wanted = |meta: &ExtentMeta| self.is_full_of_deletes(meta, permille);
        let next = |from| level.next_decayed(from, permille, self.shape.now, &is_wanted);
        let from_on = |from| std::iter::successors(next(from), |last| next(last + 1));
        let mut order = from_on(first).chain(from_on(0).take_while(|index| *index < first));
        order.find_map(|index| {
            let meta = level.meta(index);
            if !self.is_bottom(number, meta) {
                return self.move_down(JobKind::Deletes, number, index..index + 1, true);
            }
            if !self.can_clean(meta) {
                return None;
            }
            let end = self.grow_in_place(number, index, self.limits.job_bytes_max, |meta| {
                self.is_full_of_deletes(meta, permille)
                    && self.is_bottom(number, meta)
                    && self.can_clean(meta)
            });
            self.in_place(JobKind::Deletes, number, index..end, true)
        })
    }

    /// Small neighbours that fit into one slot. None where the device has no room for full extents.
    fn gather_job(&self, number: u8) -> Option<JobSpec> {
        if is_scarce(self.shape.room_bytes) {
            return None;
        }
        let level = self.shape.level(number);
        let totals = level.totals();
        let slot_bytes = totals.slots.saturating_mul(SLOT_BYTES as u64);
        if totals.bytes.saturating_mul(1000) >= slot_bytes.saturating_mul(self.limits.fill_permille) {
            return None;
        }
        let first = self.cursors.start(self.shape, number);
        debug_assert!(first == 0 || first < level.len(), "a round over a level begins at one of its extents");
        let order = (first..level.len()).chain(0..first);
        order.into_iter().find_map(|index| {
            let end = self.grow_in_place(number, index, GATHERED_BYTES_MAX, |meta| meta.slots == 1);
            if end - index < 2 { None } else { self.in_place(JobKind::Gather, number, index..end, false) }
        })
    }

    /// End of the longest run of `wanted` extents from `index` on, up to `bytes_max` when written.
    fn grow_in_place(
        &self,
        number: u8,
        index: usize,
        bytes_max: u64,
        wanted: impl Fn(&ExtentMeta) -> bool,
    ) -> usize {
        let level = self.shape.level(number);
        let compression = self.output_for(number).compression;
        let mut bytes = 0;
        let mut end = index;
        while end < level.len() && wanted(level.meta(end)) {
            let meta = level.meta(end);
            let stays = meta.compression == compression;
            bytes += if stays { u64::from(meta.bytes) } else { meta.raw_bytes.max(meta.bytes.into()) };
            if end > index && bytes > bytes_max {
                break;
            }
            end += 1;
        }
        debug_assert!(index <= end, "extents join behind the first");
        end
    }

    fn in_place(
        &self,
        kind: JobKind,
        number: u8,
        range: Range<usize>,
        drops_deletes: bool,
    ) -> Option<JobSpec> {
        debug_assert!(!range.is_empty(), "a job in level {number} without an extent");
        let slices = vec![self.slice(Place::Level(number), range)];
        self.build(JobDraft { kind, slices, target: number, drops_deletes, rewrites: false })
    }

    fn is_full_of_deletes(&self, meta: &ExtentMeta, permille: u64) -> bool {
        let expired = meta.expiry.map_or(0, |expiry| expiry.expired(self.shape.now));
        let dead = meta.deletes.saturating_add(expired);
        // A range delete moves down until it has met everything that it hides.
        meta.range_deletes.is_some()
            || dead > 0 && dead.saturating_mul(1000) >= meta.entries.saturating_mul(permille)
    }

    fn is_bottom(&self, number: u8, meta: &ExtentMeta) -> bool {
        !self.shape.is_occupied_below(number, &meta.smallest, &meta.largest)
    }

    /// Returns true if a merge in the last level would drop all of an extent's deletes: otherwise it would be
    /// picked for ever.
    fn can_clean(&self, meta: &ExtentMeta) -> bool {
        in_one_stripe(self.shape.snapshots, meta.seq_min, meta.seq_max)
    }
}
