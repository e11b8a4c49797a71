//! Every system call that the engine makes fails at least once in every phase: for each call, for each error
//! that it may give, the n-th one of each thread fails, for each n until nothing is left to fail; then every
//! one from some n on.
//!
//! After each failure the child neither panics nor dies nor hangs, with one exception: if the allocator gets
//! no memory at all, the process is aborted, because Rust's allocation has no other answer. The child reports
//! a clear error or none, and reads the rows that it wrote, to the end or to an error. Afterwards the
//! database opens, has every acknowledged row, and `check` finds no damage.
//!
//! By default one place of each call is tried; `TERRANE_CALLS=all` tries all of them and prints the table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::calls_report::{Report, Seen};
use crate::oracle::Model;
use crate::strace::{self, Life};
use terrane_base::Rng;

/// Errors that a call may give. Every other call gets the first line's.
const ERRORS: [(&[&str], &[&str]); 8] = [
    (
        &["read", "pread64", "preadv", "statx", "fstat", "newfstatat", "lseek", "getdents64"],
        &["EIO", "ENOMEM"],
    ),
    (&["openat"], &["EIO", "EMFILE", "ENOSPC", "ENOMEM"]),
    (&["pwrite64", "pwritev", "fallocate", "ftruncate", "fsync", "fdatasync", "msync"], &["EIO", "ENOSPC"]),
    (
        &["rename", "renameat", "unlink", "unlinkat", "mkdir", "mkdirat", "sync_file_range"],
        &["EIO", "ENOSPC"],
    ),
    (&["mmap", "munmap", "mprotect", "madvise", "mremap"], &["ENOMEM"]),
    (&["clone", "clone3"], &["EAGAIN", "ENOMEM"]),
    // They can only be interrupted.
    (&["clock_nanosleep", "nanosleep", "getrandom"], &["EINTR"]),
    (&["flock", "fcntl"], &["EIO", "ENOLCK"]),
];

/// Calls that are left alone, and why.
const LEFT_OUT: [(&[&str], &str); 6] = [
    (&["write"], "only the script's own words to its parent"),
    (&["exit", "exit_group", "rt_sigreturn", "restart_syscall"], "they do not return"),
    (
        &["rt_sigprocmask", "rt_sigaction", "sigaltstack", "set_robust_list", "rseq", "prctl", "arch_prctl"],
        "the start and end of a thread in the C library, which cannot report it",
    ),
    (
        &["brk"],
        "it answers with the present end of the heap, never with an error; an invented end breaks the C library",
    ),
    (&["futex"], "waking others has no error; an invented one loses the wake-up"),
    (&["gettid", "getpid", "sched_yield", "execve", "set_tid_address", "prlimit64"], "they cannot fail"),
];

fn errors_of(call: &str) -> &'static [&'static str] {
    ERRORS.iter().find(|(calls, _)| calls.contains(&call)).map_or(&["EIO"], |(_, errors)| errors)
}

fn is_left_out(call: &str) -> bool {
    LEFT_OUT.iter().any(|(calls, _)| calls.contains(&call))
}

/// A state from which the script starts.
struct Scene {
    /// Phase that opens the database.
    phase: &'static str,
    /// Directory to copy, if there is a database already.
    template: Option<PathBuf>,
    model: Model,
}

impl Scene {
    fn set(&self, root: &Path) -> PathBuf {
        let dir = root.join("db");
        let _ = std::fs::remove_dir_all(&dir);
        if let Some(template) = &self.template {
            let copied = Command::new("cp").arg("-a").arg(template).arg(&dir).status().unwrap();
            assert!(copied.success());
        }
        dir
    }
}

/// A new database, and one whose process died with records in its journal.
fn scenes(root: &Path) -> [Scene; 2] {
    let template = root.join("template");
    let mut model = Model::new(1);
    for dies in [false, true] {
        let life = strace::finish(strace::start(&template, "open", dies));
        assert!(life.errors().is_empty(), "{:?}", life.errors());
        model.acknowledge(0, life.acknowledged().expect("the script writes"));
    }
    [
        Scene { phase: "open", template: None, model: Model::new(1) },
        Scene { phase: "recover", template: Some(template), model },
    ]
}

