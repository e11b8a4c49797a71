//! Mistakes are cheap: consent to what removes much, one code for one cause, errors that name the remedy.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "runs processes on files of its own")]

use crate::common::{Shell, people};

/// A missing file or database has one code, whatever command misses it.
#[test]
fn one_cause_has_one_code() {
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
        "import new none --from rocksdb",
        "bench --config none.toml",
        "bench compare none none",
        "bench report none",
    ] {
        let output = shell.run(line);
        assert_eq!(output.status.code(), Some(1), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

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
    shell.file("p.jsonl", people(2000));
    shell.ok("import db p.jsonl --key id");
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
fn what_a_stopped_repair_left_is_named_with_the_remedy() {
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
    let value = vec![b'v'; 6 << 20];
    let output = shell.with_input("put db k - --memory 16MiB", &value);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    let (_, enough) = error.trim_end().split_once("give --memory ").unwrap();
    let output = shell.with_input(&format!("put db k - --memory {enough}"), &value);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(shell.run("get db k").stdout, value);
}
