//! Values and operands that a table's merge operator does not take.
#![allow(clippy::disallowed_methods, reason = "runs processes on files of its own")]

use crate::common::Shell;

/// Table `c` of counters with a number in `k1` and `k3`, and in `k2` a text with an operand, which came by a
/// file of another table.
fn with_a_wrong_value(shell: &Shell) {
    shell.ok("put db of-no-counter v");
    shell.ok("tables db --create c --set merge_operator=counter");
    shell.ok("put db k1 4 --number --table c");
    shell.ok("put other k2 xyz");
    shell.ok("export other k2.extents");
    shell.ok("ingest db k2.extents --table c");
    shell.ok("merge db k2 1 --number --table c");
    shell.ok("put db k3 -5 --number --table c");
}

#[test]
fn a_table_of_counters_takes_no_other_value() {
    let shell = Shell::new();
    shell.ok("put db of-no-counter v");
    shell.ok("tables db --create c --set merge_operator=counter");
    shell.ok("tables db --create j --set merge_operator=json_merge_patch");
    shell.fails("put db k xyz --table c", 2, &["value of 3 bytes", "\"c\"", "expected 8", "--number"]);
    shell.fails("put db k xyz --table c --ttl 1h", 2, &["value of 3 bytes", "expected 8"]);
    shell.fails("put db k 1.5 --number --table c", 2, &["1.5", "whole number"]);
    shell.fails("put db k nojson --table j", 2, &["value of 6 bytes", "not JSON"]);
    shell.ok("put db k {} --table j");
    shell.file("rows.jsonl", "{\"key\":\"a\",\"value\":\"12345678\"}\n{\"key\":\"b\",\"value\":\"xyz\"}\n");
    shell.fails("import db rows.jsonl --table c", 2, &["line 2", "value of 3 bytes", "--skip-bad"]);
    assert_eq!(shell.ok("count db --table c"), "1\n");
    shell.ok("put db k -7 --number --table c");
    shell.ok("merge db k 9 --number --table c");
    assert_eq!(shell.ok("get db k --number --table c"), "2\n");
}

/// As its documentation says: a sum that depended on the order of the parts would be another for each reader.
#[test]
fn a_counter_wraps_around() {
    let shell = Shell::new();
    shell.ok("put db of-no-counter v");
    shell.ok("tables db --create c --set merge_operator=counter");
    shell.ok("put db k 9223372036854775807 --number --table c");
    shell.ok("merge db k 1 --number --table c");
    assert_eq!(shell.ok("get db k --number --table c"), "-9223372036854775808\n");
    shell.ok("merge db k -1 --number --table c");
    assert_eq!(shell.ok("get db k --number --table c"), "9223372036854775807\n");
    shell.fails("merge db k 9223372036854775808 --number --table c", 2, &["whole number of 64 bits"]);
}

#[test]
fn rows_behind_a_key_whose_fold_fails_are_read() {
    let shell = Shell::new();
    with_a_wrong_value(&shell);
    let shown = "operands of counter: \"\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\" on \"xyz\"";
    for flushed in [false, true] {
        if flushed {
            shell.ok("compact db --table c");
        }
        let escaped = shown.replace('\\', r"\\");
        assert_eq!(shell.ok("scan db --number --table c"), format!("k1\t4\nk2\t{escaped}\nk3\t-5\n"));
        assert_eq!(shell.ok("get db k2 --table c"), shown);
        assert_eq!(shell.ok("count db --table c"), "3\n");
        let check = shell.run("check db");
        let said = String::from_utf8(check.stdout).unwrap();
        assert_eq!(check.status.code(), Some(2), "{said}");
        assert!(said.contains("merge operator \"counter\" fails on key \"k2\""), "{said}");
        assert!(said.contains(": 0 findings") && !said.contains("k1"), "{said}");
    }
    let left_out = ["left out: 1 key", "\"c\"", "\"counter\" cannot fold", "terrane check"];
    shell.fails("export db rows.tsv --table c", 2, &left_out);
    assert_eq!(std::fs::read_to_string(shell.path("rows.tsv")).unwrap().lines().count(), 3);
    shell.fails("copy db copied", 2, &left_out);
    assert_eq!(shell.ok("scan copied --number --table c"), "k1\t4\nk3\t-5\n");
    shell.ok("put db k2 1 --number --table c");
    assert!(shell.ok("check db").contains(": 0 findings"));
}
