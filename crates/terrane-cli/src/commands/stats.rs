//! `stats`: what the engine counts.

use std::io::Write;

use serde_json::{Map, Value, json};
use terrane::{Db, MetricValue, Sample, Statistics};

use super::deployment::{self, Target};
use super::{clone, follow, sizes};
use crate::arguments::{Engine, Stats};
use crate::exit::Failure;

pub(super) fn run(engine: &Engine, command: &Stats, out: &mut dyn Write) -> Result<(), Failure> {
    follow::each_second(engine, &command.database, command.follow, out, &mut |db, out| {
        show(db, command, out)
    })?;
    let is_list = !(command.prometheus || command.json || command.follow || command.table.is_some());
    if is_list && engine.opened.is_none() && engine.moment().is_none() {
        tell_pins(command, out)?;
    }
    Ok(())
}

/// The pins by which clones keep objects of a deployment.
fn tell_pins(command: &Stats, out: &mut dyn Write) -> Result<(), Failure> {
    let Target::Deployment(deployment) = deployment::target(&command.database)? else { return Ok(()) };
    let pins = deployment.clone_pins()?;
    if pins.is_empty() {
        return Ok(());
    }
    writeln!(out, "\npins of clones")?;
    pins.iter().try_for_each(|pin| Ok(writeln!(out, "{}", clone::line(pin))?))
}

pub(super) fn show(db: &Db, command: &Stats, out: &mut dyn Write) -> Result<(), Failure> {
    let statistics = db.statistics();
    if command.prometheus {
        return Ok(out.write_all(statistics.to_prometheus().as_bytes())?);
    }
    if let Some(name) = &command.table {
        let table = db.table(name)?;
        if command.sizes {
            return sizes::show(&table, command.all, command.json, out);
        }
        let missing =
            || terrane::Error::new(terrane::Kind::NotFound, format!("table {name:?} has no metrics"));
        let table = statistics.table(name).ok_or_else(missing)?;
        if command.json {
            return Ok(writeln!(out, "{}", Value::from(json_of(&table.samples)))?);
        }
        return table.samples.iter().try_for_each(|sample| Ok(write_row(sample, out)?));
    }
    if command.json {
        return Ok(writeln!(out, "{}", to_json(&statistics))?);
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
    Ok(())
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

/// The metrics of the database as members, and those of each table in the member `tables`.
fn to_json(statistics: &Statistics) -> Value {
    let mut members = json_of(&statistics.samples);
    let tables = statistics.tables.iter().map(|table| (table.name.clone(), json_of(&table.samples).into()));
    members.insert("tables".to_owned(), tables.collect::<Map<_, _>>().into());
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
