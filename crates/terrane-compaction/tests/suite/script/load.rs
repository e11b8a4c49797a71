//! The use of a table, as scripts give it, and the goal for its shape that follows from it.

use std::fmt::Write;

use terrane_base::options::Setting;
use terrane_compaction::{Counted, Fewer, Heats, MemoryTier, Mode, pick_fewer_runs};

use super::{World, text};

impl World {
    pub(super) fn heat(&mut self, words: &[&str]) -> String {
        self.heats = words.iter().map(|word| word.parse().unwrap()).collect();
        let heats = Heats::new(self.heats.clone());
        let classes: Vec<String> =
            (0..self.heats.len()).map(|index| heats.class(index).to_string()).collect();
        format!("classes {}", classes.join(" "))
    }

    /// `ms=100 times=10 reads=.. runs=.. seeks=.. sought=.. records=.. bytes=..`: so often this was counted.
    pub(super) fn observe(&mut self, words: &[&str]) -> String {
        let (mut counted, mut elapsed_ms, mut times) = (Counted::default(), 100, 1);
        for word in words {
            let (name, value) = word.split_once('=').unwrap();
            let number = u64::parse(value).unwrap();
            match name {
                "ms" => elapsed_ms = number,
                "times" => times = number,
                "reads" => counted.reads = number,
                "runs" => counted.read_runs = number,
                "seeks" => counted.seeks = number,
                "sought" => counted.seek_runs = number,
                "records" => counted.records = number,
                "bytes" => counted.bytes = number,
                _ => panic!("unknown count {name}"),
            }
        }
        let mut changes = Vec::new();
        for time in 1..=times {
            let before = self.load.mode;
            self.load = self.load.observe(self.policy, counted, elapsed_ms);
            if self.load.mode != before {
                changes.push(format!("{} after {time}", show_mode(self.load.mode)));
            }
        }
        let (load, recent) = (&self.load, &self.load.recent);
        let mut out = if changes.is_empty() { String::new() } else { changes.join(", ") + "\n" };
        let runs = load.runs_per_read_milli();
        writeln!(out, "{} for {} ms", show_mode(load.mode), load.read_heavy_ms).unwrap();
        writeln!(
            out,
            "reads {} of {}.{:03} runs, seeks {}",
            recent.reads,
            runs / 1000,
            runs % 1000,
            recent.seeks
        )
        .unwrap();
        write!(out, "records {}", recent.records).unwrap();
        out
    }

    /// With `runs` of `bytes` in memory.
    pub(super) fn fewer(&mut self, words: &[&str]) -> String {
        let number = |index: usize| words.get(index).map_or(0, |word| u64::parse(word).unwrap());
        let memory = MemoryTier { runs: number(0), bytes: number(1), flush_bytes: 16 << 20 };
        let ask =
            || pick_fewer_runs(&self.shape(), memory, &self.limits, &self.claims, &self.load, self.policy);
        let step = ask();
        assert_eq!(step, ask(), "asked again, it says the same");
        match step {
            None => "nothing".to_owned(),
            Some(Fewer::Flush) => "flush".to_owned(),
            Some(Fewer::Merge(spec)) => {
                let shown = text::show_job(&spec);
                self.picked = Some(*spec);
                shown
            }
        }
    }
}

fn show_mode(mode: Mode) -> &'static str {
    match mode {
        Mode::WriteFriendly => "write-friendly",
        Mode::ReadHeavy => "read-heavy",
    }
}
