//! Sizes of the tests whose cases follow from seeds: a part of the cases runs with each change, all of them
//! in a soak.
//!
//! Both begin at a seed that follows from the commit, so that each change tries what no other one did, and
//! the same commit tries the same again. Property tests have no size here: their cases are the same in every
//! run.

use std::path::Path;
use std::process::Command;

/// Sets the seed; a run prints the one that it has.
pub const SEED: &str = "TERRANE_EXPLORE_SEED";

/// Steps of the simulator's histories in what runs with each change.
pub const STEPS: (&str, &str) = ("TERRANE_STEPS", "12000");

/// Sizes of a run, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// The runs with each change, from this seed.
    Quick(u64),
    /// The runs of the tests by themselves, from this seed.
    Full(u64),
}

impl Sizes {
    /// The seed.
    #[must_use]
    pub fn seed(self) -> u64 {
        match self {
            Sizes::Quick(seed) | Sizes::Full(seed) => seed,
        }
    }

    /// Variables for the programs of a package; `is_explored` are those on the schedule explorer.
    #[must_use]
    pub fn variables(self, package: &str, is_explored: bool) -> Vec<(&'static str, String)> {
        let seeds: &[&str] = match package {
            "terrane-sim" => &["TERRANE_SIM_START", "TERRANE_SCHEDULES_START"],
            "terrane-fuzz" => &["TERRANE_FUZZ_SEED"],
            "terrane-compaction" => &["TERRANE_PARTS_START"],
            "terrane-engine" if !is_explored => &["TERRANE_CUTS_START", "TERRANE_POWER_SEED"],
            _ => &[],
        };
        let sizes: &[(&str, &str)] = match (self, package) {
            (Sizes::Full(_), _) => &[],
            (Sizes::Quick(_), "terrane-sim") => &[
                ("TERRANE_SIM_SEEDS", "80"),
                ("TERRANE_SIM_HISTORIES", "2"),
                ("TERRANE_SIM_COURSES", "1"),
                ("TERRANE_SCHEDULES_HISTORIES", "10"),
                STEPS,
            ],
            (Sizes::Quick(_), "terrane-engine") if !is_explored => &[
                ("TERRANE_CONCURRENT_BATCHES", "500"),
                ("TERRANE_POWER_HISTORIES", "6"),
                ("TERRANE_CUTS_PART", "3"),
            ],
            (Sizes::Quick(_), "terrane-journal") if !is_explored => &[("TERRANE_PM_PART", "1")],
            // Each call fails once, in one of three ways.
            (Sizes::Quick(_), "terrane-remote") => &[("TERRANE_CALLS_PART", "3")],
            (Sizes::Quick(_), "terrane-cli") => &[("TERRANE_KILLS", "3")],
            (Sizes::Quick(_), "terrane-compaction") if !is_explored => {
                &[("TERRANE_PARTS_SEEDS", "4"), ("TERRANE_JOBS_SEEDS", "2")]
            }
            (Sizes::Quick(_), _) if is_explored => &[("TERRANE_SCHEDULES", "500")],
            (Sizes::Quick(_), _) => &[],
        };
        let seeds = seeds.iter().map(|name| (*name, self.seed().to_string()));
        seeds.chain(sizes.iter().map(|(name, size)| (*name, (*size).to_owned()))).collect()
    }
}

/// The seed that is set, or the one of the commit; a fixed one in a tree without commits.
///
/// # Errors
/// Says that the value is not a number.
pub fn seed(root: &Path) -> Result<u64, String> {
    if let Ok(set) = std::env::var(SEED) {
        return set.parse().map_err(|_| format!("{SEED} is not a whole number: {set}"));
    }
    let log = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root).output();
    let commit = log.map(|log| String::from_utf8_lossy(&log.stdout).into_owned()).unwrap_or_default();
    Ok(seed_of(&commit).unwrap_or(SEED_WITHOUT_COMMIT))
}

/// The seed of a tree that git does not know.
const SEED_WITHOUT_COMMIT: u64 = 1;

/// The seed of a commit: the number that its hash begins with.
#[must_use]
pub fn seed_of(commit: &str) -> Option<u64> {
    u64::from_str_radix(commit.get(..7)?, 16).ok()
}
