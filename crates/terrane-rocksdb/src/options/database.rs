//! Options of databases and column families.

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::Arc;

use crate::callbacks::compaction_filter::{CompactionFilter, UserFilter};
use crate::callbacks::comparator::{Comparator, UserComparator};
use crate::callbacks::listener::EventListener;
use crate::callbacks::merge::MergeOperator;
use crate::callbacks::transform::Transform;
use crate::ffi::option_fields::Changed;
use crate::ffi::types::{Out, put};
use crate::generated::options::OptionsFields;
use crate::options::ignored::note;
use crate::options::object_options::ObjectOptions;
use crate::options::objects::env::Environment;
use crate::options::objects::rate_limiter::RateLimiter;
use crate::options::objects::statistics::Statistics;
use crate::options::objects::write_buffer_manager::WriteBuffers;
use crate::options::table::TableOptions;

/// Options of a database, or of a column family.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) fields: OptionsFields,
    pub(crate) table: TableOptions,
    pub(crate) merge_operator: Option<Arc<MergeOperator>>,
    pub(crate) filter: Option<Arc<UserFilter>>,
    pub(crate) transform: Option<Arc<Transform>>,
    pub(crate) environment: Option<Environment>,
    /// Memory of writers.
    pub(crate) write_buffers: Option<WriteBuffers>,
    /// Codecs of levels, from the top down; none: the same for all.
    pub(crate) codec_of_levels: Vec<c_int>,
    /// Bytes that the background may write in a second.
    pub(crate) rate: Option<RateLimiter>,
    /// A comparator that orders otherwise than by bytes.
    pub(crate) comparator: Option<Arc<UserComparator>>,
    /// Options that are objects and do not decide how rows are stored.
    pub(crate) objects: ObjectOptions,
    /// The counters of databases that are opened with the options.
    pub(crate) statistics: Option<Arc<Statistics>>,
    /// Event listeners of databases that are opened with the options.
    pub(crate) listeners: Vec<Arc<EventListener>>,
    /// Directories that are kept and given back.
    pub(crate) log_directory: CString,
    pub(crate) wal_directory: CString,
}

impl Changed for Options {}

impl crate::ffi::arguments::Handle for Options {}

/// A text that is lent for as long as its object lives and it is not set again.
fn text(text: Option<&CStr>, len: Out<'_, usize>) -> *const c_char {
    put(len, text.map_or(0, CStr::count_bytes));
    text.map_or(std::ptr::null(), CStr::as_ptr)
}

export! {
    fn rocksdb_options_create() -> Option<Box<Options>> {
        Some(Box::default())
    }

    fn rocksdb_options_create_copy(options: Option<&Options>) -> Option<Box<Options>> {
        options.map(|options| Box::new(options.clone()))
    }

    fn rocksdb_options_destroy(options: Option<Box<Options>>) {
        drop(options);
    }

    fn rocksdb_options_set_merge_operator(
        options: Option<&mut Options>,
        operator: Option<Box<MergeOperator>>,
    ) {
        if let Some(options) = options {
            options.merge_operator = operator.map(Arc::from);
        }
    }

    fn rocksdb_options_set_uint64add_merge_operator(options: Option<&mut Options>) {
        if let Some(options) = options {
            options.merge_operator = Some(Arc::new(MergeOperator::AddNumbers));
        }
    }

    fn rocksdb_options_set_compaction_filter(
        options: Option<&mut Options>,
        filter: Option<&CompactionFilter>,
    ) {
        if let Some(options) = options {
            options.filter = filter.map(|filter| filter.filter.clone());
        }
    }

    fn rocksdb_options_set_prefix_extractor(
        options: Option<&mut Options>,
        transform: Option<Box<Transform>>,
    ) {
        if let Some(options) = options {
            options.transform = transform.map(Arc::from);
        }
    }

    fn rocksdb_options_set_comparator(options: Option<&mut Options>, comparator: Option<&Comparator>) {
        if let Some(options) = options {
            options.comparator = comparator.and_then(Comparator::other_order);
        }
    }

    fn rocksdb_options_set_env(options: Option<&mut Options>, environment: Option<&Environment>) {
        if let Some(options) = options {
            options.environment = environment.cloned();
        }
    }

    fn rocksdb_options_add_eventlistener(
        options: Option<&mut Options>,
        listener: Option<Box<EventListener>>,
    ) {
        if let (Some(options), Some(listener)) = (options, listener) {
            options.listeners.push(Arc::from(listener));
        }
    }

    fn rocksdb_options_set_ratelimiter(options: Option<&mut Options>, limiter: Option<&RateLimiter>) {
        if let Some(options) = options {
            options.rate = limiter.cloned();
        }
    }

    fn rocksdb_options_set_db_log_dir(options: Option<&mut Options>, directory: Text<'_>) {
        if let Some(options) = options {
            options.log_directory = directory.get().map(CStr::to_owned).unwrap_or_default();
        }
    }

    fn rocksdb_options_get_db_log_dir(options: Option<&Options>, len: Out<'_, usize>) -> *const c_char {
        text(options.map(|options| options.log_directory.as_c_str()), len)
    }

    fn rocksdb_options_set_wal_dir(options: Option<&mut Options>, directory: Text<'_>) {
        if let Some(options) = options {
            options.wal_directory = directory.get().map(CStr::to_owned).unwrap_or_default();
            let is_set = !options.wal_directory.is_empty();
            note(Some(options), "rocksdb_options_set_wal_dir", is_set);
        }
    }

    fn rocksdb_options_get_wal_dir(options: Option<&Options>, len: Out<'_, usize>) -> *const c_char {
        text(options.map(|options| options.wal_directory.as_c_str()), len)
    }
}
