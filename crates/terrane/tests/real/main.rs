//! Real faults on real files: a process that is killed, a device that is really full, system calls that fail.
//! And the memory of a real process.
//!
//! The program starts itself as its child: with `TERRANE_REAL_CHILD` set it is the process in which the
//! faults happen. It has a main function of its own for two reasons: the child runs nothing but the workload,
//! and a case that cannot run here, because a tool or a permission is missing, is printed and counted as *not
//! run*, never as passed.
//!
//! `cargo test -p terrane --test real -- [PART OF A NAME]`. Scaled by `TERRANE_KILLS` (SIGKILL cycles),
//! `TERRANE_CALLS=all` (every system call, every place), `TERRANE_SEED`.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test of the library from outside uses real files, threads and time"
)]

mod calls;
mod calls_report;
mod child;
mod kill;
mod memory;
mod oracle;
mod space;
mod strace;
mod workload;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// How a case ended when it did not panic.
pub(crate) enum Outcome {
    /// With what was seen.
    Passed(String),
    /// Why it could not run here.
    NotRun(String),
}

type Case = (&'static str, fn() -> Outcome);

const CASES: [Case; 8] = [
    ("a_killed_writer_loses_nothing_acknowledged", kill::run),
    ("a_full_tmpfs_refuses_writes_until_there_is_space", space::on_tmpfs),
    ("a_full_ext4_refuses_writes_until_there_is_space", space::on_ext4),
    ("a_read_only_mount_serves_readers_and_refuses_writers", space::read_only_mount),
    ("the_memory_of_the_process_stays_near_its_ceiling", memory::run),
    ("a_memory_cgroup_of_the_promised_size_kills_no_process", memory::run_in_cgroup),
    ("a_memory_cgroup_of_the_promised_size_kills_no_process_with_jemalloc", memory::run_with_jemalloc),
    ("every_system_call_may_fail", calls::run),
];

pub(crate) fn number_from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a whole number"))
}

fn main() -> ExitCode {
    if let Ok(role) = std::env::var("TERRANE_REAL_CHILD") {
        return child::run(&role);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        CASES.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let parts: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let chosen = |name: &str| parts.is_empty() || parts.iter().any(|part| name.contains(part.as_str()));
    let (mut passed, mut failed, mut not_run) = (0, 0, 0);
    for (name, case) in CASES.iter().filter(|(name, _)| chosen(name)) {
        match catch_unwind(AssertUnwindSafe(case)) {
            Ok(Outcome::Passed(seen)) => {
                passed += 1;
                println!("test {name} ... ok: {seen}");
            }
            Ok(Outcome::NotRun(why)) => {
                not_run += 1;
                println!("test {name} ... NOT RUN: {why}");
                eprintln!("warning: {name} was NOT RUN: {why}");
            }
            Err(_) => {
                failed += 1;
                println!("test {name} ... FAILED");
            }
        }
    }
    println!("{passed} passed, {failed} failed, {not_run} not run");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
