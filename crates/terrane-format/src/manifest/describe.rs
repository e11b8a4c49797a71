//! Annotated fields of a manifest file, for `terrane dump`.

use terrane_base::Result;

use super::edit::{EditOp, Kept};
use super::file::{FILE_HEADER_BYTES, FileHeader, MAGIC};
use super::record::{Link, RECORD_HEADER_BYTES, RecordHeader, RecordTag};
use crate::dump::{Field, broken, text};
use crate::extent::ExtentMeta;
use crate::wire::Fields;

/// Passes the fields of a whole manifest file to `field`, front to back: the header, then each record and
/// each operation in it. Keeps nothing, because a file of the smallest operations has a hundred bytes of
/// fields for each of its own bytes.
///
/// Accepts any bytes: what makes no sense becomes a last field named `broken`.
pub fn describe(bytes: &[u8], field: &mut dyn FnMut(Field)) {
    let header = match FileHeader::decode(bytes) {
        Ok(header) => header,
        Err(error) => return field(broken(0, bytes.len(), error)),
    };
    describe_header(&header).into_iter().for_each(&mut *field);
    let seed = header.checksum();
    let mut link = Link { seed, previous: seed, number: header.base };
    let mut at = FILE_HEADER_BYTES;
    while at < bytes.len() {
        let mut add = |part: Field| field(Field { offset: part.offset + at, ..part });
        match describe_record(&bytes[at..], &mut link, &mut add) {
            Ok(len) => at += len,
            Err(error) => return field(broken(at, bytes.len() - at, error)),
        }
    }
}

fn describe_header(header: &FileHeader) -> Vec<Field> {
    let [major, minor, patch] = header.reader;
    vec![
        Field::new(0, 8, "magic", text(&MAGIC)),
        Field::new(8, 4, "format_version", header.format_version),
        Field::new(12, 6, "reader", format!("{major}.{minor}.{patch}")),
        Field::new(18, 2, "zero", 0),
        Field::new(20, 4, "file", header.file),
        Field::new(24, 16, "database", header.database),
        Field::new(40, 8, "base", header.base),
        Field::new(48, 4, "encryption", 0),
        Field::new(52, 8, "zero", 0),
        Field::new(60, 4, "checksum", format!("{:08x} holds", header.checksum())),
    ]
}

/// Describes the record at the front of `bytes`; returns its length.
fn describe_record(bytes: &[u8], link: &mut Link, field: &mut dyn FnMut(Field)) -> Result<usize> {
    let header = RecordHeader::decode(link.seed, bytes)?;
    header.check_chain(link.previous, link.number)?;
    let payload =
        bytes[RECORD_HEADER_BYTES..].get(..header.len as usize).unwrap_or(&bytes[RECORD_HEADER_BYTES..]);
    header.check_payload(link.seed, payload)?;
    link.follow(&header);
    let name = match header.tag {
        RecordTag::Snapshot => format!("snapshot[{}]", header.number),
        RecordTag::SnapshotEnd => format!("snapshot-end[{}]", header.number),
        RecordTag::Edit => format!("edit[{}]", header.number),
        RecordTag::Mark => format!("mark[{}]", header.number),
    };
    let fields = [
        Field::new(0, 4, "length", header.len),
        Field::new(4, 4, "payload_checksum", format!("{:08x} holds", header.payload_checksum)),
        Field::new(8, 8, "number", header.number),
        Field::new(16, 4, "previous", format!("{:08x} holds", header.previous)),
        Field::new(20, 1, "tag", format!("{:?}", header.tag)),
        Field::new(21, 3, "zero", 0),
        Field::new(24, 4, "header_checksum", format!("{:08x} holds", header.checksum)),
    ];
    let mut add = |part: Field| field(part.within(0, &name));
    fields.into_iter().for_each(&mut add);
    match header.tag {
        RecordTag::SnapshotEnd => {
            let count = payload.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            add(Field::new(RECORD_HEADER_BYTES, payload.len(), "operations", count));
        }
        _ => describe_edits(payload, &mut |part| {
            add(Field { offset: part.offset + RECORD_HEADER_BYTES, ..part });
        }),
    }
    Ok(RECORD_HEADER_BYTES + payload.len())
}

/// Passes one field for each count and each operation of a payload.
fn describe_edits(payload: &[u8], field: &mut dyn FnMut(Field)) {
    let mut fields = Fields::new("manifest edit", payload);
    while !fields.rest().is_empty() {
        if let Err(error) = describe_edit(&mut fields, field) {
            return field(broken(fields.at(), fields.rest().len(), error));
        }
    }
}

fn describe_edit(fields: &mut Fields<'_>, field: &mut dyn FnMut(Field)) -> Result<()> {
    let start = fields.at();
    let op_count = fields.varint()?;
    field(Field::new(start, fields.at() - start, "operations", op_count));
    for _ in 0..op_count {
        let start = fields.at();
        let op = EditOp::decode(fields)?;
        field(Field::new(start, fields.at() - start, op.as_str(), show_op(&op)));
    }
    Ok(())
}

fn show_op(op: &EditOp) -> String {
    match op {
        EditOp::CreateTable { id, name, options } => format!("{id} {name:?} {options:?}"),
        EditOp::SetOptions { id, options } => format!("{id} {options:?}"),
        EditOp::DropTable { id } => id.to_string(),
        EditOp::AddExtent { table, place, meta } => format!("{table} {place:?} {}", show_meta(meta)),
        EditOp::RemoveExtent { table, place, id, smallest } => {
            format!("{table} {place:?} {id} from {}", text(smallest))
        }
        EditOp::AddSegment(spec) => format!("{} file {} bytes {}", spec.id, spec.file, spec.bytes),
        EditOp::SealSegment { id, seal } => {
            format!("{id} end {} last {} checksum {:08x}", seal.end_offset, seal.last_seq, seal.checksum)
        }
        EditOp::RemoveSegment { id } => id.to_string(),
        EditOp::Flushed { table, seq } => format!("{table} {seq}"),
        EditOp::Durable { seq }
        | EditOp::FlushedAll { seq }
        | EditOp::CleanClose { last_seq: seq }
        | EditOp::VoidMark { seq } => seq.to_string(),
        EditOp::NextIds(next) => {
            let file = next.segment_file;
            format!("table {} segment {} file {file} run {}", next.table.0, next.segment.0, next.run)
        }
        EditOp::Epoch { epoch } => epoch.to_string(),
        EditOp::KeepSegment { id, kept } => {
            let Kept { first_seq, last_seq, end_offset, freed_at } = kept;
            format!("{id} {first_seq} to {last_seq} end {end_offset} freed at {freed_at} ms")
        }
        EditOp::ForgetSegment { id } => id.to_string(),
        EditOp::SetHistory(rule) => format!("{} bytes {} ms", rule.bytes, rule.age),
    }
}

fn show_meta(meta: &ExtentMeta) -> String {
    let (smallest, largest) = (text(&meta.smallest), text(&meta.largest));
    let (entries, deletes, bytes) = (meta.entries, meta.deletes, meta.bytes);
    format!("{} {smallest} to {largest} entries {entries} deletes {deletes} bytes {bytes}", meta.id)
}
