//! The counters of an engine.

use serde::{Deserialize, Serialize};

macro_rules! counters {
    ($( #[doc = $about:literal] $name:ident, )*) => {
        /// Counters since the engine was opened; a step's figures are differences. `None`: the engine does
        /// not tell.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct EngineCounters {
            $( #[doc = $about] #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<u64>, )*
        }

        impl EngineCounters {
            /// Adds the counters of `other`, such as another thread's.
            pub fn add(&mut self, other: &EngineCounters) {
                $( self.$name = sum(self.$name, other.$name); )*
            }

            /// The counts since `earlier`.
            #[must_use]
            pub fn since(&self, earlier: &EngineCounters) -> EngineCounters {
                EngineCounters {
                    $( $name: self.$name.map(|now| now.saturating_sub(earlier.$name.unwrap_or(0))), )*
                }
            }

            /// Name, meaning and value of every counter that the engine tells.
            #[must_use]
            pub fn rows(&self) -> Vec<(&'static str, &'static str, u64)> {
                let all = [$( (stringify!($name), $about, self.$name), )*];
                all.into_iter()
                    .filter_map(|(name, about, value)| Some((name, about.trim(), value?)))
                    .collect()
            }
        }
    };
}

counters! {
    /// Bytes given to the device by the engine's log.
    log_bytes_written,
    /// Syncs of the engine's log.
    log_syncs,
    /// Bytes that flushes wrote.
    flush_bytes_written,
    /// Bytes that compactions wrote.
    compaction_bytes_written,
    /// Bytes that compactions read.
    compaction_bytes_read,
    /// Time that writers were held back, in microseconds.
    stall_micros,
    /// Blocks found in the cache.
    cache_hits,
    /// Blocks read from the device for reads.
    cache_misses,
    /// Bytes read from the device (or page cache) for reads.
    read_bytes,
    /// Filters asked.
    filter_probes,
    /// Filters that said yes although the key was not there.
    filter_false_positives,
    /// Sorted runs searched by point reads and seeks.
    runs_searched,
    /// Data blocks decoded or decompressed.
    blocks_decoded,
    /// Transactions that were refused: a conflict, a deadlock or a lock timeout.
    transactions_aborted,
    /// Requests to buckets that create objects.
    bucket_creates,
    /// Requests to buckets that read, list or delete.
    bucket_reads,
    /// Bytes of objects that were sent to buckets.
    bucket_bytes_sent,
    /// Bytes of objects that buckets answered with.
    bucket_bytes_received,
}

fn sum(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    match (left, right) {
        (None, None) => None,
        (left, right) => Some(left.unwrap_or(0) + right.unwrap_or(0)),
    }
}
