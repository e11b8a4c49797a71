//! Imports as processes: formats, bad input, and that whatever ends one, the next goes on where it was.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "runs processes on files of its own")]

use crate::common;

use std::io::Write;
use std::process::{Command, Stdio};

use common::{Shell, people};

#[test]
fn imports_every_format_plain_and_compressed() {
    let shell = Shell::new();
    let gzip = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let zstd = |text: &str| {
        ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest)
    };
    let text = people(3000);
    shell.file("p.jsonl", &text);
    shell.file("p.jsonl.gz", gzip(&text));
    // Two members and two frames with a skippable one between them: what tools that work in parallel write.
    let (first, second) = text.split_at(text.len() / 2);
    shell.file("two.jsonl.gz", [gzip(first), gzip(second)].concat());
    shell.file(
        "two.jsonl.zst",
        [zstd(first), b"\x50\x2a\x4d\x18\x03\0\0\0abc".to_vec(), zstd(second)].concat(),
    );
    for name in ["p.jsonl", "p.jsonl.gz", "two.jsonl.gz", "two.jsonl.zst"] {
        let said = shell.ok(&format!("import db {name} --key id --table {name}"));
        assert!(said.starts_with("imported 3,000 records"), "{said}");
        assert_eq!(
            shell.ok(&format!("scan db --table {name} --from p002999 --format raw")),
            "p002999\t{\"id\":\"p002999\",\"name\":\"name 2999\"}\n"
        );
    }
    shell.file("p.csv", "id;name\n1;ada\n2;grace\n");
    shell.ok("import db p.csv --key id --table csv --delimiter ;");
    assert_eq!(shell.ok("get db 2 --table csv"), "{\"id\":\"2\",\"name\":\"grace\"}");
    shell.file("status", "Package: a\nVersion: 1\n\nPackage: b\nVersion: 2\n");
    shell.ok("import db status --table deb");
    assert_eq!(shell.ok("get db b --table deb"), "Package: b\nVersion: 2");
}

#[test]
fn a_damaged_compressed_input_is_refused_and_what_came_before_stays() {
    let shell = Shell::new();
    let mut bytes = ruzstd::encoding::compress_to_vec(
        people(40_000).as_bytes(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    let middle = bytes.len() - 40;
    bytes.truncate(middle);
    shell.file("p.jsonl.zst", bytes);
    shell.fails("import db p.jsonl.zst --key id --batch 10", 2, &["p.jsonl.zst", "Zstandard"]);
    let count: u64 = shell.ok("count db").trim().parse().unwrap();
    assert!(count > 0 && count < 40_000, "{count}");
}

#[test]
fn an_import_stops_at_a_bad_line_or_skips_it() {
    let shell = Shell::new();
    shell.file("p.jsonl", format!("{}oops\n{}", people(10), "{\"id\":\"z\"}\n"));
    shell.fails("import db p.jsonl --key id", 2, &["p.jsonl line 11", "not JSON", "--skip-bad"]);
    assert_eq!(shell.ok("count db"), "10\n");
    let said = shell.ok("import db p.jsonl --key id --skip-bad");
    assert!(said.contains("imported 1 records") && said.contains("1 bad records skipped"), "{said}");
    assert_eq!(shell.ok("count db"), "11\n");
    shell.file("long.tsv", format!("{}\tv\nk\tv\n", "k".repeat(70_000)));
    shell.fails("import db long.tsv", 2, &["long.tsv line 1", "70000 bytes", "65536"]);
}

#[test]
fn an_import_that_skips_bad_rows_ends_at_a_table_that_cannot_be_made() {
    let shell = Shell::new();
    let row =
        |key: &str, table: &str| format!("{{\"key\":\"{key}\",\"value\":\"v\",\"table\":\"{table}\"}}\n");
    let (long, at) = ("t".repeat(300), "p.jsonl line 3: ");
    shell.file(
        "p.jsonl",
        [row("a", "default"), "oops\n".to_owned(), row("b", &long), row("c", "default")].concat(),
    );
    shell.fails("import db p.jsonl", 2, &["p.jsonl line 2", "--skip-bad"]);
    let output = shell.run("import db p.jsonl --skip-bad");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains(at) && said.contains("table name"), "{said}");
    // What stands before it is in.
    assert_eq!(shell.ok("scan db"), "a\tv\n");
    shell.file(
        "p.jsonl",
        [row("a", "default"), "oops\n".to_owned(), row("b", "t"), row("c", "default")].concat(),
    );
    shell.ok("import db p.jsonl --skip-bad --restart");
    assert_eq!(shell.ok("scan db"), "a\tv\nc\tv\n");
    let options = "{\"table\":\"new\",\"options\":{\"no_such_option\":\"1\"}}\n";
    shell.file("o.jsonl", [row("d", "default"), options.to_owned()].concat());
    let output = shell.run("import db o.jsonl --skip-bad");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("o.jsonl line 2: "), "{said}");
    assert_eq!(shell.ok("get db d"), "v");
}

