//! `top` beside a process that writes: this one, or one that was killed.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "runs processes on files of its own")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;
use terrane::{Db, Diagnostics, MetricsPage, Options};

use crate::common::Shell;

/// Options with a page every `metrics_page_ms`.
fn options(metrics_page_ms: u64) -> Options {
    let diagnostics = Diagnostics { metrics_page_ms, ..Diagnostics::default() };
    Options { diagnostics, ..Options::default() }
}

/// Opens a database that shares a page every 100 ms.
fn open(shell: &Shell) -> Db {
    Db::open_with(shell.path("db"), &options(100)).unwrap()
}

/// Waits for a page that `is_right`.
fn wait_for(shell: &Shell, is_right: impl Fn(&MetricsPage) -> bool) -> MetricsPage {
    // Not a figure: a line that is missing after as many looks never comes.
    for _ in 0..60_000 {
        match terrane::metrics_page(shell.path("db")) {
            Ok(shared) if is_right(&shared.page) => return shared.page,
            _ => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    }
    panic!("no such page comes");
}

#[test]
fn a_live_database_is_shown_in_lines_and_in_json() {
    let shell = Shell::new();
    let db = open(&shell);
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    let reader = db.snapshot_labelled("report");
    db.put("b", "2").unwrap();
    wait_for(&shell, |page| page.metric("records_written") == Some(2) && page.reader_count == 1);
    let said = shell.ok("top db --once --interval 0.1");
    let me = format!("process {}", std::process::id());
    for part in [
        &me,
        "writers are free",
        "writes ",
        "memory ",
        "flush ",
        " get  ",
        " commit  ",
        "snapshot \"report\"",
        "L1 ",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
    // Of pages that are late on a busy machine the last one is shown again, without rates.
    let pages = loop {
        let said = shell.ok("top db --json --count 2 --interval 0.1");
        let pages: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(pages.len(), 2);
        if pages.iter().all(|page| page["writer"] == "writing" && !page["interval_seconds"].is_null()) {
            break pages;
        }
    };
    assert!(pages[0]["page"].as_u64() < pages[1]["page"].as_u64());
    for page in &pages {
        assert_eq!(page["metrics"]["records_written"], 2);
        assert_eq!(page["latencies"]["commit_nanos"]["one_in"], 64);
        assert!(page["latencies"]["commit_nanos"]["max"].as_u64() > Some(0), "the first one is a sample");
        assert_eq!(page["latencies"]["flush_micros"]["one_in"], 1);
        assert_eq!(page["per_second"]["records_written"], 0.0);
        assert_eq!(page["oldest_readers"][0]["label"], "report");
        assert_eq!(page["largest_tables"][0]["name"], "default");
    }
    // The shown database is unchanged.
    db.put("c", "3").unwrap();
    drop(reader);
    db.close().unwrap();
    shell.fails("top db --once", 1, &["no process has", "terrane stats"]);
    shell.fails("top none", 1, &["no database"]);
    for line in ["top db --interval 0", "top db --interval x", "top db --once --count 3"] {
        assert_eq!(shell.run(line).status.code(), Some(2), "{line}");
    }
    assert!(shell.ok("top --help").contains("metrics_page_ms"));
}

#[test]
fn a_database_that_is_closed_meanwhile_ends_the_command() {
    let shell = Shell::new();
    let db = open(&shell);
    wait_for(&shell, |_| true);
    let mut child =
        shell.command("top db --interval 0.1").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert!(line.contains("process"), "{line}");
    db.close().unwrap();
    std::io::copy(&mut said, &mut std::io::sink()).unwrap();
    let ended = child.wait_with_output().unwrap();
    let error = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.success() && error.contains("no process has"), "{error}");
}

#[test]
fn a_writer_without_a_page_any_more_is_waited_for_until_it_has_closed() {
    let shell = Shell::new();
    let db = open(&shell);
    let page = wait_for(&shell, |_| true).encode();
    db.close().unwrap();
    // A writer that writes no page of its own: the one of before is old soon.
    let db = Db::open_with(shell.path("db"), &options(0)).unwrap();
    std::fs::write(shell.path("db/METRICS"), page).unwrap();
    let mut child =
        shell.command("top db --interval 0.1").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut said, &mut String::new()).unwrap();
    std::fs::remove_file(shell.path("db/METRICS")).unwrap();
    let mut errors = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut error = String::new();
    std::io::BufRead::read_line(&mut errors, &mut error).unwrap();
    assert!(error.contains("waiting") && error.contains("shares no page"), "{error}");
    db.close().unwrap();
    std::io::copy(&mut said, &mut std::io::sink()).unwrap();
    std::io::Read::read_to_string(&mut errors, &mut error).unwrap();
    assert!(child.wait().unwrap().success() && error.contains("no process has"), "{error}");
}

#[test]
fn a_signal_ends_the_command() {
    let shell = Shell::new();
    let db = open(&shell);
    wait_for(&shell, |_| true);
    let mut child = shell.command("top db --interval 0.1").stdout(Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut said, &mut String::new()).unwrap();
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    std::io::copy(&mut said, &mut std::io::sink()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    db.close().unwrap();
}

#[test]
fn a_writer_that_was_killed_leaves_a_stale_page() {
    let shell = Shell::new();
    let mut writer = shell
        .command("shell db --create -o diagnostics.metrics_page_ms=100")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writer.stdin.as_mut().unwrap().write_all(b"put a 1\n").unwrap();
    let page = wait_for(&shell, |page| page.metric("records_written") == Some(1));
    assert_eq!(page.process, writer.id());
    writer.kill().unwrap();
    writer.wait().unwrap();
    let ended = shell.run("top db --interval 0.1");
    let (said, error) = (String::from_utf8(ended.stdout).unwrap(), String::from_utf8(ended.stderr).unwrap());
    assert_eq!(ended.status.code(), Some(1), "{error}");
    assert!(said.lines().next_back().is_some() && said.contains("STALE: the process is gone"), "{said}");
    let process = format!("process {} is gone", page.process);
    assert!(error.contains(&process) && error.lines().count() == 1, "{error}");
    assert_eq!(shell.ok("get db a"), "1", "the page is in the way of nothing");
}

#[test]
fn top_names_a_writer_without_pages_and_a_damaged_page() {
    let shell = Shell::new();
    let db = Db::open_with(shell.path("db"), &options(0)).unwrap();
    let me = std::process::id().to_string();
    shell.fails("top db --once", 5, &[&me, "metrics_page_ms"]);
    shell.file("db/METRICS", "terrpage and more");
    shell.fails("top db --once", 3, &["METRICS"]);
    assert!(shell.ok("dump db/METRICS").contains("broken"));
    db.close().unwrap();
}
