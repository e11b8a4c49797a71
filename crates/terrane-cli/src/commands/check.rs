//! `check`: verify everything, name each damage.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use terrane::{CheckReport, Db, Finding, Follower};

use super::functions::{known_operator, operands};
use super::store::open_to_check;
use crate::arguments::{Check, Engine};
use crate::exit::{Code, Failure};
use crate::progress::{Meter, Unit};
use crate::signals::{stop_on_signals, stopped};
use crate::text::{count, path, size};

/// Keys of a table that a check names.
const UNFOLDED_SHOWN_MAX: usize = 10;
/// How often a check begins again because a writer beside changed what was being read.
const RETRIES_MAX: u32 = 20;

pub(super) fn run(engine: &Engine, command: &Check, out: &mut dyn Write) -> Result<(), Failure> {
    let stop = stop_on_signals()?;
    let (mut db, follower) = open_to_check(engine, &command.database)?;
    let report = check(&mut db, follower.as_ref(), &stop)?;
    // Findings come first: rows that cannot be read are among them.
    let is_sound = !report.is_cancelled && report.findings.is_empty();
    let unfolded = match is_sound {
        true => unfolded_of(&mut db, &report.with_operands, follower.as_ref(), &stop)?,
        false => Vec::new(),
    };
    // The open has read the journal already, every checksum of it, or there would be no open database.
    let replayed = db.stats().records_recovered;
    if command.json {
        writeln!(out, "{}", object(&report, replayed, &unfolded))?;
    } else {
        unfolded.iter().try_for_each(|keys| keys.show(out))?;
        show(&db, &report, replayed, out)?;
    }
    match report.findings.len() {
        0 if !unfolded.is_empty() => {
            out.flush()?;
            let keys = count(unfolded.iter().map(|keys| keys.count).sum());
            let message = format!(
                "{} has keys whose operands cannot be folded ({keys}): put each again, or delete it; no byte is damaged",
                path(&command.database)
            );
            Err(Failure::new(Code::Usage, message))
        }
        0 if report.is_cancelled => Err(stopped("the check is not complete, and has found nothing so far")),
        0 => Ok(()),
        found => {
            out.flush()?;
            let faults = if found == 1 { "fault" } else { "faults" };
            let message = format!(
                "{} has {found} {faults}: run `terrane repair`, which keeps all sound rows, or restore from a backup",
                path(&command.database)
            );
            Err(Failure::new(Code::Corrupt, message))
        }
    }
}

/// Checks the database. What a writer beside gives up meanwhile looks like damage: a finding counts once
/// nothing has changed since the view was made, or a newer view has it as well.
fn check(db: &mut Db, follower: Option<&Follower>, stop: &AtomicBool) -> Result<CheckReport, Failure> {
    let (mut before, mut retries): (Option<Vec<String>>, u32) = (None, 0);
    loop {
        let mut report = check_once(db, stop)?;
        let Some(follower) = follower.filter(|_| !report.is_cancelled && !report.findings.is_empty()) else {
            return Ok(report);
        };
        let text = |finding: &Finding| format!("{:?} {}", finding.table, finding.error);
        let found: Vec<String> = report.findings.iter().map(text).collect();
        if let Some(before) = before.filter(|before| found.iter().any(|text| before.contains(text))) {
            report.findings.retain(|finding| before.contains(&text(finding)));
            return Ok(report);
        }
        let edit = follower.stats().edit;
        follower.catch_up()?;
        if follower.stats().edit == edit || retries == RETRIES_MAX {
            return Ok(report);
        }
        *db = follower.view();
        (before, retries) = (Some(found), retries + 1);
    }
}

fn check_once(db: &Db, stop: &AtomicBool) -> Result<CheckReport, Failure> {
    let mut meter = Meter::new("check", Unit::Bytes);
    Ok(db.check_until(&mut |now| {
        meter.set_total(Some(now.bytes));
        meter.show(now.bytes_done, Some(now.entries_done));
        // Acquire: pairs with the store of the thread that waits for signals.
        if stop.load(Ordering::Acquire) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?)
}

/// [`unfolded`] of a newer view where a writer beside gave up extents meanwhile.
fn unfolded_of(
    db: &mut Db,
    with_operands: &[String],
    follower: Option<&Follower>,
    stop: &AtomicBool,
) -> Result<Vec<Unfolded>, Failure> {
    let mut retries = 0;
    loop {
        match (unfolded(db, with_operands, stop), follower) {
            (Err(gone), Some(follower)) if gone.code == Code::NotFound && retries < RETRIES_MAX => {
                retries += 1;
                follower.catch_up()?;
                *db = follower.view();
            }
            (found, _) => return found,
        }
    }
}

/// The keys of a table that no read returns, since its merge operator fails on what they hold.
struct Unfolded {
    table: String,
    operator: String,
    count: u64,
    /// The first ones, each with what it holds.
    shown: Vec<String>,
}

impl Unfolded {
    fn show(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let Unfolded { table, operator, shown, .. } = self;
        for key in shown {
            writeln!(out, "table {table:?}: merge operator {operator:?} fails on {key}")?;
        }
        let more = self.count - shown.len() as u64;
        if more > 0 {
            writeln!(out, "table {table:?}: and on further keys: {}", count(more))?;
        }
        Ok(())
    }
}

/// Reads the rows of tables with operands, whose merge operators the command has. Keys without operands have
/// nothing to fold: tables of such keys only are not read again behind their check.
fn unfolded(db: &Db, with_operands: &[String], stop: &AtomicBool) -> Result<Vec<Unfolded>, Failure> {
    let mut all = Vec::new();
    for name in db.tables().into_iter().filter(|name| with_operands.contains(name)) {
        let table = db.table(&name)?;
        let Some(operator) = known_operator(&table).filter(|_| table.is_ordered()) else { continue };
        let mut found = Unfolded { table: name, operator, count: 0, shown: Vec::new() };
        for row in table.iter() {
            // Acquire: pairs with the store of the thread that waits for signals.
            if stop.load(Ordering::Acquire) {
                return Err(stopped("the check is not complete, and has found no damage"));
            }
            let (key, value) = row?;
            let Some(operands) = operands(&value) else { continue };
            found.count += 1;
            if found.shown.len() < UNFOLDED_SHOWN_MAX {
                found.shown.push(format!(
                    "key \"{}\": {}",
                    key.escape_ascii(),
                    String::from_utf8_lossy(operands)
                ));
            }
        }
        if found.count > 0 {
            all.push(found);
        }
    }
    Ok(all)
}

/// For programs: one object in a line.
fn object(report: &CheckReport, replayed: u64, unfolded: &[Unfolded]) -> serde_json::Value {
    let keys = |keys: &Unfolded| json!({ "table": keys.table, "keys": keys.count, "first": keys.shown });
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
        "unfolded": unfolded.iter().map(keys).collect::<Vec<_>>(),
        "set_aside": report.set_aside.iter().map(|file| path(file)).collect::<Vec<_>>(),
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
    for file in &report.set_aside {
        writeln!(
            out,
            "set aside: {}: records behind a break of the journal, no part of the database; `terrane repair` reads them",
            path(file)
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

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
