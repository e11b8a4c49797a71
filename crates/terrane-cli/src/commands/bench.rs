//! `bench`: run workloads against a database and print what they measured.

use std::io::Write;

use terrane_bench::{Plan, Workload, run as run_plan};

use super::store::{Access, open};
use crate::arguments::{Bench, Engine};
use crate::exit::{Code, Failure};

pub(super) fn run(engine: &Engine, command: &Bench, out: &mut dyn Write) -> Result<(), Failure> {
    let workloads = workloads(&command.workloads)?;
    let db = open(engine, &command.database, Access::Create)?;
    refuse_foreign_data(&db, &workloads)?;
    for workload in workloads {
        let report = run_plan(&db, &plan(command, workload))?;
        writeln!(out, "{report}")?;
        out.flush()?;
    }
    Ok(db.close()?)
}

fn workloads(names: &[String]) -> Result<Vec<Workload>, Failure> {
    let parse = |name: &String| {
        Workload::parse(name).ok_or_else(|| {
            let known: Vec<_> = Workload::ALL.iter().map(|workload| workload.name()).collect();
            Failure::new(
                Code::Usage,
                format!("there is no workload {name:?}; there are: {}", known.join(", ")),
            )
        })
    };
    names.iter().map(parse).collect()
}

/// A bench overwrites keys of its own kind; in a database with other data it would mix them in for ever.
fn refuse_foreign_data(db: &terrane::Db, workloads: &[Workload]) -> Result<(), Failure> {
    let first = db.default_table().iter().next().transpose()?;
    let is_ours = |key: &[u8]| key.iter().all(u8::is_ascii_digit);
    match first {
        Some((key, _)) if !is_ours(&key) => Err(Failure::new(
            Code::Usage,
            "the database holds other data than a bench's: choose an empty directory",
        )),
        None if workloads.first().is_some_and(|workload| workload.needs_data()) => {
            Err(Failure::new(Code::Usage, "the database is empty: begin with fillseq or fillrandom"))
        }
        _ => Ok(()),
    }
}

fn plan(command: &Bench, workload: Workload) -> Plan {
    Plan {
        operations: command.operations.unwrap_or(command.keys),
        key_bytes: command.key_bytes,
        value_bytes: command.value_bytes,
        entropy: command.entropy,
        batch: command.batch,
        threads: command.threads,
        nexts: command.nexts,
        sync: command.sync,
        seed: command.seed,
        ..Plan::new(workload, command.keys)
    }
}
