//! The end of an external file: its contents and the options it was written for (`docs/format/external.md`).
//!
//! ```text
//! external file = extents contents trailer                    as in a data file, each begins a slot
//! contents      = version:u16 zero:u16 options extents deletes? checksum:u32
//! options       = count:varint { name_len:varint name value_len:varint value }
//! extents       = count:varint meta*                          in key order; the file of each id is 0
//! deletes       = count:varint meta*                          in version 3: extents of range deletes alone
//! trailer       = contents_at:u64 contents_len:u64 checksum:u32 magic:u64
//! ```
//!
//! Every entry and range delete has the number [`UNNUMBERED_SEQ`]; an ingest gives all of them the number of
//! its commit. Range deletes lie in extents of their own, below the entries, because they hide none of them.

use terrane_base::{Collation, Error, ExtentId, Result, varint};

use crate::dump::{self, FIELDS_MAX, Field};
use crate::extent::{ExtentMeta, UNNUMBERED_SEQ, describe_meta};
use crate::manifest::TableOptions;
use crate::manifest::edit::{NAME_BYTES_MAX, OPTION_BYTES_MAX, OPTIONS_MAX};
use crate::wire::{self, Fields};

/// Version of the contents of a file without range deletes.
pub const VERSION: u16 = 2;
/// Version of the contents of a file with range deletes.
pub const VERSION_RANGED: u16 = 3;
/// The last eight bytes of an external file.
pub const MAGIC: [u8; 8] = *b"TERRANEs";
/// Bytes of the trailer, at the very end.
pub const TRAILER_BYTES: usize = 8 + 8 + 4 + 8;
/// Most bytes of contents: 512 extents with the longest keys take less than half of it.
pub const CONTENTS_BYTES_MAX: u64 = 256 << 20;
/// Name of the option with the key order.
pub const KEY_ORDER: &str = "key_order";
/// Name of the option with the comparator, used in place of [`KEY_ORDER`].
pub const COMPARATOR: &str = "comparator";
/// The bytewise key order.
pub const BYTEWISE: &str = "bytewise";
/// Name of the option with the merge operator.
pub const MERGE_OPERATOR: &str = "merge_operator";

const CONTENTS_SEED: u32 = u32::from_le_bytes(*b"XCON");
const TRAILER_SEED: u32 = u32::from_le_bytes(*b"XTRL");
const WHAT: &str = "contents of an external file";

/// Location of the contents of an external file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// Offset from the start of the file.
    pub contents_at: u64,
    /// Length in bytes, checksum included.
    pub contents_len: u64,
}

impl Trailer {
    /// Encodes the trailer.
    #[must_use]
    pub fn encode(&self) -> [u8; TRAILER_BYTES] {
        let mut bytes = [0; TRAILER_BYTES];
        bytes[..8].copy_from_slice(&self.contents_at.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.contents_len.to_le_bytes());
        let checksum = crate::checksum::crc32c(TRAILER_SEED, &bytes[..16]);
        bytes[16..20].copy_from_slice(&checksum.to_le_bytes());
        bytes[20..].copy_from_slice(&MAGIC);
        bytes
    }

    /// Decodes the last bytes of a file of `file_bytes` bytes.
    ///
    /// # Errors
    /// `Corrupt` if they are not a trailer, or the contents do not lie directly before it.
    pub fn decode(bytes: &[u8; TRAILER_BYTES], file_bytes: u64) -> Result<Trailer> {
        let Some((body, magic)) = bytes.split_last_chunk() else {
            return Err(Error::corrupt("trailer of an external file is cut"));
        };
        if *magic != MAGIC {
            return Err(Error::corrupt(
                "not an external file: its last eight bytes are not the magic number",
            ));
        }
        let body = wire::checked_body("trailer of an external file", TRAILER_SEED, body)?;
        let mut fields = Fields::new("trailer of an external file", body);
        let trailer = Trailer { contents_at: fields.u64()?, contents_len: fields.u64()? };
        let end = trailer.contents_at.checked_add(trailer.contents_len);
        let fits = end.and_then(|end| end.checked_add(TRAILER_BYTES as u64)) == Some(file_bytes);
        if !fits || trailer.contents_len > CONTENTS_BYTES_MAX {
            let Trailer { contents_at, contents_len } = trailer;
            return Err(Error::corrupt(format!(
                "external file of {file_bytes} bytes: contents of {contents_len} bytes at {contents_at} do not fit into it"
            )));
        }
        Ok(trailer)
    }
}

/// The contents of an external file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// The options it was written for, by name: the key order, the merge operator.
    pub options: TableOptions,
    /// The extents of its entries in key order, each in slots of this file.
    pub extents: Vec<ExtentMeta>,
    /// The extents of its range deletes in key order, in the slots after those.
    pub deletes: Vec<ExtentMeta>,
}

