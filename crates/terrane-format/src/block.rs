//! Data blocks: sorted entries with shared prefixes and restart points.
