//! `serve compactor` as a process, beside a writer that is another one.
#![allow(clippy::unwrap_used, reason = "runs processes on files of its own")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{Shell, people};

/// A deployment whose jobs wait for a worker for as long as the test takes, with several extents to merge.
fn deployed(rows: usize) -> Shell {
    let shell = Shell::new();
    let bucket = shell.path("bucket").display().to_string();
    let text = format!(
        "[journal]\ndirectory = \"journal\"\n[storage]\nurl = \"file://{bucket}\"\nprefix = \"app\"\nprobe = false\n\
         [compaction]\nworkers = true\nclaim_ms = 600000\nlost_ms = 1000\npoll_ms = 20\n\
         [options]\nmemory_bytes = \"32MiB\"\nauto_compaction = false\n"
    );
    shell.file("app.toml", text);
    shell.file("people.jsonl", people(rows));
    for _ in 0..2 {
        shell.ok("import app.toml people.jsonl --key id");
    }
    shell
}

/// A worker that has said that it waits.
fn worker(shell: &Shell, arguments: &str) -> Child {
    let mut command = shell.command(&format!("serve compactor app.toml --poll 10 {arguments}"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("waits for compactions of"), "{line}");
    child
}

/// Ends a worker by SIGTERM; what it said of its jobs.
fn end(mut worker: Child) -> String {
    assert!(Command::new("kill").arg(worker.id().to_string()).status().unwrap().success());
    let mut said = String::new();
    worker.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(worker.wait().unwrap().code(), Some(0), "{said}");
    said
}

/// Returns true if a worker has claimed a job that is still offered.
fn is_claimed(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let is_claim = entry.file_name().to_string_lossy().contains("-claim");
        is_claim || is_claimed(&entry.path())
    })
}

#[test]
fn a_worker_in_another_process_does_the_compactions_of_a_writer() {
    let shell = deployed(3000);
    assert!(shell.ok("doctor app.toml").contains("none was seen within an hour"));
    let worker = worker(&shell, "--name spot-17");
    shell.ok("compact app.toml");
    assert!(shell.ok("doctor app.toml").contains("the latest one spot-17"));
    assert_eq!(shell.ok("count app.toml"), "3000\n");
    assert!(shell.ok("check app.toml").contains(" 0 findings"));
    let said = end(worker);
    assert!(said.contains("job 1 of epoch ") && said.contains(": done; "), "{said}");
}

#[test]
fn a_worker_that_is_killed_in_its_job_is_replaced_by_another_one() {
    let shell = deployed(3000);
    let mut victim = worker(&shell, "--name victim");
    let mut writer = shell.command("compact app.toml").stdout(Stdio::null()).spawn().unwrap();
    let jobs = shell.path("bucket/app/jobs");
    while !is_claimed(&jobs) && writer.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    victim.kill().unwrap();
    victim.wait().unwrap();
    let heir = worker(&shell, "--name heir");
    assert!(writer.wait().unwrap().success());
    assert_eq!(shell.ok("count app.toml"), "3000\n");
    assert!(shell.ok("check app.toml").contains(" 0 findings"));
    end(heir);
}

#[test]
fn a_worker_that_finds_no_job_ends_if_it_was_asked_to() {
    let shell = deployed(10);
    let said = shell.ok("serve compactor app.toml --once --name spot-17");
    assert!(said.contains("spot-17 waits") && said.contains("stopped: no job is claimed"), "{said}");
    shell.fails("serve compactor app.toml --once --idle-exit 3", 2, &["--once", "--idle-exit"]);
    shell.fails("serve compactor app.toml --threads 0", 2, &["--threads"]);
    shell.fails("serve compactor app.toml --once --name a/b", 2, &["a/b"]);
    shell.fails("serve compactor none.toml --once", 1, &["none.toml"]);
}
