//! Describes an extent and its meta for `terrane dump`. The key order of the table is unknown here, so the
//! order of keys is not checked.

use terrane_base::Collation;

use super::{
    ALIGN_BYTES, Expiry, ExtentMeta, FOOTER_BYTES, Footer, HANDLE_BYTES, Handle, NUMBERED, ValueSection,
};
use super::{origin, references};
use crate::dump::{self, FIELDS_MAX, Field};
use crate::{filter, index, range_deletes};

/// The fields of a whole extent: its blocks as single fields, index, filter and footer in full.
#[must_use]
pub fn describe(bytes: &[u8]) -> Vec<Field> {
    let Some(footer_at) = bytes.len().checked_sub(FOOTER_BYTES) else {
        return vec![dump::broken(0, bytes.len(), "shorter than a footer")];
    };
    let footer = match Footer::decode(bytes) {
        Ok(footer) => footer,
        Err(error) => return vec![dump::broken(footer_at, FOOTER_BYTES, error)],
    };
    let footer_at = bytes.len() - footer.encoded_len();
    let mut fields = describe_blocks(bytes, &footer);
    for (name, handle, describe) in [
        ("index", footer.index, index::describe as fn(&[u8]) -> Vec<Field>),
        ("filter", footer.filter, filter::describe),
        ("range_deletes", footer.range_deletes, range_deletes::describe),
        ("references", footer.references, references::describe),
        ("origin", footer.origin, origin::describe),
    ] {
        let Some(part) = bytes.get(handle.offset as usize..handle.end() as usize) else {
            fields.push(dump::broken(handle.offset as usize, 0, format!("{name} lies outside the extent")));
            continue;
        };
        if !handle.is_empty() {
            fields.extend(describe(part).into_iter().map(|field| field.within(handle.offset as usize, name)));
        }
    }
    fields.extend(describe_footer(&footer).into_iter().map(|field| field.within(footer_at, "footer")));
    fields
}

fn describe_blocks(bytes: &[u8], footer: &Footer) -> Vec<Field> {
    let part = bytes.get(footer.index.offset as usize..footer.index.end() as usize).unwrap_or_default();
    let unordered = Collation::missing("");
    let Ok(index) = index::IndexBlock::decode_ordered(part.to_vec(), &unordered) else { return Vec::new() };
    let describe = |(number, row): (usize, index::IndexRow<'_>)| {
        let stored = bytes.get(row.offset as usize..).and_then(|rest| rest.get(..row.stored_len as usize));
        let state = match stored.map(|stored| row.check_stored(stored)) {
            Some(Ok(())) => "checksum holds".to_owned(),
            Some(Err(error)) => error.to_string(),
            None => "lies outside the extent".to_owned(),
        };
        Field::new(row.offset as usize, row.stored_len as usize, format!("block[{number}]"), state)
    };
    let mut fields: Vec<Field> = index.rows().enumerate().take(FIELDS_MAX).map(describe).collect();
    if index.len() > FIELDS_MAX {
        let at = fields.last().map_or(0, |last| last.offset + last.len);
        let len = (footer.index.offset as usize).saturating_sub(at);
        fields.push(dump::more(at, len, index.len() - FIELDS_MAX));
    }
    fields
}

fn describe_footer(footer: &Footer) -> Vec<Field> {
    let mut list = Lister::default();
    list.add(2, "version", footer.form().version());
    list.add(1, "compression", format!("{:?}", footer.compression));
    list.add(1, "key", 0);
    list.add(4, "table", footer.table);
    list.add(4, "bytes", footer.bytes);
    list.add(4, "blocks", footer.blocks);
    list.add(HANDLE_BYTES, "index", show(footer.index));
    list.add(HANDLE_BYTES, "filter", show(footer.filter));
    list.add(8, "raw_bytes", footer.raw_bytes);
    list.add(8, "entries", footer.entries);
    list.add(8, "deletes", footer.deletes);
    list.add(8, "seq_min", footer.seq_min);
    list.add(8, "seq_max", footer.seq_max);
    if footer.form().is_ranged {
        list.add(HANDLE_BYTES, "range_deletes", show(footer.range_deletes));
        list.add(4, "fragments", footer.fragments);
    }
    list.add_expiry(footer.expiry);
    if footer.form().points {
        list.add(HANDLE_BYTES, "references", show(footer.references));
    }
    list.add_values(footer.value_table);
    if footer.form().has_origin {
        list.add(HANDLE_BYTES, "origin", show(footer.origin));
    }
    list.add(4, "checksum", "holds");
    list.add(8, "magic", dump::text(&footer.form().magic()));
    list.fields
}

