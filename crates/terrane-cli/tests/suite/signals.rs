//! Signals: a command ends in good order with code 7 and says what remains, whatever it was doing.
//!
//! A full pipe holds the command that prints its rows until it has said that it stops, so its end is certain.
//! Other work may be over before the signal comes: it then ends with code 0 and the whole result. In no case
//! does the signal end the process by itself, or leave a half of something behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use terrane_base::env::Env;

use crate::common::{Shell, with_default_signals};

/// Not a figure: a command that still runs after as many looks, a millisecond and more apart, never ends.
const LOOKS_MAX: u32 = 100_000;

/// More text than a pipe holds.
const ROWS: usize = 2000;

/// A database of rows that fill a few extents, with its history.
fn filled() -> Shell {
    let shell = Shell::new();
    let mut noise = terrane_base::Rng::new(1);
    let mut value = || format!("{:016x}", noise.next_u64());
    let row = |n: usize| format!("k{n:06}\t{}\n", (0..60).map(|_| value()).collect::<String>());
    shell.file("rows.tsv", (0..ROWS).map(row).collect::<String>());
    shell.ok("import db rows.tsv --batch 500 -o history_bytes=64MiB");
    shell
}

pub(crate) fn kill(child: &Child, signal: &str) {
    let killed = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
}

/// A command that runs, with its two outputs.
struct Running {
    child: Child,
    said: BufReader<ChildStdout>,
    errors: BufReader<ChildStderr>,
}

/// Starts a command.
fn start(command: Command) -> Running {
    let mut child = spawn(command);
    let said = BufReader::new(child.stdout.take().unwrap());
    let errors = BufReader::new(child.stderr.take().unwrap());
    Running { child, said, errors }
}

/// Starts a command that says at once how far it is.
fn start_with_progress(shell: &Shell, line: &str) -> Running {
    let mut command = shell.command(line);
    command.env("TERRANE_PROGRESS_SECONDS", "0");
    start(command)
}

fn next_line(errors: &mut impl BufRead) -> String {
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    line
}

