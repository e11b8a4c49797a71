//! Searches that load the parts of an extent that are not cached.

use std::sync::Arc;

use terrane_base::{Result, SeqKind, SeqNo};

use super::{Extent, count_refusal, count_search};
use crate::cache::Cache;
use crate::loader::Loader;

impl Extent {
    /// [`Extent::get_hashed`] with the parts that a cached search lacks.
    #[cold]
    pub(super) fn get_loading(
        &self,
        cache: &Arc<Cache>,
        key: &[u8],
        hash: Option<u64>,
        seq: SeqNo,
        value: &mut Vec<u8>,
    ) -> Result<Option<SeqKind>> {
        let start = value.len();
        let loader = Loader { extent: self, cache: self.bind(cache), fill_cache: true };
        let mut is_filtered = false;
        if let Some(hash) = hash
            && let Some(filter) = loader.filter()?
        {
            if !filter.filter().may_contain(hash) {
                count_refusal();
                return Ok(None);
            }
            is_filtered = true;
        }
        let mut blocks = 0;
        let found = get_from_blocks(&loader, key, seq, value, &mut blocks)?;
        debug_assert!(
            found.is_some() || value.len() == start,
            "the next level would append its value to these bytes"
        );
        count_search(is_filtered, blocks, found.is_some());
        Ok(found)
    }
}

/// The search after the filter, loading missing parts; `blocks` counts the data blocks that it read.
fn get_from_blocks(
    loader: &Loader<'_>,
    key: &[u8],
    seq: SeqNo,
    value: &mut Vec<u8>,
    blocks: &mut u64,
) -> Result<Option<SeqKind>> {
    let owner = loader.index()?;
    let index = owner.index();
    debug_assert!(index.slots.len() == index.rows.len(), "each block has a slot, under which it is loaded");
    let mut at = index.rows.find(key);
    while at < index.rows.len() {
        let object = loader.block(&owner, at)?;
        *blocks += 1;
        if let Some(entry) = object.block().find(key, seq) {
            value.extend_from_slice(entry.value);
            return Ok(Some(entry.seq_kind));
        }
        if !index.continues(at, key) {
            break;
        }
        at += 1;
    }
    Ok(None)
}
