//! Deployment files in the place of directories; `doctor`.

use terrane_base::env::Env;
use terrane_remote::At;

use crate::common::{Shell, without_wait};

/// A deployment `app.toml` with a bucket in a directory beside it.
pub(crate) fn deployed() -> Shell {
    let shell = Shell::new();
    deployment(&shell, "app.toml", "journal", "app");
    shell
}

/// [`deployed`] with so many rows, and the deployment `copy.toml` for a clone of it.
pub(crate) fn deployed_to_clone(rows: usize) -> Shell {
    let shell = deployed();
    deployment(&shell, "copy.toml", "journal-copy", "copy");
    shell.fill("app.toml", rows);
    shell
}

pub(crate) fn deployment(shell: &Shell, file: &str, journal: &str, prefix: &str) {
    let bucket = shell.path("bucket").display().to_string();
    let text = format!(
        "[journal]\ndirectory = \"{journal}\"\n[storage]\nurl = \"file://{bucket}\"\nprefix = \"{prefix}\"\nprobe = false\n\
         [options]\nmemory_bytes = \"32MiB\"\nclose_flush = false\n"
    );
    shell.file(file, text);
}

/// Standard error of a command that must succeed.
#[track_caller]
fn said(shell: &Shell, line: &str) -> String {
    let output = shell.run(line);
    let said = without_wait(output.stderr);
    assert!(output.status.success(), "{line}: {said}");
    said
}

#[test]
fn commands_take_a_deployment_as_they_take_a_directory() {
    let shell = deployed();
    shell.fails("get app.toml ada", 1, &["no database", "/app"]);
    assert!(!shell.path("bucket").exists(), "a command that reads makes nothing");
    shell.ok("put app.toml ada Lovelace");
    // It is only in the journal yet.
    assert_eq!(shell.ok("get app.toml ada"), "Lovelace");
    shell.fill("app.toml", 300);
    assert_eq!(shell.ok("count app.toml --prefix p"), "300\n");
    shell.ok("compact app.toml");
    assert_eq!(shell.ok("scan app.toml --prefix p --limit 2 --keys"), "p000000\np000001\n");
    assert!(shell.ok("check app.toml").contains(" 0 findings"));
    shell.ok("copy app.toml local.terrane");
    assert_eq!(shell.ok("count local.terrane"), "301\n");
    shell.ok("copy local.terrane app.toml --table default --into again");
    assert_eq!(shell.ok("count app.toml --table again"), "301\n");
    shell.ok("delete app.toml ada -o memory_bytes=16MiB");
    shell.fails("get app.toml ada", 1, &["no key"]);
    shell.ok("backup create app.toml backups");
    shell.ok("backup restore backups restored.terrane");
    assert_eq!(shell.ok("count restored.terrane"), "300\n");
    assert_eq!(said(&shell, "count app.toml"), "", "the journal is here, and shown");
}

#[test]
fn reading_beside_a_writer_takes_nothing_over_and_says_what_it_does_not_show() {
    let shell = deployed();
    shell.ok("put app.toml ada Lovelace");
    shell.ok("compact app.toml");
    let mut writer = shell.command("shell app.toml");
    let mut writer =
        writer.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let (mut input, output) = (writer.stdin.take().unwrap(), writer.stdout.take().unwrap());
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(output));
    let mut ask = |line: &str| {
        std::io::Write::write_all(&mut input, line.as_bytes()).unwrap();
        lines.next().unwrap().unwrap()
    };
    assert_eq!(ask("put charles Babbage\ncount\n"), "2", "the shell has the database open");
    assert!(said(&shell, "get app.toml ada").contains("a writer has the journal open"));
    shell.fails("put app.toml k v", 5, &["LOCK is locked"]);
    let doctor = shell.ok("doctor app.toml");
    assert!(doctor.contains("a process has it open") && !doctor.contains("wrong"), "{doctor}");
    // It is the writer still.
    assert_eq!(ask("put grace Hopper\ncompact\n").split(' ').next(), Some("compacted"));
    assert_eq!(shell.ok("get app.toml grace"), "Hopper");
    drop(input);
    assert!(writer.wait().unwrap().success());
    deployment(&shell, "moved.toml", "other", "app");
    let elsewhere = said(&shell, "get moved.toml grace");
    assert!(elsewhere.contains("is not on this machine"), "{elsewhere}");
    shell.fails("put moved.toml k v", 2, &["abandon"]);
    assert!(!shell.run("doctor moved.toml").status.success());
    assert_eq!(said(&shell, "get app.toml charles"), "");
}

