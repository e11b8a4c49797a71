//! Options of questions about the files of a column family.

use std::ffi::{c_char, c_int};

use crate::border::{Bytes, Out, put};

/// Which files are asked for.
#[derive(Clone, Debug)]
pub(crate) struct MetadataOptions {
    start: Option<Box<[u8]>>,
    end: Option<Box<[u8]>>,
    level: c_int,
}

impl Default for MetadataOptions {
    fn default() -> Self {
        MetadataOptions { start: None, end: None, level: -1 }
    }
}

/// A key that is lent for as long as its object lives and it is not set again.
fn lent(key: Option<&[u8]>, len: Out<'_, usize>) -> *const c_char {
    put(len, key.map_or(0, <[u8]>::len));
    key.map_or(std::ptr::null(), |key| key.as_ptr().cast())
}

fn copied(key: Bytes<'_>, len: usize) -> Option<Box<[u8]>> {
    (!key.is_null()).then(|| key.of(len).into())
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
        key: Bytes<'_>,
        len: usize,
    ) {
        if let Some(options) = options {
            options.start = copied(key, len);
        }
    }

    fn rocksdb_column_family_metadata_options_get_start_key(
        options: Option<&MetadataOptions>,
        len: Out<'_, usize>,
    ) -> *const c_char {
        lent(options.and_then(|options| options.start.as_deref()), len)
    }

    fn rocksdb_column_family_metadata_options_set_end_key(
        options: Option<&mut MetadataOptions>,
        key: Bytes<'_>,
        len: usize,
    ) {
        if let Some(options) = options {
            options.end = copied(key, len);
        }
    }

    fn rocksdb_column_family_metadata_options_get_end_key(
        options: Option<&MetadataOptions>,
        len: Out<'_, usize>,
    ) -> *const c_char {
        lent(options.and_then(|options| options.end.as_deref()), len)
    }

    fn rocksdb_column_family_metadata_options_set_level(options: Option<&mut MetadataOptions>, level: c_int) {
        if let Some(options) = options {
            options.level = level;
        }
    }

    fn rocksdb_column_family_metadata_options_get_level(options: Option<&MetadataOptions>) -> c_int {
        options.map_or(-1, |options| options.level)
    }
}
