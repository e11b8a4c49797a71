//! Sets checksums right after a change, so that a decoder has to find the damage by itself. Bytes that are
//! too damaged to say where a checksum lies are left as they are.

use std::ops::Range;
use std::sync::Arc;

use terrane_base::{ExtentId, SegmentId, SeqNo, varint};
use terrane_format::checksum::crc32c;
use terrane_format::extent::FOOTER_BYTES;
use terrane_format::manifest::edit::decode_edits;
use terrane_format::manifest::file::{DatabaseId, FILE_HEADER_BYTES, FileHeader};
use terrane_format::manifest::record::{Link, PAYLOAD_BYTES_MAX, RECORD_HEADER_BYTES, RecordTag};
use terrane_format::manifest::{Edit, EditOp};
use terrane_format::segment::{
    self, BATCH_HEADER_BYTES, GROUP_ALIGN, GROUP_HEADER_BYTES, GroupHeader, SEGMENT_HEADER_BYTES,
};
use terrane_format::{block, extent};

/// Start values of checksums, from `docs/format`.
pub const INDEX: &[u8; 4] = b"INDX";
/// Seed of the checksum of range deletes.
pub const RANGES: &[u8; 4] = b"RDEL";
/// Seed of the checksum of references to value tables.
pub const REFERENCES: &[u8; 4] = b"REFS";
/// As [`INDEX`].
pub const FILTER: &[u8; 4] = b"FLTR";
const FOOTER: &[u8; 4] = b"FOOT";

/// Fields of an index row in front of its keys: 6 x u32, 2 x u64, u8.
const ROW_FIXED_BYTES: usize = 6 * 4 + 2 * 8 + 1;

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn put(bytes: &mut [u8], at: usize, number: u32) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&number.to_le_bytes());
    }
}

/// Of a structure whose checksum stands in its last four bytes.
pub fn trailer(seed: &[u8; 4], bytes: &mut [u8]) {
    if let Some((body, checksum)) = bytes.split_last_chunk_mut() {
        *checksum = crc32c(u32::from_le_bytes(*seed), body).to_le_bytes();
    }
}

/// Of an extent: blocks, index, filter, handles and footer; also the magic number, and the length in the
/// footer.
pub fn extent(bytes: &mut [u8]) {
    let forms = (1..=9).filter_map(extent::Form::of_version);
    let form = forms.clone().find(|form| bytes.ends_with(&form.magic())).unwrap_or_default();
    let Some(footer_at) = bytes.len().checked_sub(form.footer_bytes()) else { return };
    let len = bytes.len() as u32;
    put(bytes, footer_at + 8, len);
    // Handles: offset, length, checksum; index and then filter, behind 16 bytes of the footer.
    let ranges = form.is_ranged.then_some((footer_at + FOOTER_BYTES - 12, RANGES));
    // The last handle stands before checksum and magic number.
    let references = form.points.then_some((bytes.len() - 24, REFERENCES));
    let always = [(footer_at + 16, INDEX), (footer_at + 28, FILTER)];
    for (handle_at, seed) in always.into_iter().chain(ranges).chain(references) {
        let Some(part) = part(bytes, handle_at, footer_at) else { continue };
        if seed == INDEX {
            index_rows(bytes, part.clone());
        }
        trailer(seed, &mut bytes[part.clone()]);
        let checksum = u32_at(bytes, part.end.saturating_sub(4)).unwrap_or(0);
        put(bytes, handle_at + 8, checksum);
    }
    let magic_at = bytes.len() - 8;
    bytes[magic_at..].copy_from_slice(&form.magic());
    trailer(FOOTER, &mut bytes[footer_at..magic_at]);
}

fn part(bytes: &[u8], handle_at: usize, end: usize) -> Option<Range<usize>> {
    let (offset, len) = (u32_at(bytes, handle_at)? as usize, u32_at(bytes, handle_at + 4)? as usize);
    (len > 4 && offset.checked_add(len)? <= end).then_some(offset..offset + len)
}

/// The checksums of the blocks, in the rows of an index.
fn index_rows(bytes: &mut [u8], index: Range<usize>) {
    let mut at = index.start;
    while at + ROW_FIXED_BYTES < index.end {
        let Some((offset, len)) = u32_at(bytes, at).zip(u32_at(bytes, at + 4)) else { return };
        let keys_at = at + ROW_FIXED_BYTES;
        let Some((first, first_len)) = varint::get(&bytes[keys_at..]) else { return };
        let Some((last, last_len)) = varint::get(&bytes[keys_at + first_len..]) else { return };
        let stored = bytes.get(offset as usize..).and_then(|rest| rest.get(..len as usize));
        let Some(checksum) = stored.map(block::checksum) else { return };
        put(bytes, at + 12, checksum);
        at = keys_at + first_len + last_len + first as usize + last as usize;
    }
}

/// Of a segment: header, then group by group.
pub fn segment(bytes: &mut [u8]) {
    if bytes.len() < SEGMENT_HEADER_BYTES {
        return;
    }
    bytes[..8].copy_from_slice(&segment::MAGIC);
    put(bytes, 8, segment::VERSION);
    let checksum = crc32c(0, &bytes[..60]);
    put(bytes, 60, checksum);
    let seed = segment::segment_seed(SegmentId(u64_at(bytes, 16).unwrap_or(0)), u32_at(bytes, 28));
    let mut at = SEGMENT_HEADER_BYTES;
    while let Some(len) = group(bytes, seed, at) {
        at += len;
    }
}

