//! Decoding of edits from bytes that may be hostile.

use std::sync::Arc;

use terrane_base::{Error, ExtentId, Result, SegmentId, SeqNo, TableId};

use super::edit::{
    Edit, EditOp, HistoryRule, Kept, LEVEL_MAX, NAME_BYTES_MAX, NextIds, OPTION_BYTES_MAX, OPTIONS_MAX,
    Place, Seal, SegmentSpec, TableOptions,
};
use crate::extent::ExtentMeta;
use crate::range_deletes::END_BYTES_MAX;
use crate::wire::Fields;

/// Names the structure in errors.
const WHAT: &str = "manifest edit";

/// Decodes a payload: edits, back to back, up to its end.
///
/// # Errors
/// `Corrupt` if the payload is anything else.
pub fn decode_edits(payload: &[u8]) -> Result<Vec<Edit>> {
    let mut fields = Fields::new(WHAT, payload);
    let mut edits = Vec::new();
    while !fields.rest().is_empty() {
        let op_count = fields.varint()? as usize;
        // Grows as operations are decoded, never by the count that the payload claims.
        let mut ops = Vec::with_capacity(op_count.min(fields.rest().len() / 16));
        for _ in 0..op_count {
            ops.push(EditOp::decode(&mut fields)?);
        }
        edits.push(Edit { ops });
    }
    Ok(edits)
}

impl EditOp {
    pub(crate) fn decode(fields: &mut Fields<'_>) -> Result<EditOp> {
        Ok(match fields.u8()? {
            1 => EditOp::CreateTable {
                id: get_table(fields)?,
                name: get_string(fields, NAME_BYTES_MAX)?,
                options: get_options(fields)?,
            },
            2 => EditOp::SetOptions { id: get_table(fields)?, options: get_options(fields)? },
            3 => EditOp::DropTable { id: get_table(fields)? },
            4 => EditOp::AddExtent {
                table: get_table(fields)?,
                place: get_place(fields)?,
                meta: get_meta(fields)?,
            },
            5 => EditOp::RemoveExtent {
                table: get_table(fields)?,
                place: get_place(fields)?,
                id: ExtentId { file: fields.varint()?, slot: fields.varint()? },
                smallest: get_bytes(fields, END_BYTES_MAX)?.to_vec(),
            },
            6 => EditOp::AddSegment(SegmentSpec {
                id: get_segment(fields)?,
                file: fields.varint()?,
                bytes: fields.u64()?,
            }),
            7 => EditOp::SealSegment {
                id: get_segment(fields)?,
                seal: Seal { end_offset: fields.u64()?, last_seq: get_seq(fields)?, checksum: fields.u32()? },
            },
            8 => EditOp::RemoveSegment { id: get_segment(fields)? },
            9 => EditOp::Flushed { table: get_table(fields)?, seq: get_seq(fields)? },
            10 => EditOp::Durable { seq: get_seq(fields)? },
            11 => EditOp::NextIds(NextIds {
                table: get_table(fields)?,
                segment: get_segment(fields)?,
                segment_file: fields.varint()?,
                run: fields.u64()?,
            }),
            12 => EditOp::Epoch { epoch: fields.u64()? },
            13 => EditOp::CleanClose { last_seq: get_seq(fields)? },
            14 => EditOp::KeepSegment {
                id: get_segment(fields)?,
                kept: Kept {
                    first_seq: get_seq(fields)?,
                    last_seq: get_seq(fields)?,
                    end_offset: fields.u64()?,
                    freed_at: fields.u64()?,
                },
            },
            15 => EditOp::ForgetSegment { id: get_segment(fields)? },
            16 => EditOp::SetHistory(HistoryRule { bytes: fields.u64()?, age: fields.u64()? }),
            17 => EditOp::VoidMark { seq: get_seq(fields)? },
            18 => EditOp::FlushedAll { seq: get_seq(fields)? },
            tag => return Err(Error::corrupt(format!("manifest operation of unknown tag {tag}"))),
        })
    }
}

fn get_seq(fields: &mut Fields<'_>) -> Result<SeqNo> {
    let seq = SeqNo(fields.u64()?);
    if seq > SeqNo::MAX {
        return Err(Error::corrupt(format!("sequence number {} is beyond 56 bits", seq.0)));
    }
    Ok(seq)
}

fn get_table(fields: &mut Fields<'_>) -> Result<TableId> {
    Ok(TableId(fields.varint()?))
}

fn get_segment(fields: &mut Fields<'_>) -> Result<SegmentId> {
    Ok(SegmentId(fields.u64()?))
}

fn get_bytes<'a>(fields: &mut Fields<'a>, max: usize) -> Result<&'a [u8]> {
    let len = fields.varint()? as usize;
    if len > max {
        return Err(Error::corrupt(format!("{WHAT}: string of {len} bytes, the limit is {max}")));
    }
    fields.take(len)
}

fn get_string(fields: &mut Fields<'_>, max: usize) -> Result<String> {
    let bytes = get_bytes(fields, max)?.to_vec();
    String::from_utf8(bytes).map_err(|_| Error::corrupt(format!("{WHAT}: a name or value is not UTF-8")))
}

fn get_options(fields: &mut Fields<'_>) -> Result<TableOptions> {
    let count = fields.varint()? as usize;
    if count > OPTIONS_MAX {
        return Err(Error::corrupt(format!(
            "{WHAT}: {count} options of a table, the limit is {OPTIONS_MAX}"
        )));
    }
    let mut option = || Ok((get_string(fields, NAME_BYTES_MAX)?, get_string(fields, OPTION_BYTES_MAX)?));
    (0..count).map(|_| option()).collect()
}

fn get_place(fields: &mut Fields<'_>) -> Result<Place> {
    match fields.u8()? {
        0 => Ok(Place::Run(fields.u64()?)),
        level @ 1..=LEVEL_MAX => Ok(Place::Level(level)),
        super::edit::PLACE_VALUES => Ok(Place::Values),
        level => Err(Error::corrupt(format!("{WHAT}: level {level}, the deepest is {LEVEL_MAX}"))),
    }
}

fn get_meta(fields: &mut Fields<'_>) -> Result<Arc<ExtentMeta>> {
    // Keys are checked when the edit is applied, because the table knows their order.
    let (meta, len) = ExtentMeta::decode_unordered(fields.rest())?;
    fields.take(len)?;
    Ok(Arc::new(meta))
}
