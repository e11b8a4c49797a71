//! `terrane bench` as a user types it: runs, reports, comparisons, and what it refuses.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test, on files of its own")]

use crate::common;

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::Shell;
use terrane_bench::child::parent::{self, Launcher, Outcome};
use terrane_bench::child::protocol::Job;
use terrane_bench::plan::file;

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
    let engines = [
        ("terrane", true),
        ("lmdb", cfg!(feature = "lmdb")),
        ("fjall", cfg!(feature = "fjall")),
        ("redb", cfg!(feature = "redb")),
        ("bftree", cfg!(feature = "bftree")),
        ("null", true),
    ];
    let engines: Vec<&str> =
        engines.iter().filter(|(_, is_built)| *is_built).map(|(name, _)| *name).collect();
    let engines = engines.join(",");
    let said = shell
        .ok(&format!("bench --config quick --engines {engines} --repetitions 1 --seconds 0.02 {SMALL}")
            .replace("--operations 500 ", ""));
    for engine in engines.split(',') {
        assert!(said.contains(engine), "{engine}: {said}");
    }
    assert!(!said.contains("PARTIAL"), "{said}");
}

#[test]
#[cfg(feature = "bftree")]
fn an_engine_is_opened_for_the_longest_value_of_any_step() {
    // The values of mixgraph are longer than those of the load; this engine sizes its records by the longest.
    let said = Shell::new().ok(&format!("bench --engines bftree --workloads load,mixgraph {SMALL}"));
    assert!(said.contains("mixgraph") && !said.contains("too large"), "{said}");
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
    shell.fails(
        &format!("bench --workloads load {SMALL} --replay bad.trace"),
        2,
        &["bad.trace is not a trace"],
    );
    shell.ok(&format!("bench --workloads load,ycsb_a {SMALL} --record new.trace --replay new.trace"));
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
    shell.fails("bench --config nowhere.toml", 1, &["nowhere.toml", "quick"]);
    assert_eq!(shell.run("bench --keys many").status.code(), Some(2));
    shell.fails("bench --keys 500G", 2, &["are free", "--dir"]);
    shell.fails("bench -o nonsense=1 --workloads load --keys 100", 2, &["nonsense"]);
    shell.fails("bench --engines null --verify", 2, &["keeps nothing"]);
    shell.fails("bench compare missing.json missing.json", 1, &["missing.json"]);
    std::fs::write(shell.path("bad.toml"), "engines = [\"null\"]\nspeed = 3\n").unwrap();
    shell.fails("bench --config bad.toml", 2, &["speed"]);
}

#[test]
fn a_plan_that_cannot_be_run_is_refused_before_anything_is() {
    let shell = Shell::new();
    let plan = |engine: &str| {
        format!(
            "engines = [\"terrane\", {engine}]\ndata = {{ keys = 1000 }}\n[[scenario]]\nname = \"s\"\nsteps = [\"load\"]\n"
        )
    };
    let refused = |engine: &str, parts: &[&str]| {
        shell.file("p.toml", plan(engine));
        shell.fails("bench --config p.toml --json none.json", 2, parts);
        assert!(!shell.path("none.json").exists() && !shell.path("bench-data").exists(), "nothing was run");
    };
    #[cfg(feature = "lmdb")]
    refused(
        "{ engine = \"lmdb\", options = { map_byts = 1 } }",
        &["nothing was run", "map_byts", "map_bytes"],
    );
    #[cfg(feature = "fjall")]
    refused("{ engine = \"fjall\", options = { cache_bytes = \"big\" } }", &["fjall", "cache_bytes", "big"]);
    let library = "/nowhere/librocksdb.so";
    refused(&format!("{{ engine = \"rocksdb\", library = \"{library}\" }}"), &[library, "librocksdb-dev"]);
    // A library, but not of RocksDB.
    refused("{ engine = \"rocksdb\", library = \"libc.so.6\" }", &["libc.so.6", "rocksdb_"]);
    shell.fails(&format!("bench --engines rocksdb --rocksdb {library} --workloads load"), 2, &[library]);
}

#[test]
fn a_machine_without_rocksdb_runs_the_rest_of_a_plan() {
    let shell = Shell::new();
    shell.file(
        "p.toml",
        "engines = [\"null\", \"rocksdb\"]\ndata = { keys = 1000 }\n[[scenario]]\nname = \"s\"\nsteps = [\"load\"]\n",
    );
    let run = |line: &str| shell.command(line).env_remove("TERRANE_ROCKSDB").output().unwrap();
    let done = run("bench --config p.toml --json run.json");
    let said = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(0), "{said}");
    // Which libraries the loader finds is not the test's to say.
    if !said.contains("unsupported") {
        println!("NOT RUN: this machine has a RocksDB library");
        return;
    }
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("apt install") && words.contains("rocksdbjni"), "{said}");
    let typed = run("bench --config p.toml --engines null,rocksdb");
    let error = String::from_utf8(typed.stderr).unwrap();
    assert!(typed.status.code() == Some(2) && error.contains("librocksdb-dev"), "{error}");
}

