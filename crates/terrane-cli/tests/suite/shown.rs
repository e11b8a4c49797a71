//! Output for people and for programs, and refusals that name the remedy.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "runs processes on files of its own")]

use std::path::Path;
use std::process::{Command, Stdio};

use terrane::Db;

use crate::common::{Shell, people};

/// A database with a table of counters.
fn counted() -> Shell {
    let shell = Shell::new();
    shell.ok("put db a 1");
    shell.ok("tables db --create visits --set merge_operator=counter");
    shell.ok("merge db page 5 --number --table visits");
    shell
}

/// Standard output of a command on a terminal; `None` where this system has no `script`.
fn on_terminal(shell: &Shell, line: &str) -> Option<String> {
    let command = format!("{} {line}", env!("CARGO_BIN_EXE_terrane"));
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).current_dir(shell.path("")).stdin(Stdio::null());
    let output = script.output().ok()?;
    assert!(output.status.success(), "{line}: {output:?}");
    Some(String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n"))
}

#[test]
fn counters_are_numbers_on_a_terminal_and_bytes_elsewhere() {
    let shell = counted();
    let raw = [5, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(shell.run("get db page --table visits").stdout, raw);
    assert_eq!(shell.ok("scan db --table visits"), "page\t\\x05\\x00\\x00\\x00\\x00\\x00\\x00\\x00\n");
    let Some(get) = on_terminal(&shell, "get db page --table visits") else {
        println!("not run: this system has no `script`");
        return;
    };
    assert_eq!(get, "5\n");
    assert_eq!(on_terminal(&shell, "scan db --table visits").unwrap(), "page\t5\n");
    let escaped = on_terminal(&shell, "scan db --table visits --format tsv").unwrap();
    assert_eq!(escaped, "page\t\\x05\\x00\\x00\\x00\\x00\\x00\\x00\\x00\n", "a format that is asked for");
    assert_eq!(on_terminal(&shell, "get db a").unwrap(), "1\n");
}

#[test]
fn a_refusal_names_the_argument_that_does_it() {
    let shell = counted();
    let set = ["an option of the new table is given as --set merge_operator=counter"];
    shell.fails("tables db --create n -o merge_operator=counter", 2, &set);
    shell.fails("merge db k 1", 2, &["`terrane tables db --create NAME --set merge_operator=counter`"]);
    shell.fails("repair none other", 1, &["there is no database in none"]);
    shell.file("word.jsonl", "id: 5\n");
    shell.fails("import db word.jsonl --key id", 2, &["not JSON", "expected a text in double quotes"]);
    shell.file("ident.jsonl", "nope\n");
    shell.fails("import db ident.jsonl --key id", 2, &["true, false or null"]);
}

#[test]
fn an_import_of_all_tables_names_them() {
    let shell = counted();
    shell.ok("export db all.jsonl --all");
    let said = shell.ok("import other all.jsonl");
    assert!(said.contains("into 2 tables (\"default\", \"visits\")"), "{said}");
    shell.fails("import third all.jsonl --table t", 2, &["--table t: the input names its tables"]);
    let said = shell.ok("import fourth all.jsonl --dry-run");
    assert!(said.starts_with("would import 2 records from") && said.contains("2 tables"), "{said}");
    assert!(!shell.path("fourth").exists());
}

#[test]
fn a_dry_run_counts_and_writes_nothing() {
    let shell = Shell::new();
    shell.file("p.jsonl", people(20));
    shell.file("bad.jsonl", people(5) + "none\n");
    assert!(shell.ok("import db p.jsonl --key id --dry-run").starts_with("would import 20 records"));
    assert!(!shell.path("db").exists());
    shell.fails("import db bad.jsonl --key id --dry-run", 2, &["bad.jsonl line 6", "--skip-bad"]);
    shell.ok("import db p.jsonl --key id");
    let said = shell.ok("import db bad.jsonl --key id --dry-run --skip-bad");
    assert!(said.contains("5 records") && said.contains("; 5 would replace a row"), "{said}");
    assert!(said.contains("; 1 bad records skipped"), "{said}");
    let said = shell.ok("copy db other --dry-run");
    assert_eq!(said, "would copy 20 rows of 1 tables\n");
    assert!(!shell.path("other").exists());
    shell.ok("put other p000001 new");
    let replaced = "rows of 1 tables; 1 would replace a row of the same key\n";
    assert_eq!(shell.ok("copy db other --dry-run"), format!("would copy 20 {replaced}"));
    assert_eq!(shell.ok("count other"), "1\n");
    let replaced = replaced.replace("would replace", "replaced");
    assert_eq!(shell.ok("copy db other"), format!("copied 20 {replaced}"));
    assert_eq!(shell.ok("count other"), "20\n");
}

#[test]
fn a_copy_beside_a_writer_says_so_once() {
    let shell = Shell::new();
    let db = Db::open(shell.path("db")).unwrap();
    db.put("a", "1").unwrap();
    for (number, line) in ["copy db other", "export db all.jsonl --all"].into_iter().enumerate() {
        let output = shell.run(line);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{line}: {error}");
        assert_eq!(error.matches("as beside a writer").count(), 1, "{number}: {error}");
    }
    db.close().unwrap();
}

#[test]
fn an_export_goes_to_devices_and_says_when_one_is_full() {
    let shell = Shell::new();
    shell.ok("put db a 1");
    if !Path::new("/dev/full").exists() {
        println!("not run: this system has no /dev/full");
        return;
    }
    shell.fails("export db /dev/full", 4, &["/dev/full", "No space left"]);
    shell.fails("export db /dev/full --format extents", 2, &["to a device"]);
    assert_eq!(shell.ok("export db /dev/stdout"), "{\"key\":\"a\",\"value\":\"1\"}\n");
    assert_eq!(shell.ok("export db /dev/null --format csv"), "");
}

/// A full device for what an import acknowledges: what it counted is in the database, and the same command
/// goes on. The database itself on a full device is in `docs/transcripts.md`.
#[test]
fn an_import_on_a_full_device_counts_what_is_committed() {
    let shell = Shell::new();
    if !Path::new("/dev/full").exists() {
        println!("not run: this system has no /dev/full");
        return;
    }
    shell.file("p.jsonl", people(300));
    let output = shell.run("import db p.jsonl --key id --batch 100 --ack-file /dev/full");
    let (said, error) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(4), "{error}");
    assert!(said.starts_with("imported 100 records") && error.contains("/dev/full"), "{said}{error}");
    assert_eq!(shell.ok("count db"), "100\n");
    assert!(shell.ok("import db p.jsonl --key id").contains("with the import before 300"));
    assert_eq!(shell.ok("count db"), "300\n");
}

