//! The extent: data blocks, index block, filter, range deletes, footer; and its meta in the manifest.
//!
//! ```text
//! extent = block* index filter? range_deletes? references? origin? zeros footer    a multiple of 4096 bytes
//! footer = version:u16 compression:u8 zero:u8 table:u32 bytes:u32 blocks:u32
//!          index:handle filter:handle
//!          raw_bytes:u64 entries:u64 deletes:u64 seq_min:u64 seq_max:u64 checksum:u32 magic:u64
//! handle = offset:u32 len:u32 checksum:u32
//! ```
//!
//! With range deletes the footer has `range_deletes:handle fragments:u32` before its checksum; with entries
//! that expire it has `expiring:u64 quarters:u64*4` there, after those; with pointers to values
//! `references:handle`, after those. A value table has `number:u64 level:u8` there, and none of the others.
//! With an [origin] all of them have `origin:handle` behind these. Each of the twenty-six [forms](Form) has
//! its own version and magic number.
//!
//! Every byte is under a checksum: index rows hold those of the blocks; index, filter and footer hold their
//! own; and padding must be zero. No byte of an extent names its location, so it may be copied to another
//! one. The manifest's [`ExtentMeta`] binds a location to the bytes: it repeats the checksums of index and
//! filter.
//!
//! An extent is self-describing: [`check::inspect`] computes its [`ExtentMeta`] from its bytes.

pub mod check;
mod describe;
mod expiry;
mod form;
pub mod mend;
mod meta;
pub mod origin;
pub mod references;
mod sections;

pub use describe::{describe, describe_meta};
pub use expiry::{EXPIRY_BYTES, Expiry};
pub use form::Form;
pub use meta::ExtentMeta;
pub use origin::{Origin, Replaced, mark_of, origin_of, origin_of_end};
pub use references::{Reference, References};
pub use sections::{RangeSection, ReferenceSection, ValueSection};

use terrane_base::options::Compression;
use terrane_base::{Error, Result, SeqNo, TableId};

use crate::range_deletes;
use crate::wire::Fields;

/// Version of an extent without range deletes and entries that expire; the others follow it
/// ([`Form::version`]).
pub const VERSION: u16 = 1;
/// The bit in a meta's version that marks an extent numbered as a whole: every entry has the number in the
/// meta, not the one in its block. Only metas have the bit; the other bits are the version of the extent
/// itself.
pub const NUMBERED: u16 = 0x8000;
/// The number that every entry of an extent has before it is numbered as a whole.
pub const UNNUMBERED_SEQ: SeqNo = SeqNo(1);
/// The table in the footer of an extent that was written before its table was known.
pub const ANY_TABLE: TableId = TableId(u32::MAX);
/// Bytes of the footer, at the very end of an extent without range deletes and entries that expire.
pub const FOOTER_BYTES: usize = 2 + 1 + 1 + 4 + 4 + 4 + 2 * HANDLE_BYTES + 5 * 8 + 4 + 8;
/// Bytes of the longest footer.
pub const FOOTER_BYTES_MAX: usize = FOOTER_BYTES + HANDLE_BYTES + 4 + EXPIRY_BYTES + 2 * HANDLE_BYTES;
/// The length of an extent is a multiple of this: writes to a device need no extra tail, and repair finds a
/// lost footer by checking few offsets.
pub const ALIGN_BYTES: usize = 4096;
const HANDLE_BYTES: usize = 3 * 4;
const SEED: u32 = u32::from_le_bytes(*b"FOOT");
const _: () = assert!(FOOTER_BYTES == 92);

/// Location of a part of an extent, with its checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handle {
    /// Offset from the start of the extent, in bytes.
    pub offset: u32,
    /// Length in bytes, checksum included; 0 if the part does not exist.
    pub len: u32,
    /// The checksum in the part's last four bytes.
    pub checksum: u32,
}

impl Handle {
    /// The handle of the part in `bytes`, which starts at `offset` and ends with its checksum.
    #[must_use]
    pub fn of(offset: u32, bytes: &[u8]) -> Handle {
        let checksum = bytes.last_chunk().map_or(0, |last| u32::from_le_bytes(*last));
        Handle { offset, len: bytes.len() as u32, checksum }
    }

    /// Returns true if the part does not exist.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Checks that `bytes` has the length and checksum of this handle; the part's decoder checks the rest.
    ///
    /// # Errors
    /// `Corrupt` if length or checksum differ.
    pub fn check(&self, bytes: &[u8]) -> Result<()> {
        let found = Handle::of(self.offset, bytes);
        if found != *self {
            return Err(Error::corrupt(format!(
                "extent part at byte {}: expected {} bytes with checksum {:08x}, found {} bytes with {:08x}",
                self.offset, self.len, self.checksum, found.len, found.checksum
            )));
        }
        Ok(())
    }

