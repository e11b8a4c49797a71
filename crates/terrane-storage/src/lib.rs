//! The store of extents.
