//! Plans: the contents of a plan file, the resulting runs, and refused files.
#![allow(clippy::disallowed_methods, clippy::type_complexity, clippy::unwrap_used, reason = "a test")]

use terrane_bench::plan::file::parse;
use terrane_bench::plan::{Distribution, Plan, Run, Step, Until, ValueSize};

fn resolve(text: &str) -> Result<Plan, String> {
    parse(text).and_then(|file| file.resolve()).map_err(|error| error.to_string())
}

fn plan(steps: &str) -> Result<Plan, String> {
    resolve(&format!(
        "engines = [\"null\"]\n[data]\nkeys = 1000\n[run]\nseconds = 1\n[[scenario]]\nsteps = [{steps}]\n"
    ))
}

fn runs(plan: &Plan) -> Vec<&Run> {
    plan.scenarios[0]
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Run(run) => Some(&**run),
            _ => None,
        })
        .collect()
}

#[test]
fn lists_in_a_step_are_run_in_every_combination() {
    let plan = plan(r#""load", { workload = "ycsb_a", threads = [1, 2], distribution = ["uniform", "latest"], sync = [false, true] }"#).unwrap();
    let names: Vec<&str> = runs(&plan).iter().map(|run| run.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "load",
            "ycsb_a uniform t1",
            "ycsb_a uniform t2",
            "ycsb_a latest t1",
            "ycsb_a latest t2",
            "ycsb_a uniform t1 sync",
            "ycsb_a uniform t2 sync",
            "ycsb_a latest t1 sync",
            "ycsb_a latest t2 sync"
        ]
    );
}

#[test]
fn reads_run_once_for_all_sync_settings_and_fills_once_for_all_distributions() {
    let plan = resolve(
        "engines = [\"null\"]\n[data]\nkeys = 9\n[run]\nsync = [false, true]\ndistribution = [\"uniform\", \"latest\"]\n\
         [[scenario]]\nsteps = [\"load\", \"ycsb_c\"]\n",
    )
    .unwrap();
    let names: Vec<&str> = runs(&plan).iter().map(|run| run.name.as_str()).collect();
    assert_eq!(names, ["load", "ycsb_c uniform", "ycsb_c latest"]);
}

#[test]
fn a_scenario_overrides_defaults_and_a_step_overrides_both() {
    let plan = resolve(
        "engines = [\"null\"]\n[run]\nthreads = 1\nseconds = 5\nbatch = 3\n[data]\nkeys = 100\nvalue = 50\n\
         [[scenario]]\nrun = { threads = 2 }\ndata = { value = \"uniform(10,20)\" }\n\
         steps = [\"load\", { workload = \"readrandom\", threads = 4, operations = 7 }]\n",
    )
    .unwrap();
    assert_eq!(plan.scenarios[0].data.value, ValueSize::Uniform(10, 20));
    let runs = runs(&plan);
    assert_eq!((runs[0].threads, runs[0].batch, runs[0].until), (2, 3, Until::Operations(100)));
    assert_eq!((runs[1].threads, runs[1].until), (4, Until::Operations(7)));
}

#[test]
fn a_share_of_the_data_is_a_memory_budget() {
    let text = |memory: &str| {
        format!(
            "engines = [\"null\"]\n[data]\nkeys = 10_000_000\nkey_bytes = 16\nvalue = 84\n[database]\nmemory = \"{memory}\"\n\
             [[scenario]]\nsteps = [\"load\"]\n"
        )
    };
    assert_eq!(resolve(&text("10%")).unwrap().scenarios[0].memory_bytes, 100_000_000);
    assert_eq!(resolve(&text("1.5GiB")).unwrap().scenarios[0].memory_bytes, 3 << 29);
    assert!(resolve(&text("1MiB")).unwrap_err().contains("accepted is 16MiB or more"));
    assert!(resolve(&text("10 bananas")).unwrap_err().contains("10 bananas"));
}

#[test]
fn every_refusal_names_the_thing_and_the_accepted_values() {
    let cases = [
        ("\"readrandm\"", "did you mean readrandom"),
        ("\"readrandom\"", "begin with load"),
        ("\"load\", { workload = \"readrandom\", thread = 2 }", "cannot be read"),
        (
            "\"load\", { workload = \"readrandom\", distribution = \"normal\" }",
            "known are default, sequential",
        ),
        ("\"load\", { workload = \"readrandom\", threads = 0 }", "threads: accepted is 1 to 1024"),
        ("\"load\", { workload = \"readrandom\", seconds = \"soon\" }", "accepted are seconds"),
        ("\"load\", { workload = \"readseq\", rate = 10 }", "a whole scan has no arrivals"),
        ("\"load\", \"replay\"", "replay = \"FILE\""),
        ("\"load\", { workload = \"readrandom\", rate = -1 }", "rate: accepted is above 0"),
        ("\"load\", { workload = \"fillsync\", in_flight = 0 }", "in_flight: accepted is 1 to 65,536"),
        ("\"load\", { workload = \"fillsync\", in_flight = 8, rate = 10 }", "set in_flight to 1"),
        ("\"load\", { workload = \"ycsb_f\", sync = true, in_flight = 8 }", "not begun beside others"),
        ("\"load\", { workload = \"fillsync\", in_flight = 8, batch = 2 }", "writes of one record are"),
        ("", "it has no steps"),
        ("{ workload = \"load\", distribution = \"normal\" }", "known are default, sequential"),
    ];
    for (steps, expected) in cases {
        let refused = plan(steps).expect_err(steps);
        assert!(refused.contains(expected), "{steps}: {refused}");
    }
    let refused = resolve("engines = [\"oracle\"]\n[[scenario]]\nsteps = [\"load\"]\n").unwrap_err();
    assert!(refused.contains("unknown engine \"oracle\": known are terrane"), "{refused}");
    let refused =
        resolve("engines = [\"null\"]\nbaseline = \"lmdb\"\n[[scenario]]\nsteps = [\"load\"]\n").unwrap_err();
    assert!(refused.contains("baseline \"lmdb\""), "{refused}");
    let refused = resolve(
        "engines = [\"null\"]\n[data]\nkeys = 100_000_000\nkey_bytes = 8\n[[scenario]]\nsteps = [\"load\"]\n",
    );
    assert!(refused.unwrap_err().contains("need at least 9"));
}

#[test]
fn distributions_read_back_as_they_are_shown() {
    use terrane_bench::plan::text::{distribution, show_distribution};
    let all = [
        Distribution::Default,
        Distribution::Sequential,
        Distribution::Uniform,
        Distribution::Zipfian(1.2),
        Distribution::Latest,
        Distribution::HotRange(0.1, 0.9),
    ];
    for one in all {
        assert_eq!(distribution(&show_distribution(one)).unwrap(), one);
    }
}

#[test]
fn the_ready_plans_are_plans() {
    for name in [
        "quick",
        "peers",
        "standard",
        "large",
        "shapes",
        "replacement",
        "phases",
        "hot",
        "cores",
        "ablation",
        "soak",
        "transactions",
        "range-deletes",
        "c-route",
        "elastic-local",
        "pmem-ycsb",
    ] {
        let path = format!("{}/../../bench/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = terrane_bench::files::read_text(path.as_ref()).unwrap();
        let plan = resolve(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(plan.name, name);
    }
}
