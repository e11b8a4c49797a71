//! The bytes of a pin and of a reference (`docs/format/objects.md`): which objects of the original a clone
//! reads, and where the other database is. Bytes of a bucket are hostile: every field is checked.

use std::collections::BTreeMap;

use terrane_base::{Error, Result};

use crate::bucket::names;
use crate::store::{DataName, PARTS_MAX};

const MAGIC: [u8; 8] = *b"trnclone";
const VERSION: u16 = 1;
/// Bytes before the addresses.
const HEADER_BYTES: usize = 96;
/// Bytes of a row.
const ROW_BYTES: usize = 24;
/// Longest address.
const URL_BYTES_MAX: usize = 4096;
/// Most bytes of a whole object: rows for as many objects as a list has.
pub(crate) const CLONE_OBJECT_BYTES_MAX: u64 =
    (HEADER_BYTES + URL_BYTES_MAX + names::NAME_BYTES_MAX + names::LISTED_MAX * ROW_BYTES + 4) as u64;

/// The kind of such an object. The discriminants are part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CloneTag {
    /// In the folder of the clone; its address is that of the original.
    Reference = 1,
    /// In the folder of the original; its address is that of the clone.
    Pin = 2,
}

/// A pin or a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CloneObject {
    pub(crate) tag: CloneTag,
    /// The random number that pin and reference share.
    pub(crate) nonce: u128,
    /// Id of the clone.
    pub(crate) clone: u128,
    /// Id of the original.
    pub(crate) original: u128,
    /// The last commit that the clone began with.
    pub(crate) commit: u64,
    /// The clone's own files have greater numbers.
    pub(crate) floor: u32,
    /// The address of the bucket of the other database; empty if it is this one.
    pub(crate) url: String,
    /// The folder of the other database.
    pub(crate) prefix: String,
    /// The objects of the original, with their bytes.
    pub(crate) objects: BTreeMap<DataName, u64>,
}

impl CloneObject {
    /// Most bytes of one.
    pub(crate) const BYTES_MAX: u64 = CLONE_OBJECT_BYTES_MAX;