    /// Offset at which the part ends.
    #[must_use]
    pub fn end(&self) -> u64 {
        u64::from(self.offset) + u64::from(self.len)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.offset, self.len, self.checksum] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn decode(fields: &mut Fields<'_>) -> Result<Handle> {
        Ok(Handle { offset: fields.u32()?, len: fields.u32()?, checksum: fields.u32()? })
    }
}

/// The footer of an extent: locations of its parts, and sums over its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer {
    /// Codec that was tried on every block (each index row says whether it was used).
    pub compression: Compression,
    /// The table that the extent was written for.
    pub table: TableId,
    /// Bytes of the whole extent, this footer included.
    pub bytes: u32,
    /// Data blocks.
    pub blocks: u32,
    /// The index block.
    pub index: Handle,
    /// The filter; empty for an extent without one.
    pub filter: Handle,
    /// The range deletes; empty for an extent without one.
    pub range_deletes: Handle,
    /// Number of fragments of range deletes.
    pub fragments: u32,
    /// Bytes of all blocks before compression.
    pub raw_bytes: u64,
    /// Entries in all blocks.
    pub entries: u64,
    /// Number of entries that are deletes.
    pub deletes: u64,
    /// Smallest sequence number.
    pub seq_min: SeqNo,
    /// Largest sequence number.
    pub seq_max: SeqNo,
    /// The entries that expire, if there are any.
    pub expiry: Option<Expiry>,
    /// The references to value tables; empty for an extent without one.
    pub references: Handle,
    /// True if the pointers may have positions; false without pointers.
    pub has_positions: bool,
    /// The section of a value table, if it is one.
    pub value_table: Option<ValueSection>,
    /// Where the extent comes from; empty if it does not say.
    pub origin: Handle,
}

impl Footer {
    /// Which optional parts the extent has.
    #[must_use]
    pub fn form(&self) -> Form {
        Form {
            is_ranged: !self.range_deletes.is_empty(),
            expires: self.expiry.is_some(),
            points: !self.references.is_empty(),
            has_positions: self.has_positions,
            has_values: self.value_table.is_some(),
            has_origin: !self.origin.is_empty(),
        }
    }

    /// Bytes of the footer.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        self.form().footer_bytes()
    }

    /// Appends the footer to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let form = self.form();
        out.extend_from_slice(&form.version().to_le_bytes());
        out.extend_from_slice(&[self.compression as u8, 0]);
        for number in [self.table.0, self.bytes, self.blocks] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        self.index.encode(out);
        self.filter.encode(out);
        for number in [self.raw_bytes, self.entries, self.deletes, self.seq_min.0, self.seq_max.0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        if form.is_ranged {
            self.range_deletes.encode(out);
            out.extend_from_slice(&self.fragments.to_le_bytes());
        }
        if let Some(expiry) = &self.expiry {
            expiry.encode(out);
        }
        if form.points {
            self.references.encode(out);
        }
        if let Some(section) = &self.value_table {
            section.encode(out);
        }
        if form.has_origin {
            self.origin.encode(out);
        }
        let checksum = crate::checksum::crc32c(SEED, &out[start..]);
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(&form.magic());
        debug_assert_eq!(out.len() - start, self.encoded_len());
    }

    /// Decodes a footer from the end of an extent: its last [`FOOTER_BYTES_MAX`] or more.
    ///
    /// # Errors
    /// `Corrupt` if magic, checksum or version are wrong or the parts do not fit into the extent.
    pub fn decode(bytes: &[u8]) -> Result<Footer> {
        let Some((body, magic)) = bytes.split_last_chunk() else {
            return Err(Error::corrupt(format!("extent footer of {} bytes is cut", bytes.len())));
        };
        let Some(form) = Form::of_magic(*magic) else {
            return Err(Error::corrupt(
                "extent footer has no magic number: this is not the end of an extent",
            ));
        };
        let Some(start) = bytes.len().checked_sub(form.footer_bytes()) else {
            return Err(Error::corrupt(format!("extent footer of {} bytes is cut", bytes.len())));
        };
        let body = &body[start..];
        let body = crate::wire::checked_body("extent footer", SEED, body)?;
        let mut fields = Fields::new("extent footer", body);
        let (found, expected) = (fields.u16()?, form.version());
        if found != expected {
            return Err(Error::corrupt(format!("extent version: expected {expected}, found {found}")));
        }
        let compression = decode_compression(fields.u8()?)?;
        refuse_key(fields.u8()?)?;
        let mut footer = Footer {
            compression,
            table: TableId(fields.u32()?),
            bytes: fields.u32()?,
            blocks: fields.u32()?,
            index: Handle::decode(&mut fields)?,
            filter: Handle::decode(&mut fields)?,
            range_deletes: Handle::default(),
            fragments: 0,
            raw_bytes: fields.u64()?,
            entries: fields.u64()?,
            deletes: fields.u64()?,
            seq_min: SeqNo(fields.u64()?),
            seq_max: SeqNo(fields.u64()?),
            expiry: None,
            references: Handle::default(),
            has_positions: form.has_positions,
            value_table: None,
            origin: Handle::default(),
        };
        if form.is_ranged {
            footer.range_deletes = Handle::decode(&mut fields)?;
            footer.fragments = fields.u32()?;
            check_fragments(footer.range_deletes, footer.fragments)?;
        }
        if form.expires {
            footer.expiry = Some(Expiry::decode(&mut fields, footer.entries)?);
        }
        if form.points {
            footer.references = Handle::decode(&mut fields)?;
            check_references(footer.references)?;
        }
        if form.has_values {
            footer.value_table = Some(ValueSection::decode(&mut fields)?);
        }
        if form.has_origin {
            footer.origin = Handle::decode(&mut fields)?;
            origin::check_part(footer.origin)?;
        }
        let parts = [footer.index, footer.filter, footer.range_deletes, footer.references, footer.origin];
        check_layout(footer.bytes, parts, form)?;
        Ok(footer)
    }
}

