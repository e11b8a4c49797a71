//! `bench`: workloads of `terrane-bench` on a database.

use std::io::Write;

use terrane_bench::Plan;

use super::store::{Access, open};
use crate::arguments::{Bench, Engine};
use crate::exit::Failure;

pub(super) fn run(engine: &Engine, command: &Bench, out: &mut dyn Write) -> Result<(), Failure> {
    let db = open(engine, &command.database, Access::Create)?;
    for &workload in &command.workloads {
        let plan = Plan {
            workload,
            keys: command.keys,
            operations: command.operations.unwrap_or(command.keys),
            key_bytes: command.key_bytes,
            value_bytes: command.value_bytes,
            entropy: command.entropy,
            batch: command.batch,
            threads: command.threads,
            nexts: command.nexts,
            sync: command.sync,
            seed: command.seed,
        };
        writeln!(out, "{}", terrane_bench::run(&db, &plan)?)?;
        // One line at a time: a run can take minutes.
        out.flush()?;
    }
    Ok(db.close()?)
}
