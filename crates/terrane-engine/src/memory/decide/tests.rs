//! Runs the text scripts in `tests/scripts/memory`: each line is a tick, what was sampled before the arrow
//! and the shares after it.
//!
//! `plan memory=SIZE [fixed]` begins from the start and shows how the ceiling is divided. Every other line
//! names the occasion (`write`, `background`, `job`, `returned`, `trim`, `ask`, `ceiling`) and what changed
//! since the
//! last tick: `writers`, `cache`, `held`, `jobs` and `levels` stay until they are named again; `after`,
//! `written` and `loads` are those of this tick alone. `9 x` repeats a tick, and shows the last one.

use std::fmt::Write;

use terrane_base::options::{Experiments, Options};

use super::*;

const SCRIPTS: [(&str, &str); 4] = [
    ("lease", include_str!("../../../tests/scripts/memory/lease.test")),
    ("limit", include_str!("../../../tests/scripts/memory/limit.test")),
    ("share", include_str!("../../../tests/scripts/memory/share.test")),
    ("trim", include_str!("../../../tests/scripts/memory/trim.test")),
];

const MIB: u64 = 1 << 20;

fn plan_of(memory_bytes: u64, adaptive: bool) -> MemoryPlan {
    let experiments = Experiments { adaptive_memory: adaptive, ..Experiments::default() };
    let options = Options { memory_bytes, experiments, ..Options::default() };
    MemoryPlan::new(&options.resolve(2).expect("options"))
}

/// State of a script.
struct World {
    inputs: Inputs,
    traffic: Traffic,
}

impl World {
    fn new(plan: MemoryPlan) -> World {
        let occasion = Occasion::Ask;
        let (elapsed, before) = (Duration::ZERO, State::default());
        let inputs = Inputs { plan, writers: 0, held: 0, cache: 0, jobs: 0, elapsed, occasion, before };
        World { inputs, traffic: Traffic::default() }
    }

    /// Runs a line; returns what belongs after its arrow.
    fn run(&mut self, line: &str) -> String {
        let (times, line) = match line.split_once(" x ") {
            Some((times, line)) => (times.parse().expect("a count"), line),
            None => (1, line),
        };
        let mut words = line.split_whitespace();
        let name = words.next().expect("an occasion");
        let words: Vec<&str> = words.collect();
        if name == "plan" {
            let memory = words.iter().find_map(|word| word.strip_prefix("memory=")).expect("a ceiling");
            *self = World::new(plan_of(size(memory), !words.contains(&"fixed")));
            self.read(words.iter().filter(|word| word.starts_with("levels=")));
            return show_plan(&self.inputs.plan);
        }
        let mut shown = String::new();
        for _ in 0..times {
            (self.traffic.written, self.traffic.loads, self.inputs.elapsed) = (0, 0, Duration::ZERO);
            self.read(words.iter());
            self.inputs.occasion = match name {
                "write" => Occasion::Write(self.traffic),
                "background" => Occasion::Background,
                "job" => Occasion::Job { is_returned: false },
                "returned" => Occasion::Job { is_returned: true },
                "trim" => Occasion::Trim,
                "ask" => Occasion::Ask,
                "ceiling" => Occasion::Ceiling,
                _ => panic!("no occasion: {name}"),
            };
            let shares = decide(&self.inputs);
            self.inputs.before = shares.state;
            shown = show(&shares);
        }
        shown
    }

    fn read<'w>(&mut self, words: impl Iterator<Item = &'w &'w str>) {
        for word in words {
            let (name, value) = word.split_once('=').expect("name=value");
            match name {
                "writers" => self.inputs.writers = size(value),
                "held" => self.inputs.held = size(value),
                "cache" => self.inputs.cache = size(value),
                "jobs" => self.inputs.jobs = value.parse().expect("a count"),
                "after" => self.inputs.elapsed = time(value),
                "written" => self.traffic.written = size(value),
                "loads" => self.traffic.loads = value.parse().expect("a count"),
                "levels" => self.traffic.level_bytes = size(value),
                _ => panic!("no input: {name}"),
            }
        }
    }
}

