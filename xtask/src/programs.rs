//! Test programs, built by cargo and run without it.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

/// Time between looks at whether a build is over.
const LOOKS_APART: Duration = Duration::from_millis(20);

/// Test programs by package (the name of its folder) and target.
pub type Programs = BTreeMap<(String, String), PathBuf>;

/// A `cargo test` that builds and does not run; what to build is for the caller to add.
#[must_use]
pub fn build_command(root: &Path) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["test", "--no-run", "--message-format", "json-render-diagnostics"]).current_dir(root);
    command
}

/// Runs it, and finds the programs in what it says.
///
/// # Errors
/// Says that cargo cannot be run or that something does not build.
pub fn build(command: &mut Command) -> Result<Programs, String> {
    let built = command.stderr(Stdio::inherit()).output();
    let built = built.map_err(|why| format!("cannot run cargo: {why}"))?;
    if !built.status.success() {
        return Err(format!("the tests do not build ({})", built.status));
    }
    Ok(programs_in(&built.stdout))
}

/// [`build`], ended with all that it started as soon as `is_over`.
///
/// # Errors
/// As [`build`], and that it was ended.
pub fn build_until(command: &mut Command, is_over: &AtomicBool) -> Result<Programs, String> {
    let child = command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|why| format!("cannot run cargo: {why}"))?;
    let mut said = child.stdout.take().expect("its output is piped");
    let (status, output) = std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut output = Vec::new();
            said.read_to_end(&mut output).map(|_| output)
        });
        let status = loop {
            match child.try_wait() {
                Ok(None) if is_over.load(Ordering::Relaxed) => {
                    // An error says that the group is empty. The child is not reaped yet, so no other process has its number.
                    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                    let _ = child.wait();
                    break Err("ended by a signal".to_owned());
                }
                Ok(None) => std::thread::sleep(LOOKS_APART),
                Ok(Some(status)) => break Ok(status),
                Err(why) => break Err(why.to_string()),
            }
        };
        (status, reader.join().expect("reading does not panic"))
    });
    match status? {
        status if status.success() => Ok(programs_in(&output.map_err(|why| why.to_string())?)),
        status => Err(format!("the tests do not build ({status})")),
    }
}

fn programs_in(messages: &[u8]) -> Programs {
    String::from_utf8_lossy(messages).lines().filter_map(program_in).collect()
}

/// The test program of one message of cargo, if it is about one. A command that a test runs is none.
fn program_in(line: &str) -> Option<((String, String), PathBuf)> {
    let message = serde_json::from_str::<Value>(line).ok()?;
    if message["profile"]["test"] != Value::Bool(true) {
        return None;
    }
    let program = message["executable"].as_str()?;
    let target = message["target"]["name"].as_str()?;
    let package = Path::new(message["manifest_path"].as_str()?).parent()?.file_name()?;
    Some(((package.to_string_lossy().into_owned(), target.to_owned()), program.into()))
}