    /// Its bytes.
    ///
    /// # Errors
    /// `Invalid` if the address is too long.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        if self.url.len() > URL_BYTES_MAX {
            let bytes = self.url.len();
            return Err(Error::invalid(format!("an address of {bytes} bytes: {URL_BYTES_MAX} are possible")));
        }
        debug_assert!(self.check().is_ok(), "a reader accepts the object");
        let mut out = Vec::with_capacity(HEADER_BYTES + self.objects.len() * ROW_BYTES + 64);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[self.tag as u8, 0]);
        out.extend_from_slice(&self.floor.to_le_bytes());
        [self.nonce, self.clone, self.original]
            .iter()
            .for_each(|id| out.extend_from_slice(&id.to_le_bytes()));
        out.extend_from_slice(&self.commit.to_le_bytes());
        out.extend_from_slice(&(self.objects.len() as u64).to_le_bytes());
        out.extend_from_slice(&(self.url.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.prefix.len() as u32).to_le_bytes());
        out.resize(HEADER_BYTES, 0);
        out.extend_from_slice(self.url.as_bytes());
        out.extend_from_slice(self.prefix.as_bytes());
        for (DataName { epoch, number, part }, bytes) in &self.objects {
            out.extend_from_slice(&epoch.to_le_bytes());
            out.extend_from_slice(&number.to_le_bytes());
            out.extend_from_slice(&part.to_le_bytes());
            out.extend_from_slice(&bytes.to_le_bytes());
        }
        out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
        Ok(out)
    }

    /// Reads the object.
    ///
    /// # Errors
    /// `Corrupt`, without a place, if the bytes are damaged; `Invalid` if a later version wrote them.
    pub(crate) fn decode(bytes: &[u8]) -> Result<CloneObject> {
        let cut = || Error::corrupt("a pin or reference of a clone is cut");
        let end = bytes.len().checked_sub(4).filter(|end| *end >= HEADER_BYTES).ok_or_else(cut)?;
        if bytes[..8] != MAGIC {
            return Err(Error::corrupt("not a pin or reference of a clone"));
        }
        let (expected, found) = (u32_at(bytes, end), crc32c::crc32c(&bytes[..end]));
        if expected != found {
            let message = format!(
                "checksum of a pin or reference of a clone: expected {expected:08x}, found {found:08x}"
            );
            return Err(Error::corrupt(message));
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version > VERSION {
            let message = format!(
                "a clone of format version {version}: this program knows up to {VERSION}; use a later one"
            );
            return Err(Error::invalid(message));
        }
        let tag = match bytes[10] {
            1 => CloneTag::Reference,
            2 => CloneTag::Pin,
            tag => return Err(Error::corrupt(format!("a clone object of type {tag}"))),
        };
        if version == 0 || bytes[11] != 0 || bytes[88..HEADER_BYTES] != [0; 8] {
            return Err(Error::corrupt("a pin or reference of a clone has bytes where none may be"));
        }
        let (url_bytes, prefix_bytes) = (u32_at(bytes, 80) as usize, u32_at(bytes, 84) as usize);
        let (count, rest) = (u64_at(bytes, 72), (end - HEADER_BYTES) as u64);
        let texts = url_bytes as u64 + prefix_bytes as u64;
        let len = count.checked_mul(ROW_BYTES as u64).and_then(|rows| rows.checked_add(texts));
        if len != Some(rest) || url_bytes > URL_BYTES_MAX {
            let message = format!("{count} objects and {texts} bytes of addresses in {rest} bytes");
            return Err(Error::corrupt(message));
        }
        let prefix_at = HEADER_BYTES + url_bytes;
        let rows = &bytes[prefix_at + prefix_bytes..end];
        let name =
            |row: &[u8]| DataName { epoch: u64_at(row, 0), number: u32_at(row, 8), part: u32_at(row, 12) };
        let names: Vec<DataName> = rows.chunks_exact(ROW_BYTES).map(name).collect();
        if !names.is_sorted_by(|a, b| a < b) {
            return Err(Error::corrupt("the objects of a clone are not in order"));
        }
        let sizes = rows.chunks_exact(ROW_BYTES).map(|row| u64_at(row, 16));
        let object = CloneObject {
            tag,
            nonce: u128_at(bytes, 16),
            clone: u128_at(bytes, 32),
            original: u128_at(bytes, 48),
            commit: u64_at(bytes, 64),
            floor: u32_at(bytes, 12),
            url: text(&bytes[HEADER_BYTES..prefix_at])?,
            prefix: text(&bytes[prefix_at..prefix_at + prefix_bytes])?,
            objects: names.into_iter().zip(sizes).collect(),
        };
        object.check().map(|()| object)
    }

    /// Checks what a writer guarantees: names that are possible, one epoch for each number, numbers up to the
    /// floor.
    fn check(&self) -> Result<()> {
        names::check(&self.prefix).map_err(|error| error.with_kind(terrane_base::Kind::Corrupt))?;
        if self.floor == u32::MAX {
            return Err(Error::corrupt("a clone without a number for a file of its own"));
        }
        let mut epochs: BTreeMap<u32, u64> = BTreeMap::new();
        for DataName { epoch, number, part } in self.objects.keys() {
            let is_possible = (1..=self.floor).contains(number) && *part <= PARTS_MAX;
            if !is_possible || *epochs.entry(*number).or_insert(*epoch) != *epoch {
                let message = format!("object {epoch}-{number}-{part} of a clone is impossible");
                return Err(Error::corrupt(message));
            }
        }
        Ok(())
    }

    /// The bytes of all objects.
    pub(crate) fn bytes(&self) -> u64 {
        self.objects.values().fold(0, |all, bytes| all.saturating_add(*bytes))
    }
}

