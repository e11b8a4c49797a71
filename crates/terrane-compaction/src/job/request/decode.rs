//! Reads a request from bytes that may be hostile. What a merge asserts of a job is checked here.

use std::collections::HashSet;
use std::ops::Bound;

use terrane_base::options::{BlockEncoding, Compression, ValueCompression};
use terrane_base::{Collation, Error, ExtentId, Moment, Result, SeqNo, TableId, verify};
use terrane_format::extent::{ExtentMeta, Origin};
use terrane_format::manifest::{LEVEL_MAX, Place};
use terrane_format::range_deletes::END_BYTES_MAX;
use terrane_format::wire::Fields;
use terrane_storage::SLOT_BYTES;

use super::{DROPS_DELETES, END_EXCLUDED, END_INCLUDED, END_UNBOUNDED, FRAME, JobRequest, KINDS, REWRITES};
use crate::job::{Grandparent, Input, JobKind, JobSpec, OutputSettings};
use crate::range::KeyRange;

/// Longest name of a function.
const NAME_BYTES_MAX: usize = 255;
/// Most bits of a filter for each key.
const FILTER_BITS_MAX: u32 = 30;
/// Bytes of a block, as options accept them.
const BLOCK_BYTES: std::ops::RangeInclusive<u32> = 1..=1 << 20;

impl JobRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a job, or contradict themselves; `Invalid` if a newer version wrote
    /// them.
    pub fn decode(bytes: &[u8]) -> Result<JobRequest> {
        let mut fields = FRAME.open(bytes)?;
        let spec = get_spec_head(&mut fields)?;
        let moment = Moment(fields.u64()?);
        let spec = get_spec_rest(&mut fields, spec)?;
        let operator = get_name(&mut fields)?;
        let extractor = get_name(&mut fields)?;
        let part = get_bytes(&mut fields, usize::MAX)?;
        let origin = if part.is_empty() { None } else { Some(get_origin(part, spec.target)?) };
        if !fields.rest().is_empty() {
            return Err(wrong(format!("{} bytes behind the end", fields.rest().len())));
        }
        check(&spec)?;
        Ok(JobRequest { spec, moment, operator, extractor, origin })
    }
}

#[cold]
fn wrong(why: impl std::fmt::Display) -> Error {
    FRAME.wrong(why)
}

fn get_spec_head(fields: &mut Fields<'_>) -> Result<JobSpec> {
    let (kind, flags) = (fields.u8()?, fields.u8()?);
    let kind = usize::from(kind).checked_sub(1).and_then(|index| KINDS.get(index).copied());
    let kind = kind.ok_or_else(|| wrong("a kind that is unknown"))?;
    if flags & !(DROPS_DELETES | REWRITES) != 0 {
        return Err(wrong(format!("flags {flags:02x} are unknown")));
    }
    let table = TableId(fields.u32()?);
    let target = get_place(fields)?;
    if !matches!(target, Place::Level(_)) {
        return Err(wrong("a target that is not a level"));
    }
    Ok(blank(kind, table, target, flags))
}

/// A job whose other fields are read later.
fn blank(kind: JobKind, table: TableId, target: Place, flags: u8) -> JobSpec {
    JobSpec {
        kind,
        request: None,
        table,
        inputs: Vec::new(),
        values: Vec::new(),
        mended: None,
        target,
        range: KeyRange::all(),
        below: Vec::new(),
        below_seq_max: SeqNo(0),
        grandparents: Vec::new(),
        grandparent_bytes_max: 0,
        snapshots: Vec::new(),
        output: OutputSettings {
            block_bytes: 1,
            block_encoding: BlockEncoding::default(),
            filter_bits_per_key: 0,
            compression: Compression::None,
            value_compression: ValueCompression::AsTable,
            separate_from: u64::MAX,
        },
        drops_deletes: flags & DROPS_DELETES != 0,
        rewrites: flags & REWRITES != 0,
        part_bytes: u64::MAX,
        extent_bytes_max: SLOT_BYTES as u64,
    }
}

fn get_spec_rest(fields: &mut Fields<'_>, mut spec: JobSpec) -> Result<JobSpec> {
    spec.output = get_output(fields)?;
    spec.grandparent_bytes_max = fields.u64()?;
    spec.below_seq_max = get_seq(fields)?;
    spec.range = get_range(fields)?;
    // Lists grow as they are read, never by the count that the bytes claim.
    for _ in 0..fields.varint()? {
        spec.snapshots.push(get_seq(fields)?);
    }
    for _ in 0..fields.varint()? {
        spec.below.push(get_range(fields)?);
    }
    for _ in 0..fields.varint()? {
        let largest = get_bytes(fields, END_BYTES_MAX)?.to_vec();
        spec.grandparents.push(Grandparent { largest, bytes: get_bounded(fields)? });
    }
    for _ in 0..fields.varint()? {
        let place = get_place(fields)?;
        let mut extents = Vec::new();
        for _ in 0..fields.varint()? {
            extents.push(get_meta(fields)?);
        }
        spec.inputs.push(Input { place, extents });
    }
    Ok(spec)
}

