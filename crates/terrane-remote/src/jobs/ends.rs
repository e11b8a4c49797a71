//! Compares what a worker reports of its extents with the extents: each footer with the meta.
//!
//! The manifest keeps the meta, and readers rely on it. A meta that says less than the extent has would hide
//! entries.

use std::collections::HashMap;
use std::fmt::Debug;

use terrane_base::{Error, ExtentId, Result, TableId};
use terrane_compaction::JobResult;
use terrane_format::extent::{ExtentMeta, Footer};

/// The extents that a report says were written, by their place.
pub(super) struct Ends<'r> {
    table: TableId,
    written: HashMap<ExtentId, &'r ExtentMeta>,
}

impl<'r> Ends<'r> {
    pub(super) fn of(result: &'r JobResult) -> Ends<'r> {
        let written = result.written().map(|meta| (meta.id, meta)).collect();
        Ends { table: result.table, written }
    }

    /// Compares the last bytes of an extent with what was reported of it.
    ///
    /// # Errors
    /// `Corrupt`, with what differs.
    pub(super) fn check(&self, id: ExtentId, end: &[u8]) -> Result<()> {
        let meta =
            self.written.get(&id).ok_or_else(|| Error::corrupt(format!("extent {id}: not reported")))?;
        let footer = Footer::decode(end)?;
        compare(self.table, meta, &footer)
            .map_err(|why| Error::corrupt(format!("extent {id} is not as the worker reports it: {why}")))
    }
}

fn compare(table: TableId, meta: &ExtentMeta, footer: &Footer) -> std::result::Result<(), String> {
    let ranges = meta.range_deletes.as_deref();
    let ranges = ranges.map_or_else(Default::default, |section| (section.part, section.fragments));
    let references = meta.references.as_deref().map_or_else(Default::default, |section| section.part);
    same("table", &table, &footer.table)?;
    same("bytes", &meta.bytes, &footer.bytes)?;
    same("blocks", &meta.blocks, &footer.blocks)?;
    same("index", &meta.index, &footer.index)?;
    same("filter", &meta.filter, &footer.filter)?;
    same("range deletes", &ranges, &(footer.range_deletes, footer.fragments))?;
    same("compression", &meta.compression, &footer.compression)?;
    same("bytes before compression", &meta.raw_bytes, &footer.raw_bytes)?;
    same("entries", &meta.entries, &footer.entries)?;
    same("deletes", &meta.deletes, &footer.deletes)?;
    same("sequence numbers", &meta.written_seqs(), &(footer.seq_min, footer.seq_max))?;
    same("entries that expire", &meta.expiry, &footer.expiry)?;
    same("references", &references, &footer.references)?;
    same("value table", &meta.value_table, &footer.value_table)?;
    same("origin", &meta.has_origin(), &!footer.origin.is_empty())
}

fn same<T: PartialEq + Debug>(what: &str, reported: &T, found: &T) -> std::result::Result<(), String> {
    if reported == found { Ok(()) } else { Err(format!("{what}: {reported:?} reported, {found:?} found")) }
}
