//! The scope of a scan whose keys all have one prefix: extents whose filter excludes the prefix are skipped
//! before their index block is read.
//!
//! Invariant: a cursor with a scope returns every entry whose key begins with the scope's prefix. It may
//! return others.

use std::sync::Arc;

use terrane_base::counters::{add, count};
use terrane_base::prefix_extractor::Extractor;
use terrane_base::{Result, key};
use terrane_format::filter;

use crate::cache::Cache;
use crate::extent::Extent;
use crate::loader::Loader;

/// Keys that begin with one prefix, and its hash for filters.
#[derive(Debug)]
pub struct Scope {
    prefix: Vec<u8>,
    /// The least key after them.
    end: Option<Vec<u8>>,
    hash: u64,
    extractor: u64,
}

impl Scope {
    /// The keys that begin with `prefix`. Requires: all of them have it as their prefix, by the extractor.
    #[must_use]
    pub fn new(extractor: &Extractor, prefix: &[u8]) -> Self {
        let hash = filter::prefix_hash(prefix);
        let extractor = filter::extractor_id(extractor.name());
        let end = key::prefix_end(prefix);
        debug_assert!(
            end.as_ref().is_none_or(|end| &end[..] > prefix),
            "the end comes after all keys of the prefix"
        );
        Scope { prefix: prefix.to_vec(), end, hash, extractor }
    }

    /// The prefix: the least of the keys.
    #[must_use]
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// The least key after them, if there is one.
    #[must_use]
    pub fn end(&self) -> Option<&[u8]> {
        self.end.as_deref()
    }

    /// Returns true if `key` is in the scope.
    #[inline]
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        key.starts_with(&self.prefix)
    }

    /// Returns true if keys of the scope can lie within the bounds of `extent`.
    pub(crate) fn meets(&self, extent: &Extent) -> bool {
        let (smallest, largest) = (extent.meta.smallest.as_slice(), extent.meta.largest.as_slice());
        largest >= self.prefix.as_slice() && (smallest <= self.prefix.as_slice() || self.holds(smallest))
    }

    /// Returns true if `extent` may hold a key of the scope; `false` is certain.
    pub(crate) fn admits(&self, extent: &Extent, cache: &Arc<Cache>) -> Result<Admission> {
        if !self.meets(extent) {
            return Ok(Admission::Denied);
        }
        let loader = Loader { extent, cache: extent.bind(cache), fill_cache: true };
        let Some(object) = loader.filter()? else { return Ok(Admission::Unasked) };
        let filter = object.filter();
        let is_own = filter.prefixes() == Some(self.extractor);
        if !is_own && (filter.prefixes().is_none() || !terrane_base::planted!(AskForeignFilter)) {
            // A filter of another extractor, or of keys alone, does not know the prefix.
            return Ok(Admission::Unasked);
        }
        let may_contain = filter.may_contain(self.hash);
        count(|cells| {
            add(&cells.prefix_probes, 1);
            add(&cells.prefix_negatives, u64::from(!may_contain));
        });
        Ok(if may_contain { Admission::Asked } else { Admission::Denied })
    }
}

/// The answer of the filter of an extent to a scope, before a cursor opens the extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The extent has no key of the scope.
    Denied,
    /// Its filter says that there may be one.
    Asked,
    /// There is no filter for the prefix.
    Unasked,
}
