//! Starts a child, sends its job, passes on its events, and ends it.
//!
//! Two threads read its two streams, so that neither a silent child delays an interruption nor a talkative
//! one waits for room in a pipe. They end with the streams, that is with the child.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use terrane::Env;
use terrane_device::MemoryLimit;

use super::protocol::{Event, Job};
use crate::error::{Error, Result};

/// How much of a child's standard error is kept, from its end.
const STDERR_TAIL: usize = 2000;
/// Lines of a child that may wait to be heard.
const LINES_AHEAD: usize = 64;
/// How often an interruption is looked for while a child is silent.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// SIGINT and SIGTERM, by which a run is interrupted.
const REQUESTS: [i32; 2] = [2, 15];
/// How long this process may take to notice such a signal after it has ended a child.
const SIGNAL_WAIT: Duration = Duration::from_secs(10);

/// The command that a child is started with: this program and its hidden command.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// The end of a child.
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
    let output = child.stdout.take().expect("piped");
    let errors = child.stderr.take().expect("piped");
    let (done, ended, stderr) = std::thread::scope(|scope| {
        let stderr = scope.spawn(|| tail(errors));
        let (sender, lines) = sync_channel(LINES_AHEAD);
        scope.spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(std::io::Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let done = converse(&mut child, job, limit, interrupted, &lines, hear);
        // The reader must not wait for room that no thread makes any more.
        drop(lines);
        if !matches!(done, Ok(Outcome::Done)) {
            // It may still be at work; what it does is of no use any more.
            let _ = child.kill();
        }
        let ended = child.wait();
        (done, ended, stderr.join().expect("reading does not panic"))
    });
    let status = ended.map_err(|error| Error::Io(format!("cannot wait for a child: {error}")))?;
    match done? {
        Outcome::Died(_) if is_interrupted(status, interrupted) => Ok(Outcome::Interrupted),
        Outcome::Died(_) => Ok(Outcome::Died(format!("the process ended early ({status}){stderr}"))),
        other => Ok(other),
    }
}

/// Returns true if the run is interrupted. A signal to the whole group often ends the child before this
/// process has taken its own: then that is waited for.
fn is_interrupted(status: ExitStatus, interrupted: &AtomicBool) -> bool {
    let was_asked = status.signal().is_some_and(|signal| REQUESTS.contains(&signal));
    let clock = Env::real().clock;
    let start = clock.now();
    while was_asked && !interrupted.load(Ordering::Relaxed) && clock.now() - start < SIGNAL_WAIT {
        clock.sleep(LOOK_EVERY);
    }
    interrupted.load(Ordering::Relaxed)
}

fn converse(
    child: &mut Child,
    job: &Job,
    limit: Option<&MemoryLimit>,
    interrupted: &AtomicBool,
    lines: &Receiver<Vec<u8>>,
    hear: &mut dyn FnMut(Event) -> Result<()>,
) -> Result<Outcome> {
    if let Some(limit) = limit {
        // Before it has its job: it has allocated nothing yet.
        limit.add(child.id()).map_err(Error::Io)?;
    }
    let mut input = child.stdin.take().expect("piped");
    let text = serde_json::to_string(job).expect("a job is plain data");
    let sent = input.write_all(text.as_bytes()).and_then(|()| input.write_all(b"\n"));
    if sent.is_err() {
        return Ok(Outcome::Died(String::new()));
    }
    drop(input);
    loop {
        let line = lines.recv_timeout(LOOK_EVERY);
        if interrupted.load(Ordering::Relaxed) {
            return Ok(Outcome::Interrupted);
        }
        let line = match line {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Ok(Outcome::Died(String::new())),
        };
        match serde_json::from_slice(&line) {
            Ok(Event::Done) => return Ok(Outcome::Done),
            Ok(event) => hear(event)?,
            // Libraries of engines may print; it is not an event.
            Err(_) => {}
        }
    }
}

/// The end of what the child writes to standard error, as a clause; empty if it writes nothing.
fn tail(mut stderr: impl Read) -> String {
    let mut kept = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut piece) {
        kept.extend_from_slice(&piece[..read]);
        kept.drain(..kept.len().saturating_sub(STDERR_TAIL));
    }
    let text = String::from_utf8_lossy(&kept).trim().replace('\n', " | ");
    if text.is_empty() { text } else { format!(": {text}") }
}
