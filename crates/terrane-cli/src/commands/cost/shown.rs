//! A load and its price, as lines and as one JSON object.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};
use terrane::{PageWriterState, SharedMetrics};

use super::bill::{Bill, Load, PARTS, PartLoad};
use super::prices::Prices;
use crate::commands::top::time;
use crate::text::{count, path, size};

/// Writes both as lines.
pub(super) fn write(
    file: &Path,
    (now, is_between): (&SharedMetrics, bool),
    load: &Load,
    bill: &Bill,
    prices: &Prices,
    out: &mut dyn Write,
) -> io::Result<()> {
    let currency = &prices.currency;
    let took = time(Duration::from_secs_f64(load.seconds));
    let since = if is_between { "" } else { " since the opening" };
    let state = if now.writer == PageWriterState::Gone { ", which has ended" } else { "" };
    writeln!(
        out,
        "{}: process {}{state}, {took}{since}: {} records written",
        path(file),
        now.page.process,
        count(load.records)
    )?;
    let hour = format!("{currency}/hour");
    writeln!(
        out,
        "{:<10}{:>12}{:>12}{:>9}{:>9}{:>12}{:>12}{hour:>14}",
        "", "creates", "reads", "lists", "deletes", "sent", "received"
    )?;
    for ((name, part), price) in PARTS.iter().zip(&load.parts).zip(bill.parts) {
        if *part == PartLoad::default() {
            continue;
        }
        writeln!(
            out,
            "{name:<10}{:>12}{:>12}{:>9}{:>9}{:>12}{:>12}{:>14}",
            count(part.creates),
            count(part.reads),
            count(part.lists),
            count(part.deletes),
            size(part.bytes_sent),
            size(part.bytes_received),
            amount(price)
        )?;
    }
    let mut line =
        |name: &str, what: String, price: f64| writeln!(out, "{name:<10}{what:<66}{:>14}", amount(price));
    if load.hedged > 0 {
        line("hedged", format!("{} reads were requested a second time", count(load.hedged)), bill.hedged)?;
    }
    line("storage", format!("{} in data objects now", size(load.stored_bytes)), bill.storage)?;
    let (seconds, share) = (load.processor_seconds, load.processor_seconds / load.seconds);
    line("processor", format!("{seconds:.1} s, {share:.2} of a processor"), bill.processor)?;
    line("total", format!("{} {currency} a month", amount(bill.month())), bill.hour())?;
    match bill.million_records(load) {
        Some(price) => {
            writeln!(out, "{:<10}{} {currency} for a million records, without storage", "", amount(price))
        }
        None => Ok(()),
    }
}

/// An amount of money with four significant digits at least.
fn amount(price: f64) -> String {
    match price {
        0.0 => "0".to_owned(),
        price if price < 0.1 => format!("{price:.6}"),
        price if price < 100.0 => format!("{price:.4}"),
        price => format!("{price:.2}"),
    }
}

/// Both as one object.
pub(super) fn object(load: &Load, bill: &Bill, prices: &Prices) -> Value {
    let parts = PARTS.iter().zip(&load.parts).zip(bill.parts).map(|((name, part), price)| {
        let PartLoad { creates, reads, lists, deletes, bytes_sent, bytes_received } = part;
        let value = json!({
            "creates": creates, "reads": reads, "lists": lists, "deletes": deletes, "bytes_sent": bytes_sent,
            "bytes_received": bytes_received, "per_hour": price,
        });
        ((*name).to_owned(), value)
    });
    json!({
        "seconds": load.seconds,
        "records_written": load.records,
        "parts": parts.collect::<Map<_, _>>(),
        "reads_hedged": load.hedged,
        "stored_bytes": load.stored_bytes,
        "processor_seconds": load.processor_seconds,
        "currency": prices.currency,
        "hedged_per_hour": bill.hedged,
        "storage_per_hour": bill.storage,
        "processor_per_hour": bill.processor,
        "per_hour": bill.hour(),
        "per_month": bill.month(),
        "per_million_records": bill.million_records(load),
    })
}
