//! Explores schedules of the whole engine: `cargo xtask schedules`.

use std::process::ExitCode;

use terrane_sim::threads::arguments::parse;
use terrane_sim::threads::campaign::{Campaign, Done, Failed, replay, run, show};

const HELP: &str = "\
Runs the whole engine with its threads under chosen schedules and compares every answer.

usage: cargo xtask schedules [OPTIONS]

  --histories N     histories, each drawn from a seed (default 100)
  --schedules N     schedules of each history: random turns, PCT, bounded preemptions in turns (default 100)
  --start SEED      seed of the first history (default 0)
  --time SECONDS    no further schedule begins after so long
  --processor N     the core that it uses (default: one by the number of the process): threads take turns fastest on one
  --replay H:S      runs schedule S of history H twice; fails as well where the two took different ways
  --hold SECONDS    waits so long after a failure: its threads stand where they were, for a debugger
  --show H          what history H does
  --help            this text

--replay and --show name one history: with each other, or with --histories, --schedules, --start or --time, they are
refused; so are --hold and --processor with --show, which runs nothing.

A failure prints the history, the schedule and what repeats it; the exit code is 1 then.
`cargo xtask schedules --planted NAME ...` plants the bug NAME, and fails where it is not found.
One process uses one core. For two, start two with different --start and --processor.";

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(why) => {
            eprintln!("schedules: {why}; see --help");
            return ExitCode::from(2);
        }
    };
    if let Some(history) = arguments.show {
        print!("{}", show(history));
        return ExitCode::SUCCESS;
    }
    // Threads that are started later are bound as well. Without it the same happens, more slowly.
    let _ = terrane_device::pin_to_processor(arguments.processor);
    let code = match arguments.replay {
        Some((history, schedule)) => repeat(history, schedule),
        None => explore(&arguments.campaign),
    };
    if code != ExitCode::SUCCESS && !arguments.hold.is_zero() {
        eprintln!("schedules: process {} waits {} s", std::process::id(), arguments.hold.as_secs());
        std::thread::park_timeout(arguments.hold);
    }
    code
}

fn explore(campaign: &Campaign) -> ExitCode {
    let mut printed = 0;
    let mut progress = |done: &Done| {
        if done.histories >= printed + 50 {
            printed = done.histories;
            eprintln!("schedules: {}", line(done));
        }
    };
    match run(campaign, &mut progress) {
        Ok(done) => {
            for (kind, [done, refused]) in &done.kinds {
                println!("  {kind}: {done} done, {refused} refused for what another caller did");
            }
            println!("schedules: {}; 0 failures", line(&done));
            ExitCode::SUCCESS
        }
        Err((done, failed)) => {
            println!("schedules: {}; 1 failure", line(&done));
            print(&failed);
            ExitCode::FAILURE
        }
    }
}

fn line(done: &Done) -> String {
    format!(
        "{} histories, {} schedules, {} operations, {} choices of a thread, up to {} threads",
        done.histories, done.schedules, done.operations, done.choices, done.threads
    )
}

fn print(failed: &Failed) {
    println!(
        "history {} under schedule {} ({}): {}",
        failed.history, failed.schedule, failed.strategy, failed.why
    );
    println!("begun, in this order:");
    failed.begun.iter().for_each(|op| println!("  {op}"));
    println!("again: cargo xtask schedules --replay {}:{}", failed.history, failed.schedule);
}

fn repeat(history: u64, schedule: u64) -> ExitCode {
    let mut traces = Vec::new();
    for _ in 0..2 {
        match replay(history, schedule) {
            Ok(trace) => traces.push(trace),
            // Its threads stay parked: there is no second run beside them.
            Err(failed) => {
                print(&failed);
                return ExitCode::FAILURE;
            }
        }
    }
    if traces[0] != traces[1] {
        println!("no failure, but two runs took different ways: what failed once may not fail again");
        return ExitCode::FAILURE;
    }
    println!("no failure; both runs took the same way");
    ExitCode::SUCCESS
}