fn size(text: &str) -> u64 {
    let units = [("MiB", MIB), ("KiB", 1 << 10), ("B", 1)];
    let (number, unit) = units
        .iter()
        .find_map(|(name, unit)| text.strip_suffix(name).map(|number| (number, unit)))
        .expect("a size");
    number.parse::<u64>().expect("a number") * unit
}

fn time(text: &str) -> Duration {
    match text.strip_suffix("ms") {
        Some(millis) => Duration::from_millis(millis.parse().expect("a number")),
        None => Duration::from_secs(text.trim_end_matches('s').parse().expect("a number")),
    }
}

fn shown(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(MIB) => format!("{}MiB", bytes / MIB),
        _ if bytes.is_multiple_of(1 << 10) => format!("{}KiB", bytes >> 10),
        _ => format!("{bytes}B"),
    }
}

fn show_plan(plan: &MemoryPlan) -> String {
    let [writers, cache] = [plan.write_bytes, plan.cache_bytes].map(shown);
    let [jobs, lent, slack] = [plan.job_bytes, plan.lent_bytes, plan.slack_bytes].map(shown);
    format!("writers {writers}, cache {cache}, jobs {jobs} and lend {lent}, slack {slack}")
}

fn show(shares: &Shares) -> String {
    let Shares { cache_limit, together, trim, state } = shares;
    let mut text = format!("cache {} of {}", shown(*cache_limit), shown(*together));
    write!(text, ", share {}/{WHOLE}, lease {:?}", state.write_share, state.lease).expect("a string");
    text += if *trim { ", trim" } else { "" };
    text
}

#[test]
fn scripts_show_the_shares_they_say() {
    for (name, script) in SCRIPTS {
        let mut world = World::new(plan_of(256 * MIB, true));
        let mut found = String::new();
        for line in script.lines() {
            match line.split_once(" -> ") {
                Some((inputs, _)) => writeln!(found, "{inputs} -> {}", world.run(inputs)).expect("a string"),
                None => writeln!(found, "{line}").expect("a string"),
            }
        }
        assert!(found == script, "script {name} shows:\n{found}");
    }
}

#[test]
fn writers_and_cache_never_get_more_than_is_shared() {
    let plan = plan_of(256 * MIB, true);
    assert_eq!(plan.shared_bytes() + plan.job_bytes, 256 * MIB);
    let mut last = u64::MAX;
    for write_bytes in (0..plan.write_bytes * 2).step_by(1 << 20) {
        let limit = plan.cache_limit(write_bytes, 0);
        assert!(limit <= last, "the cache gives back what writers take");
        assert!(write_bytes + limit <= plan.shared_bytes() || limit == 0);
        // Its own share stays, less what writers take until they are stopped.
        assert!(write_bytes > plan.write_bytes || limit >= plan.cache_bytes - plan.slack_bytes / 2);
        assert!(plan.cache_limit(write_bytes, plan.lent_bytes) <= limit + plan.lent_bytes);
        last = limit;
    }
    assert!(plan.cache_limit(0, 0) > plan.cache_bytes * 3 / 2, "most of the free memory is lent");
}

/// A writer that goes on at a look takes a segment at most once before the next one, and chunks of indexes.
#[test]
fn writers_wait_while_there_is_room_for_a_step_and_the_wait_ends() {
    for memory_bytes in [16, 48, 64, 256, 4096].map(|mib| mib * MIB) {
        let options = Options { memory_bytes, ..Options::default() }.resolve(2).expect("options");
        let plan = MemoryPlan::new(&options);
        let step = plan.step_bytes();
        assert!(step >= options.segment_bytes, "memory={memory_bytes}: a step of {step} bytes");
        for write_bytes in (0..=plan.write_bytes).step_by(1 << 20) {
            let most = write_bytes + plan.cache_limit(write_bytes, 0) + step;
            assert!(most <= plan.shared_bytes(), "memory={memory_bytes}: {write_bytes} bytes never go on");
        }
    }
}

#[test]
fn fixed_shares_do_not_depend_on_memory_in_use() {
    let plan = plan_of(256 * MIB, false);
    let limit = |used| plan.cache_limit(used, plan.lent_bytes);
    assert!((0..plan.write_bytes).step_by(1 << 20).all(|used| limit(used) == plan.cache_bytes));
}