#[test]
fn a_range_is_deleted_by_either_form() {
    let shell = Shell::new();
    shell.file("p.jsonl", people(20));
    shell.ok("import db p.jsonl --key id");
    shell.ok("delete-range db --from p000000 --to p000005 --yes");
    shell.ok("delete-range db p000005 p000010 --yes");
    assert_eq!(shell.ok("count db"), "10\n");
    for line in
        ["delete-range db", "delete-range db --from a", "delete-range db a", "delete-range db a b --from a"]
    {
        assert_eq!(shell.run(line).status.code(), Some(2), "{line}");
    }
}

#[test]
fn a_verification_of_backups_is_shown_as_json() {
    let shell = Shell::new();
    shell.ok("put db a 1");
    shell.ok("backup create db place");
    shell.ok("backup create db place");
    let said = shell.ok("backup verify place --all --json");
    let found: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut ids: Vec<_> = found.iter().map(|backup| backup["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2]);
    assert!(found.iter().all(|backup| backup["findings"] == serde_json::json!([])), "{said}");
}

/// As `du` counts: slots of extents have no space behind what is in them.
#[test]
fn shape_shows_the_bytes_on_the_device() {
    let shell = Shell::new();
    shell.file("p.jsonl", people(2000));
    shell.ok("import db p.jsonl --key id");
    let said = shell.ok("shape db --json");
    let shape: serde_json::Value = serde_json::from_str(&said).unwrap();
    let device = shape["device_bytes"].as_u64().unwrap();
    let du = Command::new("du").args(["-sk", "db/data"]).current_dir(shell.path("")).output().unwrap();
    let du = String::from_utf8(du.stdout).unwrap();
    let kilobytes: u64 = du.split_whitespace().next().unwrap().parse().unwrap();
    // `du` counts the directory itself, too.
    assert!(device <= kilobytes * 1024 && kilobytes * 1024 <= device + (64 << 10), "{said} {du}");
    assert!(shape["extent_bytes"].as_u64().unwrap() <= shape["store_live_bytes"].as_u64().unwrap());
    assert!(shell.ok("shape db").contains(" on the device; debt"));
}
