//! Test programs, built by cargo and run without it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

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
    Ok(String::from_utf8_lossy(&built.stdout).lines().filter_map(program_in).collect())
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
