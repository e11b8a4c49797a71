//! Settings of `cargo xtask stress`, from its arguments.

use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The output of `cargo xtask stress --help`.
pub const HELP: &str = "\
usage: cargo xtask stress [--minutes N] [OPTION]...

Runs the property, model and thread tests of the product crates in loops beside each other, with more threads than
cores, other cases in each run, and random delays of threads at locks, atomic variables and calls of devices
(feature `schedule` of the crates). The first failure ends it, with a line that repeats the run.

  --minutes N       begin runs for so many minutes (10); too short a time for a run of each program is an error
  --loops N         runs beside each other (4 for each core)
  --only FILTER     only programs with FILTER in `PACKAGE TARGET`, as in `--only terrane-engine` or `--only ingest`
  --seed N          the choices of an earlier call: order, cases, delays, threads (other ones each time)
  --keep-going      go on after failures, and end with all of them
  --limit SECONDS   a run that takes longer hangs (300)
  --without-delays  build without the feature: threads are delayed by each other only
  --list            name the programs and end; with --only those that it chooses
";

/// Settings of one call of the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long runs are begun.
    pub time: Duration,
    /// Runs beside each other; none is `LOOPS_PER_CORE` for each core.
    pub loops: Option<usize>,
    /// Which programs.
    pub only: Option<String>,
    /// The seed of all choices; `None`: the clock gives one.
    pub seed: Option<u64>,
    /// True if failures end it.
    pub keeps_going: bool,
    /// The most time of one run.
    pub limit: Duration,
    /// True if threads are delayed at random.
    pub has_delays: bool,
    /// True if programs are named only.
    pub lists: bool,
}

const LOOPS_PER_CORE: usize = 4;
/// A year.
const MINUTES_MAX: u64 = 365 * 24 * 60;
/// Each loop is a thread and a process.
const LOOPS_MAX: u64 = 1000;

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            time: Duration::from_secs(600),
            loops: None,
            only: None,
            seed: None,
            keeps_going: false,
            limit: Duration::from_secs(300),
            has_delays: true,
            lists: false,
        }
    }
}

impl Settings {
    /// Reads them.
    ///
    /// # Errors
    /// Names the argument that is not understood, and what it takes.
    pub fn of(arguments: &[&str]) -> Result<Settings, String> {
        let mut settings = Settings::default();
        let mut rest = arguments.iter().copied();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{argument} needs a value"));
            let mut number = |range: RangeInclusive<u64>| number_in(argument, value()?, &range);
            match argument {
                "--minutes" => settings.time = Duration::from_secs(number(1..=MINUTES_MAX)? * 60),
                "--loops" => settings.loops = Some(number(1..=LOOPS_MAX)? as usize),
                "--seed" => settings.seed = Some(number(0..=u64::MAX)?),
                "--limit" => settings.limit = Duration::from_secs(number(1..=MINUTES_MAX * 60)?),
                "--only" => settings.only = Some(value()?.to_owned()),
                "--keep-going" => settings.keeps_going = true,
                "--without-delays" => settings.has_delays = false,
                "--list" => settings.lists = true,
                _ => return Err(format!("there is no option {argument}")),
            }
        }
        Ok(settings)
    }

    /// How many runs there are beside each other.
    #[must_use]
    pub fn loops(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.loops.unwrap_or_else(|| LOOPS_PER_CORE * cores())
    }

    /// The seed of all choices.
    #[must_use]
    pub fn seed(&self) -> u64 {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64);
        self.seed.unwrap_or_else(now)
    }
}

fn number_in(argument: &str, value: &str, range: &RangeInclusive<u64>) -> Result<u64, String> {
    let number = value.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        format!("{argument} takes a number from {} to {}, not {value:?}", range.start(), range.end())
    })
}
