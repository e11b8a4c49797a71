//! Mistakes are cheap: consent to what removes much, one code for one cause, errors that name the remedy.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "runs processes on files of its own")]

use std::process::Command;

use terrane::Db;

use crate::common::{Shell, people};

#[test]
fn control_characters_of_names_do_not_reach_the_terminal() {
    let shell = Shell::new();
    let output = shell.run("get \u{1b}[31mred k");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!error.trim_end().contains(char::is_control) && error.contains("\\u{1b}[31mred"), "{error:?}");
}

#[test]
fn drop_extents_and_delete_range_want_consent() {
    let shell = Shell::new();
    shell.fill("db", 2000);
    shell.ok("compact db");
    shell.fails("drop-extents db", 2, &["every extent of table \"default\"", "2,000 versions", "--yes"]);
    assert!(shell.ok("drop-extents db --dry-run").starts_with("would drop every extent"));
    assert!(shell.ok("drop-extents db --from q --dry-run").contains("up to 0 extents"));
    shell.fails("delete-range db p000000 p001000", 2, &["delete every key", "--yes", "--dry-run"]);
    assert!(shell.ok("delete-range db p000000 p001000 --dry-run").contains("versions"));
    assert_eq!(shell.ok("count db"), "2000\n");
    shell.ok("delete-range db p000000 p001000 --yes");
    assert_eq!(shell.ok("count db"), "1000\n");
    shell.ok("drop-extents db --yes");
}

#[test]
fn tables_tell_their_sizes_and_options() {
    let shell = Shell::new();
    shell.ok("put db k value");
    shell.ok("tables db --create visits --set merge_operator=counter");
    let said = shell.ok("tables db --long");
    let words: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["table", "versions", "bytes", "values", "dead", "options"]);
    assert_eq!(words[1][..2], ["default", "1"]);
    assert_eq!((words[2][0], words[2][1], words[2][6]), ("visits", "0", "merge_operator=counter"));
}

#[test]
fn the_remains_of_a_stopped_repair_are_named_with_the_remedy() {
    let shell = Shell::new();
    shell.ok("put db k v");
    std::fs::create_dir(shell.path("half")).unwrap();
    shell.file("half/CURRENT", "");
    shell.fails("repair db half", 2, &["half is not empty", "remove"]);
    std::fs::create_dir(shell.path("empty")).unwrap();
    shell.ok("repair db empty");
}

#[test]
fn a_value_beyond_the_memory_names_the_memory_that_is_enough() {
    let shell = Shell::new();
    let value = vec![b'v'; 14 << 20];
    let output = shell.with_input("put db k - --memory 16MiB", &value);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    let (_, enough) = error.trim_end().split_once("give --memory ").unwrap();
    let output = shell.with_input(&format!("put db k - --memory {enough}"), &value);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(shell.run("get db k").stdout, value);
}

/// The mistake is in the argument, so the command changes nothing and the error says how to correct it.
#[test]
fn a_wrong_file_or_directory_is_not_called_damage() {
    let shell = Shell::new();
    shell.ok("put db k v");
    shell.file("rows.jsonl", people(10));
    for line in ["get rows.jsonl k", "put rows.jsonl k v", "check rows.jsonl", "shell rows.jsonl"] {
        shell.fails(line, 2, &["rows.jsonl is a file: a database is a directory"]);
    }
    for line in ["inspect rows.jsonl", "ingest db rows.jsonl"] {
        shell.fails(line, 2, &["rows.jsonl is not an external file", "export --format extents"]);
    }
    shell.file("short", "TERRANE");
    shell.fails("inspect short", 2, &["short is not an external file"]);
    // The end of one, and nothing that it describes.
    shell.file("damaged", [&[0; 100][..], b"TERRANEs"].concat());
    shell.fails("inspect damaged", 3, &["damaged"]);
    shell.fails("copy db ./db", 2, &["db is the source and the target"]);
    assert_eq!(shell.ok("count db"), "1\n", "nothing was copied");
}

#[test]
fn a_range_that_ends_before_it_begins_is_refused() {
    let shell = Shell::new();
    shell.fill("db", 20);
    for line in ["scan", "count", "estimate", "compact", "drop-extents --yes", "export"] {
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        let line = format!("{command} db --from p9 --to p0 {rest}");
        shell.fails(&line, 2, &["from \"p9\" to before \"p0\" ends before it begins"]);
    }
    assert_eq!(
        shell.ok("count db --from p9 --to p9"),
        "0\n",
        "an empty range is not a range from its end to its start"
    );
    shell.ok("tables db --create down --set key_order=reverse");
    shell.ok("put db a 1 --table down");
    assert_eq!(shell.ok("count db --table down --from p --to Z"), "1\n", "the order of the table counts");
}

