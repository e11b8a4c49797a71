//! Starts a child, gives it its job, passes on what it tells, and ends it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use super::limit::MemoryLimit;
use super::protocol::{Event, Job};
use crate::error::{Error, Result};

/// How much of a child's standard error is kept, from its end.
const STDERR_TAIL: usize = 2000;

/// The command that a child is started with: this program and its hidden command.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// What became of a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It said that it was done.
    Done,
    /// It ended without that: how, and the last of what it wrote to standard error.
    Died(String),
    /// It was ended because the run was interrupted.
    Interrupted,
}

/// Runs one job; `hear` is called with every event.
///
/// # Errors
/// `Io` if the child cannot be started; what `hear` returns.
pub fn run(
    launcher: &Launcher,
    job: &Job,
    limit: Option<&MemoryLimit>,
    interrupted: &AtomicBool,
    hear: &mut dyn FnMut(Event) -> Result<()>,
) -> Result<Outcome> {
    let mut child = Command::new(&launcher.program)
        .args(&launcher.arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| Error::io("start", &launcher.program, error))?;
    let done = converse(&mut child, job, limit, interrupted, hear);
    if !matches!(done, Ok(Outcome::Done)) {
        // It may still be at work; what it does is of no use any more.
        let _ = child.kill();
    }
    let stderr = tail(&mut child);
    let status = child.wait().map_err(|error| Error::Io(format!("cannot wait for a child: {error}")))?;
    match done? {
        Outcome::Died(_) => Ok(Outcome::Died(format!("the process ended early ({status}){stderr}"))),
        other => Ok(other),
    }
}

fn converse(
    child: &mut Child,
    job: &Job,
    limit: Option<&MemoryLimit>,
    interrupted: &AtomicBool,
    hear: &mut dyn FnMut(Event) -> Result<()>,
) -> Result<Outcome> {
    if let Some(limit) = limit {
        // Before it has its job: it has allocated nothing yet.
        limit.add(child.id())?;
    }
    let mut input = child.stdin.take().expect("piped");
    let text = serde_json::to_string(job).expect("a job is plain data");
    let sent = input.write_all(text.as_bytes()).and_then(|()| input.write_all(b"\n"));
    if sent.is_err() {
        return Ok(Outcome::Died(String::new()));
    }
    drop(input);
    let output = BufReader::new(child.stdout.take().expect("piped"));
    for line in output.lines() {
        if interrupted.load(Ordering::Relaxed) {
            return Ok(Outcome::Interrupted);
        }
        let Ok(line) = line else { break };
        match serde_json::from_str(&line) {
            Ok(Event::Done) => return Ok(Outcome::Done),
            Ok(event) => hear(event)?,
            // Libraries of engines may print; it is no event.
            Err(_) => {}
        }
    }
    Ok(if interrupted.load(Ordering::Relaxed) { Outcome::Interrupted } else { Outcome::Died(String::new()) })
}

/// The end of what the child wrote to standard error, as a clause; empty if it wrote nothing.
fn tail(child: &mut Child) -> String {
    let mut bytes = Vec::new();
    if let Some(stderr) = child.stderr.as_mut() {
        let _ = stderr.read_to_end(&mut bytes);
    }
    let from = bytes.len().saturating_sub(STDERR_TAIL);
    let text = String::from_utf8_lossy(&bytes[from..]).trim().replace('\n', " | ");
    if text.is_empty() { text } else { format!(": {text}") }
}
