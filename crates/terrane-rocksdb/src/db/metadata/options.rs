//! Options of a request for metadata of a column family: a range of keys, a level.

use std::ffi::c_char;

use crate::callbacks::order::Order;
use crate::ffi::types::Out;
use crate::ffi::value_objects::{LentText, lent};

/// Which files are wanted; by default all.
#[derive(Clone, Debug)]
pub(crate) struct MetadataOptions {
    pub(crate) start: Option<LentText>,
    pub(crate) end: Option<LentText>,
    /// -1 for all.
    pub(crate) level: i32,
}

impl Default for MetadataOptions {
    fn default() -> Self {
        MetadataOptions { start: None, end: None, level: -1 }
    }
}

impl MetadataOptions {
    /// Returns true if a file with these ends has keys of the range.
    pub(crate) fn is_within(&self, order: &Order, (smallest, largest): (&[u8], &[u8])) -> bool {
        self.start.as_ref().is_none_or(|start| order.cmp(largest, start.bytes()).is_ge())
            && self.end.as_ref().is_none_or(|end| order.cmp(smallest, end.bytes()).is_le())
    }
}

export! {
    fn rocksdb_column_family_metadata_options_create() -> Option<Box<MetadataOptions>> {
        Some(Box::default())
    }

    fn rocksdb_column_family_metadata_options_destroy(options: Option<Box<MetadataOptions>>) {
        drop(options);
    }

    fn rocksdb_column_family_metadata_options_set_start_key(
        options: Option<&mut MetadataOptions>,
        start: BytesOrNull<'_>,
        len: usize,
    ) {
        if let Some(options) = options {
            options.start = start.map(LentText::from);
        }
    }

    fn rocksdb_column_family_metadata_options_get_start_key(
        options: Option<&MetadataOptions>,
        len: Out<'_, usize>,
    ) -> *const c_char {
        lent(options.and_then(|options| options.start.as_ref()), len)
    }

    fn rocksdb_column_family_metadata_options_set_end_key(
        options: Option<&mut MetadataOptions>,
        end: BytesOrNull<'_>,
        len: usize,
    ) {
        if let Some(options) = options {
            options.end = end.map(LentText::from);
        }
    }

    fn rocksdb_column_family_metadata_options_get_end_key(
        options: Option<&MetadataOptions>,
        len: Out<'_, usize>,
    ) -> *const c_char {
        lent(options.and_then(|options| options.end.as_ref()), len)
    }

    fn rocksdb_column_family_metadata_options_set_level(options: Option<&mut MetadataOptions>, level: i32) {
        if let Some(options) = options {
            options.level = level;
        }
    }

    fn rocksdb_column_family_metadata_options_get_level(options: Option<&MetadataOptions>) -> i32 {
        options.map_or(-1, |options| options.level)
    }
}
