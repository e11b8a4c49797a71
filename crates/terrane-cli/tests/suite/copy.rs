//! `import --from rocksdb`: from databases that our own library of RocksDB's name made, and, where
//! `TERRANE_ROCKSDB` names one, from databases of RocksDB's.
#![cfg(feature = "rocksdb")]
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "runs processes on files of its own")]

use crate::common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::Shell;
use terrane::{Batch, Db, Durability, TableOptions};

/// Our own library, which cargo puts beside the tests.
fn ours() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let library = test.parent().unwrap().join("librocksdb.so");
    assert!(library.exists(), "{} is not there", library.display());
    library
}

/// RocksDB's, where there is one.
fn real() -> Option<PathBuf> {
    let library = std::env::var_os("TERRANE_ROCKSDB").filter(|path| !path.is_empty()).map(PathBuf::from);
    if library.is_none() {
        println!("not run: TERRANE_ROCKSDB names no library");
    }
    library
}

/// Compiles the program that makes sources against a library; none where there is no compiler.
struct Maker {
    program: PathBuf,
    libraries: PathBuf,
}

impl Maker {
    fn new(shell: &Shell, library: &Path) -> Option<Maker> {
        let (program, libraries) = (shell.path("source"), shell.path("lib"));
        std::fs::create_dir(&libraries).unwrap();
        for name in ["librocksdb.so", "librocksdb.so.11"] {
            std::os::unix::fs::symlink(std::path::absolute(library).unwrap(), libraries.join(name)).unwrap();
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let interface = root.join("../terrane-rocksdb");
        let mut compiler = Command::new("cc");
        compiler
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-o"])
            .arg(&program);
        compiler.arg("-I").arg(interface.join("include")).arg("-I").arg(interface.join("tests/c"));
        compiler.arg(root.join("tests/c/source.c")).arg("-L").arg(&libraries).args(["-lrocksdb", "-pthread"]);
        let Ok(compiled) = compiler.output() else {
            println!("not run: there is no `cc`");
            return None;
        };
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        Some(Maker { program, libraries })
    }

    fn make(&self, shell: &Shell, name: &str, what: &[&str]) {
        let path = shell.path(name);
        let made = Command::new(&self.program)
            .arg(&path)
            .args(what)
            .env("LD_LIBRARY_PATH", &self.libraries)
            .output()
            .unwrap();
        assert!(made.status.success(), "{what:?}: {}", String::from_utf8_lossy(&made.stderr));
    }
}

/// All rows of a table as the command prints them.
fn rows(shell: &Shell, database: &str, table: &str) -> Vec<String> {
    shell.ok(&format!("scan {database} --table {table}")).lines().map(str::to_owned).collect()
}

fn import(target: &str, source: &str, library: &Path) -> String {
    format!("import {target} {source} --from rocksdb --library {}", library.display())
}

/// The families and rows of the program's kind `plain`.
fn copies_what_a_program_wrote(library: &Path) {
    let shell = Shell::new();
    let Some(maker) = Maker::new(&shell, library) else { return };
    maker.make(&shell, "old", &["plain", "1000"]);
    let said = shell.ok(&import("new", "old", library));
    assert!(said.contains("copied 1,857 rows") && said.contains("as in the source"), "{said}");
    assert!(
        said.contains("table \"empty\": 0 rows") && said.contains("table \"users\": 1,000 rows"),
        "{said}"
    );
    let (default, users) = (rows(&shell, "new", "default"), rows(&shell, "new", "users"));
    assert_eq!((default.len(), users.len()), (857, 1000));
    assert_eq!(default[0], "k0000001\tvalue 1 of round 0");
    assert_eq!(default[2], "k0000003\tvalue 3 of round 1");
    assert_eq!((users[0].as_str(), users[6].as_str()), ("k0000000\t", "k0000006\tvalue 6 of round 1"));
    assert_eq!(rows(&shell, "new", "empty"), Vec::<String>::new());
    shell.ok("check new");
    let again = shell.ok(&import("new", "old", library));
    assert!(again.contains("copied and compared already"), "{again}");
    maker.make(&shell, "other", &["plain", "3"]);
    shell.fails(&import("new", "other", library), 2, &["holds a copy of", "old", "new directory"]);
}

#[test]
fn a_database_of_our_own_library_is_copied() {
    copies_what_a_program_wrote(&ours());
}

#[test]
fn a_database_of_rocksdb_is_copied() {
    let Some(library) = real() else { return };
    copies_what_a_program_wrote(&library);
    let shell = Shell::new();
    let maker = Maker::new(&shell, &library).unwrap();
    maker.make(&shell, "old", &["plain", "10"]);
    shell.fails("check old", 2, &["LevelDB or RocksDB", "terrane import NEW OLD --from rocksdb"]);
}

#[test]
fn orders_and_operators_come_along_or_are_refused_by_name() {
    let Some(library) = real() else { return };
    let shell = Shell::new();
    let maker = Maker::new(&shell, &library).unwrap();
    maker.make(&shell, "reverse", &["options", "comparator=rocksdb.ReverseBytewiseComparator"]);
    shell.ok(&import("new1", "reverse", &library));
    assert_eq!(rows(&shell, "new1", "default"), ["c\t3", "b\t22222222", "a\t1"]);

    maker.make(&shell, "known", &["options", "merge_operator=uint64add"]);
    shell.ok(&import("new2", "known", &library));
    assert_eq!(rows(&shell, "new2", "default"), ["a\t1", "b\t32222222", "c\t3"]);

    maker.make(&shell, "operator", &["operator"]);
    let line = import("new3", "operator", &library);
    shell.fails(&line, 2, &["\"default\"", "a.program.of.its.own", "--source-options", "compact"]);
    assert_eq!(rows(&shell, "new3", "default"), ["a\t1"]);
    let output = shell.ok(&format!("{line} --source-options merge_operator=uint64add"));
    assert!(output.contains("copied 2 rows"), "{output}");
    assert_eq!(rows(&shell, "new3", "default"), ["a\t1", "b\t32222222", "c\t3"]);
    let unknown = format!("{} --source-options merge_operator=no.such", import("new5", "operator", &library));
    shell.fails(&unknown, 2, &["merge_operator=no.such", "no such merge operator"]);

    maker.make(&shell, "comparator", &["comparator"]);
    shell.fails(&import("new4", "comparator", &library), 2, &["\"default\"", "a.program.of.its.own"]);
    assert!(!shell.path("new4").exists(), "nothing is made where nothing can be copied");
}

/// A source that our own library reads, made without a compiler.
fn native_source(shell: &Shell, count: u32) {
    let db = Db::open(shell.path("old")).unwrap();
    let more = db.create_table("more", &TableOptions::new()).unwrap();
    let mut batch = Batch::new();
    for n in 0..count {
        batch.put(db.default_table(), n.to_be_bytes(), n.to_string().as_bytes()).unwrap();
        batch.put(&more, n.to_be_bytes(), b"v").unwrap();
    }
    db.write(&batch, Durability::Synced).unwrap();
    db.close().unwrap();
}

/// Checks the state behind the first `count` rows of the default table.
fn state_after(shell: &Shell, count: u32) {
    let db = Db::open(shell.path("new")).unwrap();
    let positions = db.table("terrane.import").unwrap();
    let (key, row) = positions.iter().next().unwrap().unwrap();
    let mut state: serde_json::Value = serde_json::from_slice(&row).unwrap();
    let (mut checksum, mut bytes) = (0, 0);
    for n in 0..count {
        let (key, value) = (n.to_be_bytes(), n.to_string());
        for part in [
            &(key.len() as u64).to_le_bytes()[..],
            &(value.len() as u64).to_le_bytes(),
            &key,
            value.as_bytes(),
        ] {
            checksum = crc32c::crc32c_append(checksum, part);
        }
        bytes += key.len() + value.len();
    }
    state["complete"] = false.into();
    let last = count.checked_sub(1).map(|last| format!("{last:08x}"));
    for family in state["families"].as_array_mut().unwrap() {
        let of_default = family["name"] == "default";
        family["complete"] = false.into();
        family["last"] = if of_default { last.clone().into() } else { serde_json::Value::Null };
        family["tally"] = match of_default {
            true => serde_json::json!({"rows": count, "bytes": bytes, "checksum": checksum}),
            false => serde_json::json!({"rows": 0, "bytes": 0, "checksum": 0}),
        };
    }
    let mut batch = Batch::new();
    batch.put(&positions, &key, state.to_string().as_bytes()).unwrap();
    db.write(&batch, Durability::Synced).unwrap();
    db.close().unwrap();
}

#[test]
fn a_copy_goes_on_where_it_was_and_is_compared_as_a_whole() {
    let (shell, library) = (Shell::new(), ours());
    native_source(&shell, 500);
    let line = import("new", "old", &library);
    shell.ok(&line);
    // As if the process had ended before it wrote how far it was: the rows that are loaded again are the
    // same.
    for (count, left) in [(0, "1,000"), (1, "999"), (250, "750"), (500, "500")] {
        state_after(&shell, count);
        let said = shell.ok(&line);
        assert!(said.contains(&format!("copied {left} rows")), "{said}");
        assert!(said.contains("table \"default\": 500 rows"), "{said}");
    }
    // Rows that differ from the source are found, and named.
    state_after(&shell, 250);
    let db = Db::open(shell.path("new")).unwrap();
    db.put(7u32.to_be_bytes(), b"other").unwrap();
    db.close().unwrap();
    shell.fails(&line, 3, &["\"default\"", "not what the source gave"]);
    // A source that was written to is another one.
    let db = Db::open(shell.path("old")).unwrap();
    db.put(b"new", b"row").unwrap();
    db.close().unwrap();
    shell.fails(&line, 2, &["changed since", "remove it"]);
}

#[test]
fn a_signal_stops_a_copy_which_then_goes_on() {
    let (shell, library) = (Shell::new(), ours());
    native_source(&shell, 60_000);
    let line = import("new", "old", &library);
    let mut child = shell.command(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while !shell.path("new").exists() && child.try_wait().unwrap().is_none() {
        assert!(begin.elapsed() < Duration::from_secs(300), "the copy neither begins nor ends");
        std::thread::yield_now();
    }
    // The handler is there before the target is: the process ends in good order, or was done already. Where
    // the loading stops is what the tests of `commands/copy.rs` see.
    let signal = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    let ended = child.wait_with_output().unwrap();
    assert!(signal.success() || ended.status.success());
    assert!(matches!(ended.status.code(), Some(0 | 7)), "{}", String::from_utf8_lossy(&ended.stderr));
    let said = shell.ok(&line);
    assert!(said.contains("as in the source") || said.contains("copied and compared already"), "{said}");
    assert_eq!(shell.ok("count new"), "60000\n");
}

#[test]
fn a_copy_that_is_impossible_is_refused_with_the_reason() {
    let (shell, library) = (Shell::new(), ours());
    native_source(&shell, 3);
    shell.fails(&import("new", "missing", &library), 1, &["missing", "No such file"]);
    std::fs::create_dir(shell.path("bare")).unwrap();
    shell.fails(&import("new", "bare", &library), 2, &["bare", "no database of RocksDB"]);
    shell.fails(
        "import new old --from rocksdb --library no/such.so",
        1,
        &["no/such.so", "rocksdbjni", "--library"],
    );
    shell.file("text.so", "no library");
    shell.fails("import new old --from rocksdb --library text.so", 2, &["text.so", "cannot be loaded"]);
    assert!(!shell.path("new").exists());
    let output = shell.run("import new old --library x");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--from"));
    for option in ["--key id", "--format csv", "--table t", "--restart", "--batch 7"] {
        let output = shell.run(&format!("{} {option}", import("new", "old", &library)));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains("cannot be used with"), "{option}: {said}");
    }
    shell.ok("put full k v");
    shell.fails(&import("full", "old", &library), 2, &["full is not empty", "\"default\"", "new database"]);
    shell.ok("put tabled k v");
    shell.ok("delete tabled k");
    shell.ok("tables tabled --create t");
    shell.fails(&import("tabled", "old", &library), 2, &["tabled is not empty", "\"t\""]);
}
