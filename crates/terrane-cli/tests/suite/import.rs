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
fn a_complete_import_is_not_repeated_and_a_changed_input_is_refused() {
    let shell = Shell::new();
    shell.file("p.jsonl", people(5));
    shell.ok("import db p.jsonl --key id");
    assert!(shell.ok("import db p.jsonl --key id").contains("imported already: 5 records"));
    shell.fails("import db p.jsonl --key name", 2, &["format or key fields", "--restart"]);
    shell.file("p.jsonl", people(6));
    shell.fails("import db p.jsonl --key id", 2, &["p.jsonl", "--restart"]);
    assert!(shell.ok("import db p.jsonl --key id --restart").starts_with("imported 6 records"));
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
fn a_signal_stops_an_import_between_batches() {
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
    let wait_for_acks = || {
        while std::fs::metadata(shell.path("acks")).map_or(0, |acks| acks.len()) == 0 {
            std::thread::yield_now();
        }
    };
    // More than the head that identifies the input and the buffer, or nothing is read yet.
    input.write_all(&b"key\tvalue\n".repeat(60_000)).unwrap();
    wait_for_acks();
    let killed = Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    // A read that waits for the pipe goes on when something comes.
    let _ = input.write_all(&b"key\tvalue\n".repeat(60_000));
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("stopped by a signal"));
    assert_eq!(shell.ok("get db key"), "value");
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

/// The journal shows it: each batch holds its records and the position behind them. It is that of an import
/// that is killed, because a close flushes.
#[test]
fn records_and_position_are_in_one_batch() {
    let shell = Shell::new();
    let mut child = shell
        .command("import db - --format tsv --batch 10 --ack-file acks")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&b"key\tvalue\n".repeat(60_000)).unwrap();
    while std::fs::metadata(shell.path("acks")).map_or(0, |acks| acks.len()) < 100 {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let dump = shell.ok("dump db/journal/000001.seg");
    let batches: Vec<[usize; 2]> = dump
        .split("batch of ")
        .skip(1)
        .map(|batch| ["t0", "t1"].map(|table| batch.matches(&format!(" Put {table} key ")).count()))
        .collect();
    assert!(batches.len() > 3 && batches.iter().all(|batch| *batch == [10, 1]), "{dump}");
}