fn get_output(fields: &mut Fields<'_>) -> Result<OutputSettings> {
    let (block_bytes, filter_bits_per_key) = (fields.u32()?, fields.u32()?);
    if !BLOCK_BYTES.contains(&block_bytes) || filter_bits_per_key > FILTER_BITS_MAX {
        let what =
            format!("blocks of {block_bytes} bytes, filters of {filter_bits_per_key} bits for each key");
        return Err(wrong(what));
    }
    let block_encoding = match fields.u8()? {
        1 => BlockEncoding::Plain,
        2 => BlockEncoding::TwoLayer,
        other => return Err(wrong(format!("layout {other} of blocks is unknown"))),
    };
    let compression = fields.u8()?;
    let compression = Compression::from_u8(compression)
        .ok_or_else(|| wrong(format!("compression {compression} is unknown")))?;
    Ok(OutputSettings {
        block_bytes: block_bytes as usize,
        block_encoding,
        filter_bits_per_key,
        compression,
        value_compression: ValueCompression::AsTable,
        separate_from: u64::MAX,
    })
}

fn get_seq(fields: &mut Fields<'_>) -> Result<SeqNo> {
    let seq = SeqNo(fields.u64()?);
    if seq > SeqNo::MAX { Err(wrong(format!("number {} is beyond 56 bits", seq.0))) } else { Ok(seq) }
}

/// A count of bytes, of which sums do not overflow.
fn get_bounded(fields: &mut Fields<'_>) -> Result<u64> {
    let bytes = fields.u64()?;
    if bytes > 1 << 48 { Err(wrong(format!("{bytes} bytes in one place"))) } else { Ok(bytes) }
}

fn get_bytes<'b>(fields: &mut Fields<'b>, max: usize) -> Result<&'b [u8]> {
    let len = fields.varint()? as usize;
    if len > max {
        return Err(wrong(format!("a string of {len} bytes, the limit is {max}")));
    }
    fields.take(len)
}

fn get_name(fields: &mut Fields<'_>) -> Result<Option<String>> {
    let name = get_bytes(fields, NAME_BYTES_MAX)?;
    let name = std::str::from_utf8(name).map_err(|_| wrong("a name that is not text"))?;
    Ok(Some(name.to_owned()).filter(|name| !name.is_empty()))
}

fn get_place(fields: &mut Fields<'_>) -> Result<Place> {
    match fields.u8()? {
        0 => Ok(Place::Run(fields.u64()?)),
        level @ 1..=LEVEL_MAX => Ok(Place::Level(level)),
        level => Err(wrong(format!("level {level}, the deepest is {LEVEL_MAX}"))),
    }
}

fn get_range(fields: &mut Fields<'_>) -> Result<KeyRange> {
    let start = get_bytes(fields, END_BYTES_MAX)?.to_vec();
    let end = match fields.u8()? {
        END_UNBOUNDED => Bound::Unbounded,
        END_INCLUDED => Bound::Included(get_bytes(fields, END_BYTES_MAX)?.to_vec()),
        END_EXCLUDED => Bound::Excluded(get_bytes(fields, END_BYTES_MAX)?.to_vec()),
        other => return Err(wrong(format!("end {other} of a range is unknown"))),
    };
    let range = KeyRange { start, end, collation: Collation::BYTES };
    if range.ends_before(&range.start) { Err(wrong("a range ends before it begins")) } else { Ok(range) }
}

fn get_meta(fields: &mut Fields<'_>) -> Result<ExtentMeta> {
    let (meta, len) = ExtentMeta::decode(fields.rest())?;
    fields.take(len)?;
    if meta.references.is_some() || meta.value_table.is_some() {
        return Err(wrong(format!("extent {} has separated values", meta.id)));
    }
    if meta.entries > 1 << 48 || meta.raw_bytes > 1 << 48 {
        return Err(wrong(format!("extent {} claims more than it has room for", meta.id)));
    }
    Ok(meta)
}

fn get_origin(part: &[u8], target: Place) -> Result<Origin> {
    let origin = Origin::decode(part)?;
    let is_of_target = target == Place::Level(origin.level);
    match origin.replaced.is_empty() && is_of_target {
        true => Ok(origin),
        false => Err(wrong("an origin of another job")),
    }
}

/// Checks what [`JobSpec::check`] asserts, and that the job has an input.
fn check(spec: &JobSpec) -> Result<()> {
    let refuse = |is_wrong: bool, why: &str| if is_wrong { Err(wrong(why)) } else { Ok(()) };
    let mut places: Vec<Place> = spec.inputs.iter().map(|input| input.place).collect();
    places.sort_unstable();
    refuse(places.is_empty(), "nothing to merge")?;
    refuse(!places.is_sorted_by(|a, b| a < b), "a place is an input twice")?;
    let mut ids: HashSet<ExtentId> = HashSet::new();
    for input in &spec.inputs {
        refuse(input.extents.is_empty(), "an input without an extent")?;
        let is_apart = input.extents.is_sorted_by(|a, b| a.largest < b.smallest);
        refuse(!is_apart, "extents of an input overlap")?;
        refuse(!input.extents.iter().all(|meta| ids.insert(meta.id)), "an extent is an input twice")?;
        let is_within =
            |meta: &ExtentMeta| spec.range.contains(&meta.smallest) && spec.range.contains(&meta.largest);
        refuse(!input.extents.iter().all(is_within), "an extent lies outside of the range")?;
    }
    refuse(!spec.snapshots.is_sorted(), "snapshots out of order")?;
    refuse(!spec.below.is_sorted_by(|a, b| a.ends_before(&b.start)), "ranges below overlap")?;
    let grandparents = &spec.grandparents;
    refuse(!grandparents.is_sorted_by_key(|grandparent| &grandparent.largest), "grandparents out of order")?;
    verify!(spec.check());
    Ok(())
}
