//! Runs the command as a process.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "each test binary uses its part, on files of its own"
)]

use std::ffi::OsStr;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

/// The option of `env` that gives these signals their default action.
pub const DEFAULT_SIGNALS: &str = "--default-signal=INT,HUP,TERM";

/// A command that signals end, even where the program that started the tests ignores them, as a shell without
/// job control does for what it runs in the background. An `env` without the option: as the tests have them.
pub fn with_default_signals(program: impl AsRef<OsStr>) -> Command {
    static IS_THERE: OnceLock<bool> = OnceLock::new();
    let run = || Command::new("env").args([DEFAULT_SIGNALS, "true"]).stderr(Stdio::null()).status();
    if !*IS_THERE.get_or_init(|| run().is_ok_and(|status| status.success())) {
        return Command::new(program);
    }
    let mut command = Command::new("env");
    command.arg(DEFAULT_SIGNALS).arg(program);
    command
}

/// A directory of its own, in which commands run.
pub struct Shell {
    dir: TempDir,
}

impl Shell {
    pub fn new() -> Shell {
        Shell { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub fn command(&self, line: &str) -> Command {
        let mut command = with_default_signals(env!("CARGO_BIN_EXE_terrane"));
        command.args(line.split_whitespace()).current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    pub fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Standard output of a command that must succeed.
    #[track_caller]
    pub fn ok(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Asserts the exit code, and that there is exactly one line on standard error, with all of `parts`.
    #[track_caller]
    pub fn fails(&self, line: &str, code: i32, parts: &[&str]) {
        let output = self.run(line);
        let error = without_wait(output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {error}");
        assert!(error.starts_with("terrane: error: ") && error.lines().count() == 1, "{line}: {error}");
        for part in parts {
            assert!(error.contains(part), "{line}: {part:?} is not in {error:?}");
        }
    }

    pub fn with_input(&self, line: &str, input: &[u8]) -> Output {
        let mut child = self
            .command(line)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Imports so many people into a database, from the file `p.jsonl`.
    #[track_caller]
    pub fn fill(&self, db: &str, count: usize) {
        self.file("p.jsonl", people(count));
        self.ok(&format!("import {db} p.jsonl --key id"));
    }

    /// Exports 1000 rows as the external file `rows.extents`; returns its bytes with one of them wrong.
    pub fn damaged_extents(&self) -> Vec<u8> {
        self.fill("db", 1000);
        self.ok("export db rows.extents");
        let mut bytes = std::fs::read(self.path("rows.extents")).unwrap();
        bytes[100] ^= 1;
        bytes
    }
}

/// Standard error without the line about an opening that takes more than 2 s, as any may on a busy machine.
pub fn without_wait(stderr: Vec<u8>) -> String {
    let lines = String::from_utf8(stderr).unwrap();
    lines.split_inclusive('\n').filter(|line| !line.contains(": not open after 2 s yet")).collect()
}

/// JSON Lines with keys that rise with the lines.
pub fn people(count: usize) -> String {
    (0..count).map(|n| format!("{{\"id\":\"p{n:06}\",\"name\":\"name {n}\"}}\n")).collect()
}
