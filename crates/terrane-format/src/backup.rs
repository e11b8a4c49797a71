//! The objects of a backup location, and the manifest of one backup. Format page: `docs/format/backup.md`.
//!
//! * [`ObjectHeader`], [`seal`], [`open`]: the header and the trailer around the bytes of every object.
//! * [`extent_name`], [`bytes_name`]: a 128-bit name for an object, computed from its content.
//! * [`BackupManifest`]: the object that lists the other objects of a backup.

use terrane_base::{Error, Result, SegmentId, SeqNo, varint};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::extent::ExtentMeta;
use crate::manifest::DatabaseId;
use crate::wire::Fields;

/// First bytes of every object.
pub const MAGIC: [u8; 8] = *b"terrback";
/// The format version that this code writes, and the newest it reads.
pub const VERSION: u16 = 1;
/// Bytes of the header that comes before an object's content.
pub const HEADER_BYTES: usize = 40;
/// Bytes of the trailer that comes after it.
pub const TRAILER_BYTES: usize = 16;
/// Bytes of a segment in a manifest.
const SEGMENT_BYTES: usize = 8 + 8 + 8 + 16;

/// The type of an object. The discriminants are part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum ObjectKind {
    /// An extent, as it lies in its data file.
    Extent = 1,
    /// The valid part of a journal segment.
    Segment = 2,
    /// A [`BackupManifest`].
    Manifest = 3,
}

impl ObjectKind {
    fn from_number(number: u16) -> Option<ObjectKind> {
        match number {
            1 => Some(ObjectKind::Extent),
            2 => Some(ObjectKind::Segment),
            3 => Some(ObjectKind::Manifest),
            _ => None,
        }
    }
}

/// The name of an extent: a hash of its database, its location and its meta. The meta holds the checksum of
/// the index, and the index holds the checksum of every block, so the name covers every byte.
#[must_use]
pub fn extent_name(database: DatabaseId, meta: &ExtentMeta) -> u128 {
    let mut bytes = Vec::with_capacity(16 + meta.encoded_len());
    bytes.extend_from_slice(&database.0.to_le_bytes());
    meta.encode(&mut bytes);
    xxh3_128(&bytes)
}

/// The name of an object that is identified by its bytes alone.
#[must_use]
pub fn bytes_name(bytes: &[u8]) -> u128 {
    xxh3_128(bytes)
}

/// The header that comes before an object's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectHeader {
    /// Type of the object.
    pub kind: ObjectKind,
    /// Name of the object; for a manifest the number of the backup.
    pub name: u128,
    /// Bytes of the object's content.
    pub len: u64,
}

impl ObjectHeader {
    /// Encodes the header.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&(self.kind as u16).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.len.to_le_bytes());
        bytes[24..40].copy_from_slice(&self.name.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<ObjectHeader> {
        let mut fields = Fields::new("header of a backup object", bytes);
        if fields.take(8)? != MAGIC {
            return Err(Error::corrupt("not an object of a backup: its first bytes are not \"terrback\""));
        }
        match fields.u16()? {
            VERSION => {}
            0 => return Err(Error::corrupt("backup object: format version 0 does not exist")),
            newer => {
                return Err(Error::invalid(format!(
                    "backup object of version {newer}: this program reads up to {VERSION}, use a later one"
                )));
            }
        }
        let kind = fields.u16()?;
        let kind = ObjectKind::from_number(kind)
            .ok_or_else(|| Error::corrupt(format!("backup object of unknown kind {kind}")))?;
        if fields.u32()? != 0 {
            return Err(Error::corrupt("backup object: reserved bytes are not zero"));
        }
        let len = fields.u64()?;
        Ok(ObjectHeader { kind, len, name: name(&mut fields)? })
    }
}

fn name(fields: &mut Fields<'_>) -> Result<u128> {
    let (low, high) = (fields.u64()?, fields.u64()?);
    Ok(u128::from(high) << 64 | u128::from(low))
}

/// The header and the trailer of the object with this kind, name and content.
#[must_use]
pub fn seal(kind: ObjectKind, name: u128, body: &[u8]) -> ([u8; HEADER_BYTES], [u8; TRAILER_BYTES]) {
    let header = ObjectHeader { kind, name, len: body.len() as u64 }.encode();
    (header, checksum(&header, body))
}

fn checksum(header: &[u8], body: &[u8]) -> [u8; TRAILER_BYTES] {
    let mut hash = Xxh3::new();
    hash.update(header);
    hash.update(body);
    hash.digest128().to_le_bytes()
}

/// Returns the content of `object`, after checking that it is complete and has this kind and name.
///
/// # Errors
/// `Corrupt` if the check fails; `Invalid` if a later version wrote the object.
pub fn open(kind: ObjectKind, name: u128, object: &[u8]) -> Result<&[u8]> {
    let header = ObjectHeader::decode(object)?;
    let len = object.len().checked_sub(HEADER_BYTES + TRAILER_BYTES);
    if len.is_none_or(|len| len as u64 != header.len) {
        return Err(Error::corrupt(format!(
            "backup object of {} bytes: its header says {} bytes of content and {} of header and trailer",
            object.len(),
            header.len,
            HEADER_BYTES + TRAILER_BYTES
        )));
    }
    let (front, trailer) = object.split_at(object.len() - TRAILER_BYTES);
    let (head, body) = front.split_at(HEADER_BYTES);
    if checksum(head, body) != trailer && !terrane_base::planted!(BelieveBackupObject) {
        return Err(Error::corrupt("backup object fails its checksum: it was changed after it was written"));
    }
    if (header.kind, header.name) != (kind, name) {
        return Err(Error::corrupt(format!(
            "backup object of another name: expected {kind:?} {name:032x}, found {:?} {:032x}",
            header.kind, header.name
        )));
    }
    Ok(body)
}

/// A journal segment of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupSegment {
    /// The segment.
    pub id: SegmentId,
    /// Valid bytes of the segment, counted from its start.
    pub bytes: u64,
    /// Number of the last record in it, or of the record before it if it holds none.
    pub last_seq: SeqNo,
    /// Name of the object.
    pub name: u128,
}

