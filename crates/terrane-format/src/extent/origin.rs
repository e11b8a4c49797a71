//! Where an extent comes from: a part behind the references, for repair when the manifest is lost.
//!
//! ```text
//! part     = database:u128 before:u128 edit:u64 job:u64 level:u8 name_len:varint name options replaced
//!            version:u8 checksum:u32
//! options  = count:varint (name_len:varint name value_len:varint value)*
//! replaced = count:varint (from_len:varint from to_len:varint to marks:varint mark:u64*)*
//! ```
//!
//! It tells what an extent was when it was written. What it is now, only the manifest tells: an extent that
//! was re-linked is in another level, and options may have been set since.
//!
//! `replaced` says which extents the job merged: of all keys from `from` to `to`, what those have is in this
//! extent, or was dropped with reason. It holds whether the job's result was published or not. The first
//! entry names the extents that the job read; the next ones what these had replaced themselves.

use terrane_base::{Collation, Error, Result, varint};

use super::{ExtentMeta, Footer, Handle};
use crate::dump::{self, Field};
use crate::manifest::{DatabaseId, TableOptions};
use crate::wire::{self, Fields};

/// Version of the part that this module writes.
pub const VERSION: u8 = 1;
/// Bytes of the part at most: what would make it longer is left out, first what it replaced, then options.
pub const ORIGIN_BYTES_MAX: usize = 4096;
/// Bytes of the part at least: of a table without a name and options.
pub const ORIGIN_BYTES_MIN: usize = FIXED_BYTES + 3 + TRAILER_BYTES;
/// Bytes of all [`Replaced`] at most; the first ones that fit stand there.
pub const REPLACED_BYTES_MAX: usize = 1024;

/// Databases, edit, job, level.
const FIXED_BYTES: usize = 2 * 16 + 8 + 8 + 1;
/// Version, checksum.
const TRAILER_BYTES: usize = 1 + 4;
/// Bytes of the longest name of a table.
const NAME_BYTES_MAX: usize = 255;
const SEED: u32 = u32::from_le_bytes(*b"ORIG");

/// The database, the table and the moment that an extent was written for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The database that wrote it. A checkpoint or a restored backup has extents of the one before it.
    pub database: DatabaseId,
    /// The database that this one is a copy of; 0 if it is not a copy.
    pub before: DatabaseId,
    /// The last edit of the manifest when the job began that wrote it: the edit that added it is a later one.
    pub edit: u64,
    /// The number of the job among those of one opening. An opening writes an edit, so edit and job together
    /// order the jobs of a database by their beginning.
    pub job: u64,
    /// The level that it was written to; 0 for an overflow run.
    pub level: u8,
    /// Name of the table.
    pub table: String,
    /// Options of the table; none if they would take too much room.
    pub options: TableOptions,
    /// The extents that the job merged into it, and those that they had replaced.
    pub replaced: Vec<Replaced>,
}

/// The extents that an extent took the place of, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replaced {
    /// The first key.
    pub from: Vec<u8>,
    /// The key behind the last; empty: to the end.
    pub to: Vec<u8>,
    /// The extents, by [`mark_of`].
    pub marks: Vec<u64>,
}

impl Replaced {
    /// Returns true if the extent took the place of others at this key.
    #[must_use]
    pub fn covers(&self, key: &[u8], collation: &Collation) -> bool {
        collation.le(&self.from, key) && (self.to.is_empty() || collation.lt(key, &self.to))
    }

    /// The part of it that `other` covers as well, if there is some.
    #[must_use]
    pub fn within(&self, other: &Replaced, collation: &Collation) -> Option<Replaced> {
        let from = collation.max(&self.from, &other.from);
        let to = match (self.to.is_empty(), other.to.is_empty()) {
            (true, _) => &other.to,
            (_, true) => &self.to,
            _ => {
                if collation.lt(&self.to, &other.to) {
                    &self.to
                } else {
                    &other.to
                }
            }
        };
        let is_some = to.is_empty() || collation.lt(from, to);
        is_some.then(|| Replaced { from: from.to_vec(), to: to.clone(), marks: self.marks.clone() })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, &self.from);
        put_bytes(out, &self.to);
        varint::put(out, self.marks.len() as u32);
        self.marks.iter().for_each(|mark| out.extend_from_slice(&mark.to_le_bytes()));
    }

    fn decode(fields: &mut Fields<'_>) -> Result<Replaced> {
        let mut replaced = Replaced { from: take_bytes(fields)?, to: take_bytes(fields)?, marks: Vec::new() };
        for _ in 0..fields.varint()? {
            // Grows as marks are decoded, never by the count that the bytes claim.
            replaced.marks.push(fields.u64()?);
        }
        Ok(replaced)
    }
}

