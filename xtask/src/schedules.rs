//! Exploring schedules of the whole engine: builds the program of `terrane-sim` with the feature `schedule`,
//! in release, and hands its arguments on. With a planted bug the program is built with the feature
//! `planted`, too, and finding the bug is the success.

use std::path::Path;
use std::process::Command;

/// Runs `cargo xtask schedules`.
///
/// # Errors
/// Says that it could not be built or started, how it ended, or that the planted bug was not found.
pub fn run(root: &Path, planted: Option<&str>, arguments: &[&str]) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    let features = if planted.is_some() { "schedule,planted" } else { "schedule" };
    command.args(["run", "--quiet", "--release", "-p", "terrane-sim", "--features", features]);
    command.args(["--bin", "schedules", "--"]).args(arguments).current_dir(root);
    command.env_remove("TERRANE_PLANTED");
    if let Some(name) = planted {
        command.env("TERRANE_PLANTED", name);
    }
    let status = command.status().map_err(|why| format!("cannot run cargo: {why}"))?;
    match (planted, status.code()) {
        (None, Some(0)) => Ok(()),
        (Some(name), Some(1)) => {
            println!("xtask: the planted bug {name} was found");
            Ok(())
        }
        (Some(name), Some(0)) => Err(format!("the planted bug {name} was not found")),
        _ => Err(format!("schedules: {status}")),
    }
}
