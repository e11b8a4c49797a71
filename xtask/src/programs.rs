//! Test programs, built by cargo and run without it.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

/// Time between two checks whether a build is over.
const LOOKS_APART: Duration = Duration::from_millis(20);

/// A test program that cargo has built.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program {
    /// The package, by the name of its folder.
    pub package: String,
    /// The target.
    pub target: String,
    /// `lib`, `bin`, `test`, `example` or `bench`.
    pub kind: String,
    /// The file.
    pub path: PathBuf,
    /// The folder of the package: cargo runs its tests there.
    pub folder: PathBuf,
}

impl Program {
    /// Its name, and the part that distinguishes it from a target of the same name.
    #[must_use]
    pub fn name(&self) -> String {
        match self.kind.as_str() {
            "test" | "lib" => format!("{} {}", self.package, self.target),
            kind => format!("{} {kind} {}", self.package, self.target),
        }
    }

    /// Arguments of `cargo test` that choose it and no other.
    #[must_use]
    pub fn selection(&self) -> String {
        match self.kind.as_str() {
            "lib" => format!("-p {} --lib", self.package),
            kind => format!("-p {} --{kind} {}", self.package, self.target),
        }
    }
}

/// The program of a library's own tests or of a file in `tests`.
#[must_use]
pub fn path_of<'p>(programs: &'p [Program], package: &str, target: &str) -> Option<&'p Path> {
    let is_it = |program: &&Program| {
        program.package == package
            && program.target == target
            && matches!(program.kind.as_str(), "lib" | "test")
    };
    programs.iter().find(is_it).map(|program| program.path.as_path())
}

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
pub fn build(command: &mut Command) -> Result<Vec<Program>, String> {
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
pub fn build_until(command: &mut Command, is_over: &AtomicBool) -> Result<Vec<Program>, String> {
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
                    // An error says that the group is empty. The child is not reaped yet, so no other process
                    // has its number.
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

/// The programs that the messages of cargo name.
#[must_use]
pub fn programs_in(messages: &[u8]) -> Vec<Program> {
    let mut programs: Vec<Program> =
        String::from_utf8_lossy(messages).lines().filter_map(program_in).collect();
    programs.sort();
    programs.dedup();
    programs
}

/// The test program of one message of cargo, if it is about one. A command that a test runs does not count.
fn program_in(line: &str) -> Option<Program> {
    let message = serde_json::from_str::<Value>(line).ok()?;
    if message["profile"]["test"] != Value::Bool(true) {
        return None;
    }
    let target = &message["target"];
    let kind = target["kind"][0].as_str()?;
    let is_other = ["bin", "test", "example", "bench"].contains(&kind);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    Some(Program {
        package: folder.file_name()?.to_string_lossy().into_owned(),
        target: target["name"].as_str()?.to_owned(),
        // A library has the kind of its output, such as `cdylib`.
        kind: if is_other { kind } else { "lib" }.to_owned(),
        path: message["executable"].as_str()?.into(),
        folder: folder.to_owned(),
    })
}
