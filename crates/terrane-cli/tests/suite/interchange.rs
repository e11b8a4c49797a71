//! `export`, `import`, `copy` and external files: what comes back is byte for byte what was there.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "runs commands on files of its own")]

use std::collections::BTreeMap;
use std::path::Path;

use clap::Parser;
use proptest::prelude::*;
use terrane::Db;

use crate::common::Shell;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Runs a command in this process, with little memory.
fn run(words: &[&str]) -> Result<String, String> {
    let words = ["terrane", "--memory", "16MiB", "-o", "segment_bytes=256KiB"].iter().chain(words);
    let arguments = terrane_cli::arguments::Arguments::try_parse_from(words).unwrap();
    let mut out = Vec::new();
    terrane_cli::commands::run(&arguments, &mut out).map_err(|failure| failure.message)?;
    Ok(String::from_utf8(out).unwrap())
}

fn rows_of(path: &Path, table: &str) -> Rows {
    let db = Db::open(path).unwrap();
    let rows = db.table(table).unwrap().iter().collect::<Result<Rows, _>>().unwrap();
    db.close().unwrap();
    rows
}

/// Bytes that formats care about, texts, and any others.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let special = proptest::sample::select(vec![
        &b"\t"[..],
        b"\n",
        b"\r",
        b"\r\n",
        b"\\",
        b"\\n",
        b"\"",
        b",",
        b"'",
        b"0x",
        b"0x1",
        b"#",
        b"#terrane-rows",
        b" ",
        b"\0",
        b"\xff",
        b"\xc3",
        b"\xef\xbb\xbf",
        b"\x1b[31m",
        b"key",
        b"{",
        b"\xf0\x9f\xa6\x80",
        b"\xc2\x85",
    ]);
    let part = prop_oneof![3 => special.prop_map(<[u8]>::to_vec), 1 => "\\PC{0,6}".prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..6)];
    proptest::collection::vec(part, 0..5).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.div_ceil(32)))]

    #[test]
    fn exported_rows_come_back(rows in proptest::collection::btree_map(bytes(), bytes(), 1..40)) {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let shown = |name: &str| path(name).display().to_string();
        let db = Db::open(path("db")).unwrap();
        let table = db.table_or_create("rows").unwrap();
        for (key, value) in &rows {
            table.put(key, value).unwrap();
        }
        db.close().unwrap();
        let back = shown("back");
        for name in ["a.jsonl", "a.csv", "a.tsv", "a.jsonl.gz", "a.csv.zst"] {
            let file = shown(name);
            run(&["export", &shown("db"), &file, "--table", "rows"]).unwrap();
            run(&["import", &back, &file, "--table", name]).unwrap();
            prop_assert_eq!(&rows_of(&path("back"), name), &rows, "{}", name);
            // The rows that came back are exported to the same bytes.
            let again = shown(&format!("again-{name}"));
            run(&["export", &back, &again, "--table", name]).unwrap();
            prop_assert_eq!(std::fs::read(&file).unwrap(), std::fs::read(&again).unwrap());
        }
        for (format, flags) in [("json", &["--format", "jsonl"][..]), ("tsv", &["--format", "tsv", "--escaped"])] {
            let said = run(&["scan", &shown("db"), "--table", "rows", "--format", format]).unwrap();
            let file = shown(&format!("scan.{format}"));
            std::fs::write(&file, said).unwrap();
            run(&[&["import", &back, &file, "--table", format][..], flags].concat()).unwrap();
            prop_assert_eq!(&rows_of(&path("back"), format), &rows, "scan as {}", format);
        }
        run(&["export", &shown("db"), &shown("a.extents"), "--table", "rows"]).unwrap();
        run(&["tables", &back, "--create", "extents"]).unwrap();
        run(&["ingest", &back, &shown("a.extents"), "--table", "extents"]).unwrap();
        prop_assert_eq!(&rows_of(&path("back"), "extents"), &rows);
        run(&["copy", &shown("db"), &back, "--table", "rows", "--into", "copied"]).unwrap();
        prop_assert_eq!(&rows_of(&path("back"), "copied"), &rows);
    }
}

#[test]
fn a_whole_database_goes_through_one_text() {
    let shell = Shell::new();
    shell.ok("put db k v");
    shell.ok("tables db --create visits --set merge_operator=counter");
    shell.ok("merge db page 40 --number --table visits");
    shell.ok("tables db --create back --set key_order=reverse");
    shell.ok("put db a 1 --table back");
    shell.ok("put db b 2 --table back");
    assert!(shell.ok("export db all.jsonl --all").contains("exported 4 rows"));
    shell.ok("import other all.jsonl");
    let long = shell.ok("tables other --long");
    let options = |name: &str| {
        let line = long.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!(options("visits"), "merge_operator=counter");
    assert_eq!(options("back"), "key_order=reverse");
    shell.ok("merge other page 2 --number --table visits");
    assert_eq!(shell.ok("get other page --number --table visits"), "42\n");
    assert_eq!(shell.ok("scan other --table back"), "b\t2\na\t1\n");
    shell.ok("tables third --create visits");
    shell.fails("import third all.jsonl", 2, &["visits", "no options here", "merge_operator=counter"]);
    shell.ok("copy db fourth");
    assert_eq!(shell.ok("export fourth - --all"), shell.ok("export db - --all"));
}

#[test]
fn an_export_has_its_name_when_it_is_complete() {
    let shell = Shell::new();
    shell.ok("put db k v");
    shell.file("there.jsonl", "dear");
    shell.fails("export db there.jsonl", 2, &["there.jsonl exists"]);
    shell.file("half.jsonl.part", "");
    shell.fails("export db half.jsonl", 2, &["half.jsonl.part", "remove"]);
    shell.fails("export db new.jsonl --table none", 1, &["none"]);
    assert!(!shell.path("new.jsonl").exists() && !shell.path("new.jsonl.part").exists());
    shell.fails("export db new.txt", 2, &["--format"]);
    shell.fails("export db empty.extents --from x", 1, &["no row in the range"]);
    assert_eq!(shell.ok("export db"), "{\"key\":\"k\",\"value\":\"v\"}\n");
}

#[test]
fn an_ingest_of_what_a_new_database_cannot_take_makes_none() {
    let shell = Shell::new();
    let bytes = shell.damaged_extents();
    shell.file("damaged.extents", bytes);
    let ways =
        [("damaged.extents", 3), ("rows.extents damaged.extents", 3), ("rows.extents --table none", 1)];
    for (files, code) in ways {
        for flag in ["", " --copy"] {
            shell.fails(&format!("ingest new {files}{flag}"), code, &[]);
            assert!(!shell.path("new").exists(), "{files}{flag}");
        }
    }
    std::fs::create_dir(shell.path("empty")).unwrap();
    shell.fails("ingest empty damaged.extents", 3, &[]);
    assert_eq!(std::fs::read_dir(shell.path("empty")).unwrap().count(), 0, "the directory is the user's");
    // What was there stays.
    shell.ok("tables old --create t");
    shell.fails("ingest old damaged.extents", 3, &[]);
    assert_eq!(shell.ok("tables old"), "default\nt\n");
    shell.ok("ingest new rows.extents");
    assert_eq!(shell.ok("count new"), "1000\n");
}
