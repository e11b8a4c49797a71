//! Compression of blocks.