#[test]
#[cfg(feature = "lmdb")]
fn a_step_that_failed_is_listed_and_the_exit_code_says_so() {
    let shell = Shell::new();
    shell.file(
        "p.toml",
        "engines = [\"null\", { engine = \"lmdb\", options = { map_bytes = 131072 } }]\ndata = { keys = 5000 }\n\
         [[scenario]]\nname = \"s\"\nsteps = [\"load\", \"readrandom\"]\nrun = { operations = 100 }\n",
    );
    let done = shell.run("bench --config p.toml --json run.json --html run.html");
    let (said, error) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert_eq!(done.status.code(), Some(6), "{error}");
    assert!(
        error.contains("1 of the cells failed, first s / load / lmdb: lmdb: write: the map is full"),
        "{error}"
    );
    assert!(said.contains("FAILED") && shell.path("run.html").exists(), "{said}");
    assert!(shell.ok("bench report run.json").contains("the map is full"));
}

#[test]
fn a_run_removes_only_what_it_made() {
    let shell = Shell::new();
    let run =
        |more: &str| shell.ok(&format!("bench --engines terrane --workloads load {SMALL} --dir d {more}"));
    let below = || {
        let entries = std::fs::read_dir(shell.path("d")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    std::fs::create_dir(shell.path("d")).unwrap();
    run("");
    assert_eq!(below(), [""; 0], "a directory that was there stays");
    // The name that a database has in the directory of the run.
    std::fs::create_dir(shell.path("d/1-bench-terrane-0")).unwrap();
    shell.file("d/1-bench-terrane-0/mine", "precious");
    run("");
    assert_eq!(below(), ["1-bench-terrane-0"]);
    run("--keep");
    let kept = below().into_iter().find(|name| name.starts_with("run-")).unwrap();
    assert!(shell.path(&format!("d/{kept}/1-bench-terrane-0")).exists(), "{kept}");
    run("");
    assert_eq!(below().len(), 2, "neither kept databases nor those of another run are removed");
    assert_eq!(std::fs::read_to_string(shell.path("d/1-bench-terrane-0/mine")).unwrap(), "precious");
}

#[test]
fn disjoint_results_and_results_without_cells_are_not_called_equal() {
    let shell = Shell::new();
    shell.ok(&format!("bench --engines null --workloads load,readrandom {SMALL} --json both.json"));
    shell.ok(&format!("bench --engines null --workloads load {SMALL} --json one.json"));
    shell.ok(&format!("bench --engines terrane --workloads load {SMALL} --json other.json"));
    shell.fails("bench compare one.json other.json", 2, &["nothing to compare"]);
    shell.fails("bench compare both.json one.json", 1, &["lacks 1", "readrandom", "not run"]);
    let said = shell.ok("bench compare one.json both.json");
    assert!(said.contains("unsure") && said.contains("--repetitions 5"), "one pair says nothing: {said}");
}

/// A run that is in the step after the load, with its result in `NAME.json`.
fn reading(shell: &Shell, name: &str) -> Child {
    let line = format!("bench --workloads load,readrandom --keys 2000 --seconds 600 --json {name}.json");
    let mut command = shell.command(&line);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().unwrap();
    let result = shell.path(&format!("{name}.json"));
    // The load is one line after the header; then the long read begins.
    let lines = || std::fs::read_to_string(&result).map_or(0, |text| text.lines().count());
    while lines() < 2 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    // A message after the result of the load says that the step begins, and the next one how far it is: two
    // messages more.
    let mut heard = bytes_read(child.id());
    for _ in 0..2 {
        let before = heard;
        while heard == before && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(20));
            heard = bytes_read(child.id());
        }
    }
    child
}

/// Bytes that a process has read so far; 0 when it has ended.
fn bytes_read(pid: u32) -> u64 {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let read = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    read.map_or(0, |bytes| bytes.parse().unwrap())
}

