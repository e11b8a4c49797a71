//! The commands of a script: they work on a table of extents without bytes, and apply jobs as if these had
//! merged.

mod load;
mod text;

use std::fmt::Write;
use std::ops::Bound;
use std::sync::Arc;

use terrane_base::options::{AdaptiveShape, Compression, Options, Setting};
use terrane_base::{ExtentId, SeqNo, TableId};
use terrane_compaction::pick::scores;
use terrane_compaction::{
    ClaimId, Claims, Cursors, FlushPlan, Heats, JobSpec, KeyRange, Limits, Load, RangeRequest, RangeStep,
    TableShape, Targets, debt_bytes, pick, pick_range, plan_flush, space_permille,
};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::{LEVEL_MAX, Place};
use terrane_levels::{Change, Metasnapshot};

/// A table under test.
pub(crate) struct World {
    pub(crate) metasnapshot: Metasnapshot<Arc<ExtentMeta>>,
    pub(crate) limits: Limits,
    pub(crate) snapshots: Vec<SeqNo>,
    claims: Claims,
    cursors: Cursors,
    picked: Option<JobSpec>,
    claimed: Vec<(ClaimId, JobSpec)>,
    next_slot: u32,
    load: Load,
    policy: AdaptiveShape,
    /// Bytes that are free on the device.
    room_bytes: u64,
    /// Heat of the extents of L1, as long as it has so many.
    heats: Vec<u32>,
}

impl World {
    pub(crate) fn new() -> World {
        let mut limits = Limits::from_options(&Options::default().resolve(1).unwrap());
        limits.compression = Compression::None;
        limits.merge_through = false;
        World {
            metasnapshot: Metasnapshot::new(),
            limits,
            snapshots: Vec::new(),
            claims: Claims::new(),
            cursors: Cursors::new(),
            picked: None,
            claimed: Vec::new(),
            next_slot: 0,
            load: Load::default(),
            policy: AdaptiveShape::Auto,
            room_bytes: u64::MAX,
            heats: Vec::new(),
        }
    }

    pub(crate) fn run(&mut self, command: &str, body: &[&str]) -> String {
        let mut words = command.split_whitespace();
        let name = words.next().unwrap();
        let words: Vec<&str> = words.collect();
        match name {
            "define" => self.define(&words, body),
            "levels" => self.show(),
            "scores" => self.scores(),
            "debt" => debt_bytes(&self.shape(), &self.limits).show_size(),
            "space" => self.space(),
            "pick" => self.pick(),
            "claim" => self.claim(),
            "apply" => self.apply(&words),
            "drop" => self.drop_claim(&words),
            "run" => self.run_all(),
            "manual" => self.manual(&words),
            "beside" => self.beside(&words),
            "down" => self.ask(RangeRequest::one_level(words[0].parse().unwrap())),
            "flush" => self.flush(&words),
            "load" => self.observe(&words),
            "fewer" => self.fewer(&words),
            "heat" => self.heat(&words),
            _ => panic!("unknown command {command}"),
        }
    }

