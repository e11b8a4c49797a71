//! `changes`: what was committed, batch by batch.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::Duration;

use terrane::{Change, ChangeBatch, ChangeKind, Changes, SeqNo};

use super::deployment;
use crate::arguments::changes;
use crate::exit::Failure;
use crate::progress::Meter;
use crate::signals::{stop_on_signals, stopped};
use crate::text::{self, Format};

/// How long one wait takes, so that a signal is seen.
const TURN: Duration = Duration::from_millis(200);

pub(super) fn run(command: &changes::Changes, out: &mut dyn Write) -> Result<(), Failure> {
    let remedy = "a program that writes it reads its changes (`Db::changes`)";
    deployment::refuse(&command.database, "changes", remedy)?;
    let mut changes = begin(command)?;
    let mut left = command.limit.unwrap_or(u64::MAX);
    let stop = stop_on_signals()?;
    // Following has no end, and so no progress.
    let mut meter = Meter::of_output_file("changes").filter(|_| !command.follow);
    let mut rows = 0;
    while left > 0 {
        // Acquire: pairs with the store of the thread that waits for signals.
        if stop.load(Ordering::Acquire) {
            // A database that is followed has no end of its own.
            return if command.follow { Ok(()) } else { Err(stopped("not every change was printed")) };
        }
        let wait = if command.follow { TURN } else { Duration::ZERO };
        match changes.next_within(wait)? {
            Some(batch) => {
                rows += print(command.format, &batch, out)?;
                if let Some(meter) = &mut meter {
                    meter.show(rows, None);
                }
                left -= 1;
            }
            None if command.follow => out.flush()?,
            None => break,
        }
    }
    Ok(())
}

/// The reader at `--from`; without it at the oldest batch that is kept.
fn begin(command: &changes::Changes) -> Result<Changes, Failure> {
    let beside = |from| Changes::beside(&command.database, from);
    match beside(SeqNo(command.from.unwrap_or(1))) {
        Err(gone) if command.from.is_none() => match gone.oldest() {
            Some(oldest) => {
                assert!(oldest > SeqNo(1), "removed changes are in front of the oldest that is kept");
                eprintln!(
                    "terrane: changes before {oldest} are no longer kept (options history_bytes, history_age)"
                );
                Ok(beside(oldest)?)
            }
            None => Err(gone.into()),
        },
        begun => Ok(begun?),
    }
}

/// Prints a batch; returns how many rows that are.
fn print(format: Format, batch: &ChangeBatch, out: &mut dyn Write) -> Result<u64, Failure> {
    let mut lines = Vec::new();
    let mut rows = 0;
    for change in batch.changes() {
        rows += 1;
        let (key, value) = key_and_value(&change);
        let table = match (change.table, change.kind) {
            (Some(name), _) => name.to_owned(),
            (None, ChangeKind::LogData { .. }) => String::new(),
            (None, _) => format!("#{}", change.table_id),
        };
        let (seq, last, kind) = (change.seq.0, batch.last_seq().0, change.kind.as_str());
        if format == Format::Json {
            let mut members = Vec::new();
            text::write_row(Format::Json, key, value, &mut members);
            let members = String::from_utf8_lossy(&members[1..]);
            let table = serde_json::Value::from(table);
            let expires = change.expires_at.map_or(String::new(), |at| format!("\"expires_at\":{at},"));
            write!(
                lines,
                "{{\"seq\":{seq},\"last\":{last},\"table\":{table},\"kind\":\"{kind}\",{expires}{members}"
            )?;
            continue;
        }
        let mut name = String::new();
        text::escape(table.as_bytes(), &mut name);
        write!(lines, "{seq}\t{last}\t{name}\t{kind}\t")?;
        text::write_row(format, key, value, &mut lines);
        if let Some(at) = change.expires_at {
            lines.pop();
            writeln!(lines, "\t{at}")?;
        }
    }
    out.write_all(&lines)?;
    Ok(rows)
}

fn key_and_value<'b>(change: &Change<'b>) -> (&'b [u8], &'b [u8]) {
    match change.kind {
        ChangeKind::Put { key, value } | ChangeKind::Merge { key, operand: value } => (key, value),
        ChangeKind::DeleteRange { start, end } => (start, end),
        ChangeKind::LogData { data } => (&[], data),
        ChangeKind::Delete { key } | ChangeKind::SingleDelete { key } => (key, &[]),
        _ => (&[], &[]),
    }
}