/// Where nothing may be written a database can be read, shown and copied.
#[test]
fn a_database_that_may_not_be_written_is_copied_and_shown() {
    let shell = Shell::new();
    shell.ok("put db k v");
    if !has_read_only_directories(&shell) {
        println!("not run: this process can make no directory read-only for the command");
        return;
    }
    run_read_only(&shell, "checkpoint db second", b"");
    run_read_only(&shell, "backup create db place", b"");
    assert_eq!(run_read_only(&shell, "shell db", b"get k\n"), b"v\n");
    shell.ok("backup restore place third");
    assert_eq!(shell.ok("get second k") + &shell.ok("get third k"), "vv");
}

/// A command line of the system's shell that runs the rest of it where `db` may not be written. A process
/// with all rights needs a file system for that: the directory, mounted over itself in a namespace of its
/// own.
fn where_db_is_read_only(shell: &Shell) -> Command {
    let is_root = rustix::process::geteuid().is_root();
    let mut command = Command::new(if is_root { "unshare" } else { "sh" });
    let prepare = if is_root { "mount --bind db db && mount -o remount,bind,ro db" } else { "chmod 500 db" };
    let script = format!("{prepare} || exit 99; \"$@\"; code=$?; [ -w db ] || chmod 700 db 2>&-; exit $code");
    command.args(if is_root { &["-m", "sh"][..] } else { &[] }).args(["-c", &script, "sh"]);
    command.current_dir(shell.path("."));
    command
}

fn has_read_only_directories(shell: &Shell) -> bool {
    where_db_is_read_only(shell)
        .args(["sh", "-c", "[ ! -w db ]"])
        .status()
        .is_ok_and(|status| status.success())
}

/// Standard output of a command that must succeed where `db` may not be written.
#[track_caller]
fn run_read_only(shell: &Shell, line: &str, input: &[u8]) -> Vec<u8> {
    shell.file("input", input);
    let mut command = where_db_is_read_only(shell);
    command.arg(env!("CARGO_BIN_EXE_terrane")).args(line.split_whitespace());
    let output = command.stdin(std::fs::File::open(shell.path("input")).unwrap()).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Without `--from` the oldest change that is kept is the first; with it, one that is gone is an error.
#[test]
fn changes_begin_with_the_oldest_that_are_kept() {
    let shell = Shell::new();
    shell.ok("put db a 1");
    shell.ok("put db b 2");
    let output = shell.run("changes db");
    let error = String::from_utf8(output.stderr).unwrap();
    let oldest = error.split_once("changes before #").and_then(|(_, rest)| rest.split_once(' ')).unwrap().0;
    assert!(output.status.success() && error.contains("no longer kept"), "{error}");
    assert_eq!(shell.run(&format!("changes db --from {oldest}")).stdout, output.stdout);
    shell.fails("changes db --from 1", 1, &["no longer kept", &format!("oldest is #{oldest}")]);
}

/// Each command that prints a list for people prints it for programs, too: an object in each line.
#[test]
fn every_list_is_shown_as_json_too() {
    let shell = Shell::new();
    shell.fill("db", 50);
    shell.ok("tables db --create visits --set merge_operator=counter");
    shell.ok("export db rows.extents");
    let objects = |line: &str| -> Vec<serde_json::Value> {
        shell.ok(line).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let tables = objects("tables db --json");
    assert_eq!((&tables[0]["table"], &tables[0]["versions"]), (&"default".into(), &50.into()));
    let visits = tables.iter().find(|table| table["table"] == "visits").unwrap();
    assert_eq!(visits["options"]["merge_operator"], "counter");
    let shape = &objects("shape db --json")[0];
    let default = &shape["tables"][0];
    let stored = |place: &str| -> u64 {
        default[place].as_array().unwrap().iter().map(|level| level["versions"].as_u64().unwrap()).sum()
    };
    assert_eq!(stored("runs") + stored("levels"), 50, "{shape}");
    assert_eq!(objects("estimate db --json")[0]["versions"], 50);
    let check = &objects("check db --json")[0];
    assert_eq!((&check["findings"], &check["tables"]), (&serde_json::json!([]), &3.into()));
    let file = &objects("inspect rows.extents --json")[0];
    assert_eq!((&file["entries"], &file["first"]), (&50.into(), &"p000000".into()));
}

#[test]
fn a_name_that_promises_compression_is_refused_for_external_files() {
    let shell = Shell::new();
    shell.ok("put db k v");
    for name in ["rows.extents.gz", "rows.extents.zst"] {
        shell.fails(&format!("export db {name}"), 2, &[name, "not compressed as a whole"]);
        assert!(!shell.path(name).exists(), "{name}");
    }
}

#[test]
fn columns_of_one_name_are_refused() {
    let shell = Shell::new();
    shell.file("twice.csv", "id,name,id\n1,ada,2\n");
    shell.fails("import db twice.csv --key id", 2, &["line 1", "column id twice"]);
}

#[test]
fn an_ingest_refuses_a_damaged_file_and_takes_it_with_no_verify() {
    let shell = Shell::new();
    let bytes = shell.damaged_extents();
    shell.file("rows.extents", bytes);
    shell.ok("put other k v");
    for flags in ["", "--copy"] {
        shell.fails(&format!("ingest other rows.extents {flags}"), 3, &["rows.extents"]);
        assert_eq!(shell.ok("count other"), "1\n");
    }
    shell.ok("ingest other rows.extents --copy --no-verify");
    assert_eq!(shell.run("count other").status.code(), Some(3));
}

#[test]
fn a_shell_takes_keys_that_look_like_options() {
    let shell = Shell::new();
    let lines = b"put -- -k v\nget -- -k\n.table default\nget --format=json -- --table\n";
    let output = shell.with_input("shell db --create", lines);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.starts_with("v\n"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "there is no key --table, and it is not an option");
    let output = shell.with_input("shell db", b".timing foo\n");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && error.contains(".timing takes on or off"), "{error}");
}

#[test]
fn nothing_is_made_within_a_database() {
    let shell = Shell::new();
    shell.ok("put db k v");
    for line in [
        "backup create db db/backups",
        "repair db db/repaired",
        "copy db db/sub/copied",
        "checkpoint db db/sub",
        "export db db/../db/rows.jsonl",
        "export db db/rows.extents",
    ] {
        shell.fails(line, 2, &["is within the database db", "beside it"]);
    }
    // Nor by a command that works on another database, or on none.
    shell.ok("put other k v");
    shell.file("rows.jsonl", "{\"key\":\"k\",\"value\":\"v\"}\n");
    shell.ok("backup create other place");
    std::os::unix::fs::symlink(shell.path("db"), shell.path("link")).unwrap();
    for line in [
        "put db/sub k v",
        "put db/MANIFEST-000002 k v",
        "put link/sub/below k v",
        "put db/journal/sub k v",
        "merge db/sub k 1",
        "import db/sub rows.jsonl",
        "import other rows.jsonl --ack-file db/rows.jsonl",
        "tables db/sub --create t",
        "shell db/sub --create",
        "copy other db/sub",
        "checkpoint other db/sub",
        "repair other db/repaired",
        "backup restore place db/sub",
        "backup create other db/backups",
        "export other db/rows.jsonl",
        "export other db/rows.extents",
        "export other link/rows.jsonl",
        "man db",
    ] {
        shell.fails(line, 2, &["is within the database ", "/db: name a place beside it"]);
    }
    for name in ["backups", "repaired", "sub", "rows.jsonl", "rows.extents", "MANIFEST-000002", "journal/sub"]
    {
        assert!(!shell.path("db").join(name).exists(), "{name}");
    }
    shell.ok("export db db.jsonl");
    // A `CURRENT` alone is another program's.
    std::fs::create_dir(shell.path("elsewhere")).unwrap();
    shell.file("elsewhere/CURRENT", "");
    shell.ok("put elsewhere/db k v");
}

#[test]
fn errors_name_what_the_command_has() {
    let shell = Shell::new();
    shell.ok("put db k v");
    shell.fails(
        "compact none",
        1,
        &["no database in none", "put, import, copy and `terrane shell --create`"],
    );
    shell.fails("doctor db", 2, &["db is a directory", "terrane check"]);
    let output = shell.run("get db k -o x=1");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("no option x") && !error.contains("did you mean"), "{error}");
    shell.fails("get db k -o memory_bytes=abc", 2, &["expected a whole number"]);
    // As the help of export has it, for a database that is new.
    shell.ok("export db rows.extents");
    shell.ok("ingest other rows.extents");
    assert_eq!(shell.ok("get other k"), "v");
}

