//! Stress with real threads: test programs in loops beside each other, other cases in each run, threads
//! delayed at random.
//!
//! 1. [`select`]: which test targets take part. 2. They are built once, with the feature `schedule` of each
//!    package that has it. 3. [`plan`]: order and seeds of the runs, from one number. 4. Some loops take the
//!    next run each and do it to its end ([`crate::child`]), until the time is over or one fails. 5. A
//!    failure is reported with the tests that [`crate::outcome`] finds and a line that repeats it; [`tally`]
//!    sums up.
//!
//! Files of output are below the target directory of cargo, in a folder with the seed's number; those of runs
//! that passed are removed, and so are temporary files.

pub mod plan;
pub mod select;
pub mod settings;
pub mod tally;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::child;
use crate::outcome::{self, Outcome};
use crate::programs::{self, Program as Built};
use crate::tree::Tree;
use plan::{Plan, Program, Run};
use select::Target;
use settings::Settings;
use tally::Tally;

/// Time between lines that say how far it is.
const LINES_APART: Duration = Duration::from_secs(30);
/// Name of the feature that puts points before locks, atomic variables and calls of devices.
const FEATURE: &str = "schedule";
/// The package that delays threads at the points.
const BASE: &str = "terrane-base";

/// Builds the programs and runs them.
///
/// # Errors
/// Says what cannot be built or started, that a run failed, or that a signal ended it.
pub fn run(root: &Path, settings: &Settings) -> Result<(), String> {
    let tree = Tree::read(root).map_err(|why| format!("cannot read the tree: {why}"))?;
    let targets = select::targets(&tree, settings.only.as_deref());
    if targets.is_empty() {
        return Err("there is no such program; --list without --only names all".to_owned());
    }
    if settings.lists {
        targets.iter().for_each(|target| println!("{} {}", target.package, target.name()));
        return Ok(());
    }
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        let hooked = signal_hook::flag::register(signal, is_over.clone());
        hooked.map_err(|why| format!("signals cannot be heard: {why}"))?;
    }
    let arguments = build_arguments(&tree, &targets, settings.has_delays);
    let built = programs::build_until(programs::build_command(root).args(arguments), &is_over)?;
    let programs = programs_of(root, &targets, &built)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let seed = settings.seed();
    println!(
        "xtask: {} programs, {} loops, {} delays, --seed {seed}",
        programs.len(),
        settings.loops(),
        if settings.has_delays { "with" } else { "without" },
    );
    let plan = Plan::new(programs, seed, settings.has_delays);
    drive(&plan, settings, &target.join("stress").join(seed.to_string()), &is_over)
}

/// Arguments of `cargo` that build the targets, with the feature where packages have it.
#[must_use]
pub fn build_arguments(tree: &Tree, targets: &[Target], has_delays: bool) -> Vec<String> {
    let mut packages: Vec<&str> = targets.iter().map(|target| target.package.as_str()).collect();
    if has_delays {
        packages.push(BASE);
    }
    let mut tests: Vec<String> = targets
        .iter()
        .map(|target| match &target.test {
            Some(_) => format!("--test={}", target.cargo_name()),
            None => "--lib".to_owned(),
        })
        .collect();
    let has_feature = |package: &str| {
        let manifest = tree.get(&format!("crates/{package}/Cargo.toml")).unwrap_or_default();
        manifest.lines().any(|line| line.strip_prefix(FEATURE).is_some_and(|rest| rest.starts_with(" = [")))
    };
    packages.sort_unstable();
    packages.dedup();
    tests.sort_unstable();
    tests.dedup();
    let mut arguments: Vec<String> = packages.iter().map(|package| format!("--package={package}")).collect();
    arguments.append(&mut tests);
    if has_delays {
        let with = packages.iter().filter(|package| has_feature(package));
        arguments.extend(with.map(|package| format!("--features={package}/{FEATURE}")));
    }
    arguments
}