/// The fields of an [`ExtentMeta`], and its length in bytes.
#[must_use]
pub fn describe_meta(bytes: &[u8]) -> (Vec<Field>, usize) {
    let (meta, len) = match ExtentMeta::decode_unordered(bytes) {
        Ok(decoded) => decoded,
        Err(error) => return (vec![dump::broken(0, bytes.len(), error)], bytes.len()),
    };
    let mut list = Lister::default();
    let version = meta.format_version & !NUMBERED;
    let text =
        if meta.is_numbered() { format!("{version}, numbered as a whole") } else { version.to_string() };
    list.add(2, "version", text);
    list.add(1, "compression", format!("{:?}", meta.compression));
    list.add(1, "key", 0);
    list.add(8, "id", meta.id);
    list.add(4, "slots", meta.slots);
    list.add(4, "bytes", format!("{} ({} x {ALIGN_BYTES})", meta.bytes, meta.bytes as usize / ALIGN_BYTES));
    list.add(4, "blocks", meta.blocks);
    list.add(HANDLE_BYTES, "index", show(meta.index));
    list.add(HANDLE_BYTES, "filter", show(meta.filter));
    list.add(8, "raw_bytes", meta.raw_bytes);
    list.add(8, "entries", meta.entries);
    list.add(8, "deletes", meta.deletes);
    list.add(8, "seq_min", meta.seq_min);
    list.add(8, "seq_max", meta.seq_max);
    let keys = format!("{} to {}", dump::text(&meta.smallest), dump::text(&meta.largest));
    let key_len = |key: &[u8]| terrane_base::varint::len(key.len() as u32) + key.len();
    list.add(key_len(&meta.smallest) + key_len(&meta.largest), "smallest, largest", keys);
    if let Some(section) = &meta.range_deletes {
        list.add(HANDLE_BYTES, "range_deletes", show(section.part));
        list.add(4, "fragments", section.fragments);
        let keys = format!("{} to before {}", dump::text(&section.start), dump::text(&section.end));
        list.add(key_len(&section.start) + key_len(&section.end), "start, end", keys);
    }
    list.add_expiry(meta.expiry);
    if let Some(section) = &meta.references {
        list.add(HANDLE_BYTES, "references", show(section.part));
        let bytes: u64 = section.list.iter().map(|reference| reference.bytes).fold(0, u64::saturating_add);
        let text = format!("{} value tables, {bytes} bytes of values", section.list.len());
        list.add(references::list_len(&section.list), "value tables", text);
    }
    list.add_values(meta.value_table);
    (list.fields, len)
}

/// Collects consecutive fields.
#[derive(Default)]
struct Lister {
    fields: Vec<Field>,
    at: usize,
}

impl Lister {
    fn add(&mut self, len: usize, name: &str, value: impl ToString) {
        self.fields.push(Field::new(self.at, len, name, value));
        self.at += len;
    }

    fn add_values(&mut self, section: Option<ValueSection>) {
        if let Some(ValueSection { number, level }) = section {
            self.add(8, "value table", number);
            self.add(1, "level", level);
        }
    }

    fn add_expiry(&mut self, expiry: Option<Expiry>) {
        if let Some(Expiry { entries, quarters }) = expiry {
            self.add(8, "expiring", entries);
            quarters.iter().for_each(|quarter| self.add(8, "a quarter more by", quarter.0));
        }
    }
}

fn show(handle: Handle) -> String {
    format!("{} bytes at {}, checksum {:08x}", handle.len, handle.offset, handle.checksum)
}
