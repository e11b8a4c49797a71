//! Helps as a terminal shows them.

use clap::{Command, CommandFactory};
use terrane_cli::arguments::Arguments;

/// All commands, those of commands included, each with its name.
fn commands(command: &Command, name: &str, all: &mut Vec<(String, Command)>) {
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set()) {
        let name = format!("{name} {}", sub.get_name());
        all.push((name.clone(), sub.clone()));
        commands(sub, &name, all);
    }
}

/// Asserts that paragraphs fill their lines: a line that was broken by hand is wrapped again where the
/// terminal is narrower, and leaves a word or two on a line of its own.
fn assert_filled(name: &str, text: &str, columns: usize) {
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.windows(2) {
        let (line, next) = (pair[0], pair[1]);
        if line.is_empty() || next.is_empty() || next.starts_with(' ') {
            continue;
        }
        assert!(
            !line.starts_with(' '),
            "{name}, {columns} columns: wrapped below its indent: {line:?}, {next:?}"
        );
        let is_head = matches!(line, "Example:" | "Examples:");
        let first = next.split(' ').next().unwrap_or_default();
        let is_full = line.chars().count() + 1 + first.chars().count() > columns;
        assert!(is_head || is_full, "{name}, {columns} columns: {line:?} has room for {first:?}");
    }
}

#[test]
fn each_help_fits_terminals_of_80_and_of_100_columns() {
    let mut all = vec![("terrane".to_owned(), Arguments::command())];
    commands(&Arguments::command(), "terrane", &mut all);
    assert!(all.len() > 30, "the command has more than {}", all.len());
    for (name, command) in all {
        for columns in [80, 100] {
            let help = command.clone().term_width(columns).render_long_help().to_string();
            for line in help.lines().filter(|line| !line.starts_with("Usage:")) {
                assert!(line.chars().count() <= columns, "{name}, {columns} columns: {line:?}");
            }
            if let Some(at) = help.find("\nExample") {
                assert_filled(&name, &help[at + 1..], columns);
            }
        }
    }
}
