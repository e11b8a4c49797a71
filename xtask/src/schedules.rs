//! Exploring schedules of the whole engine: builds the program of `terrane-sim` with the feature `schedule`, in release, and
//! hands its arguments on. With a planted bug the program is built with `--cfg terrane_planted` in a target directory of its
//! own.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs `cargo xtask schedules`.
///
/// # Errors
/// Says that it could not be built or started, or how it ended.
pub fn run(root: &Path, planted: Option<&str>, arguments: &[&str]) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--release", "-p", "terrane-sim", "--features", "schedule"]);
    command.args(["--bin", "schedules", "--"]).args(arguments).current_dir(root);
    command.env_remove("TERRANE_PLANTED");
    if let Some(name) = planted {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        command.env("RUSTFLAGS", "--cfg terrane_planted").env("CARGO_TARGET_DIR", target.join("planted"));
        command.env("TERRANE_PLANTED", name);
    }
    let status = command.status().map_err(|why| format!("cannot run cargo: {why}"))?;
    if status.success() { Ok(()) } else { Err(format!("schedules: {status}")) }
}
