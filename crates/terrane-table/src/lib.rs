//! Extent writer and reader, block search, filters, cache, iterators.
