//! What the manifest says about an extent, so that opening a store reads no extent.
//!
//! ```text
//! meta = version:u16 compression:u8 key:u8 file:u32 slot:u32 slots:u32 bytes:u32 blocks:u32
//!        index:handle filter:handle
//!        raw_bytes:u64 entries:u64 deletes:u64 seq_min:u64 seq_max:u64
//!        smallest_len:varint largest_len:varint smallest largest
//! ```
//!
//! It has no checksum of its own: the manifest's edit around it does.

use terrane_base::options::Compression;
use terrane_base::{Error, ExtentId, Result, SeqNo, key, varint};

use super::{Handle, VERSION, check_layout, decode_compression, refuse_key};
use crate::wire::Fields;

/// An extent as the manifest knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtentMeta {
    /// Where the extent lies.
    pub id: ExtentId,
    /// How many slots it takes; more than one only for very large values.
    pub slots: u32,
    /// Bytes as stored, footer included.
    pub bytes: u32,
    /// Bytes of all blocks before compression.
    pub raw_bytes: u64,
    /// User key of the first entry.
    pub smallest: Vec<u8>,
    /// User key of the last entry.
    pub largest: Vec<u8>,
    /// Smallest sequence number.
    pub seq_min: SeqNo,
    /// Largest sequence number.
    pub seq_max: SeqNo,
    /// Entries.
    pub entries: u64,
    /// How many of them are deletes.
    pub deletes: u64,
    /// Data blocks.
    pub blocks: u32,
    /// The index block.
    pub index: Handle,
    /// The filter; empty if there is none.
    pub filter: Handle,
    /// Version of the extent's format.
    pub format_version: u16,
    /// Codec that was tried on every block.
    pub compression: Compression,
}

impl ExtentMeta {
    /// Bytes that [`ExtentMeta::encode`] appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let key_len = |key: &[u8]| varint::len(key.len() as u32) + key.len();
        4 + 5 * 4 + 2 * super::HANDLE_BYTES + 5 * 8 + key_len(&self.smallest) + key_len(&self.largest)
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
    }

    /// Decodes the meta at the front of `bytes`; also returns how many bytes it took.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a meta, or contradict themselves.
    pub fn decode(bytes: &[u8]) -> Result<(ExtentMeta, usize)> {
        let mut fields = Fields::new("extent meta", bytes);
        let format_version = fields.u16()?;
        if format_version != VERSION {
            return Err(Error::corrupt(format!(
                "extent version: expected {VERSION}, found {format_version}"
            )));
        }
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
            format_version,
            compression,
        };
        meta.check()?;
        Ok((meta, fields.at()))
    }

    fn check(&self) -> Result<()> {
        let refuse = |is_wrong: bool, why: &str| {
            if is_wrong { Err(Error::corrupt(format!("extent {}: {why}", self.id))) } else { Ok(()) }
        };
        refuse(self.slots == 0, "takes no slot")?;
        refuse(self.blocks == 0 || self.entries < u64::from(self.blocks), "blocks without entries")?;
        refuse(self.deletes > self.entries, "more deletes than entries")?;
        refuse(self.seq_min > self.seq_max || self.seq_max > SeqNo::MAX, "sequence numbers out of range")?;
        refuse(self.smallest > self.largest, "smallest key is greater than the largest")?;
        refuse(
            self.largest.len().max(self.smallest.len()) > key::KEY_BYTES_MAX,
            "key longer than the limit",
        )?;
        check_layout(self.bytes, self.index, self.filter)
    }
}
