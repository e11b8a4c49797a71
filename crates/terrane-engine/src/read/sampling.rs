//! Looking closely at some reads: how many sorted runs they search, and which extents they end in.
//!
//! One in [`sampling::EVERY`] reads of a thread is looked at; the others write nothing that another thread
//! sees. The counters of its thread say what a sampled read did, so its way is the same as that of
//! every other read. The samples of a table ([`TableLoad`]) say what its tree should be good for
//! (`background/compaction/read_heavy.rs`), those of an extent whether it should stay in an upper level.

use std::time::Duration;
use terrane_base::sync::atomic::Ordering;

use terrane_base::counters::count;
use terrane_base::options::AdaptiveShape;
use terrane_base::{Result, sampling};
use terrane_format::filter::hash as key_hash;
use terrane_levels::Metasnapshot;

use crate::read::Reader;
use crate::read::get::ReadMode;
use crate::table::Table;
use crate::table::read_view::ReadView;

/// Time after which a sample counts half.
const HALF_LIFE: Duration = Duration::from_secs(8);

/// Counts of the calling thread's reads up to now.
#[derive(Clone, Copy)]
struct Done {
    reads: u64,
    runs: u64,
    /// Extents whose blocks were searched.
    extents: u64,
}

impl Done {
    fn so_far() -> Done {
        count(|cells| Done {
            reads: cells.reads.get(),
            runs: cells.runs_searched.get(),
            extents: cells.index_blocks_searched.get(),
        })
    }

    fn since(self, earlier: Done) -> Done {
        debug_assert!(
            self.reads >= earlier.reads && self.runs >= earlier.runs && self.extents >= earlier.extents,
            "the counters of a thread only grow"
        );
        Done {
            reads: self.reads.wrapping_sub(earlier.reads),
            runs: self.runs.wrapping_sub(earlier.runs),
            extents: self.extents.wrapping_sub(earlier.extents),
        }
    }
}

impl Reader<'_> {
    /// Returns true if the read that begins now is to be looked at.
    #[inline]
    pub(crate) fn samples_now(self) -> bool {
        // In this order a read that is not due, as most are not, looks at nothing but the thread's cells.
        sampling::is_due() && self.samples()
    }

    /// Returns true if anybody wants to know.
    pub(crate) fn samples(self) -> bool {
        let options = &self.options;
        !options.read_only && (options.experiments.hot_cold || options.adaptive_shape != AdaptiveShape::Off)
    }

    /// A read of `keys` that is looked at.
    #[cold]
    pub(crate) fn sampled<T>(
        self,
        table: &Table,
        keys: &[&[u8]],
        mode: ReadMode,
        read: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let before = Done::so_far();
        let answer = read();
        let done = Done::so_far().since(before);
        debug_assert!(
            answer.is_err() || keys.is_empty() || done.reads > 0,
            "a read that ends well is counted"
        );
        // A read may be looked at for its time alone.
        if !self.samples() {
            return answer;
        }
        table.load.add_reads(done.reads, done.runs);
        self.catalog.sums().count_reads(done.reads);
        table.note_used();
        // Which of several keys searched which extents is not known; one is as good a sample as many.
        if let ([key], true) = (keys, self.options.experiments.hot_cold && done.extents > 0) {
            let epoch = terrane_table::enter();
            self.warm(&table.view(epoch.guard()).tree, key, mode, done.extents);
        }
        answer
    }

    /// Counts the placing of a scan over `view`, if it is one of those that are looked at.
    pub(crate) fn sample_scan(self, table: &Table, view: &ReadView, memory_runs: u32) {
        if !self.samples_now() {
            return;
        }
        let levels = view.tree.places().filter(|(_, level)| !level.is_empty()).count();
        let runs = u64::from(memory_runs) + levels as u64;
        table.load.seeks.fetch_add(sampling::EVERY, Ordering::Relaxed);
        table.load.seek_runs.fetch_add(runs * sampling::EVERY, Ordering::Relaxed);
        self.catalog.sums().count_seek();
        table.note_used();
    }

    /// Adds a sample to the first `searched` extents that a read of `key` has to search.
    fn warm(self, tree: &Metasnapshot, key: &[u8], mode: ReadMode, searched: u64) {
        debug_assert!(searched > 0, "a read that searched no extent makes none warm");
        let hash = mode.filters.then(|| key_hash(key));
        let extents = tree.places().filter_map(|(_, level)| level.covering(key));
        let moment = moment(self.env.clock.now());
        for extent in extents.filter(|extent| extent.may_hold(hash)).take(searched as usize) {
            extent.heat.add(1, moment);
        }
    }
}

/// Half-lives of a sample since the beginning of the clock that says `now`.
pub(crate) fn moment(now: Duration) -> u32 {
    (now.as_millis() / HALF_LIFE.as_millis()) as u32
}