impl Contents {
    /// The value of an option, if it is set.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All extents, those of range deletes last.
    pub fn all(&self) -> impl Iterator<Item = &ExtentMeta> {
        self.extents.iter().chain(&self.deletes)
    }

    /// Number of range deletes in all extents.
    #[must_use]
    pub fn range_deletes(&self) -> u64 {
        let sections = self.deletes.iter().filter_map(|meta| meta.range_deletes.as_ref());
        sections.map(|section| u64::from(section.fragments)).sum()
    }

    /// Number of slots of all extents.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.all().map(|meta| meta.id.slot.saturating_add(meta.slots)).max().unwrap_or(0)
    }

    /// Encodes the contents with their checksum.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let version = if self.deletes.is_empty() { VERSION } else { VERSION_RANGED };
        out.extend_from_slice(&version.to_le_bytes());
        out.extend_from_slice(&[0, 0]);
        varint::put(&mut out, self.options.len() as u32);
        for text in self.options.iter().flat_map(|(name, value)| [name, value]) {
            varint::put(&mut out, text.len() as u32);
            out.extend_from_slice(text.as_bytes());
        }
        varint::put(&mut out, self.extents.len() as u32);
        self.extents.iter().for_each(|meta| meta.encode(&mut out));
        if !self.deletes.is_empty() {
            varint::put(&mut out, self.deletes.len() as u32);
            self.deletes.iter().for_each(|meta| meta.encode(&mut out));
        }
        let checksum = crate::checksum::crc32c(CONTENTS_SEED, &out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Checks and decodes the contents of a file whose slots have `slot_bytes` bytes and end at
    /// `contents_at`.
    ///
    /// # Errors
    /// `Corrupt` if checksum or version are wrong, or extents overlap, lie outside the file, or are out of
    /// order.
    pub fn decode(bytes: &[u8], contents_at: u64, slot_bytes: u64) -> Result<Contents> {
        Contents::decode_ordered(bytes, contents_at, slot_bytes, &|name| Collation::missing(name))
    }

    /// [`Contents::decode`]; `comparator` gives the key order for the comparator that the file names, if it
    /// names one.
    ///
    /// # Errors
    /// As [`Contents::decode`].
    pub fn decode_ordered(
        bytes: &[u8],
        contents_at: u64,
        slot_bytes: u64,
        comparator: &dyn Fn(&str) -> Collation,
    ) -> Result<Contents> {
        let body = wire::checked_body(WHAT, CONTENTS_SEED, bytes)?;
        let mut fields = Fields::new(WHAT, body);
        let (version, zero) = (fields.u16()?, fields.u16()?);
        let has_deletes = version == VERSION_RANGED;
        if (version != VERSION && !has_deletes) || zero != 0 {
            return Err(Error::corrupt(format!(
                "{WHAT}: expected version {VERSION} or {VERSION_RANGED}, found {version}: write it again"
            )));
        }
        let options = decode_options(&mut fields)?;
        let named = options.iter().find(|(name, _)| name == COMPARATOR);
        let collation = named.map_or(Collation::BYTES, |(_, name)| comparator(name));
        let place = Layout { collation: &collation, slot_bytes };
        let mut slot = 0;
        let extents = decode_extents(&mut fields, &place, &mut slot, false)?;
        let deletes = match has_deletes {
            true => decode_extents(&mut fields, &place, &mut slot, true)?,
            false => Vec::new(),
        };
        let is_filled = if has_deletes { !deletes.is_empty() } else { !extents.is_empty() };
        let is_whole = fields.rest().is_empty() && is_filled;
        if !is_whole || u64::from(slot).checked_mul(slot_bytes) != Some(contents_at) {
            let (count, deleting) = (extents.len(), deletes.len());
            return Err(Error::corrupt(format!(
                "{WHAT}: {count} extents and {deleting} with range deletes, {slot} slots, at least 1, do not end at byte \
                 {contents_at} of the file"
            )));
        }
        Ok(Contents { options, extents, deletes })
    }
}

fn decode_options(fields: &mut Fields<'_>) -> Result<TableOptions> {
    let count = fields.varint()? as usize;
    if count > OPTIONS_MAX {
        return Err(Error::corrupt(format!("{WHAT}: {count} options, the limit is {OPTIONS_MAX}")));
    }
    let mut text = |max: usize| {
        let len = fields.varint()? as usize;
        if len > max {
            return Err(Error::corrupt(format!("{WHAT}: text of {len} bytes, the limit is {max}")));
        }
        String::from_utf8(fields.take(len)?.to_vec())
            .map_err(|_| Error::corrupt(format!("{WHAT}: a name or value is not UTF-8")))
    };
    (0..count).map(|_| Ok((text(NAME_BYTES_MAX)?, text(OPTION_BYTES_MAX)?))).collect()
}

/// Limits and key order with which the extents of a file are checked.
struct Layout<'c> {
    collation: &'c Collation,
    slot_bytes: u64,
}

