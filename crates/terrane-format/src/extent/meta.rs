//! The meta of an extent in the manifest. With it, opening a store reads no extent.
//!
//! ```text
//! meta = version:u16 compression:u8 key:u8 file:u32 slot:u32 slots:u32 bytes:u32 blocks:u32
//!        index:handle filter:handle
//!        raw_bytes:u64 entries:u64 deletes:u64 seq_min:u64 seq_max:u64
//!        smallest_len:varint largest_len:varint smallest largest
//!        range_deletes? expiry? references? values?
//! range_deletes = part:handle fragments:u32 start_len:varint end_len:varint start end  in versions 2 and 4
//! expiry        = expiring:u64 quarters:u64*4                                         in versions 3 and 4
//! references    = part:handle list  in versions 5 to 8 and 10 to 13, which are 1 to 4 with references
//! values        = number:u64 level:u8                                                       in version 9
//! ```
//!
//! Versions 14 to 26 are 1 to 13 of extents that say where they come from, and laid out alike.
//!
//! The highest bit of the version says that the extent is *numbered as a whole*: it was written before its
//! entries had sequence numbers. All of them have `seq_min`, which equals `seq_max`; the numbers in its
//! blocks, its index and its range deletes do not count.
//!
//! The meta has no checksum of its own: the manifest's edit around it has one.

use terrane_base::options::Compression;
use terrane_base::{Collation, Error, ExtentId, Result, SeqNo, key, varint};

use super::references::{self, Reference};
use super::sections::VALUE_SECTION_BYTES;
use super::{
    EXPIRY_BYTES, Expiry, Form, Handle, NUMBERED, RangeSection, ReferenceSection, UNNUMBERED_SEQ, VERSION,
    ValueSection, check_layout_of_meta, decode_compression, refuse_key,
};
use crate::range_deletes::END_BYTES_MAX;
use crate::wire::Fields;

/// An extent, as the manifest describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtentMeta {
    /// Location of the extent.
    pub id: ExtentId,
    /// Slots that it takes; more than one only for very large values.
    pub slots: u32,
    /// Bytes as stored, footer included.
    pub bytes: u32,
    /// Bytes of all blocks before compression.
    pub raw_bytes: u64,
    /// User key of the first entry, or the start of the range deletes, if that is less.
    pub smallest: Vec<u8>,
    /// User key of the last entry, or an upper bound of the range deletes, if that is greater.
    pub largest: Vec<u8>,
    /// Smallest sequence number.
    pub seq_min: SeqNo,
    /// Largest sequence number.
    pub seq_max: SeqNo,
    /// Number of entries.
    pub entries: u64,
    /// Number of entries that are deletes.
    pub deletes: u64,
    /// Number of data blocks.
    pub blocks: u32,
    /// The index block.
    pub index: Handle,
    /// The filter; empty for an extent without one.
    pub filter: Handle,
    /// The range deletes, if there are any.
    pub range_deletes: Option<Box<RangeSection>>,
    /// The entries that expire, if there are any.
    pub expiry: Option<Expiry>,
    /// The value tables that its entries point into, if there are any.
    pub references: Option<Box<ReferenceSection>>,
    /// Its section as a value table, if it is one.
    pub value_table: Option<ValueSection>,
    /// Version of the extent's format; with [`NUMBERED`] if it is numbered as a whole.
    pub format_version: u16,
    /// Codec that was tried on every block.
    pub compression: Compression,
    /// Key order of the table. Not encoded; the caller, which knows the table, sets it.
    pub collation: Collation,
}

/// An empty extent of one slot in the current version, to be filled in.
impl Default for ExtentMeta {
    fn default() -> Self {
        ExtentMeta {
            id: ExtentId::default(),
            slots: 1,
            bytes: 0,
            raw_bytes: 0,
            smallest: Vec::new(),
            largest: Vec::new(),
            seq_min: SeqNo(0),
            seq_max: SeqNo(0),
            entries: 0,
            deletes: 0,
            blocks: 0,
            index: Handle::default(),
            filter: Handle::default(),
            range_deletes: None,
            expiry: None,
            references: None,
            value_table: None,
            format_version: VERSION,
            compression: Compression::None,
            collation: Collation::BYTES,
        }
    }
}