fn programs_of(root: &Path, targets: &[Target], built: &[Built]) -> Result<Vec<Program>, String> {
    let program = |target: &Target| {
        let path = programs::path_of(built, &target.package, &target.cargo_name());
        let path = path.ok_or_else(|| format!("cargo built no {} {}", target.package, target.name()))?;
        let folder = root.join("crates").join(&target.package);
        let mut tests = tests_of(path, &folder)?;
        if let Some(prefix) = target.prefix() {
            tests.retain(|test| test.starts_with(&prefix));
        }
        if tests.is_empty() {
            let name = format!("{} {}", target.package, target.name());
            return Err(format!("{name} has no test that is not ignored: its runs would try nothing"));
        }
        let parts = if target.is_in_parts() { tests } else { Vec::new() };
        Ok(Program { target: target.clone(), path: path.to_owned(), folder, parts })
    };
    targets.iter().map(program).collect()
}

/// State that the loops share.
struct Shared<'p> {
    plan: &'p Plan,
    settings: &'p Settings,
    folder: &'p Path,
    /// Folder of temporary files.
    temporary: &'p Path,
    next: AtomicU64,
    end: Instant,
    /// No run is begun any more.
    is_closing: AtomicBool,
    /// No run goes on any more: a signal came.
    is_over: &'p AtomicBool,
    /// The runs under way, and since when.
    running: Mutex<BTreeMap<u64, (String, Instant)>>,
}

/// A run that has ended.
struct Ended<'p> {
    run: Run<'p>,
    outcome: Result<Outcome, String>,
    output: PathBuf,
    took: Duration,
}

/// Runs programs of a plan, with output in `folder`, for the time that the settings say, or until `is_over`.
/// Each loop does one run at least.
///
/// # Errors
/// As [`run`], or names the programs of which no run came to its end: nothing is known of them.
pub fn drive(plan: &Plan, settings: &Settings, folder: &Path, is_over: &AtomicBool) -> Result<(), String> {
    let temporary = std::env::temp_dir().join(format!("terrane-stress-{}", std::process::id()));
    // Of an earlier call with the same seed.
    let _ = std::fs::remove_dir_all(folder);
    for made in [folder, &temporary] {
        std::fs::create_dir_all(made).map_err(|why| format!("cannot make {}: {why}", made.display()))?;
    }
    let start = Instant::now();
    let shared = Shared {
        plan,
        settings,
        folder,
        temporary: &temporary,
        next: AtomicU64::new(0),
        end: start + settings.time,
        is_closing: AtomicBool::new(false),
        is_over,
        running: Mutex::default(),
    };
    let mut tally = Tally::of(plan.programs().iter().flat_map(Program::run_names));
    let (sender, ended) = channel();
    std::thread::scope(|scope| {
        for _ in 0..settings.loops() {
            let (shared, sender) = (&shared, sender.clone());
            scope.spawn(move || shared.go_round(&sender));
        }
        drop(sender);
        let mut line = start + LINES_APART;
        loop {
            match ended.recv_timeout(line.saturating_duration_since(Instant::now())) {
                Ok(ended) => shared.count(&mut tally, &ended),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    shared.say_how_far(&tally, start.elapsed());
                    line += LINES_APART;
                }
            }
        }
    });
    let _ = std::fs::remove_dir_all(&temporary);
    println!("{tally} in {:.1} min", start.elapsed().as_secs_f64() / 60.0);
    if tally.failed() > 0 {
        return Err(format!("{} runs failed; their output: {}", tally.failed(), folder.display()));
    }
    let _ = std::fs::remove_dir(folder);
    if is_over.load(Ordering::Relaxed) {
        return Err("ended by a signal".to_owned());
    }
    match tally.unfinished().as_slice() {
        _ if tally.passed() == 0 => Err("no run was made: nothing was tried".to_owned()),
        [] => Ok(()),
        left => {
            let (count, names) = (left.len(), left.join(", "));
            Err(format!(
                "the time was too short for a run of {count} programs (more --minutes, or --only): {names}"
            ))
        }
    }
}

impl<'p> Shared<'p> {
    fn is_ended(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.is_closing.load(Ordering::Relaxed)
    }

