//! `tour`: imports a data set that every machine has and asks it a few questions, by commands that a
//! user would type.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;

use clap::Parser;

use crate::arguments::{Arguments, Engine};
use crate::exit::Failure;
use crate::files;
use crate::signals::{stop_on_signals, stopped};

/// The package database of a Debian system: one stanza for each package.
const PACKAGES: &str = "/var/lib/dpkg/status";
/// The time zones of the world: public domain, see `examples/data/README.md`.
const ZONES: &str = include_str!("../../../../examples/data/zone1970.tab");
const ZONES_FILE: &str = "zone1970.tab";

pub(super) fn run(engine: &Engine, database: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let db = database.display().to_string();
    let packages = files::open(Path::new(PACKAGES)).is_ok_and(|opened| opened.len.is_some_and(|len| len > 0));
    let lines = if packages {
        vec![
            vec!["import", &db, PACKAGES, "--key", "Package", "--restart"],
            vec!["get", &db, "dpkg"],
            vec!["scan", &db, "--from", "libc", "--to", "libd", "--keys", "--limit", "8"],
            vec!["compact", &db],
            vec!["shape", &db],
        ]
    } else {
        let zones = std::env::temp_dir().join(ZONES_FILE);
        files::write(&zones, ZONES.as_bytes()).map_err(|error| Failure::file(ZONES_FILE, &error))?;
        let zones: &'static str = zones.display().to_string().leak();
        vec![
            vec!["import", &db, zones, "--key", "3", "--comment", "#", "--restart"],
            vec!["get", &db, "Europe/Berlin"],
            vec!["scan", &db, "--prefix", "Pacific/", "--limit", "8"],
            vec!["compact", &db],
            vec!["shape", &db],
        ]
    };
    let stop = stop_on_signals()?;
    for line in lines {
        // Acquire: pairs with the store of the thread that waits for signals.
        if stop.load(Ordering::Acquire) {
            return Err(stopped(format!("the tour is not over; the database {db} is intact and was kept")));
        }
        writeln!(out, "\n$ terrane {}", line.join(" "))?;
        let mut arguments = Arguments::try_parse_from(std::iter::once("terrane").chain(line.iter().copied()))
            .map_err(|error| Failure::new(crate::exit::Code::Other, error.to_string()))?;
        arguments.engine = engine.clone();
        super::run(&arguments, out)?;
        if line[0] == "get" {
            writeln!(out)?;
        }
    }
    writeln!(out, "\nThe database stays in {db}; `terrane --help` lists the commands.")?;
    Ok(())
}