impl ExtentMeta {
    /// Bytes that [`ExtentMeta::encode`] appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let key_len = |key: &[u8]| varint::len(key.len() as u32) + key.len();
        let ranges = self
            .range_deletes
            .as_ref()
            .map_or(0, |section| super::HANDLE_BYTES + 4 + key_len(&section.start) + key_len(&section.end));
        let references = self
            .references
            .as_ref()
            .map_or(0, |section| super::HANDLE_BYTES + references::list_len(&section.list));
        4 + 5 * 4
            + 2 * super::HANDLE_BYTES
            + 5 * 8
            + key_len(&self.smallest)
            + key_len(&self.largest)
            + ranges
            + self.expiry.map_or(0, |_| EXPIRY_BYTES)
            + references
            + self.value_table.map_or(0, |_| VALUE_SECTION_BYTES)
    }

    /// Which optional parts the extent has.
    #[must_use]
    pub fn form(&self) -> Form {
        Form {
            is_ranged: self.range_deletes.is_some(),
            expires: self.expiry.is_some(),
            points: self.references.is_some(),
            has_positions: self.has_positions(),
            has_values: self.value_table.is_some(),
            has_origin: self.has_origin(),
        }
    }

    /// Returns true if its pointers may have positions.
    fn has_positions(&self) -> bool {
        Form::of_version(self.format_version & !NUMBERED).is_some_and(|form| form.has_positions)
    }

    /// Returns true if the extent says where it comes from. The manifest does not repeat that.
    #[must_use]
    pub fn has_origin(&self) -> bool {
        Form::of_version(self.format_version & !NUMBERED).is_some_and(|form| form.has_origin)
    }

    /// The references to value tables.
    #[must_use]
    pub fn references(&self) -> &[Reference] {
        self.references.as_ref().map_or(&[], |section| &section.list)
    }

    /// Appends the meta to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.format_version.to_le_bytes());
        out.extend_from_slice(&[self.compression as u8, 0]);
        for number in [self.id.file, self.id.slot, self.slots, self.bytes, self.blocks] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        self.index.encode(out);
        self.filter.encode(out);
        for number in [self.raw_bytes, self.entries, self.deletes, self.seq_min.0, self.seq_max.0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        varint::put(out, self.smallest.len() as u32);
        varint::put(out, self.largest.len() as u32);
        out.extend_from_slice(&self.smallest);
        out.extend_from_slice(&self.largest);
        if let Some(section) = &self.range_deletes {
            section.part.encode(out);
            out.extend_from_slice(&section.fragments.to_le_bytes());
            varint::put(out, section.start.len() as u32);
            varint::put(out, section.end.len() as u32);
            out.extend_from_slice(&section.start);
            out.extend_from_slice(&section.end);
        }
        if let Some(expiry) = &self.expiry {
            expiry.encode(out);
        }
        if let Some(section) = &self.references {
            section.part.encode(out);
            references::encode_list(&section.list, out);
        }
        if let Some(section) = &self.value_table {
            section.encode(out);
        }
    }

    /// Decodes the meta at the front of `bytes`; also returns its length in bytes.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a meta, or contradict themselves.
    pub fn decode(bytes: &[u8]) -> Result<(ExtentMeta, usize)> {
        let (meta, len) = ExtentMeta::decode_unordered(bytes)?;
        Ok((meta.ordered(&Collation::BYTES)?, len))
    }

    /// Sets the key order of the table.
    ///
    /// # Errors
    /// `Corrupt` if the keys are out of order. Nothing is checked while the comparator is not available.
    pub fn ordered(mut self, collation: &Collation) -> Result<ExtentMeta> {
        if !collation.is_bytes() {
            self.collation = collation.clone();
        }
        self.check_order()?;
        Ok(self)
    }

    /// [`ExtentMeta::decode`] while the key order is unknown; [`ExtentMeta::ordered`] must follow.
    ///
    /// # Errors
    /// As [`ExtentMeta::decode`].
    pub fn decode_unordered(bytes: &[u8]) -> Result<(ExtentMeta, usize)> {
        let mut fields = Fields::new("extent meta", bytes);
        let format_version = fields.u16()?;
        let Some(form) = Form::of_version(format_version & !NUMBERED) else {
            return Err(Error::corrupt(format!("extent version: expected 1 to 26, found {format_version}")));
        };
        let compression = decode_compression(fields.u8()?)?;
        refuse_key(fields.u8()?)?;
        let id = ExtentId { file: fields.u32()?, slot: fields.u32()? };
        let [slots, bytes, blocks] = [fields.u32()?, fields.u32()?, fields.u32()?];
        let [index, filter] = [Handle::decode(&mut fields)?, Handle::decode(&mut fields)?];
        let [raw_bytes, entries, deletes] = [fields.u64()?, fields.u64()?, fields.u64()?];
        let [seq_min, seq_max] = [SeqNo(fields.u64()?), SeqNo(fields.u64()?)];
        let [smallest_len, largest_len] = [fields.varint()? as usize, fields.varint()? as usize];
        let smallest = fields.take(smallest_len)?.to_vec();
        let largest = fields.take(largest_len)?.to_vec();
        let range_deletes =
            form.is_ranged.then(|| RangeSection::decode(&mut fields).map(Box::new)).transpose()?;
        let expiry = form.expires.then(|| Expiry::decode(&mut fields, entries)).transpose()?;
        let references =
            form.points.then(|| ReferenceSection::decode(&mut fields, entries).map(Box::new)).transpose()?;
        let value_table = form.has_values.then(|| ValueSection::decode(&mut fields)).transpose()?;
        let meta = ExtentMeta {
            id,
            slots,
            bytes,
            raw_bytes,
            smallest,
            largest,
            seq_min,
            seq_max,
            entries,
            deletes,
            blocks,
            index,
            filter,
            range_deletes,
            expiry,
            references,
            value_table,
            format_version,
            compression,
            collation: Collation::BYTES,
        };
        meta.check()?;
        Ok((meta, fields.at()))
    }

    /// Returns true if every entry and range delete has the number in this meta, and the numbers in the
    /// extent do not count.
    #[inline]
    #[must_use]
    pub fn is_numbered(&self) -> bool {
        self.format_version & NUMBERED != 0
    }

    /// The same extent, with `seq` as the number of every entry and range delete.
    ///
    /// # Errors
    /// `Corrupt` unless the extent was written for that: all of its entries have [`UNNUMBERED_SEQ`].
    pub fn numbered(&self, seq: SeqNo) -> Result<ExtentMeta> {
        let is_made_for_it =
            self.seq_min == UNNUMBERED_SEQ && self.seq_max == UNNUMBERED_SEQ && !self.is_numbered();
        let is_separated = self.references.is_some() || self.value_table.is_some();
        if !is_made_for_it || is_separated {
            return Err(Error::corrupt(format!("extent {} was not made to be numbered as a whole", self.id)));
        }
        let format_version = self.format_version | NUMBERED;
        Ok(ExtentMeta { seq_min: seq, seq_max: seq, format_version, ..self.clone() })
    }

    /// The sequence numbers that its index and footer contain.
    #[must_use]
    pub fn written_seqs(&self) -> (SeqNo, SeqNo) {
        if self.is_numbered() { (UNNUMBERED_SEQ, UNNUMBERED_SEQ) } else { (self.seq_min, self.seq_max) }
    }

    /// The meta that matches its index and footer: without the number of the extent as a whole.
    #[must_use]
    pub fn as_written(&self) -> ExtentMeta {
        let (seq_min, seq_max) = self.written_seqs();
        ExtentMeta { seq_min, seq_max, format_version: self.format_version & !NUMBERED, ..self.clone() }
    }

    fn check(&self) -> Result<()> {
        let refuse = |is_wrong: bool, why: &str| {
            if is_wrong { Err(Error::corrupt(format!("extent {}: {why}", self.id))) } else { Ok(()) }
        };
        refuse(self.slots == 0, "takes no slot")?;
        let is_empty = self.blocks == 0 && self.range_deletes.is_none();
        refuse(is_empty || self.entries < u64::from(self.blocks), "blocks without entries")?;
        refuse(self.deletes > self.entries, "more deletes than entries")?;
        refuse(self.seq_min > self.seq_max || self.seq_max > SeqNo::MAX, "sequence numbers out of range")?;
        let has_numbers =
            self.is_numbered() && (self.seq_min != self.seq_max || self.seq_min < UNNUMBERED_SEQ);
        refuse(has_numbers, "numbered as a whole, with several numbers")?;
        let key_bytes_max = if self.range_deletes.is_some() { END_BYTES_MAX } else { key::KEY_BYTES_MAX };
        refuse(self.largest.len().max(self.smallest.len()) > key_bytes_max, "key longer than the limit")?;
        let part = match &self.range_deletes {
            None => Handle::default(),
            Some(section) => section.part,
        };
        let references = self.references.as_ref().map_or_else(Handle::default, |section| section.part);
        refuse(self.is_numbered() && references != Handle::default(), "numbered as a whole, with pointers")?;
        refuse(self.value_table.is_some() && self.deletes > 0, "a value table with deletes")?;
        check_layout_of_meta(self.bytes, [self.index, self.filter, part, references], self.form())
    }

    /// Checks its keys against each other.
    ///
    /// # Errors
    /// `Corrupt`, naming the extent.
    pub fn check_order(&self) -> Result<()> {
        let collation = &self.collation;
        if collation.is_missing() {
            return Ok(());
        }
        let refuse = |why: &str| Err(Error::corrupt(format!("extent {}: {why}", self.id)).of_order());
        if collation.lt(&self.largest, &self.smallest) {
            return refuse("smallest key is greater than the largest");
        }
        let Some(section) = &self.range_deletes else { return Ok(()) };
        if collation.le(&section.end, &section.start) {
            return refuse("range deletes over an empty range");
        }
        let last = section.last_key(collation);
        if collation.lt(&section.start, &self.smallest) || collation.lt(&self.largest, &last) {
            return refuse("range deletes reach beyond its keys");
        }
        Ok(())
    }
}
