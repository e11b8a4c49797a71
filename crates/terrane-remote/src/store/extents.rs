//! Checks lists of extents that come from a manifest or from a worker.

use std::collections::BTreeMap;

use terrane_base::{Error, ExtentId, Result};

use super::table::FILE_SLOTS;

/// The extents by file and first slot, each with its slots. They lie in their files, and apart.
///
/// # Errors
/// `Corrupt`, without a place; also if `has_object` lacks a file.
pub(super) fn by_file(
    extents: &[(ExtentId, u32)],
    has_object: impl Fn(u32) -> bool,
) -> Result<BTreeMap<u32, BTreeMap<u32, u32>>> {
    let mut taken: BTreeMap<u32, BTreeMap<u32, u32>> = BTreeMap::new();
    for (id, slots) in extents {
        let is_inside = id.slot.checked_add(*slots).is_some_and(|end| end <= FILE_SLOTS && *slots > 0);
        let has_object = has_object(id.file);
        if !is_inside || !has_object {
            let what = if has_object { "it is out of range" } else { "there is no object of it" };
            return Err(Error::corrupt(format!("extent {id} of {slots} slots: {what}")));
        }
        if taken.entry(id.file).or_default().insert(id.slot, *slots).is_some() {
            return Err(Error::corrupt(format!("extent {id} lives twice")));
        }
    }
    for (file, extents) in &taken {
        let ends = extents.iter().map(|(slot, slots)| slot + slots);
        if let Some((_, slot)) = ends.zip(extents.keys().skip(1)).find(|(end, next)| end > next) {
            return Err(Error::corrupt(format!("extent {file}:{slot} overlaps the one before it")));
        }
    }
    Ok(taken)
}
