//! Runs the scripted child under strace, which makes chosen system calls fail.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// After so many looks a child hangs: a minute on a machine that never stands still.
const LOOKS_MAX: u32 = 30_000;
/// The time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The outcome of a child under strace.
pub(crate) struct Life {
    /// Its output, line by line.
    pub(crate) said: Vec<String>,
    /// Standard error: empty unless it panicked.
    pub(crate) complaint: String,
    /// How it ended; `None` if it had to be killed because it hung.
    pub(crate) status: Option<std::process::ExitStatus>,
    /// strace's log.
    pub(crate) log: String,
}

impl Life {
    /// The phases in which a call was made to fail.
    pub(crate) fn injected(&self) -> Vec<String> {
        let mut phase = "open".to_owned();
        let mut phases = Vec::new();
        for line in self.log.lines() {
            if let Some((_, rest)) = line.split_once("write(1, \"phase ") {
                phase = rest.split('\\').next().unwrap_or_default().to_owned();
            }
            if line.contains("(INJECTED)") {
                phases.push(phase.clone());
            }
        }
        phases
    }

    /// Errors that the child printed, as `KIND MESSAGE`.
    pub(crate) fn errors(&self) -> Vec<&str> {
        self.said.iter().filter_map(|line| line.strip_prefix("error ")).collect()
    }

    /// The last operation that was acknowledged.
    pub(crate) fn acknowledged(&self) -> Option<u64> {
        self.said.iter().rev().find_map(|line| line.strip_prefix("a 0 ")?.parse().ok())
    }
}

/// Says why strace cannot be used here.
pub(crate) fn missing() -> Option<String> {
    let tried = Command::new("strace").args(["-qq", "-e", "trace=none", "true"]).output();
    match tried {
        Err(why) => Some(format!("strace is missing: {why}")),
        Ok(output) if !output.status.success() => {
            Some(format!("strace may not trace: {}", String::from_utf8_lossy(&output.stderr).trim()))
        }
        Ok(_) => None,
    }
}

/// Starts the scripted child on `dir`; it is in our code, and waits for a line.
pub(crate) fn start(dir: &Path, phase: &str, dies: bool) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env("TERRANE_REAL_CHILD", "script").env("TERRANE_REAL_DIR", dir).env("TERRANE_REAL_PHASE", phase);
    if dies {
        command.env("TERRANE_REAL_DIES", "1");
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // On a busy machine a tracer would come while the child is being loaded, and what fails then is not ours.
    let mut letter = [0];
    while letter != *b"\n" {
        child.stdout.as_mut().unwrap().read_exact(&mut letter).unwrap();
    }
    child
}

/// Lets the child go and waits for its end.
pub(crate) fn finish(mut child: Child) -> Life {
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let said = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text)
    });
    let complaint = std::thread::spawn(move || {
        let mut text = String::new();
        err.read_to_string(&mut text).map(|_| text)
    });
    let mut looks = 0;
    let mut stdin = child.stdin.take().unwrap();
    let _ = stdin.write_all(b"go\n");
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if looks == LOOKS_MAX && is_stopped(child.id()) => {
                // Another program stopped it: the script sends no such signal.
                let _ = Command::new("kill").args(["-s", "CONT", &child.id().to_string()]).status();
                looks = 0;
            }
            None if looks == LOOKS_MAX => {
                eprintln!("it hangs: {}", threads(child.id()).join("; "));
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            None => {
                looks += 1;
                std::thread::sleep(LOOK_EVERY);
            }
        }
    };
    let said = said.join().unwrap().unwrap_or_default().lines().map(str::to_owned).collect();
    let complaint = complaint.join().unwrap().unwrap_or_default();
    Life { said, complaint, status, log: String::new() }
}

/// Returns true if job control stopped the process, as opposed to a tracer.
fn is_stopped(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && line.contains("T (stopped)"))
}

/// Each thread's name, state and system call, printed to diagnose a hang.
fn threads(process: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let states = tasks.map(|task| {
        let text = |name: &str| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let status = text("status");
        let state = status.lines().find(|line| line.starts_with("State:")).unwrap_or_default();
        let [name, call] = ["comm", "syscall"].map(|file| text(file).trim().to_owned());
        format!("{name} {state} {}", call.split(' ').next().unwrap_or_default())
    });
    states.collect()
}

/// Lets a child live on `dir` under strace with these options; strace is there before the child does
/// anything.
pub(crate) fn trace(dir: &Path, phase: &str, log: &Path, options: &[String]) -> Life {
    let child = start(dir, phase, false);
    let mut strace = Command::new("strace")
        .args(["-f", "-qq", "-o", log.to_str().unwrap()])
        .args(options)
        .args(["-p", &child.id().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut looks = 0;
    let status = format!("/proc/{}/status", child.id());
    while !is_traced(&status) {
        assert!(strace.try_wait().unwrap().is_none(), "strace could not attach");
        assert!(looks < LOOKS_MAX, "strace did not attach");
        looks += 1;
        std::thread::sleep(LOOK_EVERY);
    }
    let mut life = finish(child);
    strace.wait().unwrap();
    life.log = std::fs::read_to_string(log).unwrap();
    life
}

fn is_traced(status: &str) -> bool {
    let text = std::fs::read_to_string(status).unwrap_or_default();
    text.lines().any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0"))
}
