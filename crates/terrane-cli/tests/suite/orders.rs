//! The command on databases whose orders of keys it does not have.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "runs processes on files of its own")]

use crate::common;

use std::path::Path;
use std::sync::Arc;

use common::Shell;
use terrane::{Comparator, Db, Functions, KeyOrder, KeyOrders, Options, TableOptions};

/// By length, then as bytes from the greatest to the least.
#[derive(Debug)]
struct Length;

impl Comparator for Length {
    fn name(&self) -> &str {
        "test.length"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> std::cmp::Ordering {
        left.len().cmp(&right.len()).then_with(|| right.cmp(left))
    }
}

/// A database with a table that a comparator orders, and one by bytes; rows in extents and in the journal.
fn make_ordered(path: &Path) {
    let orders = KeyOrders::new().with_comparator(Arc::new(Length)).unwrap();
    let mut options = Options::default();
    options.set("compression", "none").unwrap();
    let db = Db::open_with_functions(path, &options, Functions { orders, ..Functions::default() }).unwrap();
    let own = TableOptions::new().set("key_order", "test.length").unwrap();
    let table = db.create_table("lengths", &own).unwrap();
    for number in 0..300 {
        let (key, value) = (format!("k{number}"), format!("stored-{number}"));
        table.put(key.as_bytes(), value.as_bytes()).unwrap();
        db.put(key.as_bytes(), value.as_bytes()).unwrap();
        if number == 200 {
            table.delete_range(b"k5", b"k22").unwrap();
            db.flush().unwrap();
        }
    }
    db.close().unwrap();
}

/// From the greatest key to the least, of keys of one length.
#[derive(Debug)]
struct Inverted;

impl KeyOrder for Inverted {
    fn name(&self) -> &str {
        "test.inverted"
    }

    fn encode(&self, key: &[u8], out: &mut Vec<u8>) -> terrane::Result<()> {
        out.extend(key.iter().map(|byte| !byte));
        Ok(())
    }

    fn decode(&self, encoded: &[u8], out: &mut Vec<u8>) -> terrane::Result<()> {
        self.encode(encoded, out)
    }
}

#[test]
fn a_table_whose_order_is_missing_is_checked_whole() {
    let shell = Shell::new();
    let orders = KeyOrders::new().with(Arc::new(Inverted)).unwrap();
    let functions = Functions { orders, ..Functions::default() };
    let db = Db::open_with_functions(shell.path("db"), &Options::default(), functions).unwrap();
    let own = TableOptions::new().set("key_order", "test.inverted").unwrap();
    let table = db.create_table("inverted", &own).unwrap();
    (0..300u32).for_each(|number| table.put(number.to_be_bytes(), b"v").unwrap());
    db.flush().unwrap();
    db.close().unwrap();
    let checked = shell.ok("check db");
    assert!(checked.contains(": 0 findings") && !checked.contains("not checked"), "{checked}");
    shell.fails("check db -o read_only=false", 2, &["read_only=false", "only reads"]);
}

#[test]
fn a_table_without_its_comparator_is_checked_but_for_its_order_and_not_repaired() {
    let shell = Shell::new();
    make_ordered(&shell.path("db"));
    let unchecked = "not checked: table \"lengths\": the order of its keys, \"test.length\"";
    let checked = shell.ok("check db");
    assert!(checked.contains(unchecked) && checked.contains(": 0 findings"), "{checked}");
    let repair = shell.run("repair db new");
    let (lost, error) =
        (String::from_utf8(repair.stdout).unwrap(), String::from_utf8(repair.stderr).unwrap());
    assert_eq!(repair.status.code(), Some(3), "{lost}{error}");
    assert!(lost.contains("lost: table \"lengths\": ") && lost.contains("test.length"), "{lost}");
    assert!(lost.contains("1 losses"), "{lost}");
    assert_eq!(shell.ok("get new k7"), "stored-7");
    assert_eq!(shell.ok("get new k250"), "stored-250");
    shell.fails("get new k7 --table lengths", 1, &["lengths"]);
    assert!(shell.ok("check new").contains(": 0 findings"));

    // Blocks of the table are damaged, in slots that are free again, too: that is found without its order.
    let mut damaged = 0;
    for entry in std::fs::read_dir(shell.path("db/data")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        for at in 0..bytes.len().saturating_sub(3) {
            if bytes[at..].starts_with(b"k9\0") {
                bytes[at] ^= 1;
                damaged += 1;
            }
        }
        std::fs::write(&path, bytes).unwrap();
    }
    assert!(damaged > 0, "keys of the table have a mark");
    let check = shell.run("check db");
    let found = String::from_utf8(check.stdout).unwrap();
    assert_eq!(check.status.code(), Some(3), "{found}");
    assert!(found.contains(unchecked) && !found.contains(" 0 findings"), "{found}");
}

#[test]
fn a_shell_on_an_unknown_order_names_the_way_to_read() {
    let shell = Shell::new();
    make_ordered(&shell.path("db"));
    shell.fails("shell db", 2, &["test.length", "--read-only"]);
    let read = shell.with_input("shell db --read-only", b"get k7\n");
    let error = String::from_utf8(read.stderr).unwrap();
    assert!(read.status.success() && read.stdout == b"stored-7\n", "{error}");
    // An option that is refused for reading, too, has another remedy.
    let output = shell.run("shell db -o block_bytes=1");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && !error.contains("--read-only"), "{error}");
}
