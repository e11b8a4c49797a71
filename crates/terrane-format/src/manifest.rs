//! Manifest records: checksummed, chained edits.