    fn shape(&self) -> TableShape<'_> {
        let mut shape = TableShape::of(TableId(1), &self.metasnapshot, &self.snapshots);
        shape.room_bytes = self.room_bytes;
        if shape.level(1).len() == self.heats.len() {
            shape.heats = vec![Heats::new(self.heats.clone())];
        }
        shape
    }

    fn define(&mut self, words: &[&str], body: &[&str]) -> String {
        *self = World::new();
        for word in words {
            let (name, value) = word.split_once('=').unwrap();
            let size = || u64::parse(value).unwrap();
            match name {
                "base" => self.limits.level_base_bytes = size(),
                "fanout" => self.limits.level_fanout = size(),
                "automatic" => self.limits.automatic = Setting::parse(value).unwrap(),
                "room" => self.room_bytes = size(),
                "policy" => self.policy = Setting::parse(value).unwrap(),
                "through" => self.limits.merge_through = Setting::parse(value).unwrap(),
                "space" => self.limits.space_percent_max = size(),
                "trigger" => self.limits.overflow_runs_trigger = size(),
                "early" => self.limits.early_range_deletes = Setting::parse(value).unwrap(),
                "job" => self.limits.job_bytes_max = size(),
                "relinks" => self.limits.job_relinks_max = size() as usize,
                "compression" => self.limits.compression = Setting::parse(value).unwrap(),
                "compression_last" => self.limits.compression_last = Setting::parse(value).unwrap(),
                "snapshots" => self.snapshots = value.split(',').map(|n| SeqNo(n.parse().unwrap())).collect(),
                _ => panic!("unknown limit {name}"),
            }
        }
        let extents = text::parse_levels(body, &mut self.next_slot);
        let add = |(place, meta)| Change::Add { place, extent: Arc::new(meta) };
        self.metasnapshot = self.metasnapshot.apply(extents.into_iter().map(add).collect()).unwrap();
        self.show()
    }

    fn show(&self) -> String {
        let sizes: Vec<u64> = self.metasnapshot.levels.iter().map(|level| level.totals().bytes).collect();
        text::show_levels(&self.metasnapshot, &Targets::new(&sizes, &self.limits))
    }

    fn scores(&self) -> String {
        let mut out = String::new();
        for (number, score) in scores(&self.shape(), &self.limits) {
            let name = if number == 0 { "runs".to_owned() } else { format!("L{number}") };
            writeln!(out, "{name} {}.{:03}", score / 1000, score % 1000).unwrap();
        }
        out
    }

    fn space(&self) -> String {
        match space_permille(&self.shape()) {
            u64::MAX => "nothing is live".to_owned(),
            permille => format!("{}.{}%", permille / 10, permille % 10),
        }
    }

    fn pick(&mut self) -> String {
        self.picked = pick(&self.shape(), &self.limits, &self.claims, &self.cursors);
        self.picked.as_ref().map_or("nothing".to_owned(), text::show_job)
    }

    fn claim(&mut self) -> String {
        let spec = self.picked.take().expect("something was picked");
        let id = self.claims.take(spec.claim()).expect("a picked job can be claimed");
        self.cursors.advance(&spec);
        self.claimed.push((id, spec));
        format!("claimed {}", id.0)
    }

    fn take_claim(&mut self, word: &str) -> JobSpec {
        let id = ClaimId(word.parse().unwrap());
        let index = self.claimed.iter().position(|(claimed, _)| *claimed == id).expect("it is claimed");
        self.claims.release(id);
        self.claimed.remove(index).1
    }

    fn drop_claim(&mut self, words: &[&str]) -> String {
        self.take_claim(words[0]);
        "dropped".to_owned()
    }

    fn apply(&mut self, words: &[&str]) -> String {
        let spec = match words.first() {
            Some(word) => self.take_claim(word),
            None => {
                let spec = self.picked.take().expect("something was picked");
                self.cursors.advance(&spec);
                spec
            }
        };
        self.replace(&spec);
        self.show()
    }

    /// Picks and applies until nothing is picked.
    fn run_all(&mut self) -> String {
        let mut out = String::new();
        for _ in 0..1000 {
            let Some(spec) = pick(&self.shape(), &self.limits, &self.claims, &self.cursors) else {
                return out + &self.show();
            };
            out += &text::show_job_line(&spec);
            self.cursors.advance(&spec);
            self.replace(&spec);
        }
        panic!("picking does not come to an end:\n{out}");
    }

    fn manual(&mut self, words: &[&str]) -> String {
        let range = text::parse_range(words[0]);
        let (from, to) = words[1].split_once("..").unwrap();
        let levels = from.parse().unwrap()..=to.parse().unwrap();
        self.ask(RangeRequest::new(range, levels, words.get(2) == Some(&"rewrite")))
    }

    /// Does what a request for the whole table asks for, and after each of its jobs one that the picker finds
    /// as long as the request waits.
    fn beside(&mut self, words: &[&str]) -> String {
        let mut request =
            RangeRequest::new(text::parse_range(".."), 0..=LEVEL_MAX, words.contains(&"rewrite"));
        let mut out = String::new();
        for _ in 0..100 {
            let spec = match pick_range(&self.shape(), &self.limits, &self.claims, &request) {
                RangeStep::Done => return out + &self.show(),
                RangeStep::Busy => return out + "busy\n",
                RangeStep::Job(spec) => spec,
            };
            out += &text::show_job_line(&spec);
            request.advance(&spec);
            self.replace(&spec);
            let shape = TableShape { keeps_depth: true, ..self.shape() };
            if let Some(spec) = pick(&shape, &self.limits, &self.claims, &self.cursors) {
                out += &text::show_job_line(&spec);
                self.cursors.advance(&spec);
                self.replace(&spec);
            }
        }
        panic!("the request does not come to an end:\n{out}");
    }

    /// Does what a request asks for, job by job.
    fn ask(&mut self, mut request: RangeRequest) -> String {
        let mut out = String::new();
        loop {
            match pick_range(&self.shape(), &self.limits, &self.claims, &request) {
                RangeStep::Done => return out + &self.show(),
                RangeStep::Busy => return out + "busy\n",
                RangeStep::Job(spec) => {
                    out += &text::show_job_line(&spec);
                    request.advance(&spec);
                    self.replace(&spec);
                }
            }
        }
    }

    /// Plans one step and claims it.
    fn flush(&mut self, words: &[&str]) -> String {
        let bytes = u64::parse(words[1]).unwrap();
        let start = words[0].trim_matches('"').as_bytes();
        match plan_flush(&self.shape(), &self.limits, &self.claims, start, bytes) {
            FlushPlan::Runs => "runs are in the way".to_owned(),
            FlushPlan::Busy => "busy".to_owned(),
            FlushPlan::Step(spec) => {
                self.picked = Some(*spec);
                text::show_job(self.picked.as_ref().unwrap())
            }
        }
    }

    /// Does to the levels what a merge would: extents that meet nothing move as they are, all others become
    /// the extents of the oldest input, stretched over what they met.
    fn replace(&mut self, spec: &JobSpec) {
        let mut changes = Vec::new();
        for input in &spec.inputs {
            let removed =
                input.extents.iter().map(|meta| Change::remove(input.place, &Arc::new(meta.clone())));
            changes.extend(removed);
        }
        for meta in merged(spec, &mut self.next_slot) {
            changes.push(Change::Add { place: spec.target, extent: Arc::new(meta) });
        }
        self.metasnapshot = self.metasnapshot.apply(changes).unwrap();
    }
}

