//! `clone`: databases of deployments that read the objects of others; their pins, consent, signals.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "runs processes on files of its own")]

use std::process::Stdio;

use crate::common::Shell;
use crate::deployment::deployed_to_clone;
use crate::signals::{kill, signalled};

#[test]
fn a_deployment_is_cloned_of_now_and_of_an_earlier_commit() {
    let shell = Shell::new();
    let bucket = |name: &str| format!("file://{}", shell.path(name).display());
    for (file, bucket, prefix) in [
        ("app.toml", bucket("bucket"), "app"),
        ("copy.toml", bucket("bucket"), "copy"),
        ("then.toml", bucket("other"), "then"),
    ] {
        let text = format!(
            "[journal]\nin_bucket = true\ndirectory = \"journal-{prefix}\"\n[storage]\nurl = \"{bucket}\"\nprefix = \"{prefix}\"\n\
             probe = false\n[options]\nmemory_bytes = \"32MiB\"\nclose_flush = false\n"
        );
        shell.file(file, text);
    }
    shell.fill("app.toml", 300);
    shell.ok("compact app.toml");
    shell.ok("put app.toml ada Lovelace --sync");
    let would = shell.ok("clone app.toml copy.toml --dry-run");
    assert_eq!(would, "would make the clone copy.toml, and remove nothing\n");
    let made = shell.ok("clone app.toml copy.toml");
    let at = made.strip_prefix("copy.toml is a clone of app.toml at commit #");
    let at: u64 = at.and_then(|made| made.split_once(": ")?.0.parse().ok()).expect("the commit");
    assert!(made.contains(" are referenced, ") && made.contains(" written"), "{made}");
    shell.ok("put app.toml grace Hopper --sync");
    shell.ok("delete copy.toml ada");
    assert_eq!(shell.ok("count copy.toml"), "300\n");
    assert_eq!(shell.ok("count app.toml"), "302\n");
    assert!(shell.ok("check copy.toml").contains(" 0 findings"));
    // An earlier moment, in another bucket.
    let made = shell.ok(&format!("clone app.toml then.toml --at-commit {at} --json"));
    assert!(made.contains(&format!("\"commit\":{at}")), "{made}");
    assert_eq!(shell.ok("get then.toml ada"), "Lovelace");
    assert_eq!(shell.ok("count then.toml"), "301\n");
    refuses_other_places(&shell);
    // Pins are listed, and stay while their clone needs the objects.
    let pins = shell.ok("clone app.toml --pins");
    assert!(
        pins.lines().count() == 2 && pins.contains("other/then") && pins.contains("bucket/copy"),
        "{pins}"
    );
    assert!(shell.ok("stats app.toml").ends_with(&format!("pins of clones\n{pins}")));
    pins_for_programs(&shell, &pins);
    let doctor = shell.ok("doctor app.toml");
    assert!(doctor.contains("for the clone file://") && doctor.contains("other/then"), "{doctor}");
    assert!(shell.ok("doctor then.toml").contains("bucket/app"));
    let of_then = pins.lines().find(|line| line.contains("other/then")).unwrap();
    let number = of_then.split_whitespace().next().unwrap();
    shell.fails(&format!("clone app.toml --release {number}"), 2, &["delete the clone first"]);
    shell.fails("clone app.toml --release 77", 2, &["expected the 32 digits"]);
    shell.fails("clone app.toml --release 00112233445566778899aabbccddeeff", 1, &["has no pin"]);
    let force = format!("clone app.toml --release {number} --force");
    shell.fails(&force, 2, &["release pin", "other/then", "loses data", "--yes"]);
    let would = shell.ok(&format!("{force} --dry-run"));
    assert!(would.starts_with(&format!("would release pin {number}: ")), "{would}");
    assert_eq!(shell.ok("clone app.toml --pins"), pins, "nothing was released");
    let released = shell.ok(&format!("{force} --yes"));
    assert!(released.contains(number) && released.contains("other/then"), "{released}");
    shell.fails("get then.toml ada", 3, &["the pin of this clone is gone", "bucket/app"]);
    assert_eq!(shell.ok("count copy.toml"), "300\n");
}

