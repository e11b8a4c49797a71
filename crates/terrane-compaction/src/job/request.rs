//! A job as bytes, for a worker on another machine: `docs/format/job-payloads.md`.
//!
//! A [`JobRequest`] has all that a merge needs besides the extents: what travels as a function within a
//! process travels by the name of a built-in one, and the time of the job as a number. A job that needs more,
//! such as a function of the program, [stays](Stays) where the database is open.

mod decode;

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use terrane_base::env::Clock;
use terrane_base::merge_operator::built_in;
use terrane_base::options::ValueCompression;
use terrane_base::prefix_extractor::{self, PrefixExtractors};
use terrane_base::{Error, Moment, Result, varint, verify};
use terrane_format::extent::{ExtentMeta, Origin};
use terrane_format::manifest::Place;
use terrane_storage::SLOT_BYTES;

use super::frame::Frame;
use super::{JobKind, JobSpec};
use crate::control::JobControl;
use crate::range::KeyRange;

/// Bytes of a request at most; a job with a longer one stays.
pub const REQUEST_BYTES_MAX: usize = 16 << 20;

const FRAME: Frame = Frame {
    what: "job request",
    magic: b"TRNJOBQ1",
    version: 1,
    seed: u32::from_le_bytes(*b"JOBQ"),
    bytes_max: REQUEST_BYTES_MAX,
};

const DROPS_DELETES: u8 = 1;
const REWRITES: u8 = 2;

const END_UNBOUNDED: u8 = 0;
const END_INCLUDED: u8 = 1;
const END_EXCLUDED: u8 = 2;

/// Why a job runs where the database is open, and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stays {
    /// It has entries in memory, or collects value tables.
    Kind(JobKind),
    /// It only re-links extents: there is nothing to read.
    Moves,
    /// It meets separated values, or entries that are on average so long as values that are separated. The
    /// database gives the numbers of value tables.
    Values,
    /// The table has a comparator of the program, of this name.
    Order(String),
    /// The table has a merge operator of the program, of this name.
    Operator(String),
    /// The table has a prefix extractor of the program, of this name.
    Extractor(String),
    /// The table has a compaction filter of the program, of this name.
    Filter(String),
    /// Its description has so many bytes.
    Long(usize),
}

impl fmt::Display for Stays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stays::Kind(kind) => write!(f, "a {kind} job needs what only the database has"),
            Stays::Moves => f.write_str("it only re-links extents"),
            Stays::Values => f.write_str(
                "it has values that are separated, and the database gives the numbers of value tables",
            ),
            Stays::Order(name) => write!(f, "the comparator {name:?} is one of the program"),
            Stays::Operator(name) => write!(f, "the merge operator {name:?} is one of the program"),
            Stays::Extractor(name) => write!(f, "the prefix extractor {name:?} is one of the program"),
            Stays::Filter(name) => write!(f, "the compaction filter {name:?} is one of the program"),
            Stays::Long(bytes) => {
                write!(f, "its description has {bytes} bytes, the limit is {REQUEST_BYTES_MAX}")
            }
        }
    }
}

/// A job with what a merge of it needs besides the extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRequest {
    /// The job: in one part, of no request, without separated values.
    pub spec: JobSpec,
    /// Rows that have expired at this moment are dropped.
    pub moment: Moment,
    /// The built-in merge operator that folds operands; none if they stay.
    pub operator: Option<String>,
    /// The built-in extractor of the prefixes that filters have.
    pub extractor: Option<String>,
    /// The origin that the output carries.
    pub origin: Option<Origin>,
}

impl JobRequest {
    /// The request of a job that is about to begin under `control`.
    ///
    /// # Errors
    /// Why the job stays.
    pub fn of(spec: &JobSpec, control: &JobControl) -> std::result::Result<JobRequest, Stays> {
        if matches!(spec.kind, JobKind::Flush | JobKind::Dump | JobKind::Collect) {
            return Err(Stays::Kind(spec.kind));
        }
        if let Some(name) = spec.collation().comparator() {
            return Err(Stays::Order(name.to_owned()));
        }
        if let Some(filtering) = control.filtering() {
            return Err(Stays::Filter(filtering.filter.name().to_owned()));
        }
        let operator = control.operator().map(|operator| operator.name().to_owned());
        if let Some(name) = operator.as_ref().filter(|name| built_in(name).is_none()) {
            return Err(Stays::Operator(name.clone()));
        }
        let extractor = control.extractor().map(|extractor| extractor.name().to_owned());
        if let Some(name) = extractor.as_ref().filter(|name| prefix_extractor::built_in(name).is_none()) {
            return Err(Stays::Extractor(name.clone()));
        }
        if spec.mended.is_some() || !spec.values.is_empty() || has_values(spec) {
            return Err(Stays::Values);
        }
        if spec.is_move() {
            return Err(Stays::Moves);
        }
        let extent_bytes_max = SLOT_BYTES as u64;
        let mut spec = JobSpec { request: None, part_bytes: u64::MAX, extent_bytes_max, ..spec.clone() };
        // What the job has decides, not what its table would separate: most tables have no long value. A rare
        // one stays in its entry, until a job here rewrites its block.
        (spec.output.value_compression, spec.output.separate_from) = (ValueCompression::AsTable, u64::MAX);
        let origin = control.origin(spec.target);
        verify!(spec.check());
        let request = JobRequest { spec, moment: control.moment(), operator, extractor, origin };
        let bytes = request.encode().len();
        if bytes > REQUEST_BYTES_MAX { Err(Stays::Long(bytes)) } else { Ok(request) }
    }