fn text(bytes: &[u8]) -> Result<String> {
    let text = str::from_utf8(bytes).map_err(|_| Error::corrupt("clone address is not valid UTF-8"))?;
    Ok(text.to_owned())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn u128_at(bytes: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(bytes[at..at + 16].try_into().expect("sixteen bytes"))
}

/// Body of the fuzz target.
pub(crate) mod fuzz {
    use terrane_base::Kind;

    use super::*;

    /// An object as it is, and with its checksum set right.
    ///
    /// # Panics
    /// If what was decoded is not encoded to the same, or an error is of a kind that no caller can act on.
    pub fn clone_object(bytes: &[u8]) {
        judge(bytes);
        if let Some(end) = bytes.len().checked_sub(4) {
            let mut repaired = bytes.to_vec();
            let magic = MAGIC.len().min(end);
            repaired[..magic].copy_from_slice(&MAGIC[..magic]);
            let crc = crc32c::crc32c(&repaired[..end]);
            repaired[end..].copy_from_slice(&crc.to_le_bytes());
            judge(&repaired);
        }
    }

    fn judge(bytes: &[u8]) {
        match CloneObject::decode(bytes) {
            Ok(object) => assert!(object.encode().expect("it has room") == bytes, "one encoding for each"),
            Err(error) => assert!(matches!(error.kind(), Kind::Corrupt | Kind::Invalid), "{error}"),
        }
    }

    /// Corpus of [`clone_object`].
    #[must_use]
    pub fn clone_object_seeds() -> Vec<(String, Vec<u8>)> {
        let seed = |(name, object): (&str, CloneObject)| {
            (name.to_owned(), object.encode().expect("a sample has a short address"))
        };
        samples().into_iter().map(seed).collect()
    }

    pub(super) fn samples() -> [(&'static str, CloneObject); 3] {
        let name = |epoch, number, part| DataName { epoch, number, part };
        let objects = [(name(1, 1, 0), 400), (name(1, 1, 1), 70), (name(2, 9, 0), 1 << 26)];
        let pin = CloneObject {
            tag: CloneTag::Pin,
            nonce: 0x1234,
            clone: 5,
            original: 6,
            commit: 77,
            floor: 9,
            url: "file:///srv/bucket".to_owned(),
            prefix: "app/copy".to_owned(),
            objects: objects.into(),
        };
        let reference = CloneObject { tag: CloneTag::Reference, url: String::new(), ..pin.clone() };
        let empty = CloneObject { objects: BTreeMap::new(), floor: 0, ..reference.clone() };
        [("pin", pin), ("reference", reference), ("empty", empty)]
    }
}

#[cfg(test)]
mod tests {
    use terrane_base::Kind;

    use super::*;

    #[test]
    fn objects_come_back_and_every_changed_byte_is_found() {
        for (name, object) in fuzz::samples() {
            let bytes = object.encode().expect("encodes");
            assert_eq!(CloneObject::decode(&bytes).expect("decodes"), object, "{name}");
            for at in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1;
                let error = CloneObject::decode(&damaged).expect_err("damaged");
                assert_eq!(error.kind(), Kind::Corrupt, "byte {at} of {name}");
                assert_eq!(CloneObject::decode(&bytes[..at]).expect_err("cut").kind(), Kind::Corrupt);
            }
        }
    }

    /// Objects whose checksum is right, as of an enemy.
    #[test]
    fn impossible_objects_are_refused() {
        let (_, pin) = &fuzz::samples()[0];
        let changed = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = pin.encode().expect("encodes");
            change(&mut bytes);
            let end = bytes.len() - 4;
            let crc = crc32c::crc32c(&bytes[..end]);
            bytes[end..].copy_from_slice(&crc.to_le_bytes());
            CloneObject::decode(&bytes).expect_err("impossible").kind()
        };
        let row = HEADER_BYTES + pin.url.len() + pin.prefix.len();
        assert_eq!(changed(&|bytes| bytes[8] = 2), Kind::Invalid, "a later version");
        assert_eq!(changed(&|bytes| bytes[8] = 0), Kind::Corrupt);
        assert_eq!(changed(&|bytes| bytes[10] = 3), Kind::Corrupt, "another type");
        assert_eq!(changed(&|bytes| bytes[90] = 1), Kind::Corrupt);
        assert_eq!(changed(&|bytes| bytes[72] += 1), Kind::Corrupt, "more objects");
        assert_eq!(changed(&|bytes| bytes[72..80].fill(0xff)), Kind::Corrupt);
        assert_eq!(changed(&|bytes| bytes[80..84].fill(0xff)), Kind::Corrupt);
        assert_eq!(changed(&|bytes| bytes[HEADER_BYTES] = 0xff), Kind::Corrupt, "no text");
        assert_eq!(changed(&|bytes| bytes[row - 1] = b'/'), Kind::Corrupt, "no name of a folder");
        assert_eq!(changed(&|bytes| bytes[row + 8] = 0), Kind::Corrupt, "no number");
        assert_eq!(changed(&|bytes| bytes[12..16].fill(0xff)), Kind::Corrupt, "no number is left");
        assert_eq!(changed(&|bytes| bytes[12] = 8), Kind::Corrupt, "a number above the floor");
        assert_eq!(changed(&|bytes| bytes[row + ROW_BYTES] = 2), Kind::Corrupt, "two epochs of one number");
        assert_eq!(changed(&|bytes| bytes[row] = 9), Kind::Corrupt, "out of order");
    }
}