#[test]
fn a_complete_import_is_not_repeated_and_a_changed_input_is_refused() {
    let shell = Shell::new();
    shell.fill("db", 5);
    assert!(shell.ok("import db p.jsonl --key id").contains("imported already: 5 records"));
    shell.fails("import db p.jsonl --key name", 2, &["format or key fields", "--restart"]);
    shell.file("p.jsonl", people(4));
    shell.fails(
        "import db p.jsonl --key id",
        2,
        &["p.jsonl", "shorter", "complete with 5 records", "--restart"],
    );
    shell.file("p.jsonl", people(9).replace("name 0", "NAME 0"));
    shell.fails("import db p.jsonl --key id", 2, &["first bytes", "--restart"]);
    assert!(shell.ok("import db p.jsonl --key id --restart").starts_with("imported 9 records"));
}

#[test]
fn a_file_that_grew_is_gone_on_with() {
    let shell = Shell::new();
    shell.fill("db", 5);
    shell.file("p.jsonl", people(8));
    let said = shell.ok("import db p.jsonl --key id");
    assert!(said.starts_with("imported 3 records") && said.contains("with the import before 8"), "{said}");
    assert!(!said.contains("replaced"), "{said}");
    assert_eq!(shell.ok("count db"), "8\n");
    // A last line without an end was a record; when it goes on, it was not.
    shell.file("t.tsv", "a\t1\nb\t2");
    shell.ok("import db t.tsv --table t");
    shell.file("t.tsv", "a\t1\nb\t23\nc\t4\n");
    shell.fails("import db t.tsv --table t", 2, &["last line had no end", "--restart"]);
    shell.file("t.tsv", "a\t1\nb\t2\nc\t4\n");
    assert!(shell.ok("import db t.tsv --table t").starts_with("imported 1 records"));
    assert_eq!(shell.ok("scan db --table t"), "a\t1\nb\t2\nc\t4\n");
}

#[test]
fn each_pipe_is_an_input_of_its_own_and_a_named_one_goes_on() {
    let shell = Shell::new();
    let import = |line: &str, text: &str| {
        let output = shell.with_input(line, text.as_bytes());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let plain = "import db - --format tsv";
    assert!(import(plain, "a\t1\n").starts_with("imported 1 records"));
    assert!(import(plain, "b\t2\nc\t3\n").starts_with("imported 2 records"));
    let again = import(plain, "b\t2\nc\t3\n");
    assert!(again.contains("2 replaced a row of the same key"), "{again}");
    let named = "import db - --format tsv --table log --name log";
    assert!(import(named, "a\t1\n").starts_with("imported 1 records"));
    let said = import(named, "a\t1\nb\t2\n");
    assert!(said.starts_with("imported 1 records") && said.contains("with the import before 2"), "{said}");
    let output = shell.with_input(named, b"other\t1\n");
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("--name log") && error.contains("first bytes"), "{error}");
}

#[test]
fn keys_that_meet_again_are_counted() {
    let shell = Shell::new();
    shell.file("t.tsv", "a\t1\nb\t2\na\t3\n");
    let said = shell.ok("import db t.tsv");
    assert!(said.contains("; 1 replaced a row of the same key"), "{said}");
    shell.file("u.tsv", "a\t4\nc\t5\n");
    let said = shell.ok("import db u.tsv --batch 1");
    assert!(said.contains("; 1 replaced a row of the same key"), "{said}");
    let said = shell.ok("import db u.tsv --restart --blind");
    assert!(!said.contains("replaced"), "{said}");
    assert_eq!(shell.ok("scan db"), "a\t4\nb\t2\nc\t5\n");
}

#[test]
fn a_batch_that_fails_is_not_counted_and_takes_no_other_row_with_it() {
    let shell = Shell::new();
    shell.file("t.tsv", format!("a\t1\nb\t2\nc\t{}\nd\t4\n", "x".repeat(14 << 20)));
    let output = shell.run("import db t.tsv --memory 16MiB --ack-file acks");
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("give --memory"), "{error}");
    assert!(said.starts_with("imported 2 records"), "{said}");
    assert_eq!(std::fs::read_to_string(shell.path("acks")).unwrap(), "2\n");
    assert_eq!(shell.ok("count db"), "2\n");
    let said = shell.ok("import db t.tsv --memory 128MiB");
    assert!(said.starts_with("imported 2 records") && said.contains("with the import before 4"), "{said}");
}

#[test]
fn an_import_leaves_nothing_to_replay() {
    let shell = Shell::new();
    shell.fill("db", 2000);
    let check = shell.ok("check db");
    assert!(check.contains(" 0 journaled records"), "{check}");
}

