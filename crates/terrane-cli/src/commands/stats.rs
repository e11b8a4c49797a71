//! `stats`: what the engine counts.

use std::io::Write;

use serde_json::{Map, Value};

use super::store::{Access, open};
use crate::arguments::{Engine, Stats};
use crate::exit::Failure;

pub(super) fn run(engine: &Engine, command: &Stats, out: &mut dyn Write) -> Result<(), Failure> {
    let db = open(engine, &command.database, Access::Read)?;
    let stats = db.stats();
    if command.json {
        let members =
            stats.rows().into_iter().map(|(name, _, value, _)| (name.to_owned(), Value::from(value)));
        return Ok(writeln!(out, "{}", Value::Object(members.collect::<Map<_, _>>()))?);
    }
    for (name, unit, value, about) in stats.rows() {
        writeln!(out, "{name:<32} {value:>14} {unit:<13} {about}")?;
    }
    Ok(())
}