#[test]
fn an_engine_that_dies_is_reported_at_the_step_it_was_in() {
    let shell = Shell::new();
    let run = reading(&shell, "dead");
    let children = format!("/proc/{0}/task/{0}/children", run.id());
    let child = std::fs::read_to_string(children).unwrap();
    assert!(Command::new("kill").args(["-KILL", child.trim()]).status().unwrap().success(), "{child:?}");
    let ended = run.wait_with_output().unwrap();
    let error = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(6), "{error}");
    assert!(error.contains("bench / readrandom / terrane: the process ended early (signal: 9"), "{error}");
    assert!(shell.ok("bench report dead.json").contains("readrandom / terrane #0: FAILED"), "{error}");
}

#[test]
fn an_interruption_ends_a_child_that_says_nothing() {
    let shell = Shell::new();
    let plan =
        file::parse("engines = [\"null\"]\n[[scenario]]\nsteps = [\"load\"]\n").unwrap().resolve().unwrap();
    let job = Job {
        engine: plan.engines[0].clone(),
        scenario: plan.scenarios[0].clone(),
        repetition: 0,
        seed: 1,
        directory: shell.path("d"),
    };
    let pid = shell.path("pid");
    // More on standard error than a pipe holds, then silence for longer than any reader waits.
    let script =
        format!("read job; yes error | head -c 300000 >&2; echo $$ > {}; exec sleep 100000", pid.display());
    let launcher = Launcher { program: "/bin/sh".into(), arguments: vec!["-c".to_owned(), script] };
    let interrupted = AtomicBool::new(false);
    let number = || std::fs::read_to_string(&pid).unwrap_or_default().trim().to_owned();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while number().is_empty() {
                std::thread::sleep(Duration::from_millis(10));
            }
            interrupted.store(true, Ordering::Relaxed);
        });
        parent::run(&launcher, &job, None, &interrupted, &mut |_| Ok(())).unwrap()
    });
    assert_eq!(outcome, Outcome::Interrupted);
    assert!(!std::path::Path::new(&format!("/proc/{}", number())).exists(), "killed, and waited for");
}

/// A signal to the group can end the child before the command has heard of it.
#[test]
fn a_child_that_the_interruption_reaches_first_is_not_a_failure() {
    let shell = Shell::new();
    let plan =
        file::parse("engines = [\"null\"]\n[[scenario]]\nsteps = [\"load\"]\n").unwrap().resolve().unwrap();
    let job = Job {
        engine: plan.engines[0].clone(),
        scenario: plan.scenarios[0].clone(),
        repetition: 0,
        seed: 1,
        directory: shell.path("d"),
    };
    // Longer than any signal takes, but the test ends, if the child ignores it.
    let dies = "read job; echo $$ > DIR/pid; kill -INT $$; sleep 60; touch DIR/unheard"
        .replace("DIR", shell.path("").to_str().unwrap());
    let heeding = common::with_default_signals("/bin/sh");
    let arguments = heeding.get_args().map(|argument| argument.to_str().unwrap().to_owned());
    let launcher = Launcher {
        program: heeding.get_program().into(),
        arguments: arguments.chain(["-c".to_owned(), dies]).collect(),
    };
    let interrupted = AtomicBool::new(false);
    let is_gone = || {
        let pid = std::fs::read_to_string(shell.path("pid")).unwrap_or_default();
        !pid.trim().is_empty() && !std::path::Path::new(&format!("/proc/{}", pid.trim())).exists()
    };
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_gone() {
                std::thread::sleep(Duration::from_millis(10));
            }
            interrupted.store(true, Ordering::Relaxed);
        });
        parent::run(&launcher, &job, None, &interrupted, &mut |_| Ok(())).unwrap()
    });
    assert!(!shell.path("unheard").exists(), "the signal did not end the child");
    assert_eq!(outcome, Outcome::Interrupted);
}

#[test]
fn an_interrupted_run_keeps_what_it_has_and_says_so() {
    interrupted(|pid| pid.to_string());
}

/// As a terminal sends it: to the command and to the process of the engine at once.
#[test]
fn a_signal_to_the_whole_group_leaves_no_database() {
    interrupted(|pid| format!("-{pid}"));
}

/// Interrupts a run, by a signal to what `target` makes of its process id.
fn interrupted(target: impl Fn(u32) -> String) {
    let shell = Shell::new();
    let child = reading(&shell, "cut");
    Command::new("kill").args(["-INT", "--", &target(child.id())]).status().unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(7), "{}", String::from_utf8_lossy(&ended.stderr));
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(said.contains("PARTIAL") && said.contains("load"), "{said}");
    let again = shell.ok("bench report cut.json");
    assert!(again.contains("PARTIAL"), "{again}");
    assert!(!shell.path("bench-data").exists(), "the database of the step that was cut is removed");
}
