//! The end of an extent: its parts after the blocks, and its meta.

use terrane_base::{Error, ExtentId, Result, SeqNo};
use terrane_format::extent::check::hull;
use terrane_format::extent::origin::{ORIGIN_BYTES_MAX, REPLACED_BYTES_MAX, Replaced};
use terrane_format::extent::references::{self, Reference};
use terrane_format::extent::{
    self, Expiry, ExtentMeta, Footer, Form, Handle, Origin, RangeSection, ReferenceSection, ValueSection,
};
use terrane_format::range_deletes::{Fragments, seq_range};
use terrane_storage::{EXTENT_SLOTS_MAX, SLOT_BYTES};

use super::ExtentWriter;

impl ExtentWriter {
    /// Makes the next extent this value table. Requires: nothing was added.
    pub fn set_value_table(&mut self, section: ValueSection) {
        assert!(self.is_empty(), "the number of an extent that has entries is fixed");
        self.settings.value_table = Some(section);
    }

    /// Makes the extents say where they come from. Requires: nothing was added.
    #[must_use]
    pub fn of_origin(self, origin: Option<Origin>) -> Self {
        assert!(self.is_empty(), "the origin of an extent that has entries is fixed");
        let with_room = |origin: Origin| {
            let bytes = origin.to_part().len() + REPLACED_BYTES_MAX;
            (Box::new(origin), bytes.min(ORIGIN_BYTES_MAX))
        };
        ExtentWriter { origin: origin.map(with_room), ..self }
    }

    /// Says what the present extent takes the place of. No effect on one that does not say where it comes
    /// from.
    pub fn set_replaced(&mut self, replaced: Vec<Replaced>) {
        if let Some((origin, _)) = &mut self.origin {
            origin.replaced = replaced;
        }
    }

    /// Returns true if the extents say where they come from.
    #[must_use]
    pub fn has_origin(&self) -> bool {
        self.origin.is_some()
    }

    /// Appends index, filter and footer after the blocks. Requires: not empty.
    pub(super) fn seal(&mut self) -> Result<ExtentMeta> {
        assert!(!self.is_empty(), "an extent without entries cannot be in a level");
        self.cut_block()?;
        let blocks = self.index.len() as u32;
        let index = self.append_part(|writer| writer.index.finish(&mut writer.bytes));
        let filter = self.append_part(ExtentWriter::append_filter);
        let range_deletes = self.append_part(|writer| {
            if !writer.range_deletes.is_empty() {
                Fragments::encode(&writer.range_deletes, &mut writer.bytes);
            }
        });
        let references = self.references.to_list();
        let references_part = self.append_part(|writer| {
            if !references.is_empty() {
                references::encode(&references, &mut writer.bytes);
            }
        });
        let origin = self.append_part(|writer| {
            if let Some((origin, bytes_max)) = &writer.origin {
                let part = origin.to_part();
                assert!(part.len() <= *bytes_max, "room was kept for {bytes_max} bytes of origin");
                writer.bytes.extend_from_slice(&part);
            }
        });
        let form = Form {
            is_ranged: self.is_ranged(),
            expires: !self.moments.is_empty(),
            points: !references.is_empty(),
            has_positions: !references.is_empty(),
            has_values: self.settings.value_table.is_some(),
            has_origin: !origin.is_empty(),
        };
        let bytes = extent::extent_bytes_with(self.bytes.len(), form);
        let slots = bytes.div_ceil(SLOT_BYTES) as u32;
        if slots > EXTENT_SLOTS_MAX {
            return Err(Error::invalid(format!("extent of {slots} slots: the limit is {EXTENT_SLOTS_MAX}")));
        }
        let footer =
            self.footer(bytes as u32, blocks, [index, filter, range_deletes, references_part, origin]);
        self.bytes.resize(bytes - footer.encoded_len(), 0);
        footer.encode(&mut self.bytes);
        assert!(
            self.bytes.len() == bytes,
            "an extent of {} bytes, its footer says {bytes}",
            self.bytes.len()
        );
        assert!(bytes <= slots as usize * SLOT_BYTES, "an extent of {bytes} bytes in {slots} slots");
        Ok(self.meta(&footer, slots, references))
    }

    fn append_part(&mut self, append: impl FnOnce(&mut Self)) -> Handle {
        let start = self.bytes.len();
        append(self);
        debug_assert!(self.bytes.len() >= start, "a part lies behind the one before it");
        if self.bytes.len() == start {
            return Handle::default();
        }
        Handle::of(start as u32, &self.bytes[start..])
    }

    fn footer(&mut self, bytes: u32, blocks: u32, parts: [Handle; 5]) -> Footer {
        let [index, filter, range_deletes, references, origin] = parts;
        debug_assert!(
            range_deletes.is_empty() == self.range_deletes.is_empty(),
            "readers would not look for range deletes, or find none"
        );
        let (least, greatest) = seq_range(&self.range_deletes).unzip();
        Footer {
            compression: self.settings.compression,
            table: self.settings.table,
            bytes,
            blocks,
            index,
            filter,
            range_deletes,
            fragments: self.range_deletes.len() as u32,
            raw_bytes: self.totals.raw_bytes,
            entries: self.totals.entries,
            deletes: self.totals.deletes,
            seq_min: least.unwrap_or(SeqNo::MAX).min(self.totals.seq_min),
            seq_max: greatest.unwrap_or_default().max(self.totals.seq_max),
            expiry: Expiry::of(&mut self.moments),
            references,
            // Those in blocks that were copied may have none.
            has_positions: !references.is_empty(),
            value_table: self.settings.value_table,
            origin,
        }
    }

    fn meta(&self, footer: &Footer, slots: u32, references: Vec<Reference>) -> ExtentMeta {
        debug_assert!(
            references.is_empty() == footer.references.is_empty(),
            "the manifest and the extent name the same value tables"
        );
        let (smallest, largest) = self.bounds(footer.blocks > 0);
        let ends = self.range_deletes.first().zip(self.range_deletes.last());
        let range_deletes = ends.map(|(first, last)| {
            let (part, fragments) = (footer.range_deletes, footer.fragments);
            Box::new(RangeSection { part, fragments, start: first.start.clone(), end: last.end.clone() })
        });
        let references = (!references.is_empty())
            .then(|| Box::new(ReferenceSection { part: footer.references, list: references }));
        ExtentMeta {
            id: ExtentId::default(),
            slots,
            bytes: footer.bytes,
            raw_bytes: footer.raw_bytes,
            smallest,
            largest,
            seq_min: footer.seq_min,
            seq_max: footer.seq_max,
            entries: footer.entries,
            deletes: footer.deletes,
            blocks: footer.blocks,
            index: footer.index,
            filter: footer.filter,
            range_deletes,
            expiry: footer.expiry,
            references,
            value_table: footer.value_table,
            format_version: footer.form().version(),
            compression: footer.compression,
            collation: self.collation.clone(),
        }
    }

    /// The smallest key, and an upper bound of all keys, range deletes included.
    fn bounds(&self, has_entries: bool) -> (Vec<u8>, Vec<u8>) {
        let entries = has_entries.then_some((&*self.smallest, &*self.last_key));
        let ranges = self.range_deletes.first().zip(self.range_deletes.last());
        hull(entries, ranges, &self.collation)
    }
}
