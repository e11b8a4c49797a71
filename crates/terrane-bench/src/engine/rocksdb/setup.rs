//! Makes RocksDB's option objects from a [`Tuning`].
//!
//! Unsafe code: calls of the C interface. Each function makes objects, sets them, and hands them out as
//! [`Owned`]; RocksDB copies what it is given by `set_*`, except the filter policy, which it takes over.
#![expect(unsafe_code, reason = "calls of a C interface")]

use std::ffi::CString;
use std::sync::Arc;

use crate::engine::rocksdb::api::{Api, Cache, Options, Owned, TableOptions, WriteBufferManager, checked};
use crate::engine::rocksdb::tuning::{Counting, Tuning};
use crate::error::{Error, Result};

/// Tickers without histograms and timers (`rocksdb_statistics_level_except_histogram_or_timers`).
const TICKERS_ONLY: i32 = 1;
/// `PinningTier`: index and filter blocks of all files.
const PIN_ALL: i32 = 3;
/// `data_block_index_type`: binary search and hash.
const BINARY_AND_HASH: i32 = 1;

/// Options ready to open with, and what must outlive the database.
pub(super) struct Setup {
    pub(super) options: Owned<Options>,
    /// True if memtables are charged to the cache.
    pub(super) managed: bool,
    /// Kind of cache, for the report.
    pub(super) cache_kind: &'static str,
    _manager: Option<Owned<WriteBufferManager>>,
    _cache: Owned<Cache>,
}

impl Setup {
    /// Makes the options.
    ///
    /// # Errors
    /// RocksDB's, if it refuses an option string; `Plan` if the library lacks what was asked for.
    pub(super) fn new(api: &Arc<Api>, tuning: &Tuning) -> Result<Self> {
        let managed = api.options_set_write_buffer_manager.is_some()
            && api.write_buffer_manager_create_with_cache.is_some()
            && api.write_buffer_manager_destroy.is_some();
        let (cache, cache_kind) = cache(api, tuning, managed)?;
        let base = options(api);
        let table = table_options(api, tuning, &cache)?;
        // SAFETY: all three objects are alive; RocksDB copies the table options and shares the cache.
        unsafe {
            (api.options_set_block_based_table_factory)(base.as_ptr(), table.as_ptr());
            if tuning.counting == Counting::Statistics {
                (api.options_enable_statistics)(base.as_ptr());
                if let Some(level) = api.options_set_statistics_level {
                    level(base.as_ptr(), TICKERS_ONLY);
                }
            }
        }
        let manager = if managed { charge_memtables(api, tuning, &base, &cache) } else { None };
        let options = parse(api, &base, &tuning.option_string(managed))?;
        Ok(Setup { options, managed, cache_kind, _manager: manager, _cache: cache })
    }
}

/// Default options.
pub(super) fn options(api: &Arc<Api>) -> Owned<Options> {
    // SAFETY: the constructor and its destructor.
    unsafe { Owned::new(api, (api.options_create)(), api.options_destroy) }
}

/// Options that an option string makes of `base`.
pub(super) fn parse(api: &Arc<Api>, base: &Owned<Options>, text: &str) -> Result<Owned<Options>> {
    let parsed = options(api);
    let text =
        CString::new(text).map_err(|_| Error::plan("the option `options` of rocksdb holds a zero byte"))?;
    checked(api, "understand its options", |error| {
        // SAFETY: both option objects and the text are alive for the call.
        unsafe { (api.get_options_from_string)(base.as_ptr(), text.as_ptr(), parsed.as_ptr(), error) }
    })?;
    Ok(parsed)
}

fn cache(api: &Arc<Api>, tuning: &Tuning, managed: bool) -> Result<(Owned<Cache>, &'static str)> {
    let bytes = usize::try_from(tuning.cache_bytes(managed)).unwrap_or(usize::MAX);
    let clock = (
        api.hyper_clock_cache_options_create,
        api.hyper_clock_cache_options_destroy,
        api.cache_create_hyper_clock_opts,
    );
    if let ("auto" | "hyper_clock", (Some(create), Some(destroy), Some(make))) = (tuning.cache, clock) {
        // SAFETY: the options live until the cache is made from them; 0 lets RocksDB find the size of entries
        // itself.
        let cache = unsafe {
            let options = Owned::new(api, create(bytes, 0), destroy);
            Owned::new(api, make(options.as_ptr()), api.cache_destroy)
        };
        return Ok((cache, "HyperClockCache"));
    }
    if tuning.cache == "hyper_clock" {
        let path = api.path().display();
        return Err(Error::plan(format!(
            "{path} has no HyperClockCache in its C interface: use cache = lru, or RocksDB 8.1 or later"
        )));
    }
    // SAFETY: the constructor and its destructor.
    Ok((unsafe { Owned::new(api, (api.cache_create_lru)(bytes), api.cache_destroy) }, "LRUCache"))
}

fn charge_memtables(
    api: &Arc<Api>,
    tuning: &Tuning,
    options: &Owned<Options>,
    cache: &Owned<Cache>,
) -> Option<Owned<WriteBufferManager>> {
    let (create, destroy, set) = (
        api.write_buffer_manager_create_with_cache?,
        api.write_buffer_manager_destroy?,
        api.options_set_write_buffer_manager?,
    );
    let bytes = usize::try_from(tuning.write_memory_bytes).unwrap_or(usize::MAX);
    // SAFETY: cache and options are alive; the manager is destroyed after the database (field order of the
    // owner), and shares the cache.
    unsafe {
        let manager = Owned::new(api, create(bytes, cache.as_ptr(), false), destroy);
        set(options.as_ptr(), manager.as_ptr());
        Some(manager)
    }
}

fn table_options(api: &Arc<Api>, tuning: &Tuning, cache: &Owned<Cache>) -> Result<Owned<TableOptions>> {
    // SAFETY: the object is made here and set before anybody else sees it; the filter policy goes over to it.
    unsafe {
        let table = Owned::new(api, (api.block_based_options_create)(), api.block_based_options_destroy);
        let raw = table.as_ptr();
        (api.block_based_options_set_block_cache)(raw, cache.as_ptr());
        (api.block_based_options_set_block_size)(
            raw,
            usize::try_from(tuning.block_bytes).unwrap_or(usize::MAX),
        );
        (api.block_based_options_set_cache_index_and_filter_blocks)(raw, 1);
        (api.block_based_options_set_pin_l0_filter_and_index_blocks_in_cache)(raw, 1);
        if tuning.pins_all {
            let Some(pin) = api.block_based_options_set_unpartitioned_pinning_tier else {
                let path = api.path().display();
                return Err(Error::plan(format!(
                    "{path} has no pinning tiers in its C interface: leave pin = all out, or use RocksDB 8 or later"
                )));
            };
            pin(raw, PIN_ALL);
        }
        if tuning.block_hash_index {
            (api.block_based_options_set_data_block_index_type)(raw, BINARY_AND_HASH);
        }
        if tuning.filter_bits > 0 {
            let bits = f64::from(tuning.filter_bits);
            let filter = match tuning.ribbon {
                true => (api.filterpolicy_create_ribbon_hybrid)(bits, 0),
                false => (api.filterpolicy_create_bloom_full)(bits),
            };
            (api.block_based_options_set_filter_policy)(raw, filter);
            (api.block_based_options_set_whole_key_filtering)(raw, 1);
        }
        Ok(table)
    }
}
