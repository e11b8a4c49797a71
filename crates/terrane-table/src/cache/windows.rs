//! Memory of all windows of read-ahead that use one cache: a scan gets longer windows only while there is
//! room.
//!
//! Windows are not part of the cache, because a scan reads each once. Without a bound, sixteen scans over
//! four levels with the largest windows could hold 96 MiB beside a cache of 64 MiB. The room is one part in
//! [`CACHE_SHARE`] of the cache's limit.
//!
//! Invariant: `used` is the sum of the bytes of all shares, so it is 0 when no scan lives.

use std::sync::Arc;

use terrane_base::sync::atomic::{AtomicU64, Ordering};

use super::Cache;

/// Windows have one part in this many of the cache's limit.
const CACHE_SHARE: u64 = 8;

/// Room that even a cache without memory has: short windows of several scans.
const BYTES_MIN: u64 = 4 << 20;

/// Shares for which there is room in any case: a scan of many sorted runs has windows for all of them, not
/// the longest ones for the first and none for the others.
const SHARES_MIN: u64 = 8;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct WindowBudget {
    used: AtomicU64,
}

/// The share of one scan of one sorted run in the budget of its cache.
#[derive(Debug, Default)]
pub(crate) struct WindowShare {
    bytes: u64,
    /// Where they were taken; `None`: nowhere yet.
    cache: Option<Arc<Cache>>,
}

impl WindowShare {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes the share at least `bytes` long if there is room. Returns true if it is.
    pub(crate) fn grow(&mut self, cache: &Arc<Cache>, bytes: u64) -> bool {
        debug_assert!(
            self.cache.as_ref().is_none_or(|own| Arc::ptr_eq(own, cache)),
            "a share is given back to the cache that it was taken from"
        );
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else { return true };
        let cache = self.cache.get_or_insert_with(|| cache.clone());
        let limit = (cache.limit_bytes() / CACHE_SHARE).max(BYTES_MIN);
        if bytes > limit / SHARES_MIN {
            return false;
        }
        let fit = |used: u64| used.checked_add(more).filter(|used| *used <= limit);
        let used = &cache.windows.used;
        if used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fit).is_err() {
            return false;
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for WindowShare {
    fn drop(&mut self) {
        if let Some(cache) = &self.cache {
            let used = cache.windows.used.fetch_sub(self.bytes, Ordering::Relaxed);
            assert!(used >= self.bytes, "{} bytes of windows are given back of {used}", self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_bounded_one_by_one_and_together_and_come_back() {
        let cache = Cache::new(32 << 20);
        let (all, most) = ((32 << 20) / CACHE_SHARE, (32 << 20) / CACHE_SHARE / SHARES_MIN);
        let mut shares: Vec<_> = (0..SHARES_MIN).map(|_| WindowShare::default()).collect();
        for share in &mut shares {
            assert!(share.grow(&cache, most / 2) && share.grow(&cache, most));
            assert!(!share.grow(&cache, most + 1), "the others need room, too");
            assert!(share.grow(&cache, 1), "a share does not become shorter");
            assert_eq!(share.bytes(), most);
        }
        assert_eq!(cache.windows.used.load(Ordering::Relaxed), all);
        let mut late = WindowShare::default();
        assert!(!late.grow(&cache, 1), "an eighth of the cache is in use");
        shares.pop();
        assert!(late.grow(&cache, most));
        drop((shares, late));
        assert_eq!(cache.windows.used.load(Ordering::Relaxed), 0);
        let mut least = WindowShare::default();
        assert!(
            least.grow(&Cache::new(0), BYTES_MIN / SHARES_MIN),
            "a cache without memory has room for short windows"
        );
    }
}
