//! The command as a process: what it prints, what it returns, what it leaves behind.
#![expect(clippy::disallowed_methods, reason = "runs processes on files of its own")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

struct Shell {
    dir: TempDir,
}

impl Shell {
    fn new() -> Shell {
        Shell { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_terrane"));
        command.args(line.split_whitespace()).current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Standard output of a command that must succeed.
    #[track_caller]
    fn ok(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Asserts the exit code, and that there is exactly one line on standard error, with all of `parts`.
    #[track_caller]
    fn fails(&self, line: &str, code: i32, parts: &[&str]) {
        let output = self.run(line);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{line}: {error}");
        assert!(error.starts_with("terrane: error: ") && error.lines().count() == 1, "{line}: {error}");
        for part in parts {
            assert!(error.contains(part), "{line}: {part:?} is not in {error:?}");
        }
    }

    fn with_input(&self, line: &str, input: &[u8]) -> Output {
        let mut child = self
            .command(line)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    }
}

fn people(count: usize) -> String {
    (0..count).map(|n| format!("{{\"id\":\"p{n:06}\",\"name\":\"name {n}\"}}\n")).collect()
}

#[test]
fn put_get_delete() {
    let shell = Shell::new();
    shell.ok("put db k value");
    assert_eq!(shell.ok("get db k"), "value");
    shell.ok(r"put db 0x00ff \tline\n --sync");
    assert_eq!(shell.ok(r"get db \0\xff"), "\tline\n");
    assert_eq!(shell.ok(r"get db \0\xff --format tsv"), "\\tline\\n\n");
    assert_eq!(shell.ok("get db 0x00ff --format hex"), "096c696e650a\n");
    let output = shell.with_input("put db big -", &vec![0xfe; 100_000]);
    assert!(output.status.success());
    assert_eq!(shell.run("get db big").stdout, vec![0xfe; 100_000]);
    shell.ok("delete db k");
    shell.fails("get db k", 1, &["no key \"k\"", "default"]);
    shell.ok("delete db k");
}

#[test]
fn scans() {
    let shell = Shell::new();
    shell.file("t.tsv", "b\t2\na\t1\nba\t3\nc\tx\\y\tz\n");
    assert!(shell.ok("import db t.tsv").starts_with("imported 4 records"));
    assert_eq!(shell.ok("scan db"), "a\t1\nb\t2\nba\t3\nc\tx\\\\y\\tz\n");
    assert_eq!(shell.ok("scan db --reverse --limit 2 --keys"), "c\nba\n");
    assert_eq!(
        shell.ok("scan db --from b --to c --format json"),
        "{\"key\":\"b\",\"value\":\"2\"}\n{\"key\":\"ba\",\"value\":\"3\"}\n"
    );
    assert_eq!(shell.ok("scan db --prefix b --format hex"), "62 32\n6261 33\n");
    assert_eq!(shell.ok("scan db --from c --format raw"), "c\tx\\y\tz\n");
    assert_eq!(shell.ok("count db"), "4\n");
    assert_eq!(shell.ok("count db --prefix b"), "2\n");
    assert_eq!(shell.run("scan db --prefix b --from c").status.code(), Some(2));
}

#[test]
fn tables() {
    let shell = Shell::new();
    shell.ok("tables db --create users");
    shell.ok("put db k v --table users");
    assert_eq!(shell.ok("tables db"), "default\nusers\n");
    shell.fails("get db k --table others", 1, &["others", "default, users"]);
    shell.ok("tables db --drop users");
    assert_eq!(shell.ok("tables db"), "default\n");
}

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
fn shape_stats_check_compact() {
    let shell = Shell::new();
    shell.file("p.jsonl", people(2000));
    shell.ok("import db p.jsonl --key id");
    assert!(shell.ok("compact db").contains("compacted db"));
    let shape = shell.ok("shape db");
    assert!(shape.contains("table default: 2 sorted runs"), "{shape}");
    assert!(
        shape.lines().any(|line| line.contains("level") && line.contains("2,000") && line.contains('#')),
        "{shape}"
    );
    let stats: serde_json::Value = serde_json::from_str(&shell.ok("stats db --json")).unwrap();
    assert!(stats["open_micros"].as_u64().unwrap() > 0, "{stats}");
    let check = shell.ok("check db");
    assert!(check.contains("2,00") && check.contains(" 0 findings"), "{check}");
}

#[test]
fn check_names_a_changed_byte() {
    let shell = Shell::new();
    shell.file("p.jsonl", people(2000));
    shell.ok("import db p.jsonl --key id");
    shell.ok("compact db");
    let data = only_file(&shell.path("db/data"));
    let mut bytes = std::fs::read(&data).unwrap();
    // Every extent in the file, since one that compaction gave back looks like one that counts.
    for line in shell.ok(&format!("dump {}", data.display())).lines() {
        if let Some((_, start)) = line.split_once(" bytes at ").filter(|_| line.starts_with("extent of")) {
            bytes[start.parse::<usize>().unwrap() + 100] ^= 0x20;
        }
    }
    std::fs::write(&data, bytes).unwrap();
    let output = shell.run("check db");
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(3), "{said}{error}");
    assert!(said.contains("corrupt: table \"default\"") && said.contains(".ext at offset"), "{said}");
    assert!(error.contains("restore from a backup"), "{error}");
}

fn only_file(directory: &Path) -> std::path::PathBuf {
    let mut files: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn dump_tells_every_kind_of_file() {
    let shell = Shell::new();
    shell.file("p.jsonl", people(2000));
    shell.ok("import db p.jsonl --key id");
    // Nothing is flushed yet, so the records are in the journal.
    let journal = std::fs::read_dir(shell.path("db/journal")).unwrap();
    let dumps: Vec<String> =
        journal.map(|entry| shell.ok(&format!("dump {}", entry.unwrap().path().display()))).collect();
    assert!(dumps.iter().any(|dump| dump.contains("Put t") && dump.contains("key p000000")), "{dumps:.200?}");
    shell.ok("compact db");
    let extents = shell.ok(&format!("dump {}", only_file(&shell.path("db/data")).display()));
    assert!(extents.contains("block[0] = checksum holds") && extents.contains("footer.entries = 2000"));
    let manifest = shell.ok("dump db/MANIFEST-000001 --limit 3");
    assert!(manifest.contains("magic = \"terrmani\"") && manifest.lines().count() == 4, "{manifest}");
    shell.fails("dump p.jsonl", 2, &["p.jsonl is no manifest, segment or data file"]);
    shell.fails("dump gone", 1, &["gone"]);
}

#[test]
fn errors_name_the_thing_and_return_their_code() {
    let shell = Shell::new();
    shell.fails("get none k", 1, &["none"]);
    shell.file("p.jsonl", people(1));
    shell.fails("import db p.jsonl", 2, &["--key"]);
    shell.fails("import db none.jsonl --key id", 1, &["none.jsonl"]);
    shell.fails("import db - --key id", 2, &["--format"]);
    shell.fails("import db p.jsonl --key id --table terrane.import", 2, &["terrane.import"]);
    shell.fails("put db 0x123 v", 2, &["even number"]);
    shell.fails(r"put db a\q v", 2, &["unknown escape"]);
    shell.fails("put db k v -o nonsense=1", 2, &["nonsense"]);
    shell.fails("put db k v -o memory_bytes", 2, &["NAME=VALUE"]);
    shell.fails("put db k v --memory 1KiB", 2, &["memory_bytes", "16 MiB"]);
    std::fs::create_dir(shell.path("foreign")).unwrap();
    shell.file("foreign/letter", "dear");
    shell.fails("put foreign k v", 2, &["foreign", "letter"]);
    assert_eq!(shell.run("no-such-command").status.code(), Some(2));
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

#[test]
fn a_closed_pipe_ends_quietly() {
    let shell = Shell::new();
    shell.file("p.jsonl", people(20_000));
    shell.ok("import db p.jsonl --key id");
    let mut child = shell.command("scan db").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn help_options_completions_manual() {
    let shell = Shell::new();
    let help = shell.ok("--help");
    for part in ["Examples:", "Exit codes:", "  3  stored bytes", "import"] {
        assert!(help.contains(part), "{part}: {help}");
    }
    assert!(shell.ok("options").contains("memory_bytes = 536870912"));
    assert!(shell.ok("completions bash").contains("_terrane"));
    assert!(shell.ok("man").contains(".TH terrane 1"));
    assert!(shell.ok("man pages").contains("terrane-import.1"));
    assert!(shell.path("pages/terrane-import.1").exists());
}

#[test]
fn the_tour_runs_twice() {
    let shell = Shell::new();
    for _ in 0..2 {
        let said = shell.ok("tour");
        for part in [
            "$ terrane import tour.terrane",
            "imported ",
            "$ terrane get",
            "$ terrane scan",
            "table default:",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
