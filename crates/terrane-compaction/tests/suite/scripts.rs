//! Runs the text scripts in `tests/scripts`: levels in, jobs and levels out.
//!
//! A script is a sequence of steps, separated by blank lines: comment lines, a command with its input,
//! `----`, and its output. `UPDATE=1` rewrites the outputs. Printed levels are read back by `define`.
//!
//! Commands: `define [limit=value ..]` with levels, `levels`, `scores`, `debt`, `space`, `pick`, `claim`,
//! `apply [n]`, `drop n`, `run`, `manual range levels [rewrite]`, `beside [rewrite]`, `down level`, `flush
//! start bytes`; `load count=number ..` counts what a table is used for, `fewer [runs bytes]` asks for fewer
//! sorted runs, `heat n ..` tells how hot the extents of L1 are.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use crate::script;

use std::path::{Path, PathBuf};

use script::World;

/// The scripts, which lie beside this file.
fn scripts() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    #[expect(clippy::disallowed_methods, reason = "test inputs are files of the repository")]
    let entries = std::fs::read_dir(dir).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "test"));
    paths.sort();
    paths
}

/// The script with what its commands really print.
fn replay(text: &str) -> String {
    let mut world = World::new();
    let mut steps = Vec::new();
    for step in text.split("\n\n").map(str::trim_end).filter(|step| !step.is_empty()) {
        let input = step.split_once("\n----").map_or(step, |(input, _)| input);
        let lines: Vec<&str> = input.lines().skip_while(|line| line.starts_with('#')).collect();
        let Some((command, body)) = lines.split_first() else {
            steps.push(input.to_owned());
            continue;
        };
        let output = world.run(command, body);
        steps.push(format!("{input}\n----\n{}", output.trim_end()).trim_end().to_owned());
    }
    steps.join("\n\n") + "\n"
}

#[test]
fn scripts_print_what_they_say() {
    let update = std::env::var_os("UPDATE").is_some();
    let scripts = scripts();
    assert!(scripts.len() >= 24, "scripts are missing");
    let mut wrong = Vec::new();
    for path in scripts {
        let expected = std::fs::read_to_string(&path).unwrap();
        let found = replay(&expected);
        if found == expected {
            continue;
        }
        if update {
            #[expect(clippy::disallowed_methods, reason = "expected outputs are files of the repository")]
            std::fs::write(&path, found).unwrap();
        } else {
            wrong.push(format!("{}:\n{}", path.display(), difference(&expected, &found)));
        }
    }
    assert!(wrong.is_empty(), "UPDATE=1 rewrites the scripts after a look at this:\n{}", wrong.join("\n"));
}

/// The lines around the first that differs.
fn difference(expected: &str, found: &str) -> String {
    let (expected, found): (Vec<_>, Vec<_>) = (expected.lines().collect(), found.lines().collect());
    let at = expected.iter().zip(&found).take_while(|(a, b)| a == b).count();
    let show = |lines: &[&str]| lines[at.min(lines.len())..(at + 12).min(lines.len())].join("\n  ");
    format!("line {}\n expected\n  {}\n found\n  {}", at + 1, show(&expected), show(&found))
}