#[test]
fn a_killed_import_goes_on_after_its_last_batch() {
    let shell = Shell::new();
    let total = 20_000;
    shell.file("p.jsonl", people(total));
    let line = "import db p.jsonl --key id --batch 50 --ack-file acks";
    let acknowledged = || {
        let acks = std::fs::read_to_string(shell.path("acks")).unwrap_or_default();
        acks.lines().last().map_or(0, |line| line.parse::<usize>().unwrap())
    };
    let mut kills = 0;
    while kills < 5 {
        let before = acknowledged();
        let mut child = shell.command(line).stdout(Stdio::null()).spawn().unwrap();
        // Killed when it has done something, whatever that takes: no time is assumed.
        while child.try_wait().unwrap().is_none() && acknowledged() < before + 1000 {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let (acknowledged, stored) = (acknowledged(), shell.ok("count db").trim().parse::<usize>().unwrap());
        assert!(stored >= acknowledged, "{acknowledged} acknowledged, {stored} stored");
        assert!(stored.is_multiple_of(50) || stored == total, "a part of a batch: {stored}");
        // Keys rise with the lines, so a prefix of the input is a prefix of the keys.
        if stored > 0 {
            assert_eq!(shell.ok("scan db --reverse --limit 1 --keys"), format!("p{:06}\n", stored - 1));
        }
        kills += 1;
    }
    shell.ok(line);
    assert_eq!(shell.ok("count db"), format!("{total}\n"));
    assert_eq!(acknowledged(), total);
    assert!(shell.ok("check db").contains(" 0 findings"));
}

#[test]
fn a_signal_stops_an_import_that_waits_for_input() {
    let shell = Shell::new();
    // The input never ends by itself: it is a pipe that stays open.
    let mut child = shell
        .command("import db - --format tsv --batch 1 --ack-file acks --name pipe")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&b"key\tvalue\n".repeat(2000)).unwrap();
    // All that came is committed: the import waits for more.
    while !std::fs::read_to_string(shell.path("acks")).is_ok_and(|acks| acks.ends_with("\n2000\n")) {
        std::thread::yield_now();
    }
    kill(&child);
    // The pipe stays open, and nothing comes: the import waits for input, and ends all the same.
    let output = child.wait_with_output().unwrap();
    drop(input);
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("stopped by a signal"));
    assert_eq!(shell.ok("get db key"), "value");
}

fn kill(child: &std::process::Child) {
    let killed = Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
}

/// The first signal says that it waits, the second one that it does not. The command is held up by a pipe
/// that is opened for writing and has no reader.
#[test]
fn a_second_signal_ends_the_command_and_says_so() {
    let shell = Shell::new();
    shell.file("t.tsv", "a\t1\n");
    assert!(Command::new("mkfifo").arg(shell.path("acks")).status().unwrap().success());
    let mut child = shell
        .command("import db t.tsv --ack-file acks")
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let status = || std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let catches_term = || {
        let caught =
            status().lines().find_map(|line| line.strip_prefix("SigCgt:").map(str::to_owned)).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << 14 != 0
    };
    while !catches_term() {
        std::thread::yield_now();
    }
    kill(&child);
    let mut error = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut error, &mut line).unwrap();
    assert!(line.contains("a second signal ends at once"), "{line}");
    // Signals that come directly behind the first one are taken as one with it: they are sent until it is
    // over.
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        kill(&child);
        std::thread::yield_now();
    };
    line.clear();
    std::io::BufRead::read_line(&mut error, &mut line).unwrap();
    assert!(line.contains("second signal: ended at once"), "{line}");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
}

#[test]
fn a_second_writer_is_refused() {
    let shell = Shell::new();
    let mut child = shell
        .command("import db - --format tsv --batch 1 --ack-file acks")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&b"key\tvalue\n".repeat(60_000)).unwrap();
    while std::fs::metadata(shell.path("acks")).map_or(0, |acks| acks.len()) == 0 {
        std::thread::yield_now();
    }
    shell.fails("put db k v", 5, &[&child.id().to_string()]);
    drop(input);
    assert!(child.wait().unwrap().success());
    shell.ok("put db k v");
}

/// The history of changes shows it: each batch holds its records and the position behind them.
#[test]
fn records_and_position_are_in_one_batch() {
    let shell = Shell::new();
    shell.file("p.jsonl", people(35));
    shell.ok("import db p.jsonl --key id --batch 10 -o history_bytes=64MiB");
    let changes = shell.ok("changes db");
    let mut batches: Vec<(&str, [usize; 2])> = Vec::new();
    for line in changes.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        if batches.last().is_none_or(|(last, _)| *last != columns[1]) {
            batches.push((columns[1], [0, 0]));
        }
        let (_, counts) = batches.last_mut().unwrap();
        counts[usize::from(columns[2] == "terrane.import")] += 1;
    }
    let counts: Vec<[usize; 2]> = batches.iter().map(|(_, counts)| *counts).collect();
    assert_eq!(counts, [[10, 1], [10, 1], [10, 1], [5, 1]], "{changes}");
}
