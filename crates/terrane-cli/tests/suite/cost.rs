//! `cost`: what a deployment costs, while its writer runs.
#![allow(clippy::disallowed_methods, reason = "waits for pages of another process")]

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::Value;

use crate::common::Shell;

/// A deployment with everything in a bucket, whose writer shares a page every 100 ms.
fn deployed() -> Shell {
    let shell = Shell::new();
    let bucket = shell.path("bucket").display().to_string();
    let text = format!(
        "[journal]\ndirectory = \"journal\"\nin_bucket = true\n[storage]\nurl = \"file://{bucket}\"\nprobe = false\n\
         [options]\nmemory_bytes = \"32MiB\"\ndiagnostics.metrics_page_ms = 100\n"
    );
    shell.file("app.toml", text);
    // Makes the database: a shell opens one that exists.
    shell.ok("put app.toml grace Hopper");
    shell
}

/// A shell that has the database open for writing.
struct Writer {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Writer {
    fn start(shell: &Shell) -> Writer {
        let mut command = shell.command("shell app.toml");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Writer { child, input, lines: BufReader::new(output).lines() }
    }

    /// Its answer to commands that answer with one line.
    fn ask(&mut self, commands: &str) -> String {
        self.input.write_all(commands.as_bytes()).unwrap();
        self.lines.next().unwrap().unwrap()
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }
}

/// The object of `cost --json` once it `is_right`; a page follows each 100 ms.
fn cost_of(shell: &Shell, more: &str, is_right: impl Fn(&Value) -> bool) -> Value {
    // Not a figure: a page that is missing after as many looks never comes.
    for _ in 0..6000 {
        let output = shell.run(&format!("cost app.toml --json {more}"));
        let parsed: Option<Value> = serde_json::from_slice(&output.stdout).ok();
        match parsed {
            Some(cost) if is_right(&cost) => return cost,
            _ => std::thread::sleep(std::time::Duration::from_millis(50)),
        }
    }
    panic!("no such page comes");
}

/// Returns true if so many records were written.
fn has_records(records: u64) -> impl Fn(&Value) -> bool {
    move |cost| cost["records_written"].as_u64() >= Some(records)
}

#[test]
fn a_running_writer_is_billed_by_part() {
    let shell = deployed();
    let mut writer = Writer::start(&shell);
    assert_eq!(
        writer.ask("put ada Lovelace\nput charles Babbage\ncompact\ncount\n").split(' ').next(),
        Some("compacted")
    );
    let cost = cost_of(&shell, "", |cost| {
        has_records(2)(cost)
            && cost["parts"]["data"]["creates"].as_u64() > Some(0)
            && cost["stored_bytes"].as_u64() > Some(0)
    });
    for part in ["journal", "manifest", "data"] {
        let requests = &cost["parts"][part];
        assert!(requests["creates"].as_u64() > Some(0), "{part}: {cost}");
        assert!(requests["bytes_sent"].as_u64() > Some(0), "{part}: {cost}");
        assert!(requests["per_hour"].as_f64() > Some(0.0), "{part}: {cost}");
    }
    assert_eq!(cost["parts"]["jobs"]["creates"], 0);
    assert!(cost["stored_bytes"].as_u64() > Some(0) && cost["processor_seconds"].as_f64() > Some(0.0));
    // The bytes of objects, and not the slots of their extents.
    assert!(cost["stored_bytes"].as_u64() < Some(100_000), "{cost}");
    // The price of an hour is that of the requests, the bytes and the processor in the measured time.
    let seconds = cost["seconds"].as_f64().unwrap();
    let number = |part: &str, what: &str| cost["parts"][part][what].as_f64().unwrap();
    let journal = number("journal", "creates") * 0.005
        + number("journal", "reads") * 0.0004
        + number("journal", "lists") * 0.005;
    let expected = journal / 1000.0 / seconds * 3600.0;
    assert!((number("journal", "per_hour") - expected).abs() < 1e-6 * expected, "{cost}");
    let said = shell.ok("cost app.toml");
    for part in [
        "records written",
        "creates",
        "journal ",
        "manifest ",
        "data ",
        "storage ",
        "processor ",
        "total ",
        "USD a month",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
    writer.end();
    shell.fails("cost app.toml", 1, &["no process has"]);
}

#[test]
fn the_load_of_some_seconds_is_measured() {
    let shell = deployed();
    let mut writer = Writer::start(&shell);
    assert_eq!(writer.ask("put ada Lovelace\ncount\n"), "2");
    cost_of(&shell, "", has_records(1));
    let idle = cost_of(&shell, "--seconds 1", has_records(0));
    assert_eq!(idle["records_written"], 0, "{idle}");
    assert!(idle["seconds"].as_f64() >= Some(1.0) && idle["per_million_records"].is_null(), "{idle}");
    let mut child =
        shell.command("cost app.toml --seconds 86400 --json").stdout(Stdio::piped()).spawn().unwrap();
    let before = cost_of(&shell, "", has_records(1))["seconds"].as_f64().unwrap();
    assert_eq!(writer.ask("put charles Babbage\ncount\n"), "3");
    cost_of(&shell, "", has_records(2));
    while cost_of(&shell, "", has_records(2))["seconds"].as_f64().unwrap() < before + 1.0 {}
    // A writer that closes the database ends the measurement.
    writer.end();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut said).unwrap();
    assert!(child.wait().unwrap().success());
    let cost: Value = serde_json::from_str(&said).unwrap();
    assert!(cost["seconds"].as_f64() > Some(0.0), "{cost}");
}

#[test]
fn prices_come_from_a_file() {
    let shell = deployed();
    let prices = shell.ok("cost --show-prices");
    assert!(prices.contains("currency = \"USD\""), "{prices}");
    shell.file(
        "prices.toml",
        prices.replacen("USD", "EUR", 1).replacen("create = 0.005", "create = 5000.0", 1),
    );
    let mut writer = Writer::start(&shell);
    assert_eq!(writer.ask("put ada Lovelace\ncount\n"), "2");
    let cost = cost_of(&shell, "--prices prices.toml", has_records(1));
    assert_eq!(cost["currency"], "EUR");
    assert!(cost["per_hour"].as_f64() > Some(5.0), "each creation costs 5: {cost}");
    assert!(shell.ok("cost app.toml --prices prices.toml").contains("EUR/hour"));
    writer.end();
    shell.file("wrong.toml", prices.replacen("gb_month = 0.023", "gb_month = -1.0", 1));
    shell.fails(
        "cost app.toml --prices wrong.toml",
        2,
        &["wrong.toml", "storage.gb_month = -1", "--show-prices"],
    );
    shell.file("short.toml", "currency = \"USD\"\n");
    shell.fails("cost app.toml --prices short.toml", 2, &["short.toml", "requests"]);
    shell.fails("cost app.toml --prices missing.toml", 1, &["missing.toml"]);
    for line in ["cost", "cost app.toml --seconds 0", "cost app.toml --show-prices"] {
        assert_eq!(shell.run(line).status.code(), Some(2), "{line}");
    }
    shell.ok("put local.terrane k v");
    shell.fails("cost local.terrane", 2, &["takes a deployment file"]);
}
