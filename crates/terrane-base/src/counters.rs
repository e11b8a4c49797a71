//! Counters of the reads of one thread: sorted runs, filters, blocks, bytes.
//!
//! Each thread has its own counters, so a read that finds everything in memory writes no cache line that
//! another thread reads. The counters only grow; to measure, take the difference of two [`read_counters`] on
//! the reading thread, and add up threads with `+`.
//!
//! The counts are those of the final attempt of a read: a point read that starts again because a block had to
//! be fetched counts each part once. Background work reads on its own threads and is not counted.

use std::cell::Cell;
use std::ops::{Add, AddAssign, Sub};

use crate::metrics::{Metric, MetricKind, MetricScope};
use crate::thread_cells;

macro_rules! read_counters {
    ($( $name:ident, counter, $unit:literal, $about:literal; )*) => {
        /// Every counter of a thread.
        pub const METRICS: &[Metric] = &[ $(
            Metric::new(stringify!($name), MetricScope::Thread, MetricKind::Counter, $unit, $about),
        )* ];

        /// The counters of one thread; see the [module](self).
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct ReadCounters {
            $( #[doc = $about] #[doc = concat!("\n\nUnit: ", $unit, ".")] pub $name: u64, )*
        }

        /// The counters of a thread where its reads add to them; see [`count`].
        #[derive(Debug)]
        pub struct ReadCells { $( #[doc = $about] pub $name: Cell<u64>, )* }

        impl ReadCells {
            pub(crate) const fn new() -> Self {
                ReadCells { $( $name: Cell::new(0), )* }
            }

            fn snapshot(&self) -> ReadCounters {
                ReadCounters { $( $name: self.$name.get(), )* }
            }
        }

        impl ReadCounters {
            /// Every counter: name, unit, value and one sentence.
            #[must_use]
            pub fn rows(&self) -> Vec<(&'static str, &'static str, u64, &'static str)> {
                vec![ $( (stringify!($name), $unit, self.$name, $about), )* ]
            }
        }

        impl Add for ReadCounters {
            type Output = ReadCounters;

            fn add(self, other: ReadCounters) -> ReadCounters {
                ReadCounters { $( $name: self.$name.wrapping_add(other.$name), )* }
            }
        }

        impl Sub for ReadCounters {
            type Output = ReadCounters;

            /// The counts between `earlier` and `self`.
            fn sub(self, earlier: ReadCounters) -> ReadCounters {
                ReadCounters { $( $name: self.$name.wrapping_sub(earlier.$name), )* }
            }
        }
    };
}

read_counters! {
    reads, counter, "reads", "Keys that point reads looked up; equal keys in one multi_get count once.";
    runs_searched, counter, "runs", "Sorted runs that point reads searched: memtables, generations, and each overflow run and level that has an extent around the key.";
    values_followed, counter, "values", "Separated values that reads and scans fetched through a pointer.";
    value_batches, counter, "batches", "Batches of reads in which scans and multi_gets fetched separated values that were not cached.";
    value_batch_reads, counter, "parts", "Index blocks and data blocks of value tables that these batches read.";
    rows_cached, counter, "reads", "Point reads that the row cache answered.";
    filter_probes, counter, "probes", "Filters that point reads queried.";
    filter_negatives, counter, "probes", "Queried filters that excluded the key: the read skipped the extent.";
    filter_positives_false, counter, "probes", "Queried filters that did not exclude the key, although the extent had no visible version of it.";
    prefix_probes, counter, "probes", "Filters that scans within one prefix queried for the prefix before they searched an extent.";
    prefix_negatives, counter, "probes", "Queried filters that excluded the prefix: the scan skipped the extent.";
    prefix_positives_false, counter, "probes", "Queried filters that did not exclude the prefix, although a seek found no key with it in the extent.";
    index_blocks_searched, counter, "blocks", "Index blocks that point reads and seeks searched.";
    data_blocks_searched, counter, "blocks", "Data blocks that point reads and seeks searched, or that steps entered.";
    blocks_missed, counter, "blocks", "Filters, index blocks and data blocks that were not in the cache.";
    blocks_decoded, counter, "blocks", "Data blocks that were checked and decompressed after such a miss.";
    device_reads, counter, "calls", "Reads of the store because of such misses.";
    device_bytes_read, counter, "bytes", "Stored bytes of these reads, before decompression.";
    seeks, counter, "seeks", "Placements of scans: seek, seek_back, seek_first, seek_last; the first row of an iterator counts as one.";
    runs_sought, counter, "runs", "Sorted runs in which seeks placed a cursor, including steps past many versions of a key.";
    rows_stepped, counter, "rows", "Steps of scans to the next or previous row.";
    operands_resolved, counter, "operands", "Merge operands that point reads and scans folded.";
    versions_skipped, counter, "versions", "Versions that scans skipped one by one: too new, older than the shown version, or deletes.";
    deletes_skipped, counter, "deletes", "Deletes of one key among these versions.";
}

impl AddAssign for ReadCounters {
    fn add_assign(&mut self, other: ReadCounters) {
        *self = *self + other;
    }
}

/// The counters of the calling thread since it began, over all databases.
///
/// ```
/// let before = terrane_base::counters::read_counters();
/// // .. reads on this thread ..
/// let done = terrane_base::counters::read_counters() - before;
/// assert_eq!(done.reads, 0);
/// ```
#[must_use]
pub fn read_counters() -> ReadCounters {
    let mut counters = count(ReadCells::snapshot);
    // A negative filter result adds to one counter only; the second count is derived here.
    counters.filter_probes = counters.filter_probes.wrapping_add(counters.filter_negatives);
    counters
}

/// Lets `update` add to the counters of the calling thread. For the parts that reads pass through. The cell
/// `filter_probes` leaves out the filters that said no: [`read_counters`] adds those.
#[inline]
pub fn count<R>(update: impl FnOnce(&ReadCells) -> R) -> R {
    thread_cells::with(|cells| update(&cells.reads))
}

/// Adds to a counter of [`ReadCells`].
#[inline]
pub fn add(cell: &Cell<u64>, amount: u64) {
    cell.set(cell.get().wrapping_add(amount));
}
