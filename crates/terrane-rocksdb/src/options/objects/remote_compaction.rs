//! Objects that programs with compactions in other processes make: answers, what replaces options there,
//! flags to stop. They are kept as they are set; compactions run in the process, and what would run one
//! elsewhere is refused.

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::callbacks::compaction_filter::CompactionFilter;
use crate::callbacks::comparator::Comparator;
use crate::callbacks::filter_factory::FilterFactory;
use crate::callbacks::listener::EventListener;
use crate::callbacks::logger::LoggerHandle;
use crate::callbacks::merge::MergeOperator;
use crate::callbacks::transform::Transform;
use crate::ffi::failure::{Failure, Result};
use crate::ffi::types::{Out, put};
use crate::generated::objects::{CuckooOptions, OpenAndCompactOptions};
use crate::options::database::Options;
use crate::options::objects::env::Environment;
use crate::options::objects::inert::{ChecksumFactory, PartitionerFactory};
use crate::options::table::TableOptions;

/// A program's answer to a compaction that is offered to it.
#[derive(Debug)]
pub(crate) struct ScheduleResponse {
    job: CString,
    status: c_int,
}

/// Numbers of states of jobs: success, failure, aborted, local.
const STATUSES: std::ops::RangeInclusive<c_int> = 0..=3;

impl ScheduleResponse {
    fn new(job: &CStr, status: c_int) -> Result<Option<Box<ScheduleResponse>>> {
        if !STATUSES.contains(&status) {
            return Err(Failure::invalid(format_args!(
                "compaction service job status {status}: 0 to 3 are known"
            )));
        }
        Ok(Some(Box::new(ScheduleResponse { job: job.to_owned(), status })))
    }
}

/// Options that replace those of a database where a compaction runs elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Override {
    options: Options,
}

/// A flag; callers may set it from any thread.
#[repr(transparent)]
#[derive(Debug, Default)]
pub(crate) struct StopFlag(AtomicU8);

fn change(object: Option<&mut Override>, change: impl FnOnce(&mut Options)) {
    if let Some(object) = object {
        change(&mut object.options);
    }
}

export! {
    fn rocksdb_compactionservice_scheduleresponse_create(
        job: Text<'_>,
        status: c_int,
        error: ErrPtr<'_>,
    ) -> Option<Box<ScheduleResponse>> {
        ScheduleResponse::new(job.get()?, status)
    }

    fn rocksdb_compactionservice_scheduleresponse_create_with_status(
        status: c_int,
        error: ErrPtr<'_>,
    ) -> Option<Box<ScheduleResponse>> {
        ScheduleResponse::new(c"", status)
    }

    fn rocksdb_compactionservice_scheduleresponse_getstatus(response: Option<&ScheduleResponse>) -> c_int {
        response.map_or(0, |response| response.status)
    }

    fn rocksdb_compactionservice_scheduleresponse_get_scheduled_job_id(
        response: Option<&ScheduleResponse>,
        len: Out<'_, usize>,
    ) -> *const c_char {
        put(len, response.map_or(0, |response| response.job.count_bytes()));
        response.map_or(std::ptr::null(), |response| response.job.as_ptr())
    }

    fn rocksdb_compactionservice_scheduleresponse_t_destroy(response: Option<Box<ScheduleResponse>>) {
        drop(response);
    }

    fn rocksdb_open_and_compact_canceled_create() -> Option<Box<StopFlag>> {
        Some(Box::default())
    }

    fn rocksdb_open_and_compact_canceled_destroy(flag: Option<Box<StopFlag>>) {
        drop(flag);
    }

    fn rocksdb_open_and_compact_canceled_set(flag: Option<&StopFlag>, is_set: u8) {
        if let Some(flag) = flag {
            flag.0.store(is_set, Ordering::Relaxed);
        }
    }

    fn rocksdb_open_and_compact_options_set_canceled(
        _options: Option<&mut OpenAndCompactOptions>,
        _flag: Option<&StopFlag>,
    ) {
    }
}