/// The objects that an unfinished clone has left are removed with consent; the command asks only where there
/// are some.
#[test]
fn the_rest_of_an_unfinished_clone_is_removed_with_consent() {
    let shell = deployed_to_clone(1);
    shell.ok("put app.toml ada Lovelace --sync");
    let bucket = shell.path("bucket");
    let copy = |what: &str| {
        let clone = shell.run(&format!("clone app.toml copy.toml {what}"));
        (
            clone.status.code(),
            String::from_utf8(clone.stdout).unwrap() + &String::from_utf8(clone.stderr).unwrap(),
        )
    };
    let (code, said) = copy("--replace-unfinished");
    assert_eq!(code, Some(0), "nothing was there: {said}");
    // Of a clone whose making ends in front of its snapshot the first object of the manifest stays.
    let manifest = bucket.join("copy/manifest");
    let mut objects: Vec<_> =
        std::fs::read_dir(&manifest).unwrap().map(|entry| entry.unwrap().path()).collect();
    objects.sort();
    for object in &objects[1..] {
        if object.is_file() {
            std::fs::remove_file(object).unwrap()
        } else {
            std::fs::remove_dir_all(object).unwrap()
        }
    }
    let (code, said) = copy("");
    assert!(code == Some(2) && said.contains("--replace-unfinished"), "{said}");
    let (code, said) = copy("--replace-unfinished");
    assert!(code == Some(2) && said.contains("remove ") && said.contains("--yes"), "{said}");
    let (code, said) = copy("--replace-unfinished --dry-run");
    assert!(code == Some(0) && said.starts_with("would remove "), "{said}");
    assert!(objects[0].exists(), "nothing was removed");
    let (code, said) = copy("--replace-unfinished --yes");
    assert!(code == Some(0) && said.contains("removed "), "{said}");
    assert_eq!(shell.ok("get copy.toml ada"), "Lovelace");
}

/// A clone is made neither where something is nor of a directory.
fn refuses_other_places(shell: &Shell) {
    shell.fails("clone app.toml then.toml", 2, &["empty prefix"]);
    let replace = "clone app.toml then.toml --replace-unfinished --yes";
    shell.fails(replace, 2, &["has a database, which is not removed"]);
    shell.fails("clone app.toml app.toml", 2, &["the original itself"]);
    shell.fails("clone app.toml local.terrane", 2, &["takes deployment files", "checkpoint"]);
    for (line, why) in [
        ("clone app.toml copy.toml --pins", "cannot be used with"),
        ("clone app.toml", "required arguments were not provided"),
        ("clone app.toml --pins --force", "cannot be used with"),
    ] {
        let output = shell.run(line);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(why), "{line}: {said}");
    }
}

/// The pins of `stats --json` and `--prometheus` are those of `clone --pins`.
fn pins_for_programs(shell: &Shell, pins: &str) {
    let lines = shell.ok("clone app.toml --pins --json");
    let listed: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let json: serde_json::Value = serde_json::from_str(&shell.ok("stats app.toml --json")).unwrap();
    assert_eq!(json["clone_pins"], serde_json::Value::from(listed.clone()));
    let text = shell.ok("stats app.toml --prometheus");
    assert!(text.contains("\nterrane_clone_pins 2\n"), "{text}");
    for pin in &listed {
        let (number, clone) = (pin["pin"].as_str().unwrap(), pin["clone"].as_str().unwrap());
        assert!(pins.contains(number), "{pins}");
        let labels = format!("{{pin=\"{number}\",clone=\"{clone}\"}}");
        for (name, member) in [("objects", "objects"), ("bytes", "bytes")] {
            let line = format!("\nterrane_clone_pin_{name}{labels} {}\n", pin[member]);
            assert!(text.contains(&line), "no {line:?} in {text}");
        }
    }
    // None is a number, too: an alarm sees the difference from a scrape that failed.
    let of_clone = shell.ok("stats copy.toml --prometheus");
    assert!(of_clone.contains("\nterrane_clone_pins 0\n") && !of_clone.contains("terrane_clone_pin_"));
    assert!(shell.ok("stats copy.toml --json").contains("\"clone_pins\":[]"));
}

/// A clone that a signal ends leaves nothing; the same command makes it then.
#[test]
fn a_clone_that_is_stopped_leaves_nothing() {
    let shell = deployed_to_clone(2000);
    let (code, error) = signalled(&shell, "clone app.toml copy.toml");
    let pins = shell.ok("clone app.toml --pins").lines().count();
    if code == 7 {
        assert!(error.contains("no clone was made, and nothing is left at copy.toml"), "{error}");
        assert_eq!(pins, 0);
        shell.ok("clone app.toml copy.toml");
    } else {
        assert_eq!(pins, 1);
    }
    assert_eq!(shell.ok("count copy.toml"), "2000\n");
}

/// Storage that takes connections and never says a word holds a command until a signal.
#[cfg(feature = "grpc")]
#[test]
fn a_signal_ends_what_waits_for_storage() {
    let shell = Shell::new();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("grpc://{}", silent.local_addr().unwrap());
    shell.file("app.toml", format!("[journal]\ndirectory = \"journal\"\n[storage]\nurl = \"{url}\"\n"));
    for line in ["clone app.toml --pins", "doctor app.toml"] {
        let child = shell.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It has asked, so it waits.
        let asked = silent.accept().unwrap();
        kill(&child, "INT");
        let ended = child.wait_with_output().unwrap();
        let error = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(7), "{line}: {error}");
        assert!(error.contains("stopped by a signal: not every "), "{line}: {error}");
        drop(asked);
    }
}
