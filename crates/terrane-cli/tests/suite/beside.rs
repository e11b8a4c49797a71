//! Commands beside a process that has the database open for writing, and the shell.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "runs processes on files of its own")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use terrane::{Db, Options};

use crate::common::Shell;

#[test]
fn reading_commands_open_beside_a_writer() {
    let shell = Shell::new();
    let db = Db::open(shell.path("db")).unwrap();
    db.put(b"a", b"1").unwrap();
    db.table_or_create("users").unwrap();
    let me = std::process::id().to_string();
    let beside = |line: &str| {
        let output = shell.run(line);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{line}: {error}");
        assert!(error.contains("as beside a writer") && error.contains(&me), "{line}: {error}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(beside("get db a"), "1");
    db.put(b"b", b"2").unwrap();
    assert_eq!(beside("scan db"), "a\t1\nb\t2\n");
    assert_eq!(beside("count db"), "2\n");
    assert_eq!(beside("tables db"), "default\nusers\n");
    assert!(beside("tables db --long").contains("default"));
    assert!(beside("shape db").contains("table default"));
    assert!(beside("check db").contains(" 0 findings"));
    assert!(beside("stats db").contains("open_micros"));
    assert!(beside("estimate db").starts_with("versions 2"));
    assert_eq!(beside("export db").lines().count(), 2);
    beside("copy db second");
    shell.fails("put db c 3", 5, &[&me]);
    assert_eq!(shell.ok("changes db").lines().count(), 2);
    db.close().unwrap();
    assert_eq!(shell.ok("scan second"), "a\t1\nb\t2\n");
}

/// A reader of a database that no process writes keeps no writer out, and shows the state at which it began.
#[test]
fn a_writer_opens_while_a_command_reads() {
    let shell = Shell::new();
    // More text than a pipe holds.
    let rows: String = (0..2000).map(|n| format!("k{n:06}\t{}\n", "v".repeat(900))).collect();
    shell.file("rows.tsv", rows);
    shell.ok("import db rows.tsv");
    // A writer at rest gives the space back that the reader still reads, and the machine may be slow.
    let mut options = Options::default();
    options.set("experiments.idle_reclaim", "false").unwrap();
    for line in ["export db -", "export db - --all", "scan db", "scan db --reverse"] {
        let before = shell.ok(line);
        let mut reader = shell.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(reader.stdout.take().unwrap());
        assert!(!said.fill_buf().unwrap().is_empty(), "{line}: no first row");
        // No process reads the pipe: the command cannot come to its end.
        let opened = Db::open_with(shell.path("db"), &options);
        let writer = opened.unwrap_or_else(|error| panic!("{line}: {error}"));
        let (first, last) = (format!("{line} first"), format!("{line} last"));
        for key in ["k000000", "k001999", &first, &last] {
            writer.put(key, line).unwrap();
        }
        writer.flush().unwrap();
        assert!(reader.try_wait().unwrap().is_none(), "{line}: it was over before the writer began");
        let mut text = String::new();
        said.read_to_string(&mut text).unwrap();
        let ended = reader.wait_with_output().unwrap();
        let error = String::from_utf8(ended.stderr).unwrap();
        assert!(ended.status.success() && error.is_empty(), "{line}: {error}");
        assert!(text == before, "{line}: rows of another state");
        writer.close().unwrap();
    }
}

/// A view of a database whose writer was killed has what only the journal has.
#[test]
fn a_reader_shows_what_only_the_journal_of_a_killed_writer_has() {
    let shell = Shell::new();
    let mut writer = shell.command("shell db --create");
    let mut writer = writer.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    writer.stdin.as_mut().unwrap().write_all(b"put a 1\nput b 2\nscan --keys --limit 1\n").unwrap();
    let mut line = String::new();
    BufReader::new(writer.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "a\n");
    writer.kill().unwrap();
    writer.wait().unwrap();
    for (line, expected) in [("scan db", "a\t1\nb\t2\n"), ("count db", "2\n"), ("get db b", "2")] {
        let read = shell.run(line);
        assert_eq!(String::from_utf8(read.stdout).unwrap(), expected, "{line}");
        assert!(read.status.success() && read.stderr.is_empty(), "{line}: no process writes");
    }
    let check = shell.ok("check db");
    assert!(check.contains(" 2 journaled records: 0 findings"), "{check}");
    shell.ok("backup create db place");
    shell.ok("backup restore place restored");
    assert_eq!(shell.ok("count restored"), "2\n");
}

/// Someone took the lock file for one that a crash had left: its writer still has the database open.
#[test]
fn a_reader_that_cannot_see_the_lock_reads_as_beside_a_writer() {
    let shell = Shell::new();
    let db = Db::open(shell.path("db")).unwrap();
    db.put(b"a", b"1").unwrap();
    std::fs::remove_file(shell.path("db/LOCK")).unwrap();
    let read = shell.run("get db a");
    let error = String::from_utf8(read.stderr).unwrap();
    assert_eq!((read.status.code(), &*read.stdout), (Some(0), &b"1"[..]), "{error}");
    assert!(error.contains("db/LOCK is missing") && error.contains("as beside a writer"), "{error}");
    assert!(!shell.path("db/LOCK").exists(), "a reader makes nothing");
    db.close().unwrap();
}

/// The exception: a reader of a pool of persistent memory, which its writer must have to itself.
#[test]
fn a_reader_of_a_pool_has_the_lock() {
    let shell = Shell::new();
    let pool = "-o pmem_path=pool -o pmem_bytes=64MiB -o write_memory_bytes=8MiB";
    let rows: String = (0..2000).map(|n| format!("k{n:06}\t{}\n", "v".repeat(900))).collect();
    shell.file("rows.tsv", rows);
    shell.ok(&format!("import db rows.tsv {pool}"));
    let line = format!("export db - {pool}");
    let mut reader = shell.command(&line).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(reader.stdout.take().unwrap());
    assert!(!said.fill_buf().unwrap().is_empty(), "no first row");
    // No process reads the pipe: the command cannot come to its end.
    shell.fails(&format!("put db a 1 {pool}"), 5, &["locked by readers"]);
    let mut text = String::new();
    said.read_to_string(&mut text).unwrap();
    assert!(reader.wait().unwrap().success() && text.lines().count() == 2000);
    shell.ok(&format!("put db a 1 {pool}"));
}

#[test]
fn a_backup_and_a_checkpoint_are_made_beside_a_writer() {
    let shell = Shell::new();
    let db = Db::open(shell.path("db")).unwrap();
    db.put(b"a", b"1").unwrap();
    db.flush().unwrap();
    db.put(b"b", b"2").unwrap();
    let me = std::process::id().to_string();
    let made = shell.run("backup create db place");
    let (said, error) = (String::from_utf8(made.stdout).unwrap(), String::from_utf8(made.stderr).unwrap());
    assert!(made.status.success() && error.contains(&me), "{error}");
    assert!(said.starts_with("backup 1 has every commit up to #2: 1 extents"), "{said}");
    shell.fails("backup create db place --flush", 5, &[&me, "--flush"]);
    let made = shell.run("checkpoint db second");
    let (said, error) = (String::from_utf8(made.stdout).unwrap(), String::from_utf8(made.stderr).unwrap());
    assert!(made.status.success() && error.contains(&me), "{error}");
    assert!(said.contains("every commit up to #2: 0 data files linked"), "{said}");
    db.put(b"c", b"3").unwrap();
    assert_eq!(shell.ok("scan second"), "a\t1\nb\t2\n");
    shell.ok("put second c 4");
    assert_eq!(db.get(b"c").unwrap().unwrap(), "3");
    shell.ok("backup restore place restored");
    assert_eq!(shell.ok("scan restored"), "a\t1\nb\t2\n");
    db.close().unwrap();
}

#[test]
fn a_state_that_is_followed_ends_with_a_signal() {
    let shell = Shell::new();
    shell.ok("put db a 1");
    let mut child = shell.command("shape db --follow").stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("table default"), "{line}");
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

fn shell_says(shell: &Shell, line: &str, input: &str) -> (Option<i32>, String, String) {
    let output = shell.with_input(line, input.as_bytes());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_shell_takes_commands_from_a_pipe() {
    let shell = Shell::new();
    let input = "put ada 'Ada Lovelace'\n# a comment\n\nput eve \"E \\\"ve\\\"\"\nget ada\nscan --keys --limit 5\n\
                 tables --create users\n.table users\nput u 1\ncount\n.table\n.tables\n.flush\n.quit\nget none\n";
    let (code, said, error) = shell_says(&shell, "shell db --create", input);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{said}");
    assert!(said.starts_with("Ada Lovelace\nada\neve\n1\nusers\ntable "), "{said}");
    assert_eq!(shell.ok("get db eve"), "E \"ve\"");
    assert_eq!(shell.ok("get db u --table users"), "1");
}

#[test]
fn a_shell_ends_at_the_first_error_of_a_pipe() {
    let shell = Shell::new();
    shell.ok("put db a 1");
    let (code, said, error) = shell_says(&shell, "shell db", "get a\nget b\nput c 3\n");
    assert_eq!((code, said.as_str()), (Some(1), "1\n"));
    assert!(error.contains("line 2: there is no key \"b\""), "{error}");
    shell.fails("get db c", 1, &["no key"]);
    for (line, part) in [
        ("sing", "no command \"sing\""),
        (".sing", "no command .sing"),
        ("get 'a", "not closed"),
        ("get", "required"),
        ("import - --format tsv", "standard input"),
        ("delete-range a b", "--yes"),
    ] {
        let (code, _, error) = shell_says(&shell, "shell db", &format!("{line}\n"));
        assert_eq!(code, Some(2), "{line}: {error}");
        assert!(error.contains(part), "{line}: {error}");
    }
    shell.fails("shell none", 1, &["none"]);
}

#[test]
fn a_shell_reads_beside_a_writer() {
    let shell = Shell::new();
    let db = Db::open(shell.path("db")).unwrap();
    db.put(b"a", b"1").unwrap();
    let (code, said, error) = shell_says(&shell, "shell db", "get a\n.refresh\n.timing\ncount\n");
    assert_eq!(code, Some(0), "{error}");
    assert!(said.starts_with("1\ntook ") && said.contains("\n1\ntook "), "{said}");
    let (code, _, error) = shell_says(&shell, "shell db", "put a 2\n");
    assert!(code == Some(5) && error.contains("close it there"), "{code:?} {error}");
    db.close().unwrap();
}

/// A shell beside a writer becomes the writer once that has ended and a command is to write.
#[test]
fn a_shell_writes_when_the_writer_has_ended() {
    let shell = Shell::new();
    let db = Db::open(shell.path("db")).unwrap();
    db.put(b"a", b"1").unwrap();
    let mut child = shell.command("shell db");
    let mut child =
        child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    child.stdin.as_mut().unwrap().write_all(b"get a\n").unwrap();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "1\n");
    db.put(b"b", b"2").unwrap();
    db.close().unwrap();
    child.stdin.take().unwrap().write_all(b"put c 3\ncount\n").unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    let ended = child.wait_with_output().unwrap();
    let error = String::from_utf8(ended.stderr).unwrap();
    assert_eq!((ended.status.code(), rest.as_str()), (Some(0), "3\n"), "{error}");
    assert!(
        error.contains("as beside a writer") && error.contains("this shell writes from now on"),
        "{error}"
    );
    assert_eq!(shell.ok("get db c"), "3");
}

#[test]
fn a_shell_prints_in_the_format_of_its_mode() {
    let shell = Shell::new();
    shell.ok("put db a 1");
    let input = ".mode\n.mode json\n.mode\nget a\nscan\nget a --format hex\nput b 2\nchanges --limit 1\n.mode default\nget a\n";
    let (code, said, error) = shell_says(&shell, "shell db", input);
    assert_eq!(code, Some(0), "{error}");
    let lines: Vec<&str> = said.lines().collect();
    let row = "{\"key\":\"a\",\"value\":\"1\"}";
    assert_eq!(lines[..5], ["default", "json", row, row, "31"]);
    assert!(lines[5].starts_with('{') && lines[6..] == ["1"], "{said}");
    let (code, _, error) = shell_says(&shell, "shell db", ".mode xml\n");
    assert!(code == Some(2) && error.contains("tsv, json, hex, raw or default"), "{error}");
}

#[test]
fn a_shell_prints_into_a_file_until_the_next_output() {
    let shell = Shell::new();
    shell.ok("put db a 1");
    let input = ".output rows.txt\nscan\n.output value\nget a\n.output\nget a\ncount\n";
    assert_eq!(shell_says(&shell, "shell db", input), (Some(0), "1\n1\n".to_owned(), String::new()));
    assert_eq!(std::fs::read_to_string(shell.path("rows.txt")).unwrap(), "a\t1\n");
    assert_eq!(std::fs::read(shell.path("value")).unwrap(), b"1", "the bytes of the value and no line break");
    shell.ok("put db -- --format 2");
    let (code, said, error) = shell_says(&shell, "shell db", ".mode hex\nget -- --format\n");
    assert_eq!((code, said.as_str()), (Some(0), "32\n"), "what stands behind -- is a key: {error}");
    for (line, code, part) in [
        (".output rows.txt", 2, "rows.txt exists already"),
        (".output db/rows.txt", 2, "within the database"),
        (".output none/rows.txt", 1, "none/rows.txt"),
        (".output one two", 2, "\"two\" is another"),
    ] {
        let (ended, _, error) = shell_says(&shell, "shell db", &format!("{line}\n"));
        assert!(ended == Some(code) && error.contains(part), "{line}: {error}");
    }
}

#[test]
fn a_shell_reads_commands_from_a_file() {
    let shell = Shell::new();
    shell.file("more.txt", "put b 2\nput c 3\n");
    shell.file("first.txt", "put a 1\n.read more.txt\n.output seen.txt\nscan\n");
    let (code, said, error) =
        shell_says(&shell, "shell db --create", ".read first.txt\nget b\n.output\ncount\n");
    assert_eq!((code, said.as_str()), (Some(0), "3\n"), "{error}");
    let seen = std::fs::read_to_string(shell.path("seen.txt")).unwrap();
    assert_eq!(seen, "a\t1\nb\t2\nc\t3\n2", "a file may say where commands print");

    shell.file("wrong.txt", "put d 4\nget none\nput e 5\n");
    let (code, _, error) = shell_says(&shell, "shell db", "count\n.read wrong.txt\n");
    assert!(code == Some(1) && error.contains("line 2: wrong.txt: line 2: there is no key"), "{error}");
    shell.file("itself.txt", ".read itself.txt\n");
    let (code, _, error) = shell_says(&shell, "shell db", ".read itself.txt\n");
    assert!(code == Some(2) && error.contains("16 files are being read"), "{error}");
    shell.file("quits.txt", "get d\n.quit\nput f 6\n");
    let (code, said, _) = shell_says(&shell, "shell db", ".read quits.txt\nput g 7\n");
    assert_eq!((code, said.as_str()), (Some(0), "4\n"));
    assert_eq!(shell.ok("count db"), "4\n", "nothing behind an error or an end is done");
    for (line, code, part) in [(".read", 2, "name of a file"), (".read none.txt", 1, "none.txt")] {
        let (ended, _, error) = shell_says(&shell, "shell db", &format!("{line}\n"));
        assert!(ended == Some(code) && error.contains(part), "{line}: {error}");
    }
}
