//! The result of a job as bytes, from a worker on another machine: `docs/format/job-payloads.md`.
//!
//! A report says of the job's own extents only which are re-linked and which stay as they are; what it
//! removes follows from that and from the job. So a report cannot take away an extent that was not given, and
//! its new extents are checked against what such a job can write.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::ops::Range;
use std::sync::Arc;

use terrane_base::{Error, ExtentId, Result, SeqNo, TableId, verify};
use terrane_format::extent::ExtentMeta;
use terrane_format::wire::Fields;
use terrane_storage::{EXTENT_SLOTS_MAX, SLOT_BYTES};

use super::frame::Frame;
use super::request::put_count;
use super::{JobResult, JobSpec, Removed, Work};

/// Bytes of a report at most.
pub const REPORT_BYTES_MAX: usize = 16 << 20;

const FRAME: Frame = Frame {
    what: "job report",
    magic: b"TRNJOBR1",
    version: 1,
    seed: u32::from_le_bytes(*b"JOBR"),
    bytes_max: REPORT_BYTES_MAX,
};
/// Most of anything that a job counts: sums of a few do not overflow.
const COUNT_MAX: u64 = 1 << 56;

const RELINKED: u8 = 0;
const WRITTEN: u8 = 1;

/// The result of a job as bytes. Requires: the result is one of this job, which was run in one part and has
/// no separated values.
#[must_use]
pub fn encode_report(spec: &JobSpec, result: &JobResult) -> Vec<u8> {
    assert!(result.values.is_empty() && result.next.is_none(), "jobs with more than extents stay");
    debug_assert!(result.target == spec.target, "the result is one of this job");
    debug_assert!(result.relinked.is_sorted(), "the search below relies on it");
    let removed: HashSet<ExtentId> = result.removed.iter().map(|removed| removed.id).collect();
    let mut out = FRAME.begin();
    out.extend_from_slice(&result.table.0.to_le_bytes());
    result.work.numbers().iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    let stays: Vec<ExtentId> =
        of_target(spec).map(|meta| meta.id).filter(|id| !removed.contains(id)).collect();
    put_count(&mut out, stays.len());
    stays.iter().for_each(|id| put_id(&mut out, *id));
    put_count(&mut out, result.added.len());
    for meta in &result.added {
        if result.relinked.binary_search(&meta.id).is_ok() {
            out.push(RELINKED);
            put_id(&mut out, meta.id);
        } else {
            out.push(WRITTEN);
            meta.encode(&mut out);
        }
    }
    FRAME.seal(out)
}

/// Reads the report of a job whose new extents lie in `files`.
///
/// # Errors
/// `Corrupt` if the bytes are not a report, or one that no worker makes of this job; `Invalid` if a newer
/// version wrote them.
pub fn decode_report(bytes: &[u8], spec: &JobSpec, files: &Range<u32>) -> Result<JobResult> {
    let mut fields = FRAME.open(bytes)?;
    let table = TableId(fields.u32()?);
    if table != spec.table {
        return Err(wrong(format!("it is of table {table}, the job of table {}", spec.table)));
    }
    let work = get_work(&mut fields)?;
    let said = Said::read(&mut fields, spec)?;
    if !fields.rest().is_empty() {
        return Err(wrong(format!("{} bytes behind the end", fields.rest().len())));
    }
    said.check(spec, files)?;
    Ok(said.into_result(spec, work))
}

#[cold]
fn wrong(why: impl Display) -> Error {
    FRAME.wrong(why)
}

/// The inputs of a job that lie where its output goes.
fn of_target(spec: &JobSpec) -> impl Iterator<Item = &ExtentMeta> {
    let inputs = spec.inputs.iter().filter(|input| input.place == spec.target);
    inputs.flat_map(|input| &input.extents)
}

fn put_id(out: &mut Vec<u8>, id: ExtentId) {
    out.extend_from_slice(&id.file.to_le_bytes());
    out.extend_from_slice(&id.slot.to_le_bytes());
}

fn get_id(fields: &mut Fields<'_>) -> Result<ExtentId> {
    Ok(ExtentId { file: fields.u32()?, slot: fields.u32()? })
}

fn get_work(fields: &mut Fields<'_>) -> Result<Work> {
    let mut numbers = [0; Work::NUMBERS];
    for number in &mut numbers {
        *number = fields.u64()?;
        if *number > COUNT_MAX {
            return Err(wrong(format!("a count of {number}")));
        }
    }
    Ok(Work::of_numbers(numbers))
}

/// The decoded fields of a report.
struct Said {
    /// Extents of the target that stay as they are, in key order.
    stays: Vec<ExtentMeta>,
    /// The output in key order; true: re-linked.
    added: Vec<(bool, ExtentMeta)>,
}

impl Said {
    fn read(fields: &mut Fields<'_>, spec: &JobSpec) -> Result<Said> {
        let mut said = Said { stays: Vec::new(), added: Vec::new() };
        // Each input is taken once, so the decoded report takes no more memory than the inputs and the bytes.
        // Lists grow as they are read, never by the count that the bytes claim.
        let mut target: HashMap<ExtentId, &ExtentMeta> = by_id(of_target(spec));
        let others = spec.inputs.iter().filter(|input| input.place != spec.target);
        let mut others = by_id(others.flat_map(|input| &input.extents));
        for _ in 0..fields.varint()? {
            let id = get_id(fields)?;
            let meta = target.remove(&id).ok_or_else(|| {
                wrong(format!("extent {id} stays, the job does not have it there, or it comes twice"))
            })?;
            said.stays.push(meta.clone());
        }
        for _ in 0..fields.varint()? {
            said.added.push(match fields.u8()? {
                RELINKED => {
                    let id = get_id(fields)?;
                    let meta = others.remove(&id).ok_or_else(|| {
                        wrong(format!(
                            "extent {id} is re-linked, the job does not have it elsewhere, or it comes twice"
                        ))
                    })?;
                    (true, meta.clone())
                }
                WRITTEN => {
                    let (meta, len) = ExtentMeta::decode(fields.rest())?;
                    fields.take(len)?;
                    (false, meta)
                }
                tag => return Err(wrong(format!("an extent of unknown tag {tag}"))),
            });
        }
        Ok(said)
    }

