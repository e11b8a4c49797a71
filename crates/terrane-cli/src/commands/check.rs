//! `check`: verify everything, name each damage.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use serde_json::json;
use terrane::{CheckReport, Db, Finding};

use super::store::open_to_check;
use crate::arguments::{Check, Engine};
use crate::exit::{Code, Failure};
use crate::progress::{Meter, Unit};
use crate::signals::{stop_on_signals, stopped};
use crate::text::{count, path, size};

pub(super) fn run(engine: &Engine, command: &Check, out: &mut dyn Write) -> Result<(), Failure> {
    let stop = stop_on_signals()?;
    let db = open_to_check(engine, &command.database)?;
    let mut meter = Meter::new("check", Unit::Bytes);
    let report = db.check_until(&mut |done, all| {
        meter.set_total(Some(all));
        meter.show(done, None);
        // Acquire: pairs with the store of the thread that waits for signals.
        if stop.load(Ordering::Acquire) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    drop(meter);
    let report = report?;
    // The open has read the journal already, every checksum of it, or there would be no open database.
    let replayed = db.stats().records_recovered;
    if command.json {
        writeln!(out, "{}", object(&report, replayed))?;
    } else {
        show(&db, &report, replayed, out)?;
    }
    match report.findings.len() {
        0 if report.is_cancelled => Err(stopped("the check is not complete, and has found nothing so far")),
        0 => Ok(()),
        found => {
            out.flush()?;
            let message = format!("{} has {found} faults: restore from a backup", path(&command.database));
            Err(Failure::new(Code::Corrupt, message))
        }
    }
}

/// For programs: one object in a line.
fn object(report: &CheckReport, replayed: u64) -> serde_json::Value {
    let finding = |finding: &Finding| {
        json!({
            "kind": finding.error.kind().as_str(),
            "table": finding.table,
            "error": finding.error.to_string(),
        })
    };
    json!({
        "tables": report.tables,
        "extents": report.extents,
        "versions": report.entries,
        "bytes": report.bytes,
        "journaled_records": replayed,
        "is_complete": !report.is_cancelled,
        "unordered_tables": report.unordered,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}

fn show(db: &Db, report: &CheckReport, replayed: u64, out: &mut dyn Write) -> Result<(), Failure> {
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
    Ok(())
}
