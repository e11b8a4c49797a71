//! `bench`: runs plans of `terrane-bench`, shows how far they are, prints and keeps their reports.

mod plan;
mod progress;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use terrane_bench::child::parent::Launcher;
use terrane_bench::report::model::{Failed, RunReport};
use terrane_bench::report::{compare, html, jsonl, table};
use terrane_bench::run::{self, RunSettings};
use terrane_bench::{engine, files, generate};

use crate::arguments::Engine;
use crate::arguments::bench::{Bench, Compare, Redraw, RunFlags, Sub};
use crate::exit::{Code, Failure};
use crate::signals::stop_on_signals;

impl From<terrane_bench::Error> for Failure {
    fn from(error: terrane_bench::Error) -> Failure {
        let code = match error {
            terrane_bench::Error::Plan(_) => Code::Usage,
            terrane_bench::Error::Interrupted => Code::Stopped,
            _ => Code::Other,
        };
        Failure::new(code, error.to_string())
    }
}

pub(super) fn run(engine: &Engine, command: &Bench, out: &mut dyn Write) -> Result<(), Failure> {
    match &command.command {
        None => run_plan(engine, &command.run, out),
        Some(Sub::Compare(command)) => run_compare(command, out),
        Some(Sub::Report(command)) => redraw(command, out),
        Some(Sub::List) => list(out),
        Some(Sub::Child) => child(),
    }
}

fn run_plan(engine: &Engine, flags: &RunFlags, out: &mut dyn Write) -> Result<(), Failure> {
    // A name without an end is that of a ready plan.
    if let Some(file) = flags.config.as_deref().filter(|file| file.extension().is_some()) {
        crate::files::require(file).map_err(|mut failure| {
            failure.message += "; a ready plan has a name without an end, such as quick";
            failure
        })?;
    }
    let plan = plan::plan(engine, flags)?;
    let stop = stop_on_signals()?;
    let place = RunSettings {
        directory: flags.dir.clone(),
        results: flags.json.clone(),
        keep: flags.keep,
        must_have: flags.engines.clone(),
        launcher: launcher()?,
        command: typed(),
    };
    let report = run::run(&plan, &place, &stop, &progress::Bars::new(&plan))?;
    show(&report, flags.details, flags.html.as_deref(), out)?;
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::new(Code::Stopped, "interrupted: the report holds what was measured before"));
    }
    if report.cells.is_empty() {
        let why = report.failed.first().map_or("the plan did nothing", |failed| &failed.why);
        return Err(Failure::new(Code::Other, format!("nothing could be measured: {why}")));
    }
    judge(&report)
}

/// A run in which something failed has a report, but did not do what it was asked. What an engine lacks is
/// not a failure.
fn judge(report: &RunReport) -> Result<(), Failure> {
    let failed: Vec<&Failed> = report.failed.iter().filter(|failed| !failed.unsupported).collect();
    let Some(first) = failed.first() else { return Ok(()) };
    let step = if first.step.is_empty() { "open" } else { &first.step };
    let place = format!("{} / {step} / {}", first.scenario, first.engine);
    let text = format!("{} of the cells failed, first {place}: {}", failed.len(), first.why);
    Err(Failure::new(Code::Other, text))
}

/// Prints the tables, and writes the page if one is asked for.
fn show(report: &RunReport, details: bool, page: Option<&Path>, out: &mut dyn Write) -> Result<(), Failure> {
    let style = table::Style { colour: table::colour_wanted(std::io::stdout().is_terminal()), details };
    write!(out, "{}", table::render(report, style))?;
    if let Some(page) = page {
        files::write_text(page, &html::render(report))?;
        writeln!(out, "report: {}", page.display())?;
    }
    Ok(out.flush()?)
}

fn run_compare(command: &Compare, out: &mut dyn Write) -> Result<(), Failure> {
    crate::files::require(&command.before)?;
    crate::files::require(&command.after)?;
    let comparison =
        compare::compare(&jsonl::read(&command.before)?, &jsonl::read(&command.after)?, command.bound);
    write!(out, "{comparison}")?;
    out.flush()?;
    if comparison.is_empty() {
        return Err(Failure::new(Code::Usage, "nothing to compare: no cell is in both results"));
    }
    if let Some((place, why)) = comparison.missing.first() {
        let count = comparison.missing.len();
        let text = format!("the second result lacks {count} of the cells of the first, first {place}: {why}");
        return Err(Failure::new(Code::NotFound, text));
    }
    if comparison.regressed() {
        let bound = 100.0 * command.bound;
        return Err(Failure::new(Code::NotFound, format!("a cell is slower by more than {bound:.1} %")));
    }
    Ok(())
}

fn redraw(command: &Redraw, out: &mut dyn Write) -> Result<(), Failure> {
    crate::files::require(&command.result)?;
    show(&jsonl::read(&command.result)?, command.details, command.html.as_deref(), out)
}

fn list(out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "Workloads:")?;
    for definition in generate::catalogue::all() {
        writeln!(out, "  {:<18} {}", definition.name, definition.about)?;
    }
    writeln!(out, "Shape steps: {}", terrane_bench::plan::file::control_names().join(", "))?;
    writeln!(out, "Engines: {}", engine::NAMES.join(", "))?;
    writeln!(out, "Ready plans:")?;
    for (name, about, _) in plan::READY {
        writeln!(out, "  {name:<18} {about}")?;
    }
    Ok(())
}

/// The process of one engine: job on standard input, events on standard output.
fn child() -> Result<(), Failure> {
    let mut events = std::io::stdout();
    Ok(terrane_bench::child::serve::serve(&mut std::io::stdin().lock(), &mut events)?)
}

fn launcher() -> Result<Launcher, Failure> {
    let program: PathBuf =
        std::env::current_exe().map_err(|error| Failure::file("this program's own path", &error))?;
    Ok(Launcher { program, arguments: vec!["bench".to_owned(), "child".to_owned()] })
}

/// The command as it was typed, for the report.
fn typed() -> String {
    let quote = |argument: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=:%".contains(c);
        if argument.chars().all(plain) { argument } else { format!("'{argument}'") }
    };
    let rest: Vec<String> = std::env::args().skip(1).map(quote).collect();
    format!("terrane {}", rest.join(" "))
}

/// Returns true if someone looks at standard error.
fn is_watched() -> bool {
    std::io::stderr().is_terminal()
}