#[test]
fn a_deployment_is_followed_beside_its_writer() {
    let shell = deployed();
    shell.ok("put app.toml ada Lovelace");
    let mut writer = shell.command("shell app.toml");
    let mut writer =
        writer.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let (mut input, output) = (writer.stdin.take().unwrap(), writer.stdout.take().unwrap());
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(output));
    std::io::Write::write_all(&mut input, b"put charles Babbage\ncount\n").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "2", "the shell has the database open");
    let doctor = shell.ok("doctor app.toml");
    assert!(doctor.contains("a follower here") && doctor.contains("has every commit"), "{doctor}");
    let mut follower = shell.command("shape app.toml --json --follow");
    let mut follower = follower.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let shapes = std::io::BufRead::lines(std::io::BufReader::new(follower.stdout.take().unwrap()));
    let mut entries = shapes.map(|line| line.unwrap()).filter(|line| !line.is_empty()).map(|line| {
        let shape: serde_json::Value = serde_json::from_str(&line).unwrap();
        shape["tables"][0]["memtable"]["versions"].as_u64().unwrap()
    });
    // In the journal only, which is on this machine.
    assert_eq!(entries.next(), Some(2));
    std::io::Write::write_all(&mut input, b"put grace Hopper\ncount\n").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "3");
    assert!(entries.any(|entries| entries == 3), "it goes on");
    let kill = std::process::Command::new("kill").arg(follower.id().to_string()).status();
    assert!(kill.unwrap().success());
    assert_eq!(follower.wait().unwrap().code(), Some(0));
    drop(input);
    assert!(writer.wait().unwrap().success());
    // On another machine the command says what it does not show.
    deployment(&shell, "moved.toml", "other", "app");
    let doctor = shell.run("doctor moved.toml");
    assert!(String::from_utf8(doctor.stdout).unwrap().contains("in_bucket = true under [journal]"));
}

#[test]
fn a_wrong_deployment_and_a_command_without_deployments_are_refused_by_name() {
    let shell = deployed();
    shell.ok("put app.toml k v");
    shell.fails("get missing.toml k", 1, &["no deployment file missing.toml", "doctor --help"]);
    shell.fails("get /dev/null k", 2, &["neither a directory nor a file"]);
    shell.file("wrong.toml", "[journal]\ndirectoy = \"j\"\n");
    shell.fails("get wrong.toml k", 2, &["wrong.toml", "did you mean \"directory\"?"]);
    shell.fails("checkpoint app.toml copy", 2, &["checkpoint takes no deployment", "backup create"]);
    shell.fails("changes app.toml", 2, &["changes takes no deployment"]);
    shell.fails("repair app.toml new.terrane", 2, &["repair takes no deployment", "backup"]);
    shell.fails("stats app.toml -o pmem_path=x", 2, &["pmem_path"]);
    // The directory of the journal is not a database, and not that of another one.
    shell.fails("get journal k", 2, &["only the journal", "deployment file"]);
    deployment(&shell, "other.toml", "journal", "other");
    shell.fails("put other.toml k v", 2, &["no database", "/other"]);
    let json = shell.run("doctor other.toml --json");
    assert_eq!(json.status.code(), Some(2));
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let wrong: Vec<_> =
        report["parts"].as_array().unwrap().iter().filter(|part| part["ok"] == false).collect();
    assert!(report["ok"] == false && wrong.len() == 1 && wrong[0]["part"] == "manifest", "{report}");
    assert_eq!(shell.ok("get app.toml k"), "v");
}

