//! Factories of indexes by name. Terrane's extents have an index of their own, so a factory is only checked
//! to be one that RocksDB knows, and kept.

use std::ffi::c_char;

use crate::ffi::failure::{Failure, Given, Result};
use crate::ffi::types::{Out, put};
use crate::options::read_write::ReadOptions;
use crate::options::table::TableOptions;

/// The only factory that RocksDB finds by its name.
const TRIE: &str = "trie_index";

/// The name that was set, if one was.
pub(crate) type IndexName = Option<&'static str>;

fn named(name: &[u8]) -> Result<IndexName> {
    match name == TRIE.as_bytes() {
        true => Ok(Some(TRIE)),
        false => {
            let name = name.escape_ascii();
            Err(Failure::invalid(format_args!("index factory {name}: no such factory; {TRIE} is one")))
        }
    }
}

fn lent(name: IndexName, len: Out<'_, usize>) -> *const c_char {
    put(len, name.map_or(0, str::len));
    name.map_or(std::ptr::null(), |name| name.as_ptr().cast())
}

export! {
    fn rocksdb_block_based_options_set_user_defined_index_factory_from_string(
        options: Option<&mut TableOptions>,
        name: Bytes<'_>,
        len: usize,
        error: ErrPtr<'_>,
    ) {
        options.given()?.index = named(name)?;
        Ok(())
    }

    fn rocksdb_block_based_options_clear_user_defined_index_factory(options: Option<&mut TableOptions>) {
        if let Some(options) = options {
            options.index = None;
        }
    }

    fn rocksdb_block_based_options_get_user_defined_index_factory_name(
        options: Option<&TableOptions>,
        len: Out<'_, usize>,
    ) -> *const c_char {
        lent(options.and_then(|options| options.index), len)
    }

    fn rocksdb_readoptions_set_table_index_factory_from_string(
        options: Option<&mut ReadOptions>,
        name: Bytes<'_>,
        len: usize,
        error: ErrPtr<'_>,
    ) {
        options.given()?.objects.index = named(name)?;
        Ok(())
    }

    fn rocksdb_readoptions_clear_table_index_factory(options: Option<&mut ReadOptions>) {
        if let Some(options) = options {
            options.objects.index = None;
        }
    }

    fn rocksdb_readoptions_get_table_index_factory_name(
        options: Option<&ReadOptions>,
        len: Out<'_, usize>,
    ) -> *const c_char {
        lent(options.and_then(|options| options.objects.index), len)
    }
}