/// Decodes a list of extents, of range deletes or of entries. The first one lies in `slot`.
fn decode_extents(
    fields: &mut Fields<'_>,
    layout: &Layout<'_>,
    slot: &mut u32,
    of_deletes: bool,
) -> Result<Vec<ExtentMeta>> {
    let count = fields.varint()? as usize;
    let mut extents: Vec<ExtentMeta> = Vec::with_capacity(count.min(fields.rest().len() / 64));
    for _ in 0..count {
        let (meta, len) = ExtentMeta::decode_unordered(fields.rest())?;
        fields.take(len)?;
        let meta = meta.ordered(layout.collation)?;
        check_extent(&meta, extents.last(), *slot, layout.slot_bytes)?;
        check_part(&meta, of_deletes)?;
        *slot = meta.id.slot.saturating_add(meta.slots);
        extents.push(meta);
    }
    Ok(extents)
}

/// Checks that an extent has entries, or range deletes, and not both: range deletes lie below the entries.
fn check_part(meta: &ExtentMeta, of_deletes: bool) -> Result<()> {
    if meta.references.is_some() || meta.value_table.is_some() {
        return Err(Error::corrupt(format!("{WHAT}: extent {} has values apart from their keys", meta.id)));
    }
    if meta.range_deletes.is_some() == of_deletes && (meta.blocks == 0) == of_deletes {
        return Ok(());
    }
    let wanted = if of_deletes { "range deletes only" } else { "entries only" };
    Err(Error::corrupt(format!("{WHAT}: extent {} must have {wanted}", meta.id)))
}

/// Checks that extents follow each other in keys and in slots, and have no numbers yet.
fn check_extent(meta: &ExtentMeta, last: Option<&ExtentMeta>, slot: u32, slot_bytes: u64) -> Result<()> {
    let refuse = |why: &str| Err(Error::corrupt(format!("{WHAT}: extent {} {why}", meta.id)));
    if meta.id != (ExtentId { file: 0, slot }) {
        return refuse("does not start where the extent before it ends");
    }
    if u64::from(meta.bytes) > u64::from(meta.slots) * slot_bytes {
        return refuse("does not fit its slots");
    }
    let collation = &meta.collation;
    let is_checked = !collation.is_missing();
    if last.is_some_and(|last| is_checked && collation.le(&meta.smallest, &last.largest)) {
        return refuse("has keys that are not greater than those of the extent before it");
    }
    meta.numbered(UNNUMBERED_SEQ).map(drop)
}

/// Describes the contents for `terrane dump`.
#[must_use]
pub fn describe(bytes: &[u8], contents_at: u64, slot_bytes: u64) -> Vec<Field> {
    let contents = match Contents::decode(bytes, contents_at, slot_bytes) {
        Ok(contents) => contents,
        Err(error) => return vec![dump::broken(0, bytes.len(), error)],
    };
    let version = if contents.deletes.is_empty() { VERSION } else { VERSION_RANGED };
    let mut fields = vec![Field::new(0, 2, "version", version)];
    let mut at = 4;
    let text_len = |text: &str| varint::len(text.len() as u32) + text.len();
    fields.push(Field::new(
        at,
        varint::len(contents.options.len() as u32),
        "options",
        contents.options.len(),
    ));
    at += varint::len(contents.options.len() as u32);
    for (name, value) in &contents.options {
        let len = text_len(name) + text_len(value);
        fields.push(Field::new(at, len, format!("option {name}"), value));
        at += len;
    }
    let checksum_at = bytes.len() - 4;
    let at = describe_extents(bytes, at, ("extents", "extent"), contents.extents.len(), &mut fields);
    let end = match contents.deletes.len() {
        0 => at,
        count => describe_extents(bytes, at, ("extents of range deletes", "deletes"), count, &mut fields),
    };
    debug_assert_eq!(end, checksum_at);
    fields.push(Field::new(checksum_at, 4, "checksum", "holds"));
    fields
}

/// Describes a list of extents at `at`; returns its end.
fn describe_extents(
    bytes: &[u8],
    mut at: usize,
    (list, each): (&str, &str),
    count: usize,
    fields: &mut Vec<Field>,
) -> usize {
    let count_len = varint::len(count as u32);
    fields.push(Field::new(at, count_len, list, count));
    at += count_len;
    let mut hidden_at = at;
    for number in 0..count {
        let (described, len) = describe_meta(&bytes[at..]);
        at += len;
        if number < FIELDS_MAX {
            let name = format!("{each}[{number}]");
            fields.extend(described.into_iter().map(|field| field.within(hidden_at, &name)));
            hidden_at = at;
        }
    }
    if count > FIELDS_MAX {
        fields.push(dump::more(hidden_at, at - hidden_at, count - FIELDS_MAX));
    }
    at
}
