//! Runs programs concurrently, as many as there are processors.
//!
//! 1. Jobs start in the order of the list; a job that takes long belongs to its beginning (`LONG`).
//! 2. What a job prints goes to a file, and is printed as a whole when the job ends.
//! 3. A failure ends no other job; a signal ends all of them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::child;
use crate::outcome::Outcome;
use crate::tree::Tree;

/// Jobs that take long, which start first: one that starts last leaves the other processors idle. The line
/// "the longest" of a run says what belongs here.
const LONG: [&str; 17] = [
    "terrane suite",
    "terrane-remote suite",
    "terrane-compaction suite",
    "terrane-engine suite",
    "terrane-sim schedules",
    "terrane-sim suite",
    "terrane-fuzz smoke",
    "terrane-table shuttle",
    "terrane-explore shuttle",
    "terrane-cli suite",
    "terrane real",
    "terrane-journal suite",
    "terrane-bench suite",
    "terrane-memtable shuttle",
    "terrane-rocksdb c",
    "doc tests",
    "planted bugs, a sample",
];

/// A program or a command of cargo that runs beside others.
#[derive(Clone, Debug)]
pub struct Job {
    /// Which step of the suite it belongs to.
    pub step: usize,
    /// Its name.
    pub name: String,
    /// The file that is run.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Where it runs.
    pub folder: PathBuf,
    /// Its environment variables.
    pub variables: Vec<(String, String)>,
    /// A command that repeats it; names of tests can be added.
    pub again: String,
    /// The most time that it may take.
    pub limit: Duration,
}

/// A job that has ended.
#[derive(Debug)]
pub struct Done {
    /// The job.
    pub job: Job,
    /// How it ended.
    pub outcome: Outcome,
    /// Its output.
    pub output: String,
    /// How long it took.
    pub took: Duration,
}

/// Sorts jobs so that those which take long come first.
pub fn longest_first(jobs: &mut [Job]) {
    jobs.sort_by_key(|job| LONG.iter().position(|name| *name == job.name).unwrap_or(LONG.len()));
}

/// Names of `LONG` whose package and target the tree lacks.
#[must_use]
pub fn unknown_rows(tree: &Tree) -> Vec<&'static str> {
    let commands = ["doc tests", "planted bugs, a sample"];
    let is_known = |name: &str| {
        let Some((package, target)) = name.split_once(' ') else { return false };
        let tests = format!("crates/{package}/tests/{target}");
        let is_test = [".rs", "/main.rs"].iter().any(|end| tree.get(&format!("{tests}{end}")).is_some());
        let bench = target.strip_prefix("bench ").map(|bench| format!("crates/{package}/benches/{bench}.rs"));
        let is_library = package.replace('-', "_") == target;
        commands.contains(&name)
            || is_test
            || is_library
            || bench.is_some_and(|bench| tree.get(&bench).is_some())
    };
    LONG.into_iter().filter(|name| !is_known(name)).collect()
}

/// Runs jobs, `at_once` beside each other, with files of output in `folder`; tells each one when it has
/// ended.
///
/// # Errors
/// Says that the folder for output cannot be made. A job that cannot be started has failed.
pub fn run(
    jobs: Vec<Job>,
    at_once: usize,
    folder: &Path,
    is_over: &AtomicBool,
    mut tell: impl FnMut(&Done),
) -> Result<Vec<Done>, String> {
    // Of an earlier run.
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|why| format!("cannot make {}: {why}", folder.display()))?;
    let (next, jobs) = (AtomicUsize::new(0), &jobs);
    let (sender, ended) = channel();
    let done = std::thread::scope(|scope| {
        for _ in 0..at_once.max(1) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed)
                    && let number = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(job) = jobs.get(number)
                {
                    let output = folder.join(format!("{number:03}-{}.txt", job.name.replace(' ', "-")));
                    let _ = sender.send(do_job(job, &output, is_over));
                }
            });
        }
        drop(sender);
        ended.into_iter().inspect(|done| tell(done)).collect()
    });
    Ok(done)
}

fn do_job(job: &Job, output: &Path, is_over: &AtomicBool) -> Done {
    let start = Instant::now();
    let mut command = Command::new(&job.program);
    command.args(&job.arguments).current_dir(&job.folder);
    command.envs(job.variables.iter().map(|(name, value)| (name, value)));
    let outcome = child::run(&mut command, output, job.limit, is_over)
        .unwrap_or_else(|why| Outcome::Failed(why.to_string()));
    let text = |file: &Path| {
        std::fs::read(file)
            .map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let mut said = text(output);
    if outcome == Outcome::Hung {
        said.push_str(&text(&output.with_extension("threads.txt")));
    }
    Done { job: job.clone(), outcome, output: said, took: start.elapsed() }
}
