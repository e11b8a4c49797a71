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
    has(folder, "-claim")
}

/// Returns true if an object in the folder has this in its name.
#[expect(clippy::disallowed_methods, reason = "looks into a bucket while other processes change it")]
fn has(folder: &Path, part: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().contains(part) || has(&entry.path(), part))
}

#[test]
fn a_worker_in_another_process_does_the_compactions_of_a_writer() {
    let shell = deployed(3000);
    // On a busy machine a worker may have no turn for a second; a writer that takes it for lost does the job.
    let file = std::fs::read_to_string(shell.path("app.toml")).unwrap();
    shell.file("app.toml", file.replace("lost_ms = 1000", "lost_ms = 600000"));
    assert!(shell.ok("doctor app.toml").contains("none was seen within an hour"));
    let worker = worker(&shell, "--name spot-17");
    shell.ok("compact app.toml");
    assert!(shell.ok("doctor app.toml").contains("the latest one spot-17"));
    assert_eq!(shell.ok("count app.toml"), "3000\n");
    assert!(shell.ok("check app.toml").contains(" 0 findings"));
    let said = end(worker);
    assert!(said.contains("job 1 of epoch ") && said.contains(": done; "), "{said}");
}

/// Workers that are killed in the middle of a job: a few, or as many as `TERRANE_KILLS` says.
#[test]
fn workers_that_are_killed_in_their_jobs_are_replaced_by_others() {
    let shell = deployed(3000);
    let kills = std::env::var("TERRANE_KILLS").map_or(2, |kills| kills.parse().unwrap());
    let jobs = shell.path("bucket/app/jobs");
    for round in 0..kills {
        let mut victim = worker(&shell, &format!("--name victim-{round}"));
        let mut writer = shell.command("compact app.toml").stdout(Stdio::null()).spawn().unwrap();
        while !is_claimed(&jobs) && writer.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        victim.kill().unwrap();
        victim.wait().unwrap();
        let heir = worker(&shell, &format!("--name heir-{round}"));
        assert!(writer.wait().unwrap().success());
        let said = end(heir);
        assert!(!said.contains("cannot be done"), "round {round}: {said}");
        assert_eq!(shell.ok("count app.toml"), "3000\n", "round {round}");
        assert!(shell.ok("check app.toml").contains(" 0 findings"), "round {round}");
        // The same rows again: there is something to merge.
        shell.ok("import app.toml people.jsonl --key id");
    }
}

#[test]
fn a_writer_whose_workers_are_all_killed_goes_on() {
    let shell = deployed(3000);
    let file = std::fs::read_to_string(shell.path("app.toml")).unwrap();
    let file = file.replace("claim_ms = 600000", "claim_ms = 300").replace("lost_ms = 1000", "lost_ms = 300");
    shell.file("app.toml", file);
    let mut only = worker(&shell, "--name only");
    let mut writer = shell.command("compact app.toml").stdout(Stdio::null()).spawn().unwrap();
    let jobs = shell.path("bucket/app/jobs");
    while !is_claimed(&jobs) && writer.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    only.kill().unwrap();
    only.wait().unwrap();
    assert!(writer.wait().unwrap().success());
    assert_eq!(shell.ok("count app.toml"), "3000\n");
    assert!(shell.ok("check app.toml").contains(" 0 findings"));
}

/// A writer is killed while a worker runs its job; the next one has no workers.
#[test]
fn a_writer_without_workers_ends_the_jobs_of_one_that_was_killed() {
    let shell = deployed(3000);
    let mut writer = shell.command("compact app.toml").stdout(Stdio::null()).spawn().unwrap();
    let jobs = shell.path("bucket/app/jobs");
    while !has(&jobs, "-open") {
        assert!(writer.try_wait().unwrap().is_none(), "it waits for a worker");
        std::thread::yield_now();
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
    let file = std::fs::read_to_string(shell.path("app.toml")).unwrap();
    shell.file(
        "alone.toml",
        file.replace("workers = true\nclaim_ms = 600000\nlost_ms = 1000\npoll_ms = 20", "workers = false"),
    );
    let said = shell.ok("doctor alone.toml");
    assert!(!said.contains("worker"), "{said}");
    assert!(has(&jobs, "-open"), "what reads changes nothing");
    shell.ok("compact alone.toml");
    assert!(!has(&jobs, "-open") && !has(&jobs, "offer") && !has(&jobs, "-coordinator"));
    assert_eq!(shell.ok("count alone.toml"), "3000\n");
}

#[test]
fn a_worker_that_finds_no_job_ends_if_it_was_asked_to() {
    let shell = deployed(10);
    let said = shell.ok("serve compactor app.toml --once --name spot-17");
    assert!(said.contains("spot-17 waits") && said.contains("stopped: no job is claimed"), "{said}");
    for (options, expected) in [("--once --idle-exit 3", "cannot be used with"), ("--threads 0", "1..=256")] {
        let output = shell.run(&format!("serve compactor app.toml {options}"));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.contains(expected), "{options}: {error}");
    }
    shell.fails("serve compactor app.toml --once --name a/b", 2, &["a/b"]);
    shell.fails("serve compactor none.toml --once", 1, &["none.toml"]);
}