#[test]
fn a_deployment_is_read_as_it_was() {
    let shell = Shell::new();
    let bucket = shell.path("bucket").display().to_string();
    shell.file(
        "app.toml",
        format!(
            "[journal]\nin_bucket = true\n[storage]\nurl = \"file://{bucket}\"\nprobe = false\n\
             [options]\nmemory_bytes = \"32MiB\"\nclose_flush = false\n"
        ),
    );
    shell.ok("put app.toml ada Lovelace --sync");
    shell.ok("put app.toml charles Babbage --sync");
    let journal = terrane_remote::bucket::open(&format!("file://{bucket}"), &Env::real()).unwrap();
    let journal = journal.list("terrane/journal", None).unwrap();
    let then = At::Time(journal.iter().map(|object| object.modified).max().unwrap());
    shell.ok("delete app.toml ada");
    shell.ok("put app.toml grace Hopper --sync");
    assert_eq!(shell.ok("scan app.toml --keys"), "charles\ngrace\n");
    assert_eq!(shell.ok("get app.toml ada --at-commit 2"), "Lovelace");
    assert!(said(&shell, "get app.toml ada --at-commit 2").contains("app.toml: as it was at commit #2"));
    assert_eq!(shell.ok("count app.toml --at-commit 1"), "1\n");
    assert_eq!(shell.ok("scan app.toml --keys --at-commit 3"), "charles\n");
    assert_eq!(shell.ok("count app.toml --at 2999-01-01T00:00:00Z"), "2\n");
    assert_eq!(shell.ok(&format!("get app.toml ada --at {then}")), "Lovelace");
    assert_eq!(shell.ok(&format!("scan app.toml --keys --at {then}")), "ada\ncharles\n");
    // What was deleted comes back.
    shell.ok("export app.toml then.jsonl --at-commit 2");
    shell.ok("import app.toml then.jsonl");
    assert_eq!(shell.ok("get app.toml ada"), "Lovelace");
    shell.ok("copy app.toml then.terrane --at-commit 2");
    assert_eq!(shell.ok("get then.terrane ada"), "Lovelace");
    assert!(shell.ok("check app.toml --at-commit 2").contains(" 0 findings"));
    shell.fails("get app.toml ada --at-commit 99", 2, &["no commit #99 yet"]);
    shell.fails("get app.toml ada --at -1d", 1, &["no longer kept", "earliest", "garbage_age_s"]);
    // An earlier state with another access would be the present one, taken over from its writer.
    shell.fails("get app.toml ada --at-commit 2 -o read_only=false", 2, &["earlier state is only read"]);
    shell.fails("put app.toml k v --at-commit 2", 2, &["commands that read tables"]);
    shell.fails("tables app.toml --drop default --yes --at-commit 2", 2, &["only read"]);
    shell.fails("stats app.toml --follow --at-commit 2", 2, &["leave one out"]);
    shell.fails("backup create app.toml backups --at-commit 2", 2, &["commands that read tables"]);
    shell.fails("get then.terrane ada --at -1s", 2, &["need a deployment", "backup"]);
    for (line, why) in [
        ("get app.toml ada --at yesterday", "is not a time: expected one as 2026-11-29T10:00:00Z"),
        ("get app.toml ada --at -1s --at-commit 2", "cannot be used with"),
    ] {
        let output = shell.run(line);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(why), "{line}: {said}");
    }
}

/// Nothing listens at the port, so each request is refused at once, and asked again.
#[cfg(feature = "grpc")]
#[test]
fn storage_that_does_not_answer_is_named_before_the_command_gives_up() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let shell = Shell::new();
    let file = "[journal]\ndirectory = \"journal\"\n[storage]\nurl = \"grpc://127.0.0.1:9\"\n";
    shell.file("far.toml", file);
    let mut put = shell.command("put far.toml k v").stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(put.stderr.take().unwrap()).read_line(&mut line).unwrap();
    put.kill().unwrap();
    put.wait().unwrap();
    assert!(line.starts_with("terrane: far.toml: not open after 2 s"), "{line}");
    let output = shell.run("doctor far.toml");
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(6), "{said}");
    assert_eq!(said.matches("not tried: the storage has failed").count(), 3, "{said}");
    assert!(said.contains("in 3 s failed"), "{said}");
}

/// The storage takes connections and never says a word; nothing listens where the journal is.
#[cfg(feature = "grpc")]
#[test]
fn doctor_tries_each_part_for_seconds_whichever_fail() {
    let shell = Shell::new();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("grpc://{}", silent.local_addr().unwrap());
    let near = format!("file://{}", shell.path("bucket").display());
    std::fs::create_dir(shell.path("bucket")).unwrap();
    let refused = "grpc://127.0.0.1:9".to_owned();
    let doctor = |journal: &str, storage: &str| {
        shell.file(
            "app.toml",
            format!("[journal]\nin_bucket = true\nurl = \"{journal}\"\n[storage]\nurl = \"{storage}\"\n"),
        );
        let output = shell.run("doctor app.toml");
        assert_eq!(output.status.code(), Some(6));
        String::from_utf8(output.stdout).unwrap()
    };
    let has = |said: &str, part: &str, words: &str| {
        let of_part =
            |line: &&str| line.split_once(' ').is_some_and(|(_, rest)| rest.trim_start().starts_with(part));
        let lines: Vec<_> = said.lines().filter(of_part).collect();
        assert!(!lines.is_empty() && lines.iter().all(|line| line.contains(words)), "{part} {words}: {said}");
    };
    let said = doctor(&near, &silent);
    has(&said, "storage", "1 attempt in ");
    has(&said, "manifest", "not tried: the storage has failed");
    has(&said, "journal: one winner", "kept");
    has(&said, "journal in a bucket", "no object yet");
    has(&said, "a follower here", "not tried: the storage has failed");
    let said = doctor(&refused, &near);
    has(&said, "storage: one winner", "kept");
    has(&said, "manifest", "no database yet");
    has(&said, "journal in a bucket", "not tried: the bucket of the journal has failed");
    has(&said, "a follower here", "not tried: the bucket of the journal has failed");
    assert!(said.contains("in 3 s failed"), "{said}");
}

#[test]
fn no_backup_is_restored_into_a_directory_named_like_a_deployment_file() {
    let shell = Shell::new();
    shell.ok("put db k v");
    shell.ok("backup create db place");
    shell.fails("backup restore place new.toml", 1, &["no deployment file new.toml"]);
    assert!(!shell.path("new.toml").exists());
}
