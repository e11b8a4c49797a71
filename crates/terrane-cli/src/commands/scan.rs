//! `scan`, `count` and `estimate`: the rows of a range.

use std::io::Write;

use serde_json::json;
use terrane::counter;

use super::functions;
use super::rows::Rows;
use super::store::{Access, bounds, check_range, end, open_table, start};
use crate::arguments::{Count, Engine, Estimate, Scan};
use crate::exit::{Code, Failure};
use crate::progress::{Meter, Unit};
use crate::text;

/// Rows between two looks at the progress.
const METER_ROWS: u64 = 1024;

pub(super) fn scan(engine: &Engine, command: &Scan, out: &mut dyn Write) -> Result<(), Failure> {
    let mut rows = Rows::open(engine, &command.place, &command.range, command.reverse)?;
    if command.keys {
        rows = rows.without_values();
    }
    let format = command.format.unwrap_or(text::Format::Tsv);
    // A person wants the numbers, a program the bytes.
    let is_number =
        command.number || command.format.is_none() && engine.is_shown() && functions::is_counter(&rows.table);
    let mut left = command.limit.unwrap_or(u64::MAX);
    let mut meter = Meter::of_output_file("scan");
    let mut done = 0u64;
    let mut shown = Vec::new();
    let mut not_numbers = 0u64;
    while left > 0 {
        let Some((key, value)) = rows.next()? else { break };
        left -= 1;
        shown.clear();
        let operands = functions::operands(&value);
        if command.keys {
            text::write_alone(format, "key", &key, &mut shown);
            if format == text::Format::Raw {
                shown.push(b'\n');
            }
        } else if let Some(number) = counter::decode(&value).ok().filter(|_| is_number && operands.is_none())
        {
            let number = number.to_string();
            text::write_row(format, &key, number.as_bytes(), &mut shown);
        } else {
            // A value that is not a number is shown as it is: the rows behind it are wanted, too.
            not_numbers += u64::from(command.number && operands.is_none());
            text::write_row(format, &key, operands.unwrap_or(&value), &mut shown);
        }
        out.write_all(&shown)?;
        done += 1;
        if let Some(meter) = meter.as_mut().filter(|_| done % METER_ROWS == 1) {
            meter.show(done, None);
        }
    }
    drop(meter);
    if not_numbers > 0 {
        out.flush()?;
        let why = format!("--number: values that are not counters, shown as they are: {not_numbers}");
        return Err(Failure::new(Code::Usage, why));
    }
    Ok(())
}

pub(super) fn count(engine: &Engine, command: &Count, out: &mut dyn Write) -> Result<(), Failure> {
    let mut rows = Rows::open(engine, &command.place, &command.range, false)?.without_values();
    let mut meter = Meter::new("count", Unit::Rows);
    let mut count = 0u64;
    while rows.next()?.is_some() {
        if count.is_multiple_of(METER_ROWS) {
            meter.show(count, None);
        }
        count += 1;
    }
    drop(meter);
    Ok(writeln!(out, "{count}")?)
}

pub(super) fn estimate(engine: &Engine, command: &Estimate, out: &mut dyn Write) -> Result<(), Failure> {
    let (_db, table) = open_table(engine, &command.place, Access::Read)?;
    let (from, to) = bounds(&command.range)?;
    check_range(&table, &from, &to)?;
    let range = (start(from.as_deref()), end(to.as_deref()));
    let (count, size) = (table.approximate_count(range)?, table.approximate_size(range)?);
    if command.json {
        let object = json!({
            "versions": count.value, "versions_error": count.error, "bytes": size.value, "bytes_error": size.error,
        });
        return Ok(writeln!(out, "{object}")?);
    }
    writeln!(out, "versions {} +- {}", count.value, count.error)?;
    Ok(writeln!(out, "bytes {} +- {}", size.value, size.error)?)
}