    /// The control of the job on another machine, with the functions that the request names.
    ///
    /// # Errors
    /// `Invalid` if this program does not have one of them.
    pub fn control(&self, clock: Arc<dyn Clock>) -> Result<JobControl> {
        debug_assert!(!self.spec.is_in_parts(), "nothing is published where no manifest is");
        let control = JobControl::new(clock, None);
        if !terrane_base::planted!(DecideByWorkersClock) {
            control.decide_as_of(self.moment);
        }
        if let Some(name) = &self.operator {
            let operator = built_in(name).ok_or_else(|| unknown("merge operator", name))?;
            control.fold_with(operator);
        }
        if let Some(name) = &self.extractor {
            control.filter_prefixes(PrefixExtractors::new().find(name)?);
        }
        if let Some(origin) = &self.origin {
            control.write_as(origin.clone());
        }
        Ok(control)
    }

    /// The request as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let spec = &self.spec;
        debug_assert!(spec.values.is_empty() && spec.mended.is_none(), "jobs with separated values stay");
        debug_assert!(spec.collation().is_bytes(), "readers compare keys as bytes");
        let mut out = FRAME.begin();
        let drops = if spec.drops_deletes { DROPS_DELETES } else { 0 };
        let rewrites = if spec.rewrites { REWRITES } else { 0 };
        out.extend_from_slice(&[kind_number(spec.kind), drops | rewrites]);
        out.extend_from_slice(&spec.table.0.to_le_bytes());
        put_place(&mut out, spec.target);
        out.extend_from_slice(&self.moment.0.to_le_bytes());
        self.encode_output(&mut out);
        put_range(&mut out, &spec.range);
        put_count(&mut out, spec.snapshots.len());
        spec.snapshots.iter().for_each(|seq| out.extend_from_slice(&seq.0.to_le_bytes()));
        put_count(&mut out, spec.below.len());
        spec.below.iter().for_each(|range| put_range(&mut out, range));
        put_count(&mut out, spec.grandparents.len());
        for grandparent in &spec.grandparents {
            put_bytes(&mut out, &grandparent.largest);
            out.extend_from_slice(&grandparent.bytes.to_le_bytes());
        }
        put_count(&mut out, spec.inputs.len());
        for input in &spec.inputs {
            put_place(&mut out, input.place);
            put_count(&mut out, input.extents.len());
            input.extents.iter().for_each(|meta| meta.encode(&mut out));
        }
        put_bytes(&mut out, self.operator.as_deref().unwrap_or_default().as_bytes());
        put_bytes(&mut out, self.extractor.as_deref().unwrap_or_default().as_bytes());
        put_bytes(&mut out, &self.origin.as_ref().map(Origin::to_part).unwrap_or_default());
        FRAME.seal(out)
    }

    fn encode_output(&self, out: &mut Vec<u8>) {
        let (spec, output) = (&self.spec, &self.spec.output);
        debug_assert!(output.separate_from == u64::MAX, "readers leave values in their entries");
        out.extend_from_slice(&(output.block_bytes as u32).to_le_bytes());
        out.extend_from_slice(&output.filter_bits_per_key.to_le_bytes());
        out.extend_from_slice(&[output.block_encoding as u8, output.compression as u8]);
        out.extend_from_slice(&spec.grandparent_bytes_max.to_le_bytes());
        out.extend_from_slice(&spec.below_seq_max.0.to_le_bytes());
    }
}

/// Returns true if entries of the inputs are pointers, or are on average at least as long as a value that the
/// job would separate.
fn has_values(spec: &JobSpec) -> bool {
    let mut metas = spec.inputs.iter().flat_map(|input| &input.extents);
    let is_long = |meta: &ExtentMeta| {
        let mean = u64::from(meta.bytes).checked_div(meta.entries);
        mean.is_some_and(|mean| mean >= spec.output.separate_from)
    };
    metas.any(|meta| meta.references.is_some() || meta.value_table.is_some() || is_long(meta))
}

fn unknown(what: &str, name: &str) -> Error {
    Error::invalid(format!("this program has no {what} {name:?}: use one of the database's version"))
}

/// The kinds of jobs that are sent, by number.
const KINDS: [JobKind; 7] = [
    JobKind::Runs,
    JobKind::Level,
    JobKind::Deletes,
    JobKind::Gather,
    JobKind::Collapse,
    JobKind::Adapt,
    JobKind::Manual,
];

fn kind_number(kind: JobKind) -> u8 {
    let index = KINDS.iter().position(|known| *known == kind);
    index.expect("jobs of other kinds stay") as u8 + 1
}

pub(super) fn put_count(out: &mut Vec<u8>, count: usize) {
    varint::put(out, u32::try_from(count).expect("a job lists fewer than 2^32 of anything"));
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_place(out: &mut Vec<u8>, place: Place) {
    match place {
        Place::Run(number) => {
            out.push(0);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Place::Level(level) => out.push(level),
        Place::Values => unreachable!("jobs with separated values stay"),
    }
}

fn put_range(out: &mut Vec<u8>, range: &KeyRange) {
    debug_assert!(range.collation.is_bytes(), "the worker would compare the keys as bytes");
    put_bytes(out, &range.start);
    match &range.end {
        Bound::Unbounded => out.push(END_UNBOUNDED),
        Bound::Included(end) => {
            out.push(END_INCLUDED);
            put_bytes(out, end);
        }
        Bound::Excluded(end) => {
            out.push(END_EXCLUDED);
            put_bytes(out, end);
        }
    }
}
