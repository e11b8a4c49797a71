//! `stats`: what the engine counts.

use std::io::Write;

use serde_json::{Map, Value, json};
use terrane::{Db, MetricValue, Sample, Statistics};
use terrane_remote::ClonePin;

use super::deployment::{self, Target};
use super::store::DEFAULT;
use super::{clone, follow, sizes, stats_pins};
use crate::arguments::{Engine, Stats};
use crate::exit::Failure;

pub(super) fn run(engine: &Engine, command: &Stats, out: &mut dyn Write) -> Result<(), Failure> {
    let is_whole = !command.follow && !command.sizes && command.table.is_none();
    let has_pins = is_whole && engine.opened.is_none() && engine.moment().is_none();
    follow::each_second(engine, &command.database, command.follow, out, &mut |db, out| {
        // Pins that cannot be read hide nothing else.
        let (pins, read) = match if has_pins { pins(command) } else { Ok(None) } {
            Ok(pins) => (pins, Ok(())),
            Err(failure) => (None, Err(failure)),
        };
        show_with(db, command, pins.as_deref(), out)?;
        read
    })
}

/// The pins by which clones keep objects of a deployment; `None` for a directory, which has no clones.
fn pins(command: &Stats) -> Result<Option<Vec<ClonePin>>, Failure> {
    match deployment::target(&command.database)? {
        Target::Deployment(deployment) => Ok(Some(deployment.clone_pins()?)),
        Target::Directory => Ok(None),
    }
}

pub(super) fn show(db: &Db, command: &Stats, out: &mut dyn Write) -> Result<(), Failure> {
    show_with(db, command, None, out)
}

fn show_with(
    db: &Db,
    command: &Stats,
    pins: Option<&[ClonePin]>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    debug_assert!(pins.is_none() || command.table.is_none(), "a table has no pins");
    let statistics = db.statistics();
    if command.prometheus {
        out.write_all(statistics.to_prometheus().as_bytes())?;
        return Ok(pins.map_or(Ok(()), |pins| stats_pins::to_prometheus(pins, out))?);
    }
    if command.sizes {
        let table = db.table(command.table.as_deref().unwrap_or(DEFAULT))?;
        return sizes::show(&table, command.all, command.json, out);
    }
    if let Some(name) = &command.table {
        db.table(name)?;
        let missing =
            || terrane::Error::new(terrane::Kind::NotFound, format!("table {name:?} has no metrics"));
        let table = statistics.table(name).ok_or_else(missing)?;
        if command.json {
            return Ok(writeln!(out, "{}", Value::from(json_of(&table.samples)))?);
        }
        return table.samples.iter().try_for_each(|sample| Ok(write_row(sample, out)?));
    }
    if command.json {
        return Ok(writeln!(out, "{}", to_json(&statistics, pins))?);
    }
    for sample in &statistics.samples {
        write_row(sample, out)?;
    }
    for table in &statistics.tables {
        writeln!(out, "\ntable {}", table.name)?;
        for sample in &table.samples {
            write_row(sample, out)?;
        }
    }
    let Some(pins) = pins.filter(|pins| !pins.is_empty()) else { return Ok(()) };
    writeln!(out, "\npins of clones")?;
    pins.iter().try_for_each(|pin| Ok(writeln!(out, "{}", clone::line(pin))?))
}

fn write_row(sample: &Sample, out: &mut dyn Write) -> std::io::Result<()> {
    let metric = sample.metric;
    let (name, unit, about) = (metric.name, metric.unit, metric.about);
    match &sample.value {
        MetricValue::Number(value) => writeln!(out, "{name:<32} {value:>14} {unit:<13} {about}"),
        MetricValue::Histogram(histogram) => {
            let (count, half, most) = (histogram.count(), histogram.quantile(500), histogram.max);
            writeln!(
                out,
                "{name:<32} {count:>14} {:<13} {about} Half of them up to {half} {unit}, all up to {most}.",
                "values"
            )
        }
    }
}

/// The metrics of the database as members, those of each table in the member `tables`, and the pins of a
/// deployment in the member `clone_pins`.
fn to_json(statistics: &Statistics, pins: Option<&[ClonePin]>) -> Value {
    let mut members = json_of(&statistics.samples);
    let tables = statistics.tables.iter().map(|table| (table.name.clone(), json_of(&table.samples).into()));
    members.insert("tables".to_owned(), tables.collect::<Map<_, _>>().into());
    if let Some(pins) = pins {
        members.insert("clone_pins".to_owned(), pins.iter().map(clone::object).collect());
    }
    members.into()
}

fn json_of(samples: &[Sample]) -> Map<String, Value> {
    let member = |sample: &Sample| {
        let value = match &sample.value {
            MetricValue::Number(value) => Value::from(*value),
            MetricValue::Histogram(histogram) => {
                let (count, sum, max) = (histogram.count(), histogram.sum, histogram.max);
                let (half, most) = (histogram.quantile(500), histogram.quantile(990));
                json!({ "count": count, "sum": sum, "p50": half, "p99": most, "max": max })
            }
        };
        (sample.metric.name.to_owned(), value)
    };
    samples.iter().map(member).collect()
}