    /// A loop: does the next run until none is left to begin, one of them whatever the time.
    fn go_round(&self, ended: &Sender<Ended<'p>>) {
        let mut is_first = true;
        while !self.is_ended() && (is_first || Instant::now() < self.end) {
            is_first = false;
            let run = self.plan.run(self.next.fetch_add(1, Ordering::Relaxed));
            let output = self.folder.join(run.file_name());
            let temporary = self.temporary.join(run.number.to_string());
            let start = Instant::now();
            self.running().insert(run.number, (run.name().to_string(), start));
            let outcome = std::fs::create_dir(&temporary)
                .and_then(|()| {
                    child::run(&mut run.command(&temporary), &output, self.settings.limit, self.is_over)
                })
                .map_err(|why| why.to_string());
            let _ = std::fs::remove_dir_all(&temporary);
            let is_failure = !matches!(outcome, Ok(Outcome::Passed | Outcome::Ended));
            if is_failure && !self.settings.keeps_going {
                self.is_closing.store(true, Ordering::Relaxed);
            }
            self.running().remove(&run.number);
            let _ = ended.send(Ended { run, outcome, output, took: start.elapsed() });
        }
    }

    fn running(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, (String, Instant)>> {
        self.running.lock().expect("no loop panics with the lock")
    }

    /// Counts a run; tells it if it failed.
    fn count(&self, tally: &mut Tally, ended: &Ended<'_>) {
        let run = &ended.run;
        let outcome = ended.outcome.clone().unwrap_or_else(Outcome::Failed);
        tally.count(run.name(), &outcome, ended.took);
        match &outcome {
            Outcome::Passed | Outcome::Ended => drop(std::fs::remove_file(&ended.output)),
            Outcome::Failed(_) | Outcome::Hung => println!("{}", failure(ended, &outcome)),
        }
    }

    fn say_how_far(&self, tally: &Tally, elapsed: Duration) {
        let minutes = |time: Duration| time.as_secs_f64() / 60.0;
        let oldest = self.running().values().next().map_or_else(String::new, |(name, start)| {
            format!(", longest {name} ({:.0} s)", start.elapsed().as_secs_f64())
        });
        println!(
            "xtask: {:.1} of {:.0} min: {} passed, {} failed, {} running{oldest}",
            minutes(elapsed),
            minutes(self.settings.time),
            tally.passed(),
            tally.failed(),
            self.running().len(),
        );
    }
}

/// The report of a run that failed.
fn failure(ended: &Ended<'_>, outcome: &Outcome) -> String {
    let run = &ended.run;
    let output = std::fs::read(&ended.output).unwrap_or_default();
    let output = String::from_utf8_lossy(&output);
    let mut tests = outcome::failed_tests(&output);
    let mut what = "failed";
    if tests.is_empty() {
        let all = match run.part {
            Some(part) => vec![part.clone()],
            None => {
                let mut all = tests_of(&run.program.path, &run.program.folder).unwrap_or_default();
                let prefix = run.program.target.prefix().unwrap_or_default();
                all.retain(|test| test.starts_with(&prefix));
                all
            }
        };
        tests = outcome::unfinished_tests(&output, &all);
        what = "came to no end";
    }
    let how = match outcome {
        Outcome::Failed(status) => status.clone(),
        _ => "hung".to_owned(),
    };
    format!(
        "xtask: {} {how} after {:.1} s\n  {what}: {}\n  output: {}\n  the run again: {}\n  these tests: {}",
        run.program.name(),
        ended.took.as_secs_f64(),
        tests.join(", "),
        ended.output.display(),
        run.command_line(&[]),
        run.command_line(&tests),
    )
}

/// The names of a program's tests, but for those that are ignored.
///
/// # Errors
/// Says that the program cannot be run, or that it refuses to list them.
pub fn tests_of(program: &Path, folder: &Path) -> Result<Vec<String>, String> {
    let list = |ignored: &[&str]| {
        let mut command = Command::new(program);
        let listed = command.arg("--list").args(ignored).current_dir(folder).stdin(Stdio::null()).output();
        let listed = listed.map_err(|why| format!("cannot run {}: {why}", program.display()))?;
        if !listed.status.success() {
            return Err(format!("{} does not list its tests ({})", program.display(), listed.status));
        }
        Ok::<_, String>(outcome::listed_tests(&String::from_utf8_lossy(&listed.stdout)))
    };
    let ignored = list(&["--ignored"])?;
    Ok(list(&[])?.into_iter().filter(|test| !ignored.contains(test)).collect())
}