/// Bytes of an extent whose parts take `content` bytes, without range deletes and entries that expire.
#[must_use]
pub fn extent_bytes(content: usize) -> usize {
    extent_bytes_with(content, Form::default())
}

/// As [`extent_bytes`], for an extent of this form.
#[must_use]
pub fn extent_bytes_with(content: usize, form: Form) -> usize {
    (content + form.footer_bytes()).next_multiple_of(ALIGN_BYTES)
}

/// The length of the extent at the front of `slots`, if its footer is found.
///
/// For repair after the manifest was lost. The first footer found counts: after it there may be the end of a
/// longer, older extent.
#[must_use]
pub fn locate(slots: &[u8]) -> Option<usize> {
    (ALIGN_BYTES..=slots.len()).step_by(ALIGN_BYTES).find(|&end| {
        Footer::decode(&slots[end - FOOTER_BYTES_MAX..end]).is_ok_and(|footer| footer.bytes as usize == end)
    })
}

fn decode_compression(number: u8) -> Result<Compression> {
    Compression::from_u8(number).ok_or_else(|| Error::corrupt(format!("compression {number} is unknown")))
}

/// Checks the number of the encryption key: see `docs/format/encryption.md`.
fn refuse_key(key: u8) -> Result<()> {
    if key == 0 {
        return Ok(());
    }
    Err(Error::corrupt(format!("extent encrypted with key {key}: this program reads no encrypted extent")))
}

/// Checks that a part of range deletes has fragments, and only such a part.
fn check_fragments(range_deletes: Handle, fragments: u32) -> Result<()> {
    if fragments > 0 && range_deletes.len as usize > range_deletes::TRAILER_BYTES {
        return Ok(());
    }
    Err(Error::corrupt(format!("extent with {fragments} fragments of range deletes: {range_deletes:?}")))
}

/// Checks that a part of references is not empty.
fn check_references(references: Handle) -> Result<()> {
    if references.len as usize > references::TRAILER_BYTES {
        return Ok(());
    }
    Err(Error::corrupt(format!("extent with no references to value tables: {references:?}")))
}

/// Checks that the parts of an extent and its footer follow each other, with only zeros before the footer.
fn check_layout(bytes: u32, parts: [Handle; 5], form: Form) -> Result<()> {
    let end = end_of(&parts);
    let expected = end.and_then(|end| usize::try_from(end).ok()).map(|end| extent_bytes_with(end, form));
    if expected == Some(bytes as usize) { Ok(()) } else { Err(misfit(bytes, &parts)) }
}

/// [`check_layout`] by the meta of an extent, which does not say where the origin lies.
fn check_layout_of_meta(bytes: u32, parts: [Handle; 4], form: Form) -> Result<()> {
    let end = end_of(&parts).and_then(|end| usize::try_from(end).ok());
    let (least, most) = match form.has_origin {
        true => (origin::ORIGIN_BYTES_MIN, origin::ORIGIN_BYTES_MAX),
        false => (0, 0),
    };
    let fits = end.is_some_and(|end| {
        let range = extent_bytes_with(end + least, form)..=extent_bytes_with(end + most, form);
        (bytes as usize).is_multiple_of(ALIGN_BYTES) && range.contains(&(bytes as usize))
    });
    if fits { Ok(()) } else { Err(misfit(bytes, &parts)) }
}

/// The end of the last part, if each of them follows the one before.
fn end_of(parts: &[Handle]) -> Option<u64> {
    let (index, optional) = parts.split_first()?;
    let mut end = index.end();
    for part in optional.iter().filter(|part| **part != Handle::default()) {
        if part.is_empty() || u64::from(part.offset) != end {
            return None;
        }
        end = part.end();
    }
    Some(end)
}

fn misfit(bytes: u32, parts: &[Handle]) -> Error {
    Error::corrupt(format!(
        "extent of {bytes} bytes: its parts (index, filter, range deletes, references, origin) do not fit it: {parts:?}"
    ))
}