/// The list as it stands in the part: the first ones that fit.
fn encode_replaced(list: &[Replaced]) -> Vec<u8> {
    let (mut bytes, mut count) = (Vec::new(), 0);
    for replaced in list {
        let before = bytes.len();
        replaced.encode(&mut bytes);
        if bytes.len() + varint::BYTES_MAX > REPLACED_BYTES_MAX {
            bytes.truncate(before);
            break;
        }
        count += 1;
    }
    let mut out = Vec::with_capacity(bytes.len() + varint::BYTES_MAX);
    varint::put(&mut out, count);
    out.extend_from_slice(&bytes);
    debug_assert!(out.len() <= REPLACED_BYTES_MAX, "{} bytes have no room in a part", out.len());
    out
}

/// Identity of an extent wherever it lies: a hash of the facts in its footer about its content. It does not
/// depend on the number that the manifest gives to an extent that is numbered as a whole.
#[must_use]
pub fn mark_of(meta: &ExtentMeta) -> u64 {
    let mut bytes = Vec::with_capacity(64);
    for part in [meta.index, meta.filter] {
        bytes.extend_from_slice(&part.checksum.to_le_bytes());
        bytes.extend_from_slice(&part.offset.to_le_bytes());
        bytes.extend_from_slice(&part.len.to_le_bytes());
    }
    let ranges = meta.range_deletes.as_ref().map_or(0, |section| section.part.checksum);
    for number in [meta.bytes, meta.blocks, ranges] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    for number in [meta.raw_bytes, meta.entries, meta.deletes] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    crate::filter::hash(&bytes)
}

impl Origin {
    /// The part, as it stands in an extent.
    #[must_use]
    pub fn to_part(&self) -> Vec<u8> {
        let (none, fewer) = (TableOptions::new(), encode_replaced(&[]));
        let replaced = encode_replaced(&self.replaced);
        let tries = [(&self.options, &replaced), (&self.options, &fewer), (&none, &fewer)];
        let parts = tries.into_iter().map(|(options, replaced)| self.encode(options, replaced));
        let part = parts.reduce(|part, next| if part.len() <= ORIGIN_BYTES_MAX { part } else { next });
        let part = part.unwrap_or_default();
        assert!(part.len() >= ORIGIN_BYTES_MIN, "a part of {} bytes lacks a field", part.len());
        assert!(part.len() <= ORIGIN_BYTES_MAX, "a name of {} bytes is too long", self.table.len());
        part
    }

