//! The optional parts of an extent, as its meta in the manifest describes them.

use std::borrow::Cow;

use terrane_base::{Collation, Error, Result, ValueTableId};

use super::references::{self, Reference};
use super::{Handle, check_fragments, check_references};
use crate::range_deletes::END_BYTES_MAX;
use crate::wire::Fields;

/// The range deletes of an extent, as the manifest describes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeSection {
    /// Location of the part.
    pub part: Handle,
    /// Number of fragments; at least one.
    pub fragments: u32,
    /// First key of the first fragment.
    pub start: Vec<u8>,
    /// First key after the last fragment.
    pub end: Vec<u8>,
}

/// The value tables that an extent points into, as the manifest describes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceSection {
    /// Location of the part.
    pub part: Handle,
    /// The references, by value table; at least one.
    pub list: Vec<Reference>,
}

/// The facts of a value table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueSection {
    /// Its number.
    pub number: ValueTableId,
    /// The level that the pointers into it were written to first; 0 for an overflow run.
    pub level: u8,
}

/// Bytes of a [`ValueSection`].
pub(super) const VALUE_SECTION_BYTES: usize = 8 + 1;

impl RangeSection {
    /// A key that is not less than any key of the range deletes; the least such key that can be written down.
    #[must_use]
    pub fn last_key(&self, collation: &Collation) -> Cow<'_, [u8]> {
        collation.last_before(&self.end)
    }

    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<RangeSection> {
        let (part, fragments) = (Handle::decode(fields)?, fields.u32()?);
        check_fragments(part, fragments)?;
        let [start_len, end_len] = [fields.varint()? as usize, fields.varint()? as usize];
        let (start, end) = (fields.take(start_len)?.to_vec(), fields.take(end_len)?.to_vec());
        if start_len.max(end_len) > END_BYTES_MAX {
            return Err(Error::corrupt("extent with range deletes over a too long range"));
        }
        Ok(RangeSection { part, fragments, start, end })
    }
}

impl ValueSection {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.0.to_le_bytes());
        out.push(self.level);
    }

    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<ValueSection> {
        Ok(ValueSection { number: ValueTableId(fields.u64()?), level: fields.u8()? })
    }
}

impl ReferenceSection {
    pub(super) fn decode(fields: &mut Fields<'_>, entries_max: u64) -> Result<ReferenceSection> {
        let part = Handle::decode(fields)?;
        check_references(part)?;
        let list = references::decode_list(fields)?;
        let entries = list.iter().map(|reference| reference.entries).fold(0, u64::saturating_add);
        if entries > entries_max {
            return Err(Error::corrupt(format!(
                "extent of {entries_max} entries with {entries} pointers to values"
            )));
        }
        Ok(ReferenceSection { part, list })
    }
}
