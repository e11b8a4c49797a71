//! `scan`, `count` and `estimate`: the rows of a range.

use std::io::Write;

use super::store::{Access, bounds, end, open_table, rows, start};
use crate::arguments::{Count, Engine, Scan};
use crate::exit::Failure;
use crate::text;

pub(super) fn scan(engine: &Engine, command: &Scan, out: &mut dyn Write) -> Result<(), Failure> {
    let (_db, table) = open_table(engine, &command.place, Access::Read)?;
    let rows = rows(&table, &command.range)?;
    let rows: Box<dyn Iterator<Item = _>> =
        if command.reverse { Box::new(rows.rev()) } else { Box::new(rows) };
    let limit = command.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let mut shown = Vec::new();
    for row in rows.take(limit) {
        let (key, value) = row?;
        shown.clear();
        if command.keys {
            text::write_value(command.format, &key, &mut shown);
            if command.format == text::Format::Raw {
                shown.push(b'\n');
            }
        } else {
            text::write_row(command.format, &key, &value, &mut shown);
        }
        out.write_all(&shown)?;
    }
    Ok(())
}

pub(super) fn count(engine: &Engine, command: &Count, out: &mut dyn Write) -> Result<(), Failure> {
    let (_db, table) = open_table(engine, &command.place, Access::Read)?;
    let mut count = 0u64;
    for row in rows(&table, &command.range)? {
        row?;
        count += 1;
    }
    Ok(writeln!(out, "{count}")?)
}

pub(super) fn estimate(engine: &Engine, command: &Count, out: &mut dyn Write) -> Result<(), Failure> {
    let (_db, table) = open_table(engine, &command.place, Access::Read)?;
    let (from, to) = bounds(&command.range)?;
    let range = (start(from.as_deref()), end(to.as_deref()));
    let (count, size) = (table.approximate_count(range)?, table.approximate_size(range)?);
    writeln!(out, "versions {} +- {}", count.value, count.error)?;
    Ok(writeln!(out, "bytes {} +- {}", size.value, size.error)?)
}