/// The manifest of a backup: all that it consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupManifest {
    /// The database that was backed up.
    pub database: DatabaseId,
    /// When it was made: milliseconds since the beginning of 1970.
    pub created_millis: u64,
    /// The backup holds every commit up to this number.
    pub last_seq: SeqNo,
    /// Number of extents.
    pub extents: u64,
    /// Bytes of these extents.
    pub extent_bytes: u64,
    /// Bytes that this backup copied; the rest was shared with older backups.
    pub copied_bytes: u64,
    /// The options with which the database was open: name and value.
    pub options: Vec<(String, String)>,
    /// The segments of the journal, oldest first.
    pub segments: Vec<BackupSegment>,
    /// The state of the database: a manifest file with a snapshot and no edit.
    pub state: Vec<u8>,
}

impl BackupManifest {
    /// Encodes the manifest as the content of an object.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.state.len() + 256);
        out.extend_from_slice(&self.database.0.to_le_bytes());
        let numbers =
            [self.created_millis, self.last_seq.0, self.extents, self.extent_bytes, self.copied_bytes];
        numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        varint::put(&mut out, self.options.len() as u32);
        for text in self.options.iter().flat_map(|(name, value)| [name, value]) {
            varint::put(&mut out, text.len() as u32);
            out.extend_from_slice(text.as_bytes());
        }
        varint::put(&mut out, self.segments.len() as u32);
        for segment in &self.segments {
            for number in [segment.id.0, segment.bytes, segment.last_seq.0] {
                out.extend_from_slice(&number.to_le_bytes());
            }
            out.extend_from_slice(&segment.name.to_le_bytes());
        }
        out.extend_from_slice(&self.state);
        out
    }

    /// Decodes the content of an object. Does not decode `state`.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn decode(bytes: &[u8]) -> Result<BackupManifest> {
        let mut fields = Fields::new("manifest of a backup", bytes);
        let database = DatabaseId(name(&mut fields)?);
        let (created_millis, last_seq) = (fields.u64()?, SeqNo(fields.u64()?));
        let (extents, extent_bytes, copied_bytes) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let option_count = fields.varint()?;
        let options =
            (0..option_count).map(|_| Ok((text(&mut fields)?, text(&mut fields)?))).collect::<Result<_>>()?;
        let segment_count = fields.varint()? as usize;
        if segment_count > fields.rest().len() / SEGMENT_BYTES {
            return Err(Error::corrupt(format!(
                "manifest of a backup: ends before its {segment_count} segments"
            )));
        }
        let segments =
            (0..segment_count).map(|_| BackupSegment::decode(&mut fields)).collect::<Result<Vec<_>>>()?;
        let is_ordered = segments.windows(2).all(|pair| pair[0].id < pair[1].id);
        let is_possible = segments
            .iter()
            .all(|segment| segment.bytes <= crate::segment::SEGMENT_BYTES_MAX && segment.id.0 < 1 << 62);
        if !is_ordered || !is_possible || last_seq > SeqNo::MAX {
            return Err(Error::corrupt(
                "manifest of a backup: its segments or its last sequence number are out of range",
            ));
        }
        let state = fields.rest().to_vec();
        Ok(BackupManifest {
            database,
            created_millis,
            last_seq,
            extents,
            extent_bytes,
            copied_bytes,
            options,
            segments,
            state,
        })
    }
}

impl BackupSegment {
    fn decode(fields: &mut Fields<'_>) -> Result<BackupSegment> {
        let (id, bytes, last_seq) = (SegmentId(fields.u64()?), fields.u64()?, SeqNo(fields.u64()?));
        Ok(BackupSegment { id, bytes, last_seq, name: name(fields)? })
    }
}

fn text(fields: &mut Fields<'_>) -> Result<String> {
    let len = fields.varint()? as usize;
    let bytes = fields.take(len)?;
    String::from_utf8(bytes.to_vec())
        .map_err(|_| Error::corrupt("manifest of a backup: an option is not valid UTF-8"))
}
