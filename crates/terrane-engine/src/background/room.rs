//! Room in memory, for a batch that is larger than its share of the write memory ([`crate::throttle`]).

use crate::background::maintenance::Maintenance;
use crate::table::settings::long_segment_bytes;

/// An active segment of so many bytes is not worth another one.
pub(crate) const SHORT_SEGMENT_BYTES: u64 = 64 << 10;

impl Maintenance {
    /// Has everything flushed that is in memory, and has the journal go on in short segments, so that a trim
    /// takes the others as soon as their records are flushed. Waits for no flush.
    pub(crate) fn make_room(&self) {
        // What fails here makes no room; the commit that needs it says why.
        let _ = self.journal.remove_spares();
        let _ = self.journal.seal_longer_than(SHORT_SEGMENT_BYTES);
        self.flush_filled();
    }

    /// Has everything flushed, and the segment of a batch that is larger than its share sealed: nothing else
    /// fits there, so it would stay until the next commit, however long that takes.
    pub(crate) fn flush_behind(&self) {
        let _ = self.journal.seal_longer_than(long_segment_bytes(&self.options));
        self.flush_filled();
    }

    /// Writers call it, so it looks at tables with records in memory only.
    fn flush_filled(&self) {
        debug_assert!(!self.options.read_only, "a reader admits no batch");
        self.request_flush(&self.catalog.filled());
    }
}
