//! One cause has one exit code, whatever the command.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "runs processes on files of its own")]

use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Stdio};

use terrane::{Db, Options};

use crate::common::Shell;

/// Runs each line and asserts its exit code; what it says has this part.
#[track_caller]
fn each_ends_with(shell: &Shell, lines: &[&str], code: i32, part: &str) {
    for line in lines {
        let output = shell.run(line);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{line}: {error}");
        assert!(error.contains(part), "{line}: {error}");
    }
}

/// A missing file or database has one code, whatever command misses it.
#[test]
fn a_missing_file_has_one_code() {
    let shell = Shell::new();
    shell.ok("put db k v");
    for line in [
        "get none k",
        "scan none",
        "count none",
        "check none",
        "shape none",
        "stats none",
        "tables none --long",
        "compact none",
        "delete none k",
        "shell none",
        "export none",
        "copy none db2",
        "checkpoint none second",
        "repair none second",
        "backup create none place",
        "backup list none",
        "changes none",
        "dump none",
        "inspect none",
        "ingest db none",
        "import db none.tsv",
        "import db none",
        "import new none --from rocksdb",
        "bench --config none.toml",
        "bench compare none none",
        "bench report none",
    ] {
        let output = shell.run(line);
        assert_eq!(output.status.code(), Some(1), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// A database with extents.
fn filled() -> Shell {
    let shell = Shell::new();
    shell.fill("db", 2000);
    shell.ok("compact db");
    shell
}

/// Changes every 64th byte of a file.
fn damage(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes.iter_mut().step_by(64).for_each(|byte| *byte ^= 0x55);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn damage_has_one_code() {
    let shell = Shell::new();
    let damaged = shell.damaged_extents();
    shell.file("rows.extents", damaged);
    each_ends_with(
        &shell,
        &["inspect rows.extents", "ingest new rows.extents", "ingest db rows.extents"],
        3,
        "",
    );
    shell.ok("compact db");
    for entry in std::fs::read_dir(shell.path("db/data")).unwrap() {
        damage(&entry.unwrap().path());
    }
    let of_data = [
        "check db",
        "scan db",
        "count db",
        "get db p000001",
        "export db -",
        "backup create db other",
        "copy db third",
    ];
    each_ends_with(&shell, &of_data, 3, "");
    let manifest = std::fs::read_dir(shell.path("db")).unwrap().map(|entry| entry.unwrap().path());
    let manifest = manifest.into_iter().find(|path| path.to_string_lossy().contains("MANIFEST")).unwrap();
    damage(&manifest);
    let of_manifest = [
        "check db",
        "get db p000001",
        "put db k v",
        "delete db k",
        "tables db",
        "shape db",
        "stats db",
        "compact db",
        "checkpoint db second",
    ];
    each_ends_with(&shell, &of_manifest, 3, "MANIFEST");
}

#[test]
fn a_writer_elsewhere_has_one_code() {
    let shell = filled();
    shell.ok("export db rows.extents");
    let writing = [
        "put db k v",
        "merge db k 1",
        "delete db k",
        "delete-range db a b --yes",
        "drop-extents db --yes",
        "tables db --create users",
        "import db p.jsonl --key id --restart",
        "ingest db rows.extents",
        "compact db",
        "backup create db place --flush",
        "repair db second",
    ];
    let db = Db::open(shell.path("db")).unwrap();
    let me = format!("process {}", std::process::id());
    each_ends_with(&shell, &writing, 5, &me);
    // A shell reads beside the writer, and its commands that write are refused as they are outside.
    for line in ["put k v", "merge k 1", "delete k", "tables --create users", "compact", ".flush"] {
        let output = shell.with_input("shell db", format!("count\n{line}\n").as_bytes());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), &*output.stdout), (Some(5), &b"2000\n"[..]), "{line}: {error}");
        assert!(error.contains(&me) && error.contains("line 2"), "{line}: {error}");
    }
    db.close().unwrap();
    // Readers that keep the lock keep a writer out as well; repair reads beside them.
    let options = Options { read_only: true, ..Options::default() };
    let readers = Db::open_with(shell.path("db"), &options).unwrap();
    each_ends_with(&shell, &writing[..writing.len() - 1], 5, "readers");
    drop(readers);
    shell.ok("put db k v");
}

/// True once the process catches a signal: before that it would be ended by it.
fn catches(process: u32, signal: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 != 0
}

/// Whatever a command waits for, a signal ends it with one code: here for a pipe without a writer.
#[test]
fn a_signal_has_one_code() {
    let shell = filled();
    let made =
        Command::new("mkfifo").args(["rows.extents", "rows.jsonl"]).current_dir(shell.path("")).status();
    if !Path::new("/proc/self/status").exists() || !made.is_ok_and(|made| made.success()) {
        println!("not run: this system has no /proc, or no pipes with names");
        return;
    }
    for line in ["ingest db rows.extents", "inspect rows.extents", "import db rows.jsonl"] {
        let mut command = shell.command(line);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while !catches(child.id(), 15) && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        let killed = Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{line}: {error}");
        assert!(error.contains("stopped by a signal"), "{line}: {error}");
    }
}

/// A full device stands for standard output: of what a command writes only that goes there.
#[test]
fn no_space_has_one_code() {
    if !Path::new("/dev/full").exists() {
        println!("not run: this system has no /dev/full");
        return;
    }
    let shell = filled();
    shell.ok("import logged p.jsonl --key id -o history_bytes=16MiB");
    let lines = [
        "get db p000001",
        "scan db",
        "count db",
        "export db -",
        "tables db",
        "shape db",
        "stats db",
        "check db",
        "changes logged",
        "options",
    ];
    for line in lines {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = shell.command(line).stdout(full).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(4), "{line}: {error}");
        assert!(error.contains("standard output"), "{line}: {error}");
    }
}

#[test]
fn a_line_that_cannot_be_accepted_has_one_code() {
    let shell = filled();
    shell.file("text", "no file of a database");
    let lines = [
        "get db",
        "get db k -o nonsense=1",
        "get db k -o memory_bytes=none",
        "merge db k 1",
        "scan db --from b --to a",
        "count db --prefix a --from b",
        "estimate db --from b --to a",
        "compact db --from b --to a",
        "delete-range db --from a --to b",
        "drop-extents db",
        "changes db --from none",
        "export db rows.unknown",
        "backup create db db/place",
        "backup purge place --keep none",
        "checkpoint db db/second",
        "clone db second",
        "doctor db",
        "dump text",
        "inspect text",
        "ingest db text",
        "import db p.jsonl",
        "top db --interval 0",
        "sim --until none",
        "check db --at -10m",
    ];
    each_ends_with(&shell, &lines, 2, "");
}