/// Repairs the group at `at`; its length, if it has one that leads on.
fn group(bytes: &mut [u8], seed: u32, at: usize) -> Option<usize> {
    let header = GroupHeader {
        len: u32_at(bytes, at + 4)?,
        first_seq: SeqNo(u64_at(bytes, at + 8)?),
        durable: SeqNo(u64_at(bytes, at + 16)?),
        record_count: u32_at(bytes, at + 24)?,
        batch_count: u32_at(bytes, at + 28)?,
        edits: u32_at(bytes, at + 24)?,
    };
    let len = header.len as usize;
    if len < GROUP_HEADER_BYTES || !len.is_multiple_of(GROUP_ALIGN) || at + len > bytes.len() {
        return None;
    }
    let (encoded, group_checksum) = header.encode(seed, at as u64);
    bytes[at..at + GROUP_HEADER_BYTES].copy_from_slice(&encoded);
    let mut batch_at = at + GROUP_HEADER_BYTES;
    for _ in 0..header.batch_count {
        let Some((batch_len, count)) = u32_at(bytes, batch_at).zip(u32_at(bytes, batch_at + 4)) else {
            break;
        };
        let from = batch_at + BATCH_HEADER_BYTES;
        let Some(records) = bytes.get(from..).and_then(|rest| rest.get(..batch_len as usize)) else { break };
        let checksum = segment::batch_checksum(group_checksum, batch_at as u64, count, records);
        put(bytes, batch_at + 8, checksum);
        batch_at = from + batch_len as usize;
    }
    Some(len)
}

/// Of the metas in a manifest file of number `file`: the checksums of index and filter of each extent that is
/// given, and then those of the manifest.
#[must_use]
pub fn metas(bytes: &[u8], file: u32, extents: &[(ExtentId, Vec<u8>)]) -> Vec<u8> {
    let mut out = bytes[..FILE_HEADER_BYTES.min(bytes.len())].to_vec();
    let mut at = FILE_HEADER_BYTES;
    while let Some(tag) = bytes.get(at + 20).and_then(|tag| RecordTag::from_u8(*tag)) {
        let len = u32_at(bytes, at).unwrap_or(0) as usize;
        let Some(payload) = bytes.get(at + RECORD_HEADER_BYTES..at + RECORD_HEADER_BYTES + len) else {
            break;
        };
        let mut new = payload.to_vec();
        if matches!(tag, RecordTag::Snapshot | RecordTag::Edit)
            && let Ok(edits) = decode_edits(payload)
        {
            new.clear();
            edits.into_iter().for_each(|edit| with_checksums(edit, extents).encode(&mut new));
        }
        out.extend_from_slice(&(new.len() as u32).to_le_bytes());
        out.extend_from_slice(&bytes[at + 4..at + RECORD_HEADER_BYTES]);
        out.extend_from_slice(&new);
        at += RECORD_HEADER_BYTES + len;
    }
    manifest(&out, file)
}

fn with_checksums(mut edit: Edit, extents: &[(ExtentId, Vec<u8>)]) -> Edit {
    for op in &mut edit.ops {
        let EditOp::AddExtent { meta, .. } = op else { continue };
        let Some((_, bytes)) = extents.iter().find(|(id, _)| *id == meta.id) else { continue };
        let meta = Arc::make_mut(meta);
        for handle in [&mut meta.index, &mut meta.filter] {
            if let Some(checksum) = u32_at(bytes, (handle.end() as usize).saturating_sub(4))
                && !handle.is_empty()
            {
                handle.checksum = checksum;
            }
        }
    }
    edit
}

/// Of a manifest file: header, then every record chained to the one before. The file gets number `file`.
#[must_use]
pub fn manifest(bytes: &[u8], file: u32) -> Vec<u8> {
    let number = |at| u64_at(bytes, at).unwrap_or(0);
    let header = FileHeader {
        format_version: u32_at(bytes, 8).unwrap_or(1),
        reader: [0, 1, 0],
        file,
        database: DatabaseId(u128::from(number(24)) | u128::from(number(32)) << 64),
        base: number(40),
    };
    let mut out = header.encode().to_vec();
    let seed = header.checksum();
    let mut link = Link { seed, previous: seed, number: header.base };
    let mut at = FILE_HEADER_BYTES;
    while let Some(tag) = bytes.get(at + 20).and_then(|tag| RecordTag::from_u8(*tag)) {
        let len = u32_at(bytes, at).unwrap_or(0) as usize;
        let payload = bytes.get(at + RECORD_HEADER_BYTES..).unwrap_or_default();
        // A number at the end of its range cannot be followed; the decoder refuses such a header anyway.
        if len > payload.len() || len > PAYLOAD_BYTES_MAX || link.number == u64::MAX {
            break;
        }
        link.append(tag, &payload[..len], &mut out);
        at += RECORD_HEADER_BYTES + len;
    }
    out.extend_from_slice(bytes.get(at..).unwrap_or_default());
    out
}
