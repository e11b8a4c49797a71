//! Options of databases that are not numbers: texts, sets of numbers, and shared objects.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::Arc;

use crate::batch::wal_filter::{LogFilter, WalFilter};
use crate::callbacks::filter_factory::FilterFactory;
use crate::callbacks::logger::{Logger, LoggerHandle};
use crate::ffi::types::{Out, put};
use crate::options::database::Options;
use crate::options::ignored::note;
use crate::options::objects::inert::{ChecksumFactory, FileManager, PartitionerFactory};

/// Options that are objects, without those that decide how rows are stored.
#[derive(Clone, Debug)]
pub(crate) struct ObjectOptions {
    pub(crate) filter_factory: Option<Arc<FilterFactory>>,
    /// Decides about each batch that is replayed when a database is opened.
    pub(crate) wal_filter: Option<Arc<LogFilter>>,
    /// FieldValue of what the background does.
    pub(crate) logger: Option<Arc<Logger>>,
    /// Asked for its limit when a database is opened.
    pub(crate) file_manager: Option<FileManager>,
    /// Files whose checksums are handed to the device, by their kind.
    handoff: BTreeSet<c_int>,
    /// Styles of compaction whose files have a hint of how long they live.
    lifetime: BTreeSet<c_int>,
    host: CString,
    offpeak: CString,
    /// Collectors of properties of tables as RocksDB shows them: they are kept, and none is asked.
    pub(crate) collectors: Vec<String>,
    /// True if files have checksums as wholes.
    pub(crate) has_file_checksums: bool,
    /// Setters that were called and have no effect: see [`crate::options::ignored`].
    pub(crate) noted: BTreeSet<&'static str>,
}

impl Default for ObjectOptions {
    fn default() -> Self {
        ObjectOptions {
            filter_factory: None,
            wal_filter: None,
            logger: None,
            file_manager: None,
            handoff: BTreeSet::new(),
            lifetime: BTreeSet::from([0]),
            host: c"__hostname__".to_owned(),
            offpeak: CString::default(),
            collectors: Vec::new(),
            has_file_checksums: false,
            noted: BTreeSet::new(),
        }
    }
}

impl Options {
    /// The filter of compactions: a filter goes before a factory, as in RocksDB.
    pub(crate) fn compaction_filter(&self) -> Option<Arc<dyn terrane::CompactionFilter>> {
        match &self.filter {
            Some(filter) => Some(filter.clone() as _),
            None => self.objects.filter_factory.clone().map(|factory| factory as _),
        }
    }
}

/// A text that is lent for as long as its object lives and it is not set again.
fn lent(text: Option<&CString>, len: Out<'_, usize>) -> *const c_char {
    put(len, text.map_or(0, |text| text.count_bytes()));
    text.map_or(std::ptr::null(), |text| text.as_ptr())
}

/// Keeps that extents with many deletes are to be compacted: the engine does so by itself.
fn collect_deletions(
    mut options: Option<&mut Options>,
    function: &'static str,
    (window, trigger): (usize, usize),
    ratio: f64,
) {
    note(options.as_deref_mut(), function, true);
    let shown = format!(
        "CompactOnDeletionCollector (Sliding window size = {window} Deletion trigger = {trigger} Deletion ratio = {ratio})"
    );
    change(options, |objects| objects.collectors.push(shown));
}

fn change(options: Option<&mut Options>, change: impl FnOnce(&mut ObjectOptions)) {
    if let Some(options) = options {
        change(&mut options.objects);
    }
}

