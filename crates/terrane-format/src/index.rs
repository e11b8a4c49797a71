//! The index block of an extent: one row per data block.