/// An extent and the index of its input: a greater one is older.
type Aged<'a> = (usize, &'a ExtentMeta);

/// The extents that a merge of the inputs would make, roughly.
fn merged(spec: &JobSpec, next_slot: &mut u32) -> Vec<ExtentMeta> {
    let mut all: Vec<Aged<'_>> = Vec::new();
    for (age, input) in spec.inputs.iter().enumerate() {
        all.extend(input.extents.iter().map(|meta| (age, meta)));
    }
    all.sort_by(|(_, a), (_, b)| a.smallest.cmp(&b.smallest));
    let mut groups: Vec<(Vec<u8>, Vec<Aged<'_>>)> = Vec::new();
    for (age, meta) in all {
        match groups.last_mut() {
            Some((largest, group)) if meta.smallest <= *largest => {
                *largest = meta.largest.clone().max(std::mem::take(largest));
                group.push((age, meta));
            }
            _ => groups.push((meta.largest.clone(), vec![(age, meta)])),
        }
    }
    if spec.kind == terrane_compaction::JobKind::Gather {
        let whole: Vec<_> = groups.into_iter().flat_map(|(_, group)| group).collect();
        return vec![joined(&whole, &whole, spec, next_slot)];
    }
    let mut made = Vec::new();
    for (_, group) in groups {
        if group.len() == 1 && !spec.rewrites && !spec.drops_deletes {
            made.push(group[0].1.clone());
            continue;
        }
        let oldest = group.iter().map(|(age, _)| *age).max().unwrap();
        let pieces: Vec<_> = group.iter().copied().filter(|(age, _)| *age == oldest).collect();
        for (index, piece) in pieces.iter().enumerate() {
            // The first and the last piece take in what reaches beyond them.
            let mut own = vec![*piece];
            let is_edge = |meta: &ExtentMeta| {
                (index == 0 && meta.smallest < piece.1.smallest)
                    || (index + 1 == pieces.len() && meta.largest > piece.1.largest)
            };
            own.extend(group.iter().filter(|(age, meta)| *age < oldest && is_edge(meta)));
            let mut meta = joined(&own, &group, spec, next_slot);
            if index > 0 {
                meta.smallest = piece.1.smallest.clone();
            }
            if index + 1 < pieces.len() {
                meta.largest = piece.1.largest.clone();
            }
            let total: u32 = group.iter().map(|(_, meta)| meta.bytes).sum();
            meta.bytes = total / pieces.len() as u32;
            meta.slots = text::slots_of(meta.bytes);
            made.push(meta);
        }
    }
    made
}

/// One extent over the keys of `own`, with the numbers of `group`.
fn joined(own: &[Aged<'_>], group: &[Aged<'_>], spec: &JobSpec, next_slot: &mut u32) -> ExtentMeta {
    *next_slot += text::SLOTS_MAX;
    let metas = || own.iter().map(|(_, meta)| meta);
    let is_bottom = spec.below.is_empty();
    ExtentMeta {
        id: ExtentId { file: 1, slot: *next_slot },
        smallest: metas().map(|meta| &meta.smallest).min().unwrap().clone(),
        largest: metas().map(|meta| &meta.largest).max().unwrap().clone(),
        bytes: metas().map(|meta| meta.bytes).sum(),
        deletes: if is_bottom { 0 } else { metas().map(|meta| meta.deletes).max().unwrap() },
        seq_min: group.iter().map(|(_, meta)| meta.seq_min).min().unwrap(),
        seq_max: group.iter().map(|(_, meta)| meta.seq_max).max().unwrap(),
        compression: spec.output.compression,
        ..group[0].1.clone()
    }
}

/// Sizes as scripts write them.
pub(crate) trait ShowSize {
    fn show_size(&self) -> String;
}

impl ShowSize for u64 {
    fn show_size(&self) -> String {
        match *self {
            0 => "0".to_owned(),
            u64::MAX => "any".to_owned(),
            bytes if bytes % (1 << 30) == 0 => format!("{}GiB", bytes >> 30),
            bytes if bytes % (1 << 20) == 0 => format!("{}MiB", bytes >> 20),
            bytes if bytes % (1 << 10) == 0 => format!("{}KiB", bytes >> 10),
            bytes => format!("{bytes}B"),
        }
    }
}

pub(crate) fn show_place(place: Place) -> String {
    match place {
        Place::Level(number) => format!("L{number}"),
        Place::Run(id) => format!("R{id}"),
        Place::Values => "values".to_owned(),
    }
}

pub(crate) fn closed(range: &KeyRange) -> String {
    let start = String::from_utf8_lossy(&range.start);
    match &range.end {
        Bound::Included(end) => format!("{start}..={}", String::from_utf8_lossy(end)),
        Bound::Excluded(end) => format!("{start}..{}", String::from_utf8_lossy(end)),
        Bound::Unbounded => format!("{start}.."),
    }
}