export! {
    fn rocksdb_compaction_service_options_override_create() -> Option<Box<Override>> {
        Some(Box::default())
    }

    fn rocksdb_compaction_service_options_override_create_from_options(
        options: Option<&Options>,
    ) -> Option<Box<Override>> {
        Some(Box::new(Override { options: options?.clone() }))
    }

    fn rocksdb_compaction_service_options_override_destroy(object: Option<Box<Override>>) {
        drop(object);
    }

    fn rocksdb_compaction_service_options_override_set_env(
        object: Option<&mut Override>,
        environment: Option<&Environment>,
    ) {
        change(object, |options| options.environment = environment.cloned());
    }

    fn rocksdb_compaction_service_options_override_set_comparator(
        object: Option<&mut Override>,
        comparator: Option<&Comparator>,
    ) {
        change(object, |options| options.comparator = comparator.and_then(Comparator::other_order));
    }

    fn rocksdb_compaction_service_options_override_set_merge_operator(
        object: Option<&mut Override>,
        operator: Option<Box<MergeOperator>>,
    ) {
        change(object, |options| options.merge_operator = operator.map(Arc::from));
    }

    fn rocksdb_compaction_service_options_override_set_compaction_filter(
        object: Option<&mut Override>,
        filter: Option<&CompactionFilter>,
    ) {
        change(object, |options| options.filter = filter.map(|filter| filter.filter.clone()));
    }

    fn rocksdb_compaction_service_options_override_set_compaction_filter_factory(
        object: Option<&mut Override>,
        factory: Option<Box<FilterFactory>>,
    ) {
        change(object, |options| options.objects.filter_factory = factory.map(Arc::from));
    }

    fn rocksdb_compaction_service_options_override_set_prefix_extractor(
        object: Option<&mut Override>,
        transform: Option<Box<Transform>>,
    ) {
        change(object, |options| options.transform = transform.map(Arc::from));
    }

    fn rocksdb_compaction_service_options_override_set_block_based_table_factory(
        object: Option<&mut Override>,
        table: Option<&TableOptions>,
    ) {
        change(object, |options| options.table = table.cloned().unwrap_or_default());
    }

    fn rocksdb_compaction_service_options_override_set_cuckoo_table_factory(
        _object: Option<&mut Override>,
        _table: Option<&CuckooOptions>,
    ) {
    }

    fn rocksdb_compaction_service_options_override_add_event_listener(
        object: Option<&mut Override>,
        listener: Option<Box<EventListener>>,
    ) {
        change(object, |options| options.listeners.extend(listener.map(Arc::from)));
    }

    fn rocksdb_compaction_service_options_override_set_statistics(
        object: Option<&mut Override>,
        of: Option<&Options>,
    ) {
        change(object, |options| options.statistics = of.and_then(|of| of.statistics.clone()));
    }

    fn rocksdb_compaction_service_options_override_set_info_log(
        object: Option<&mut Override>,
        logger: Option<&LoggerHandle>,
    ) {
        change(object, |options| options.objects.logger = logger.map(|logger| logger.logger.clone()));
    }

    fn rocksdb_compaction_service_options_override_set_option(
        object: Option<&mut Override>,
        name: Text<'_>,
        value: Text<'_>,
    ) {
        // There is no way to say that a name is not known; what would use it says that it is not there.
        if let (Some(object), Ok(name), Ok(value)) = (object, name.utf8(), value.utf8()) {
            let _ = object.options.set_pair(name, value);
        }
    }

    fn rocksdb_compaction_service_options_override_set_file_checksum_gen_factory(
        object: Option<&mut Override>,
        factory: Option<&ChecksumFactory>,
    ) {
        change(object, |options| options.objects.has_file_checksums = factory.is_some());
    }

    fn rocksdb_compaction_service_options_override_set_sst_partitioner_factory(
        _object: Option<&mut Override>,
        _factory: Option<&PartitionerFactory>,
    ) {
    }
}