/// Each command that opens names the records behind a break of the journal, and a write does not lose them.
#[test]
fn commands_name_records_behind_a_break_of_the_journal_and_keep_them() {
    let shell = Shell::new();
    let db = Db::open(shell.path("db")).unwrap();
    (1..=6).for_each(|number| db.put(format!("j{number}"), "value").unwrap());
    // As the death of the process leaves it.
    assert!(
        Command::new("cp").args(["-r", "db", "dead"]).current_dir(shell.path("")).status().unwrap().success()
    );
    db.close().unwrap();
    let path = shell.path("dead/journal/000001.seg");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(2).position(|window| window == b"j2").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let stdout_of = |line: &str, code: i32, part: &str| {
        let output = shell.run(line);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{line}: {error}");
        assert!(
            error.contains("4 sound records behind the break") && error.contains(part),
            "{line}: {error}"
        );
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(stdout_of("count dead", 0, "not shown"), "1\n");
    let said = stdout_of("check dead", 3, "not shown");
    assert!(said.contains("000001.seg") && said.contains("4 sound records, #3 to #6"), "{said}");
    stdout_of("put dead new value", 0, "set aside");
    let said = shell.ok("check dead");
    assert!(
        said.contains("set aside: ") && said.contains("000001-1.cut") && said.contains("0 findings"),
        "{said}"
    );
    let repaired = shell.run("repair dead mended");
    assert_eq!(repaired.status.code(), Some(3), "{repaired:?}");
    assert_eq!(shell.ok("scan mended --keys"), "j1\nj3\nj4\nj5\nj6\nnew\n");
}
