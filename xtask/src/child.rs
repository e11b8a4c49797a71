//! A test program as a process in a process group of its own; the whole group is killed, with all processes
//! that the program started.
//!
//! The group is ended while the program is still a zombie of ours: until it is waited for, no other process
//! has its number.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::outcome::Outcome;

const LOOKS_APART: Duration = Duration::from_millis(20);

/// Runs a program to its end, its limit, or until `is_over`, with what it prints in the file `output`; what
/// it started does not outlive it.
///
/// # Errors
/// Says that the program could not be started or waited for.
pub fn run(
    command: &mut Command,
    output: &Path,
    limit: Duration,
    is_over: &AtomicBool,
) -> io::Result<Outcome> {
    let file = File::create(output)?;
    command.stdin(Stdio::null()).stderr(file.try_clone()?).stdout(file);
    let mut child = command.process_group(0).spawn()?;
    let waited = wait(&child, limit, is_over);
    if matches!(waited, Ok(Outcome::Hung)) {
        let threads = threads_of(child.id());
        let _ = std::fs::write(output.with_extension("threads.txt"), threads);
    }
    end_group(&child);
    let status = child.wait()?;
    Ok(match waited? {
        Outcome::Passed if !status.success() => Outcome::Failed(status.to_string()),
        outcome => outcome,
    })
}

/// Waits until the program ends, and leaves it as a zombie.
fn wait(child: &Child, limit: Duration, is_over: &AtomicBool) -> io::Result<Outcome> {
    let start = Instant::now();
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    loop {
        if waitid(WaitId::Pid(Pid::from_child(child)), options)?.is_some() {
            return Ok(Outcome::Passed);
        }
        if is_over.load(Ordering::Relaxed) {
            return Ok(Outcome::Ended);
        }
        if start.elapsed() > limit {
            return Ok(Outcome::Hung);
        }
        std::thread::sleep(LOOKS_APART);
    }
}

fn end_group(child: &Child) {
    // An error says that the group is empty.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}

/// Name, state and place in the kernel of each thread: which thread waits in a program that hangs.
fn threads_of(process: u32) -> String {
    let mut text = String::new();
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    for thread in threads {
        let of = |file: &str| std::fs::read_to_string(thread.path().join(file)).unwrap_or_default();
        let status = of("status");
        let state = status.lines().find(|line| line.starts_with("State:")).unwrap_or_default();
        let number = thread.file_name();
        let _ = writeln!(
            text,
            "{} {} {state} {}",
            number.to_string_lossy(),
            of("comm").trim_end(),
            of("wchan").trim_end()
        );
    }
    text
}