    fn check(&self, spec: &JobSpec, files: &Range<u32>) -> Result<()> {
        let metas = || self.stays.iter().chain(self.added.iter().map(|(_, meta)| meta));
        let mut ids = HashSet::new();
        if let Some(twice) = metas().find(|meta| !ids.insert(meta.id)) {
            return Err(wrong(format!("extent {} comes twice", twice.id)));
        }
        let is_in_order = self.added.is_sorted_by(|(_, a), (_, b)| a.largest < b.smallest);
        let mut all: Vec<&ExtentMeta> = metas().collect();
        all.sort_by(|a, b| a.smallest.cmp(&b.smallest));
        if !is_in_order || !all.is_sorted_by(|a, b| a.largest < b.smallest) {
            return Err(wrong("extents of the output overlap"));
        }
        let bounds = Bounds::of(spec);
        let written = self.added.iter().filter(|(is_relinked, _)| !is_relinked);
        written.map(|(_, meta)| meta).try_for_each(|meta| bounds.check(meta, spec, files))?;
        let entries = metas().fold(0_u64, |sum, meta| sum.saturating_add(meta.entries));
        if entries > bounds.entries {
            return Err(wrong(format!("{entries} entries of {} entries of the inputs", bounds.entries)));
        }
        Ok(())
    }

    fn into_result(self, spec: &JobSpec, work: Work) -> JobResult {
        let stays: HashSet<ExtentId> = self.stays.iter().map(|meta| meta.id).collect();
        let inputs =
            spec.inputs.iter().flat_map(|input| input.extents.iter().map(|meta| (input.place, meta)));
        let leaving = inputs.filter(|(place, meta)| *place != spec.target || !stays.contains(&meta.id));
        let removed = leaving.map(|(place, meta)| Removed::of(place, meta)).collect();
        let is_relinked = |(is_relinked, meta): &(bool, ExtentMeta)| is_relinked.then_some(meta.id);
        let mut relinked: Vec<ExtentId> = self.added.iter().filter_map(is_relinked).collect();
        relinked.sort_unstable();
        let added = self.added.into_iter().map(|(_, meta)| Arc::new(meta)).collect();
        let (table, target) = (spec.table, spec.target);
        let values = Vec::new();
        let result = JobResult { table, target, removed, added, values, relinked, work, next: None };
        verify!(result.check());
        result
    }
}

/// Extents by their ids.
fn by_id<'m>(metas: impl Iterator<Item = &'m ExtentMeta>) -> HashMap<ExtentId, &'m ExtentMeta> {
    metas.map(|meta| (meta.id, meta)).collect()
}

/// Bounds that the inputs of a job set for its output.
struct Bounds {
    inputs: HashSet<ExtentId>,
    entries: u64,
    seq_min: SeqNo,
    seq_max: SeqNo,
}

impl Bounds {
    fn of(spec: &JobSpec) -> Bounds {
        let metas = || spec.inputs.iter().flat_map(|input| &input.extents);
        let bounds = Bounds {
            inputs: metas().map(|meta| meta.id).collect(),
            entries: metas().fold(0, |sum, meta| sum.saturating_add(meta.entries)),
            seq_min: metas().map(|meta| meta.seq_min).min().unwrap_or_default(),
            seq_max: metas().map(|meta| meta.seq_max).max().unwrap_or_default(),
        };
        debug_assert!(bounds.seq_min <= bounds.seq_max, "so it is in each extent");
        bounds
    }

    /// Checks a new extent.
    fn check(&self, meta: &ExtentMeta, spec: &JobSpec, files: &Range<u32>) -> Result<()> {
        let refuse = |is_wrong: bool, why: &str| match is_wrong {
            true => Err(wrong(format!("extent {}: {why}", meta.id))),
            false => Ok(()),
        };
        let is_leased = files.contains(&meta.id.file) || terrane_base::planted!(AcceptUnleasedExtent);
        refuse(!is_leased, "its file is not one that the worker was given")?;
        let is_within = spec.range.contains(&meta.smallest) && spec.range.contains(&meta.largest)
            || terrane_base::planted!(AcceptKeysOutsideJob);
        refuse(!is_within, "it has keys outside of the job's range")?;
        refuse(self.inputs.contains(&meta.id), "it was written, and is one of the inputs")?;
        let fits = (1..=EXTENT_SLOTS_MAX).contains(&meta.slots)
            && u64::from(meta.bytes) <= u64::from(meta.slots) * SLOT_BYTES as u64;
        refuse(!fits, "its bytes do not fit its slots")?;
        let is_of_inputs = meta.seq_min >= self.seq_min && meta.seq_max <= self.seq_max;
        refuse(!is_of_inputs, "it has sequence numbers that the inputs do not have")?;
        let has_more = meta.references.is_some() || meta.value_table.is_some() || meta.is_numbered();
        refuse(has_more, "it has what a job of this kind does not write")
    }
}
