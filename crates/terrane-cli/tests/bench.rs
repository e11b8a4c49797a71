//! `terrane bench` as a user types it: runs, reports, comparisons, and what it refuses.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test, on files of its own")]

mod common;

use std::process::{Command, Stdio};

use common::Shell;

const SMALL: &str = "--keys 3000 --operations 500 --memory 32MiB";

#[test]
fn a_run_prints_a_table_and_leaves_no_database() {
    let shell = Shell::new();
    let said = shell.ok(&format!(
        "bench --engines terrane,null --workloads load,flush,readrandom,ycsb_a {SMALL} --json run.json --html run.html --repetitions 2"
    ));
    for part in ["load", "flush", "readrandom", "ycsb_a", "terrane", "null", "p99", "shape terrane"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!shell.path("bench-data").exists(), "the databases are removed");
    let page = std::fs::read_to_string(shell.path("run.html")).unwrap();
    assert!(page.contains("ycsb_a") && !page.contains("src=\"http"), "a page that needs no network");
    let lines = std::fs::read_to_string(shell.path("run.json")).unwrap();
    // Header, end, and for two engines and two repetitions four steps.
    assert_eq!(lines.lines().count(), 2 + 2 * 2 * 4);
    let again = shell.ok("bench report run.json --details");
    assert!(again.contains("readrandom"), "{again}");
}

#[test]
fn every_peer_of_this_build_runs_the_quick_plan_on_few_keys() {
    let shell = Shell::new();
    let engines = "terrane,lmdb,fjall,redb,bftree,null";
    let said = shell
        .ok(&format!("bench --config quick --engines {engines} --repetitions 1 --seconds 0.02 {SMALL}")
            .replace("--operations 500 ", ""));
    for engine in engines.split(',') {
        assert!(said.contains(engine), "{engine}: {said}");
    }
    assert!(!said.contains("PARTIAL"), "{said}");
}

#[test]
fn a_trace_is_recorded_and_replayed() {
    let shell = Shell::new();
    shell.ok(&format!("bench --workloads load,ycsb_a {SMALL} --record ops.trace"));
    let bytes = std::fs::metadata(shell.path("ops.trace")).unwrap().len();
    assert!((1000..20_000).contains(&bytes), "{bytes}");
    let said =
        shell.ok(&format!("bench --workloads load {SMALL} --replay ops.trace --json replay.json --verify"));
    assert!(said.contains("replay"), "{said}");
    let lines = std::fs::read_to_string(shell.path("replay.json")).unwrap();
    let replayed = lines.lines().find(|line| line.contains("\"step\":\"replay\"")).unwrap();
    assert!(replayed.contains("\"operations\":500"), "{replayed}");
    std::fs::write(shell.path("bad.trace"), b"not a trace").unwrap();
    let said = shell.ok(&format!("bench --workloads load {SMALL} --replay bad.trace"));
    assert!(said.contains("bad.trace is no trace"), "a step that failed is listed: {said}");
}

#[test]
fn a_slower_run_is_a_regression_and_the_same_run_is_not() {
    let shell = Shell::new();
    shell.ok(&format!("bench --workloads load,readrandom {SMALL} --json a.json --repetitions 5"));
    shell.ok("bench compare a.json a.json");
    // The same result with every time ten times as long.
    let text = std::fs::read_to_string(shell.path("a.json")).unwrap();
    let slower: Vec<String> = text
        .lines()
        .map(|line| {
            let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
            for field in ["seconds", "seconds_until_quiescent"] {
                if let Some(seconds) = value.get(field).and_then(serde_json::Value::as_f64) {
                    value[field] = (seconds * 10.0).into();
                }
            }
            value.to_string()
        })
        .collect();
    std::fs::write(shell.path("b.json"), slower.join("\n") + "\n").unwrap();
    shell.fails("bench compare a.json b.json --bound 20%", 1, &["slower by more than 20.0 %"]);
    shell.ok("bench compare b.json a.json");
}

#[test]
fn refusals_name_the_thing_and_the_remedy() {
    let shell = Shell::new();
    shell.fails("bench --workloads readrandm", 2, &["did you mean readrandom"]);
    shell.fails("bench --workloads readrandom", 2, &["begin with load"]);
    shell.fails("bench --engines oracle", 2, &["unknown engine \"oracle\"", "lmdb"]);
    shell.fails("bench --config nowhere.toml", 2, &["nowhere.toml", "quick"]);
    assert_eq!(shell.run("bench --keys many").status.code(), Some(2));
    shell.fails("bench --keys 500G", 2, &["are free", "--dir"]);
    shell.fails("bench -o nonsense=1 --workloads load --keys 100", 2, &["nonsense"]);
    shell.fails("bench --engines null --verify", 2, &["keeps nothing"]);
    shell.fails("bench compare missing.json missing.json", 6, &["missing.json"]);
    std::fs::write(shell.path("bad.toml"), "engines = [\"null\"]\nspeed = 3\n").unwrap();
    shell.fails("bench --config bad.toml", 2, &["speed"]);
    let said =
        shell.run("bench --engines rocksdb --rocksdb /nowhere/librocksdb.so --workloads load --keys 100");
    let told = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(told.contains("/nowhere/librocksdb.so"), "{told}");
}

#[test]
fn an_interrupted_run_keeps_what_it_has_and_says_so() {
    let shell = Shell::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_terrane"))
        .args("bench --workloads load,readrandom --keys 2000 --seconds 30 --json cut.json".split(' '))
        .current_dir(shell.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The load is one line after the header; then the long read begins.
    let lines = || std::fs::read_to_string(shell.path("cut.json")).map_or(0, |text| text.lines().count());
    while lines() < 2 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(7), "{}", String::from_utf8_lossy(&ended.stderr));
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(said.contains("PARTIAL") && said.contains("load"), "{said}");
    let again = shell.ok("bench report cut.json");
    assert!(again.contains("PARTIAL"), "{again}");
}