export! {
    fn rocksdb_options_set_compaction_filter_factory(
        options: Option<&mut Options>,
        factory: Option<Box<FilterFactory>>,
    ) {
        if let Some(options) = options {
            options.objects.filter_factory = factory.map(Arc::from);
        }
    }

    fn rocksdb_options_set_info_log(options: Option<&mut Options>, logger: Option<&LoggerHandle>) {
        if let Some(options) = options {
            options.objects.logger = logger.map(|logger| logger.logger.clone());
        }
    }

    fn rocksdb_options_get_info_log(options: Option<&Options>) -> Option<Box<LoggerHandle>> {
        let logger = options?.objects.logger.clone()?;
        Some(Box::new(LoggerHandle { logger }))
    }

    fn rocksdb_options_set_wal_filter(options: Option<&mut Options>, filter: Option<&WalFilter>) {
        if let Some(options) = options {
            options.objects.wal_filter = filter.map(|filter| filter.filter.clone());
        }
    }

    fn rocksdb_options_clear_wal_filter(options: Option<&mut Options>) {
        if let Some(options) = options {
            options.objects.wal_filter = None;
        }
    }

    fn rocksdb_options_set_sst_file_manager(options: Option<&mut Options>, manager: Option<&FileManager>) {
        if let Some(options) = options {
            options.objects.file_manager = manager.cloned();
        }
    }

    fn rocksdb_options_set_file_checksum_gen_factory(
        options: Option<&mut Options>,
        factory: Option<&ChecksumFactory>,
    ) {
        let mut options = options;
        change(options.as_deref_mut(), |objects| objects.has_file_checksums = factory.is_some());
        note(options, "rocksdb_options_set_file_checksum_gen_factory", factory.is_some());
    }

    fn rocksdb_options_add_compact_on_deletion_collector_factory(
        options: Option<&mut Options>,
        window: usize,
        trigger: usize,
    ) {
        let function = "rocksdb_options_add_compact_on_deletion_collector_factory";
        collect_deletions(options, function, (window, trigger), 0.0);
    }

    fn rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(
        options: Option<&mut Options>,
        window: usize,
        trigger: usize,
        ratio: f64,
    ) {
        let function = "rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio";
        collect_deletions(options, function, (window, trigger), ratio);
    }

    fn rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size(
        options: Option<&mut Options>,
        window: usize,
        trigger: usize,
        ratio: f64,
        _file_bytes_min: u64,
    ) {
        let function = "rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size";
        collect_deletions(options, function, (window, trigger), ratio);
    }

    fn rocksdb_options_set_sst_partitioner_factory(
        options: Option<&mut Options>,
        factory: Option<&PartitionerFactory>,
    ) {
        note(options, "rocksdb_options_set_sst_partitioner_factory", factory.is_some());
    }

    fn rocksdb_options_set_db_host_id(options: Option<&mut Options>, name: Text<'_>) {
        if let Some(options) = options {
            options.objects.host = name.get().map(CStr::to_owned).unwrap_or_default();
        }
    }

    fn rocksdb_options_get_db_host_id(options: Option<&Options>, len: Out<'_, usize>) -> *const c_char {
        lent(options.map(|options| &options.objects.host), len)
    }

    fn rocksdb_options_set_daily_offpeak_time_utc(options: Option<&mut Options>, time: Text<'_>) {
        if let Some(options) = options {
            options.objects.offpeak = time.get().map(CStr::to_owned).unwrap_or_default();
        }
    }

    fn rocksdb_options_get_daily_offpeak_time_utc(
        options: Option<&Options>,
        len: Out<'_, usize>,
    ) -> *const c_char {
        lent(options.map(|options| &options.objects.offpeak), len)
    }
}

export! {
    fn rocksdb_options_checksum_handoff_file_types_clear(options: Option<&mut Options>) {
        change(options, |objects| objects.handoff.clear());
    }

    fn rocksdb_options_checksum_handoff_file_types_add(options: Option<&mut Options>, number: c_int) {
        change(options, |objects| {
            objects.handoff.insert(number);
        });
    }

    fn rocksdb_options_checksum_handoff_file_types_remove(options: Option<&mut Options>, number: c_int) {
        change(options, |objects| {
            objects.handoff.remove(&number);
        });
    }

    fn rocksdb_options_checksum_handoff_file_types_contains(options: Option<&Options>, number: c_int) -> u8 {
        u8::from(options.is_some_and(|options| options.objects.handoff.contains(&number)))
    }

    fn rocksdb_options_checksum_handoff_file_types_count(options: Option<&Options>) -> usize {
        options.map_or(0, |options| options.objects.handoff.len())
    }

    fn rocksdb_options_calculate_sst_write_lifetime_hint_set_clear(options: Option<&mut Options>) {
        change(options, |objects| objects.lifetime.clear());
    }

    fn rocksdb_options_calculate_sst_write_lifetime_hint_set_add(options: Option<&mut Options>, number: c_int) {
        change(options, |objects| {
            objects.lifetime.insert(number);
        });
    }

    fn rocksdb_options_calculate_sst_write_lifetime_hint_set_remove(options: Option<&mut Options>, number: c_int) {
        change(options, |objects| {
            objects.lifetime.remove(&number);
        });
    }

    fn rocksdb_options_calculate_sst_write_lifetime_hint_set_contains(options: Option<&Options>, number: c_int) -> u8 {
        u8::from(options.is_some_and(|options| options.objects.lifetime.contains(&number)))
    }

    fn rocksdb_options_calculate_sst_write_lifetime_hint_set_count(options: Option<&Options>) -> usize {
        options.map_or(0, |options| options.objects.lifetime.len())
    }
}