fn spawn(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for the end of a command, and ends one that does not end.
fn wait_or_kill(child: &mut Child) -> ExitStatus {
    let clock = Env::real().clock;
    for _ in 0..LOOKS_MAX {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        clock.sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap()
}

/// The rest of the two outputs, and the exit status of the child.
fn ended(
    mut child: Child,
    mut said: impl Read + Send,
    mut errors: impl Read + Send,
) -> (ExitStatus, String, String) {
    let mut rest = (String::new(), String::new());
    let status = std::thread::scope(|scope| {
        scope.spawn(|| said.read_to_string(&mut rest.0).unwrap());
        scope.spawn(|| errors.read_to_string(&mut rest.1).unwrap());
        wait_or_kill(&mut child)
    });
    (status, rest.0, rest.1)
}

#[test]
fn a_command_that_prints_rows_stops_between_two() {
    let shell = filled();
    for line in ["scan db", "export db -", "changes db"] {
        let Running { child, mut said, mut errors } = start(shell.command(line));
        assert!(!said.fill_buf().unwrap().is_empty(), "{line}: no first row");
        // The pipe of the rows is full, or will be: the command cannot come to its end.
        kill(&child, "TERM");
        let first = next_line(&mut errors);
        assert!(first.contains("stopping in good order"), "{line}: {first}");
        let (status, _, error) = ended(child, said, errors);
        assert_eq!(status.code(), Some(7), "{line}: {error}");
        assert!(error.starts_with("terrane: error: ") && error.contains("stopped by a signal"), "{error}");
    }
}

/// Runs a command, sends a signal when it has said how far it is, and returns its code, 7 or 0, and what it
/// said on standard error.
pub(crate) fn signalled(shell: &Shell, line: &str) -> (i32, String) {
    let Running { child, said, mut errors } = start_with_progress(shell, line);
    let first = next_line(&mut errors);
    assert!(first.contains(" elapsed"), "{line}: {first}");
    // Its code may be read already: the signal then finds a process that has ended.
    kill(&child, "TERM");
    let (status, _, error) = ended(child, said, errors);
    let code = status.code().unwrap_or_else(|| panic!("{line}: ended by the signal: {error}"));
    assert!(code == 0 || code == 7 && error.contains("stopped by a signal"), "{line}: {code}: {error}");
    (code, error)
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[test]
fn work_that_stops_leaves_nothing_half_made() {
    let shell = filled();
    signalled(&shell, "check db");
    signalled(&shell, "compact db");
    assert!(shell.ok("check db").contains(" 0 findings"));
    assert_eq!(shell.ok("count db"), format!("{ROWS}\n"));

    let (code, _) = signalled(&shell, "checkpoint db copy");
    assert_eq!(is_there(&shell.path("copy")), code == 0, "a whole checkpoint, or none");
    assert!(!is_there(&shell.path("copy.unfinished")), "what it had made is gone");

    signalled(&shell, "backup create db place");
    shell.ok("backup create db place");
    assert!(shell.ok("backup verify place --all").lines().all(|line| line.ends_with(" 0 findings")));

    let (code, error) = signalled(&shell, "repair db repaired");
    if code == 7 {
        assert!(error.contains("remove repaired"), "{error}");
        std::fs::remove_dir_all(shell.path("repaired")).unwrap();
        shell.ok("repair db repaired");
    }
    assert_eq!(shell.ok("count repaired"), format!("{ROWS}\n"));
}

#[test]
fn an_ingest_that_is_stopped_is_in_as_a_whole_or_not_at_all() {
    let shell = filled();
    shell.ok("export db rows.extents");
    shell.ok("put new a 1");
    let (code, _) = signalled(&shell, "ingest new rows.extents --copy");
    let count = shell.ok("count new");
    let whole = format!("{}\n", ROWS + 1);
    assert!(count == whole || code == 7 && count == "1\n", "{code}: {count}");
    assert!(shell.ok("check new").contains(" 0 findings"));
}

#[test]
fn a_tour_that_is_stopped_leaves_a_sound_database() {
    let shell = Shell::new();
    signalled(&shell, "tour db");
    assert!(shell.ok("check db").contains(" 0 findings"));
}

#[test]
fn a_simulation_ends_with_the_seeds_that_it_has_begun() {
    let shell = Shell::new();
    let line = "sim --until 18446744073709551615 --operations 20 --threads 1";
    let Running { child, said, mut errors } = start_with_progress(&shell, line);
    let first = next_line(&mut errors);
    assert!(first.starts_with("terrane: sim ") && first.contains(" runs"), "{first}");
    kill(&child, "INT");
    let (status, said, error) = ended(child, said, errors);
    assert_eq!(status.code(), Some(7), "{error}");
    assert!(said.contains(" done in ") && error.contains("stopped by a signal"), "{said}{error}");
}

/// Starts a shell of a database with one row, and asks for it.
fn shell_of(mut command: Command) -> (Child, ChildStdin, BufReader<ChildStdout>) {
    command.stdin(Stdio::piped());
    let mut child = spawn(command);
    let (mut input, mut said) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    ask(&mut input, &mut said);
    (child, input, said)
}

fn ask(input: &mut impl Write, said: &mut impl BufRead) {
    input.write_all(b"scan --keys\n").unwrap();
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "a\n");
}

#[test]
fn a_shell_stops_also_when_its_terminal_is_closed() {
    let shell = Shell::new();
    shell.ok("put db a 1");
    for signal in ["TERM", "HUP", "INT"] {
        let (mut child, input, said) = shell_of(shell.command("shell db"));
        let errors = child.stderr.take().unwrap();
        kill(&child, signal);
        // The pipe stays open: the shell waits for a line, and ends all the same.
        let (status, _, error) = ended(child, said, errors);
        drop(input);
        assert_eq!(status.code(), Some(7), "{signal}: {error}");
        assert!(error.contains("stopped by a signal while it waited for a line"), "{signal}: {error}");
    }
}

#[test]
fn a_command_started_with_nohup_outlives_its_terminal() {
    let shell = Shell::new();
    shell.ok("put db a 1");
    let mut command = with_default_signals("sh");
    let binary = env!("CARGO_BIN_EXE_terrane");
    command.args(["-c", "trap '' HUP; exec \"$0\" shell db", binary]).current_dir(shell.path(""));
    let (mut child, mut input, mut said) = shell_of(command);
    let errors = child.stderr.take().unwrap();
    kill(&child, "HUP");
    ask(&mut input, &mut said);
    drop(input);
    let (status, _, error) = ended(child, said, errors);
    assert_eq!((status.code(), error.as_str()), (Some(0), ""));
}
