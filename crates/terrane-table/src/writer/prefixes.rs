//! The prefixes of the current extent's keys: members of its filter beside the keys.
//!
//! Invariant: unless an extractor failed since the last reset, every key's prefix was added. If one failed
//! the filter is built without prefixes: a filter that lacks some would exclude them.

use std::sync::Arc;

use terrane_base::prefix_extractor::Extractor;
use terrane_format::filter;

use super::ExtentWriter;

#[derive(Debug, Default)]
pub(super) struct Prefixes {
    extractor: Option<Arc<Extractor>>,
    hashes: Vec<u64>,
    has_failed: bool,
}

impl Prefixes {
    /// Returns true if the filter gets prefixes.
    #[inline]
    pub(super) fn are_kept(&self) -> bool {
        self.extractor.is_some() && !self.has_failed
    }

    /// Adds the prefix of a key. Keys come in order, so equal prefixes follow each other.
    #[inline]
    pub(super) fn push(&mut self, key: &[u8]) {
        debug_assert!(!self.has_failed || self.hashes.is_empty(), "a filter without prefixes keeps none");
        if let Some(extractor) = self.extractor.as_ref().filter(|_| !self.has_failed) {
            match extractor.prefix_of(key) {
                Ok(Some(prefix)) => {
                    let hash = filter::prefix_hash(prefix);
                    if self.hashes.last() != Some(&hash) {
                        self.hashes.push(hash);
                    }
                }
                Ok(None) => {}
                Err(_) => {
                    self.has_failed = true;
                    self.hashes.clear();
                }
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// The name that the filter records.
    pub(super) fn extractor_name(&self) -> Option<&str> {
        self.extractor.as_ref().filter(|_| self.are_kept()).map(|extractor| extractor.name())
    }

    pub(super) fn reset(&mut self) {
        self.hashes.clear();
        self.has_failed = false;
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.hashes.capacity() * size_of::<u64>()
    }
}

impl ExtentWriter {
    /// Adds the prefixes of all keys to the filters, too. Requires: empty.
    pub fn filter_prefixes(&mut self, extractor: Arc<Extractor>) {
        assert!(self.is_empty(), "every key of an extent has its prefix in the filter, or none has");
        self.prefixes.extractor = Some(extractor);
    }

    /// Appends the filter, if the settings ask for one.
    pub(super) fn append_filter(&mut self) {
        self.hashes.extend_from_slice(&self.prefixes.hashes);
        let name = self.prefixes.extractor_name();
        assert!(
            name.is_some() || self.prefixes.len() == 0,
            "prefixes whose extractor the filter does not name"
        );
        filter::build_with(&self.hashes, name, self.settings.filter_bits_per_key, &mut self.bytes);
    }
}
