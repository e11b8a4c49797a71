//! Options of block-based tables, and filter policies.

use std::ffi::c_void;
use std::sync::Arc;

use crate::callbacks::table_filter::{DeleteFilter, KeyMayMatch, MakeKeyFilter};
use crate::callbacks::{Destructor, Name, State};
use crate::ffi::option_fields::Changed;
use crate::generated::table_options::TableOptionsFields;
use crate::options::database::Options;
use crate::options::objects::cache::Cache;
use crate::options::objects::index_factory::IndexName;

/// Options of block-based tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableOptions {
    pub(crate) fields: TableOptionsFields,
    pub(crate) cache: Option<Cache>,
    /// Bits per key of the filter, if there was a policy.
    pub(crate) filter_bits: Option<f64>,
    pub(crate) index: IndexName,
}

impl Changed for TableOptions {}

/// Bits per key where functions of the user would make the filter.
const USERS_BITS: f64 = 10.0;

/// A filter policy: how many bits each key has.
#[derive(Debug)]
pub(crate) struct FilterPolicy {
    bits_per_key: f64,
    /// Frees the state of the user's functions.
    _user: Option<Arc<State>>,
}

impl FilterPolicy {
    /// In the place of a policy of the user's functions, which are not called: the engine makes filters of
    /// its own.
    pub(crate) fn of_user(state: Arc<State>) -> FilterPolicy {
        FilterPolicy { bits_per_key: USERS_BITS, _user: Some(state) }
    }
}

fn policy(bits_per_key: f64) -> Option<Box<FilterPolicy>> {
    Some(Box::new(FilterPolicy { bits_per_key, _user: None }))
}

export! {
    fn rocksdb_filterpolicy_create(
        state: *mut c_void,
        destructor: Destructor,
        _make: MakeKeyFilter,
        _may_match: KeyMayMatch,
        _delete: DeleteFilter,
        _name: Name,
    ) -> Option<Box<FilterPolicy>> {
        Some(Box::new(FilterPolicy::of_user(Arc::new(State::new(state, destructor)))))
    }

    fn rocksdb_block_based_options_create() -> Option<Box<TableOptions>> {
        Some(Box::default())
    }

    fn rocksdb_block_based_options_destroy(options: Option<Box<TableOptions>>) {
        drop(options);
    }

    fn rocksdb_block_based_options_set_block_cache(
        options: Option<&mut TableOptions>,
        cache: Option<&Cache>,
    ) {
        if let Some(options) = options {
            options.cache = cache.cloned();
        }
    }

    fn rocksdb_block_based_options_set_filter_policy(
        options: Option<&mut TableOptions>,
        policy: Option<Box<FilterPolicy>>,
    ) {
        if let Some(options) = options {
            options.filter_bits = policy.map(|policy| policy.bits_per_key);
        }
    }

    fn rocksdb_block_based_options_set_data_block_hash_ratio(options: Option<&mut TableOptions>, ratio: f64) {
        if let Some(options) = options {
            options.fields.data_block_hash_table_util_ratio = ratio;
        }
    }

    fn rocksdb_options_set_block_based_table_factory(
        options: Option<&mut Options>,
        table: Option<&TableOptions>,
    ) {
        if let (Some(options), Some(table)) = (options, table) {
            options.table = table.clone();
        }
    }

    fn rocksdb_filterpolicy_create_bloom(bits_per_key: f64) -> Option<Box<FilterPolicy>> {
        policy(bits_per_key)
    }

    fn rocksdb_filterpolicy_create_bloom_full(bits_per_key: f64) -> Option<Box<FilterPolicy>> {
        policy(bits_per_key)
    }

    fn rocksdb_filterpolicy_create_bloom_format(
        bits_per_key: f64,
        _original_format: u8,
    ) -> Option<Box<FilterPolicy>> {
        policy(bits_per_key)
    }

    fn rocksdb_filterpolicy_create_ribbon(bits_per_key: f64) -> Option<Box<FilterPolicy>> {
        policy(bits_per_key)
    }

    fn rocksdb_filterpolicy_create_ribbon_hybrid(
        bits_per_key: f64,
        _bloom_before_level: i32,
    ) -> Option<Box<FilterPolicy>> {
        policy(bits_per_key)
    }

    fn rocksdb_filterpolicy_destroy(policy: Option<Box<FilterPolicy>>) {
        drop(policy);
    }
}