pub(crate) fn run() -> Outcome {
    if let Some(why) = strace::missing() {
        return Outcome::NotRun(why);
    }
    let is_all = std::env::var("TERRANE_CALLS").is_ok_and(|all| all == "all");
    let only = std::env::var("TERRANE_CALL").ok();
    let root = tempfile::tempdir().unwrap();
    let mut report = Report::default();
    for scene in scenes(root.path()) {
        let calls = recorded(&scene, root.path());
        report.left_out(calls.keys().filter(|call| is_left_out(call)));
        for (call, count) in calls.iter().filter(|(call, _)| !is_left_out(call)) {
            if only.as_ref().is_some_and(|only| only != call) {
                continue;
            }
            for error in errors_of(call) {
                if is_all {
                    try_all(&scene, root.path(), call, error, &mut report);
                } else {
                    let nth = 1 + Rng::new(report.lives).below(*count);
                    live(&scene, root.path(), call, error, &nth.to_string(), &mut report);
                }
            }
        }
    }
    if is_all {
        println!("{}", report.table());
    }
    assert!(report.failures.is_empty(), "{}", report.failures.join("\n"));
    Outcome::Passed(report.summary())
}

/// The calls that the script makes, with the most that one thread makes of each.
fn recorded(scene: &Scene, root: &Path) -> BTreeMap<String, u64> {
    let dir = scene.set(root);
    let life = strace::trace(&dir, scene.phase, &root.join("log"), &[]);
    assert!(
        life.errors().is_empty() && life.said.last().is_some_and(|last| last == "end"),
        "{:?}",
        life.said
    );
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for line in life.log.lines() {
        let mut words = line.split_whitespace();
        let (Some(thread), Some(rest)) = (words.next(), words.next()) else { continue };
        let Some((call, _)) = rest.split_once('(') else { continue };
        if call.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            *counts.entry((call, thread)).or_default() += 1;
        }
    }
    let mut most = BTreeMap::new();
    for ((call, _), count) in counts {
        let at = most.entry(call.to_owned()).or_insert(0);
        *at = count.max(*at);
    }
    most
}

/// Each place alone, then everything from some places on.
fn try_all(scene: &Scene, root: &Path, call: &str, error: &str, report: &mut Report) {
    let mut nth = 1;
    while live(scene, root, call, error, &nth.to_string(), report) {
        // Calls of which there are many are thinned out.
        nth += 1 + nth / 40;
    }
    if error != "EINTR" {
        for from in [1, 2, 5, 14, 42].into_iter().filter(|from| *from < nth) {
            live(scene, root, call, error, &format!("{from}+"), report);
        }
    }
}

/// One life with one fault; returns whether anything was made to fail.
fn live(scene: &Scene, root: &Path, call: &str, error: &str, when: &str, report: &mut Report) -> bool {
    let dir = scene.set(root);
    let options = ["-e".to_owned(), format!("trace={call},write"), "-e".to_owned()];
    let inject = [format!("inject={call}:error={error}:when={when}")];
    let life = strace::trace(&dir, scene.phase, &root.join("log"), &[&options[..], &inject].concat());
    let place = format!("{} {call}:error={error}:when={when}", scene.phase);
    let phases: BTreeSet<String> = life.injected().into_iter().collect();
    let seen = judge(&life, scene, &dir, &place);
    if let Seen::Bad(why) = &seen {
        report.failures.push(format!("{place} (in {phases:?}): {why}"));
        eprintln!("{place} (in {phases:?}): {why}");
    }
    report.note(call, error, &phases, &seen);
    !phases.is_empty()
}

/// Kinds that a refused call may have.
const KINDS: [&str; 4] = ["io", "full", "poisoned", "cancelled"];

fn judge(life: &Life, scene: &Scene, dir: &Path, place: &str) -> Seen {
    let Some(status) = life.status else { return Seen::Bad(format!("it hung: {:?}", life.said)) };
    // The second: the standard library at the start of a thread, before any code of ours.
    let words = ["memory allocation of", "alternative stack"];
    let is_out_of_memory = words.iter().any(|words| life.complaint.contains(words));
    let is_died = is_out_of_memory && place.contains("error=ENOMEM");
    if !is_died && (!status.success() || !life.complaint.is_empty()) {
        return Seen::Bad(format!("{status}: {} {:?}", life.complaint.trim(), life.said.last()));
    }
    for error in life.errors() {
        let is_known = KINDS.iter().any(|kind| error.starts_with(&format!("{kind} ")));
        if !is_known || error.len() < 30 {
            return Seen::Bad(format!("unclear error: {error}"));
        }
    }
    if let Some(wrong) = life.said.iter().find(|line| line.starts_with("wrong ")) {
        return Seen::Bad(format!("it read what was never there, or less: {wrong}"));
    }
    let mut model = scene.model.clone();
    if let Some(op) = life.acknowledged() {
        model.acknowledge(0, op);
    }
    let verified = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| model.verify(dir, false, place)));
    if let Err(panic) = verified {
        let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        return Seen::Bad(format!("afterwards: {text}; it had said {:?}", life.errors()));
    }
    match life.errors().is_empty() {
        _ if is_died => Seen::Died,
        true => Seen::Unmoved,
        false => Seen::Refused,
    }
}
