//! Explores schedules of the whole engine: `cargo xtask schedules`.

use std::process::ExitCode;
use std::time::Duration;

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

struct Arguments {
    campaign: Campaign,
    replay: Option<(u64, u64)>,
    show: Option<u64>,
    hold: Duration,
    processor: usize,
}

fn main() -> ExitCode {
    let arguments = match arguments(std::env::args().skip(1)) {
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

/// The arguments of a command line; none where it asks for help.
fn arguments(words: impl IntoIterator<Item = String>) -> Result<Option<Arguments>, String> {
    let campaign = Campaign { start: 0, histories: 100, schedules: 100, time: None };
    let processor = std::process::id() as usize;
    let mut parsed = Arguments { campaign, replay: None, show: None, hold: Duration::ZERO, processor };
    let mut given = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == "--help" {
            return Ok(None);
        }
        given.push(word.clone());
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        let number =
            |text: &str| text.parse::<u64>().map_err(|_| format!("{word}: {text:?} is not a number"));
        match word.as_str() {
            "--histories" => parsed.campaign.histories = number(&value)?,
            "--schedules" => parsed.campaign.schedules = number(&value)?,
            "--start" => parsed.campaign.start = number(&value)?,
            "--time" => parsed.campaign.time = Some(Duration::from_secs(number(&value)?)),
            "--hold" => parsed.hold = Duration::from_secs(number(&value)?),
            "--processor" => parsed.processor = number(&value)? as usize,
            "--show" => parsed.show = Some(number(&value)?),
            "--replay" => {
                let (history, schedule) =
                    value.split_once(':').ok_or("--replay wants HISTORY:SCHEDULE, such as 17:3")?;
                parsed.replay = Some((number(history)?, number(schedule)?));
            }
            _ => return Err(format!("no such option: {word}")),
        }
    }
    if parsed.campaign.histories == 0 || parsed.campaign.schedules == 0 {
        return Err("0 histories or schedules would show nothing".to_owned());
    }
    check_together(&given)?;
    Ok(Some(parsed))
}

/// Refuses an option that the command would not follow beside another one.
fn check_together(given: &[String]) -> Result<(), String> {
    const OF_A_CAMPAIGN: &[&str] = &["--histories", "--schedules", "--start", "--time"];
    let is_given = |option: &str| given.iter().any(|word| word == option);
    for (alone, others) in [
        ("--show", &["--replay", "--hold", "--processor"][..]),
        ("--show", OF_A_CAMPAIGN),
        ("--replay", OF_A_CAMPAIGN),
    ] {
        if let Some(other) = others.iter().find(|other| is_given(alone) && is_given(other)) {
            return Err(format!("{alone} names what it does: it cannot be given with {other}"));
        }
    }
    Ok(())
}

fn explore(campaign: &Campaign) -> ExitCode {
    let mut told = 0;
    let mut progress = |done: &Done| {
        if done.histories >= told + 50 {
            told = done.histories;
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
            tell(&failed);
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

fn tell(failed: &Failed) {
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
                tell(&failed);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Option<Arguments>, String> {
        arguments(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn arguments_without_effect_are_refused() {
        for (line, why) in [
            (
                "--replay 1:2 --histories 5",
                "--replay names what it does: it cannot be given with --histories",
            ),
            ("--schedules 5 --replay 1:2", "with --schedules"),
            ("--replay 1:2 --start 5", "with --start"),
            ("--time 5 --replay 1:2", "with --time"),
            ("--show 1 --start 5", "--show names what it does: it cannot be given with --start"),
            ("--time 5 --show 1", "with --time"),
            ("--replay 1:2 --show 1", "--show names what it does: it cannot be given with --replay"),
            ("--show 1 --hold 5", "with --hold"),
            ("--show 1 --processor 0", "with --processor"),
        ] {
            let refused = of(line).err().unwrap_or_else(|| panic!("{line} is accepted"));
            assert!(refused.contains(why), "{line}: {refused}");
        }
        for fine in
            ["--replay 1:2 --hold 5 --processor 0", "--show 7", "--histories 5 --start 2 --time 9 --hold 1"]
        {
            assert!(matches!(of(fine), Ok(Some(_))), "{fine}");
        }
        assert!(matches!(of("--show 1 --help"), Ok(None)));
    }
}
