//! Which program runs when, with which seeds: all of it follows from one number.

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::select::{Target, Value};
use crate::rng::Rng;

/// Threads of a test program, one number drawn for each run: one test has the processor for itself, or
/// several share it.
const TEST_THREADS: [u64; 3] = [1, 2, 4];

/// A test program that takes part.
#[derive(Clone, Debug)]
pub struct Program {
    /// The target.
    pub target: Target,
    /// The file that cargo made of it.
    pub path: PathBuf,
    /// The folder in which cargo would run it.
    pub folder: PathBuf,
    /// Tests of which each run does one, in turn; empty where a run does all there are.
    pub parts: Vec<String>,
}

impl Program {
    /// Its name for people.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.target.package, self.target.name())
    }

    /// The unit that its runs are counted by.
    #[must_use]
    pub fn run_names(&self) -> Vec<RunName> {
        let of = |part: Option<&String>| RunName { program: self.name(), part: part.cloned() };
        if self.parts.is_empty() {
            vec![of(None)]
        } else {
            self.parts.iter().map(|part| of(Some(part))).collect()
        }
    }
}

/// The unit of counted runs: a program, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunName {
    /// The program.
    pub program: String,
    /// Its test, where each run does one.
    pub part: Option<String>,
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.part {
            Some(part) => f.pad(&format!("{}: {part}", self.program)),
            None => f.pad(&self.program),
        }
    }
}

/// The order of the programs, and the seeds of each run.
#[derive(Debug)]
pub struct Plan {
    programs: Vec<Program>,
    order: Vec<usize>,
    /// The part that each program begins with: a short time does not always try the same ones.
    first_parts: Vec<u64>,
    seed: u64,
    has_delays: bool,
}

/// One run of a program.
#[derive(Debug)]
pub struct Run<'p> {
    /// From 0 on.
    pub number: u64,
    /// The program.
    pub program: &'p Program,
    /// Its environment variables.
    pub variables: Vec<(&'static str, String)>,
    /// How many tests run beside each other.
    pub test_threads: u64,
    /// The test that it does, if not all.
    pub part: Option<&'p String>,
}

impl Plan {
    /// A plan that follows from `seed`. Without delays threads are delayed by nothing but each other.
    #[must_use]
    pub fn new(programs: Vec<Program>, seed: u64, has_delays: bool) -> Plan {
        let mut rng = Rng::new(seed);
        let mut order: Vec<usize> = (0..programs.len()).collect();
        rng.shuffle(&mut order);
        let first_part = |program: &Program| rng.below(program.parts.len().max(1) as u64);
        let first_parts = programs.iter().map(first_part).collect();
        Plan { programs, order, first_parts, seed, has_delays }
    }

    /// All programs.
    #[must_use]
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// The run of a number.
    ///
    /// # Panics
    /// If there is no program.
    #[must_use]
    pub fn run(&self, number: u64) -> Run<'_> {
        let (round, turn) = (number / self.order.len() as u64, number % self.order.len() as u64);
        let at = self.order[turn as usize];
        let program = &self.programs[at];
        let mut rng = Rng::new(self.seed ^ Rng::new(number).next_u64());
        let mut variables = vec![
            ("PROPTEST_CASES", program.target.cases().to_string()),
            ("PROPTEST_RNG_SEED", rng.next_u64().to_string()),
        ];
        let test_threads = *rng.pick(&TEST_THREADS);
        let delays = rng.next_u64();
        if self.has_delays {
            variables.push(("TERRANE_DELAYS", delays.to_string()));
        }
        for (name, value) in program.target.variables() {
            let value = match value {
                Value::Fixed(value) => *value,
                // Tests count on from a seed, some times a hundred.
                Value::Drawn => rng.below(1 << 48),
            };
            variables.push((name, value.to_string()));
        }
        let parts = &program.parts;
        let part = (!parts.is_empty())
            .then(|| &parts[((self.first_parts[at] + round) % parts.len() as u64) as usize]);
        Run { number, program, variables, test_threads, part }
    }
}

impl Run<'_> {
    /// The part that is counted together with it.
    #[must_use]
    pub fn name(&self) -> RunName {
        RunName { program: self.program.name(), part: self.part.cloned() }
    }

    /// Its name among the files of output.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{:06}-{}-{}.txt", self.number, self.program.target.package, self.program.target.name())
    }

    /// The arguments of the program, for all its tests or for `tests`.
    #[must_use]
    pub fn arguments(&self, tests: &[String]) -> Vec<String> {
        let mut arguments =
            if tests.is_empty() { self.part.into_iter().cloned().collect() } else { tests.to_vec() };
        if arguments.is_empty() {
            // All tests of a module: whatever has this in its name.
            arguments.extend(self.program.target.prefix());
        } else {
            arguments.push("--exact".to_owned());
        }
        arguments.push(format!("--test-threads={}", self.test_threads));
        arguments
    }

    /// The run as a process, with temporary files in a folder of its own.
    #[must_use]
    pub fn command(&self, temporary: &Path) -> Command {
        let mut command = Command::new(&self.program.path);
        command.args(self.arguments(&[])).current_dir(&self.program.folder);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        // What fails is repeated by its seeds: it is not made smaller, which takes runs that other schedules
        // decide, and no file beside the source is changed.
        command.env("PROPTEST_MAX_SHRINK_ITERS", "0").env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
        command.env("TMPDIR", temporary).env("RUST_BACKTRACE", "1");
        command
    }

    /// A line for a shell that repeats the run, or those tests of it.
    #[must_use]
    pub fn command_line(&self, tests: &[String]) -> String {
        let mut line = format!("cd {} &&", quoted(&self.program.folder));
        for (name, value) in &self.variables {
            let _ = write!(line, " {name}={value}");
        }
        let _ = write!(line, " {}", quoted(&self.program.path));
        for argument in self.arguments(tests) {
            let _ = write!(line, " {}", word(&argument));
        }
        line
    }
}

fn quoted(path: &Path) -> String {
    word(&path.to_string_lossy())
}

/// A word as a shell takes it.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=".contains(c);
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