    fn encode(&self, options: &TableOptions, replaced: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(ORIGIN_BYTES_MIN + self.table.len() + replaced.len());
        out.extend_from_slice(&self.database.0.to_le_bytes());
        out.extend_from_slice(&self.before.0.to_le_bytes());
        out.extend_from_slice(&self.edit.to_le_bytes());
        out.extend_from_slice(&self.job.to_le_bytes());
        out.push(self.level);
        put_bytes(&mut out, self.table.as_bytes());
        varint::put(&mut out, options.len() as u32);
        for (name, value) in options {
            put_bytes(&mut out, name.as_bytes());
            put_bytes(&mut out, value.as_bytes());
        }
        out.extend_from_slice(replaced);
        out.push(VERSION);
        let checksum = crate::checksum::crc32c(SEED, &out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Checks and decodes the part.
    ///
    /// # Errors
    /// `Corrupt` if checksum or version are wrong, the part is cut, or a text is not UTF-8.
    pub fn decode(bytes: &[u8]) -> Result<Origin> {
        let body = wire::checked_body("origin of an extent", SEED, bytes)?;
        let Some((version, body)) = body.split_last() else {
            return Err(Error::corrupt("origin of an extent is cut"));
        };
        if *version != VERSION {
            return Err(Error::corrupt(format!(
                "origin of an extent: expected version {VERSION}, found {version}"
            )));
        }
        let mut fields = Fields::new("origin of an extent", body);
        let mut id = || {
            let (low, high) = (fields.u64()?, fields.u64()?);
            Ok(DatabaseId(u128::from(high) << 64 | u128::from(low)))
        };
        let (database, before) = (id()?, id()?);
        let (edit, job, level) = (fields.u64()?, fields.u64()?, fields.u8()?);
        let table = take_text(&mut fields)?;
        if table.len() > NAME_BYTES_MAX {
            return Err(Error::corrupt(format!("origin of an extent: a name of {} bytes", table.len())));
        }
        let mut options = TableOptions::new();
        for _ in 0..fields.varint()? {
            // As for marks.
            options.push((take_text(&mut fields)?, take_text(&mut fields)?));
        }
        let mut replaced = Vec::new();
        for _ in 0..fields.varint()? {
            replaced.push(Replaced::decode(&mut fields)?);
        }
        match fields.rest().len() {
            0 => Ok(Origin { database, before, edit, job, level, table, options, replaced }),
            rest => Err(Error::corrupt(format!("origin of an extent: {rest} bytes too many"))),
        }
    }
}

/// The origin of an extent; `None` if it carries none, or a damaged one.
#[must_use]
pub fn origin_of(extent: &[u8]) -> Option<Origin> {
    origin_of_end(extent, 0)
}

/// The same of the bytes of an extent from `start` to its end.
#[must_use]
pub fn origin_of_end(end: &[u8], start: u32) -> Option<Origin> {
    let part = Footer::decode(end).ok()?.origin;
    let at = part.offset.checked_sub(start)? as usize;
    let bytes = end.get(at..at + part.len as usize)?;
    part.check(bytes).and_then(|()| Origin::decode(bytes)).ok()
}

/// Checks that the part that says where an extent comes from has a length that it may have.
pub(super) fn check_part(part: Handle) -> Result<()> {
    if (ORIGIN_BYTES_MIN..=ORIGIN_BYTES_MAX).contains(&(part.len as usize)) {
        return Ok(());
    }
    Err(Error::corrupt(format!("extent with an origin of {} bytes: {part:?}", part.len)))
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::put(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
}

fn take_bytes(fields: &mut Fields<'_>) -> Result<Vec<u8>> {
    let len = fields.varint()? as usize;
    Ok(fields.take(len)?.to_vec())
}

fn take_text(fields: &mut Fields<'_>) -> Result<String> {
    String::from_utf8(take_bytes(fields)?)
        .map_err(|_| Error::corrupt("origin of an extent: a text that is not UTF-8"))
}

/// The fields of the part, for `terrane dump`.
#[must_use]
pub fn describe(bytes: &[u8]) -> Vec<Field> {
    let origin = match Origin::decode(bytes) {
        Ok(origin) => origin,
        Err(error) => return vec![dump::broken(0, bytes.len(), error)],
    };
    let name_len = varint::len(origin.table.len() as u32) + origin.table.len();
    let (options_at, trailer) = (FIXED_BYTES + name_len, bytes.len() - TRAILER_BYTES);
    let options: Vec<String> = origin.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let replaced = encode_replaced(&origin.replaced).len();
    let replaced_at = trailer.saturating_sub(replaced);
    let shown = origin.replaced.iter().map(|Replaced { from, to, marks }| {
        format!("{} extents from {} to {}", marks.len(), dump::text(from), dump::text(to))
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    vec![
        Field::new(0, 16, "database", origin.database),
        Field::new(16, 16, "before", origin.before),
        Field::new(32, 8, "edit", origin.edit),
        Field::new(40, 8, "job", origin.job),
        Field::new(48, 1, "level", origin.level),
        Field::new(FIXED_BYTES, name_len, "name", dump::text(origin.table.as_bytes())),
        Field::new(options_at, replaced_at - options_at, "options", dump::text(options.join(" ").as_bytes())),
        Field::new(replaced_at, replaced, "replaced", shown),
        Field::new(trailer, 1, "version", VERSION),
        Field::new(trailer + 1, 4, "checksum", "holds"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Origin {
        Origin {
            database: DatabaseId(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff),
            before: DatabaseId(3 << 70),
            edit: 77,
            job: 5,
            level: 3,
            table: "orders".into(),
            options: vec![("merge_operator".into(), "append".into())],
            replaced: vec![Replaced { from: b"a".to_vec(), to: b"m".to_vec(), marks: vec![1 << 60, 2] }],
        }
    }

    #[test]
    fn a_part_is_decoded_as_it_was_encoded_and_every_cut_and_flip_is_seen() {
        for origin in [some(), Origin::default()] {
            let part = origin.to_part();
            assert_eq!(Origin::decode(&part).unwrap(), origin);
            assert!((0..part.len()).all(|len| Origin::decode(&part[..len]).is_err()));
            for at in 0..part.len() {
                let mut changed = part.clone();
                changed[at] ^= 0x40;
                assert!(Origin::decode(&changed).is_err(), "byte {at}");
            }
            let fields = describe(&part);
            assert_eq!(fields.iter().map(|field| field.len).sum::<usize>(), part.len());
        }
        assert_eq!(Origin::default().to_part().len(), ORIGIN_BYTES_MIN);
    }

    #[test]
    fn too_long_parts_of_an_origin_are_left_out_and_its_name_stays() {
        let options = vec![("note".to_owned(), "x".repeat(ORIGIN_BYTES_MAX))];
        let long = Origin { table: "n".repeat(NAME_BYTES_MAX), options, ..some() };
        let part = long.to_part();
        assert!(part.len() <= ORIGIN_BYTES_MAX);
        let kept = Origin { options: Vec::new(), replaced: Vec::new(), ..long };
        assert_eq!(Origin::decode(&part).unwrap(), kept);
        let few = some().replaced.remove(0);
        let many = Replaced { marks: vec![7; REPLACED_BYTES_MAX / 8], ..few.clone() };
        let of_many = Origin { replaced: vec![few.clone(), many, few.clone()], ..some() };
        assert_eq!(Origin::decode(&of_many.to_part()).unwrap(), some(), "options stay, and what comes first");
    }

    #[test]
    fn a_range_that_was_replaced_has_its_first_key_and_not_its_last() {
        let (replaced, collation) = (some().replaced.remove(0), Collation::BYTES);
        let covered: Vec<&[u8]> = vec![b"a", b"ab", b"lz"];
        assert!(covered.iter().all(|key| replaced.covers(key, &collation)));
        assert!([&b""[..], b"m", b"z"].iter().all(|key| !replaced.covers(key, &collation)));
        let to_the_end = Replaced { to: Vec::new(), ..replaced.clone() };
        assert!(to_the_end.covers(b"z", &collation));
        let other = |from: &[u8], to: &[u8]| Replaced { from: from.into(), to: to.into(), marks: vec![3] };
        let within = |from: &[u8], to: &[u8]| replaced.within(&other(from, to), &collation);
        assert_eq!(within(b"c", b""), Some(Replaced { from: b"c".to_vec(), ..replaced.clone() }));
        assert_eq!(within(b"", b"c"), Some(Replaced { to: b"c".to_vec(), ..replaced.clone() }));
        assert_eq!(to_the_end.within(&other(b"", b"zz"), &collation).unwrap().to, b"zz");
        assert_eq!((within(b"m", b""), within(b"", b"a")), (None, None));
    }

    #[test]
    fn bytes_under_a_sound_checksum_are_not_trusted() {
        let refused = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut part = some().to_part();
            part.truncate(part.len() - 4);
            change(&mut part);
            let checksum = crate::checksum::crc32c(SEED, &part);
            part.extend_from_slice(&checksum.to_le_bytes());
            Origin::decode(&part).is_err()
        };
        assert!(!refused(&|_| ()), "the part itself is sound");
        assert!(refused(&|part| *part.last_mut().unwrap() = VERSION + 1));
        assert!(refused(&|part| part[FIXED_BYTES] = 0x7f), "a name beyond the end");
        assert!(refused(&|part| part[FIXED_BYTES + 1] = 0xff), "a name that is not UTF-8");
        assert!(refused(&|part| part.insert(FIXED_BYTES, 0)), "bytes too many");
        assert!(refused(&|part| part[FIXED_BYTES + 7] = 0x7f), "a count of options that are not there");
        let marks_at = some().to_part().len() - TRAILER_BYTES - 16 - 1;
        assert!(refused(&|part| part[marks_at] = 0x7f), "a count of marks that are not there");
        assert!(refused(&|part| part[marks_at - 5] = 0x7f), "a count of extents that are not there");
    }
}
