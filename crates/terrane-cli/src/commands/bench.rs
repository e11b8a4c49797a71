//! `bench`: workloads of `terrane-bench` on a database.

use std::io::Write;

use terrane_bench::{Plan, Workload};

use super::store::{Access, open};
use crate::arguments::{Bench, Engine};
use crate::exit::{Code, Failure};

pub(super) fn run(engine: &Engine, command: &Bench, out: &mut dyn Write) -> Result<(), Failure> {
    let db = open(engine, &command.database, Access::Create)?;
    refuse_foreign_data(&db, &command.workloads)?;
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

/// A bench overwrites keys of its own kind; in a database with other data it would mix them in for ever.
fn refuse_foreign_data(db: &terrane::Db, workloads: &[Workload]) -> Result<(), Failure> {
    let first = db.default_table().iter().next().transpose()?;
    let refuse = |message: &str| Err(Failure::new(Code::Usage, message));
    match first {
        Some((key, _)) if !key.iter().all(u8::is_ascii_digit) => {
            refuse("the database holds other data than a bench's: choose an empty directory")
        }
        None if workloads.first().is_some_and(|workload| workload.needs_data()) => {
            refuse("the database is empty: begin with fillseq or fillrandom")
        }
        _ => Ok(()),
    }
}
