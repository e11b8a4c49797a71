//! Progress of long work on standard error.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "runs processes on files of its own")]

use std::fs::File;

use crate::common::{Shell, people};
use crate::deployment::deployed_to_clone;

/// Removes the files that a run makes, since the next one makes them again.
fn remove_made(shell: &Shell) {
    for made in ["rows.jsonl", "rows.extents"] {
        let _ = std::fs::remove_file(shell.path(made));
    }
    for made in ["second", "third", "fourth", "fifth"] {
        let _ = std::fs::remove_dir_all(shell.path(made));
    }
}

/// Runs a command whose standard output is a file; returns standard error.
fn into_file(shell: &Shell, line: &str, seconds: Option<&str>) -> String {
    let mut command = shell.command(line);
    if let Some(seconds) = seconds {
        command.env("TERRANE_PROGRESS_SECONDS", seconds);
    }
    let ended = command.stdout(File::create(shell.path("said")).unwrap()).output().unwrap();
    let error = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.success(), "{line}: {error}");
    error
}

/// Asserts that progress is shown, and how many records that are where `has_records`.
#[track_caller]
fn assert_shown(line: &str, error: &str, has_records: bool) {
    let mut shown =
        error.lines().filter(|line| line.starts_with("terrane: ") && line.contains(" elapsed")).peekable();
    assert!(shown.peek().is_some(), "{line}: {error}");
    let counts = |line: &str| line.contains(" records ") || line.contains(" rows ");
    assert!(shown.all(|line| counts(line) == has_records), "{line}: {error}");
}

/// With lines as often as there is something to tell, every command with long work tells it; which of them
/// count records, `docs/command.md` says.
#[test]
fn every_command_with_long_work_shows_how_far_it_is() {
    let shell = Shell::new();
    shell.file("p.jsonl", people(300));
    shell.ok("import made p.jsonl --key id -o history_bytes=16MiB");
    shell.ok("export made kept.extents");
    for (line, has_records) in [
        ("import db p.jsonl --key id", true),
        ("count db", true),
        ("scan db", true),
        ("changes made", true),
        ("stats db --table default --sizes --all", true),
        ("export db rows.jsonl", true),
        ("export db rows.extents", true),
        ("copy db other", true),
        ("inspect kept.extents", true),
        ("ingest fifth kept.extents --dry-run", true),
        ("compact db", false),
        ("check db", true),
        ("dump kept.extents", false),
        ("ingest db kept.extents --copy", false),
        ("checkpoint db second", false),
        ("backup create db place", false),
        ("backup verify place", false),
        ("backup restore place third", false),
        ("repair db fourth", true),
    ] {
        let silent = into_file(&shell, line, None);
        assert!(silent.is_empty(), "{line}: {silent}");
        remove_made(&shell);
        let line = if line.starts_with("import") { "import db p.jsonl --key id --restart" } else { line };
        assert_shown(line, &into_file(&shell, line, Some("0")), has_records);
    }
    // Before a new database is made, its files are read.
    remove_made(&shell);
    let error = into_file(&shell, "ingest fifth kept.extents --copy", Some("0"));
    assert!(error.lines().next().is_some_and(|line| line.starts_with("terrane: verify ")), "{error}");
}

/// Rows that go into a pipe are seen by the reader of the pipe: nothing disturbs it on a terminal.
#[test]
fn rows_in_a_pipe_are_their_own_progress() {
    let shell = Shell::new();
    shell.ok("put db a 1");
    for line in ["scan db", "changes db"] {
        let piped = shell.command(line).env("TERRANE_PROGRESS_SECONDS", "0").output().unwrap();
        assert!(piped.status.success() && piped.stderr.is_empty(), "{line}: {piped:?}");
    }
}

#[test]
fn a_clone_shows_how_far_it_is() {
    let shell = deployed_to_clone(300);
    let error = into_file(&shell, "clone app.toml copy.toml", Some("0"));
    assert_shown("clone", &error, false);
}
