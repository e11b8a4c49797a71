//! `check`: verify everything, name what is wrong.

use std::io::Write;

use indicatif::{ProgressBar, ProgressStyle};

use super::store::open_any;
use crate::arguments::{Check, Engine};
use crate::exit::{Code, Failure};
use crate::text::{count, size};

pub(super) fn run(engine: &Engine, command: &Check, out: &mut dyn Write) -> Result<(), Failure> {
    let db = open_any(engine, &command.database)?;
    let style = ProgressStyle::with_template("{bar:30} {percent}% {binary_bytes_per_sec} {eta} left");
    let bar = ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let report = db.check(&mut |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let report = report?;
    // The open has read the journal already, every checksum of it, or there would be no open database.
    let replayed = db.stats().records_recovered;
    for finding in &report.findings {
        let table = finding.table.as_ref().map_or(String::new(), |name| format!("table {name:?}: "));
        writeln!(out, "{}: {table}{}", finding.error.kind().as_str(), finding.error)?;
    }
    for name in &report.unordered {
        let order = db.table(name).map(|table| table.key_order().to_owned())?;
        writeln!(
            out,
            "not checked: table {name:?}: the order of its keys, {order:?}, which is not registered"
        )?;
    }
    writeln!(
        out,
        "checked {} tables, {} extents with {} versions, {}, {} journaled records: {} findings",
        report.tables,
        count(report.extents),
        count(report.entries),
        size(report.bytes),
        count(replayed),
        report.findings.len(),
    )?;
    match report.findings.len() {
        0 => Ok(()),
        found => {
            out.flush()?;
            let message = format!("{} has {found} faults: restore from a backup", command.database.display());
            Err(Failure::new(Code::Corrupt, message))
        }
    }
}
