//! The command on databases with merge operators, prefix extractors and key orders that it does not have.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "runs processes on files of its own")]

#[path = "../../../terrane/tests/suite/unknown_functions/functions.rs"]
mod unknown;

use std::path::Path;

use terrane::{Db, Options};

use crate::common::Shell;
use unknown::{functions, table};

/// Without the flush of the close: operands stay apart.
fn open(path: &Path) -> Db {
    let options = Options { close_flush: false, ..Options::default() };
    Db::open_with_functions(path, &options, functions()).unwrap()
}

/// A database with an operator and an extractor, and with two orders if asked for.
fn make(path: &Path, has_orders: bool) {
    let db = open(path);
    db.put(b"k", b"v").unwrap();
    let merged = table(&db, "merged", ("merge_operator", "test.joined"));
    merged.put(b"sum", b"1").unwrap();
    merged.put(b"whole", b"w").unwrap();
    table(&db, "prefixed", ("prefix_extractor", "test.first")).put(b"ab", b"1").unwrap();
    if has_orders {
        table(&db, "mirrored", ("key_order", "test.mirrored")).put(b"ab", b"1").unwrap();
        table(&db, "backward", ("key_order", "test.backward")).put(b"ab", b"1").unwrap();
    }
    db.flush().unwrap();
    merged.merge(b"sum", b"2").unwrap();
    merged.merge(b"sum", b"3").unwrap();
    merged.merge(b"new", b"4").unwrap();
    db.close().unwrap();
}

#[test]
fn rows_that_need_no_unknown_function_are_read() {
    let shell = Shell::new();
    make(&shell.path("db"), true);
    assert_eq!(shell.ok("get db k"), "v");
    assert_eq!(shell.ok("tables db"), "default\nmerged\nprefixed\nmirrored\nbackward\n");
    assert!(shell.ok("tables db --long").contains("merge_operator=test.joined"));
    assert_eq!(shell.ok("count db --table merged"), "3\n");
    assert_eq!(
        shell.ok("scan db --table merged"),
        "new\toperands of test.joined: \"4\" on nothing\n\
         sum\toperands of test.joined: \"2\", \"3\" on \"1\"\nwhole\tw\n"
    );
    assert_eq!(shell.ok("get db sum --table merged"), "operands of test.joined: \"2\", \"3\" on \"1\"");
    assert_eq!(shell.ok("scan db --table prefixed --prefix a"), "ab\t1\n");
    let mirrored = shell.run("scan db --table mirrored");
    assert!(mirrored.status.success() && mirrored.stdout == b"ba\t1\n", "{mirrored:?}");
    assert!(String::from_utf8(mirrored.stderr).unwrap().contains("as they are stored"));
    let unread = ["\"backward\"", "test.backward", "comparator that this command does not have"];
    for line in ["scan db", "count db", "get db ab", "export db", "estimate db"] {
        shell.fails(&format!("{line} --table backward"), 2, &unread);
    }
    let checked = shell.ok("check db");
    assert!(checked.contains(": 0 findings") && checked.contains("not checked: table \"backward\""));
    assert!(shell.ok("shape db").contains("table merged"));
    assert!(shell.ok("stats db").contains("table merged"));
    shell.ok("backup create db place");
    shell.ok("backup restore place restored");
    assert_eq!(shell.ok("check restored"), checked);
    // Beside a writer, too.
    let writer = open(&shell.path("db"));
    assert_eq!(shell.ok("get db new --table merged"), "operands of test.joined: \"4\" on nothing");
    writer.close().unwrap();
}

#[test]
fn an_export_and_a_copy_say_what_they_leave_out() {
    let shell = Shell::new();
    make(&shell.path("db"), true);
    let left_out = ["left out: ", "2 keys of table \"merged\"", "test.joined"];
    shell.fails("export db merged.tsv --table merged", 2, &left_out);
    assert_eq!(std::fs::read_to_string(shell.path("merged.tsv")).unwrap(), "#terrane-rows\nwhole\tw\n");
    shell.fails("export db merged.extents --table merged", 2, &left_out);
    shell.fails("export db all.jsonl --all", 2, &[&left_out[..], &["\"backward\"", "\"mirrored\""]].concat());
    shell.ok("import other all.jsonl");
    assert_eq!(shell.ok("scan other --table merged"), "whole\tw\n");
    assert_eq!(shell.ok("scan other --table prefixed"), "ab\t1\n");
    shell.fails("copy db copied", 2, &[&left_out[..], &["\"backward\"", "\"mirrored\""]].concat());
    assert_eq!(shell.ok("scan copied"), "k\tv\n");
    assert!(shell.ok("tables copied --long").contains("merge_operator=test.joined"));
}

#[test]
fn rows_of_unknown_functions_are_written_beside_and_outlive_a_repair() {
    let shell = Shell::new();
    make(&shell.path("db"), false);
    shell.ok("put db k w");
    shell.ok("put db own 5 --table merged");
    shell.fails("merge db sum 6 --table merged", 2, &["test.joined", "not registered"]);
    shell.ok("compact db --table merged");
    shell.fails("tables db --create t --set merge_operator=typo", 2, &["typo"]);
    shell.fails("tables db --create t --set prefix_extractor=typo", 2, &["typo"]);
    shell.fails("get db k -o merge_operator=typo", 2, &["typo"]);
    assert!(shell.ok("repair db new").ends_with(" 0 losses\n"));
    for name in ["db", "new"] {
        let db = open(&shell.path(name));
        let merged = db.table("merged").unwrap();
        assert_eq!(merged.get(b"sum").unwrap().as_deref(), Some(&b"1+2+3"[..]), "{name}");
        assert_eq!(merged.get(b"own").unwrap().as_deref(), Some(&b"5"[..]), "{name}");
        assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"w"[..]), "{name}");
        db.close().unwrap();
    }
}
