//! Read options that are not numbers: a table filter, and values that are only kept.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use terrane::{ExtentFilter, ExtentSummary, Table};

use crate::callbacks::order::Order;
use crate::callbacks::table_filter::{ShowsTable, TableFilter};
use crate::callbacks::{Destructor, State};
use crate::extents::Owner;
use crate::ffi::failure::{Failure, Result};
use crate::ffi::types::{Out, put};
use crate::options::objects::index_factory::IndexName;
use crate::options::read_write::ReadOptions;

/// Options of reads that are objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadObjectOptions {
    /// A filter of files.
    pub(crate) table_filter: Option<Arc<TableFilter>>,
    request: Option<Box<[u8]>>,
    operand_count: Option<usize>,
    pub(crate) index: IndexName,
}

impl ReadObjectOptions {
    /// The filter of extents of a column family, as the engine asks it.
    pub(crate) fn extent_filter(&self, table: &Table, order: &Order) -> Option<Arc<ExtentFilter>> {
        let filter = self.table_filter.clone()?;
        let (table, order) = (table.clone(), order.clone());
        Some(Arc::new(move |extent: &ExtentSummary| {
            filter.shows(extent, Owner { id: table.number(), name: table.name(), comparator: order.name() })
        }))
    }

    /// Refuses what would show other rows than were asked for.
    pub(crate) fn refuse_filter(&self) -> Result<()> {
        match &self.table_filter {
            Some(_) => Err(Failure::not_implemented(
                "table_filter: rows of all files of a column family with timestamps are shown; clear it",
            )),
            None => Ok(()),
        }
    }
}

export! {
    fn rocksdb_readoptions_set_table_filter(
        options: Option<&mut ReadOptions>,
        state: *mut c_void,
        destructor: Destructor,
        filter: ShowsTable,
    ) {
        let filter = TableFilter::new(State::new(state, destructor), filter);
        if let Some(options) = options {
            options.objects.table_filter = filter.map(Arc::new);
        }
    }

    fn rocksdb_readoptions_clear_table_filter(options: Option<&mut ReadOptions>) {
        if let Some(options) = options {
            options.objects.table_filter = None;
        }
    }

    fn rocksdb_readoptions_has_table_filter(options: Option<&ReadOptions>) -> u8 {
        u8::from(options.is_some_and(|options| options.objects.table_filter.is_some()))
    }

    fn rocksdb_readoptions_set_merge_operand_count_threshold(
        options: Option<&mut ReadOptions>,
        count: usize,
    ) {
        if let Some(options) = options {
            options.objects.operand_count = Some(count);
        }
    }

    fn rocksdb_readoptions_get_merge_operand_count_threshold(options: Option<&ReadOptions>) -> usize {
        options.and_then(|options| options.objects.operand_count).unwrap_or(0)
    }

    fn rocksdb_readoptions_has_merge_operand_count_threshold(options: Option<&ReadOptions>) -> u8 {
        u8::from(options.is_some_and(|options| options.objects.operand_count.is_some()))
    }

    fn rocksdb_readoptions_clear_merge_operand_count_threshold(options: Option<&mut ReadOptions>) {
        if let Some(options) = options {
            options.objects.operand_count = None;
        }
    }

    fn rocksdb_readoptions_set_request_id(options: Option<&mut ReadOptions>, name: BytesOrNull<'_>, len: usize) {
        if let Some(options) = options {
            options.objects.request = name.map(Into::into);
        }
    }

    fn rocksdb_readoptions_clear_request_id(options: Option<&mut ReadOptions>) {
        if let Some(options) = options {
            options.objects.request = None;
        }
    }

    fn rocksdb_readoptions_get_request_id(options: Option<&ReadOptions>, len: Out<'_, usize>) -> *const c_char {
        let request = options.and_then(|options| options.objects.request.as_deref());
        put(len, request.map_or(0, <[u8]>::len));
        request.map_or(std::ptr::null(), |request| request.as_ptr().cast())
    }
}
