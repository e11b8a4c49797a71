//! One module per command, or per few that belong together.

mod backup;
mod bench;
mod bulk;
mod changes;
mod check;
mod clone;
mod compact;
mod consent;
#[cfg(feature = "rocksdb")]
mod copy;
#[cfg(feature = "rocksdb")]
mod copy_state;
mod copy_tables;
mod cost;
mod deployment;
mod doctor;
mod dry_import;
mod dump;
mod export;
mod follow;
mod functions;
mod generate;
mod import;
mod importer;
mod options;
mod point;
mod position;
mod repair;
mod rows;
mod scan;
#[cfg(feature = "grpc")]
mod serve;
#[cfg(feature = "grpc")]
mod serve_compactor;
mod shape;
mod shell;
mod sim;
mod sizes;
mod stats;
mod stats_pins;
mod store;
mod tables;
mod top;
mod tour;

use std::io::Write;

pub(crate) use self::sim::HELP as SIM_HELP;
pub use self::sim::Sim;
use crate::arguments::{Arguments, Command};
use crate::exit::{Code, Failure};

/// Runs a command; what it has to say goes to `out`, progress and warnings to standard error.
///
/// # Errors
/// The reason why the command failed, with its exit code.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let engine = &arguments.engine;
    if engine.moment().is_some() && !arguments.command.takes_moment() {
        let why = "--at and --at-commit are for commands that read tables: get, scan, count, estimate, export, copy, \
                   tables, shape, stats, check; and for clone";
        return Err(Failure::new(Code::Usage, why));
    }
    match &arguments.command {
        Command::Import(command) => import::run(engine, command, out),
        Command::Export(command) => export::run(engine, command, out),
        Command::Copy(command) => copy_tables::run(engine, command, out),
        Command::Shell(command) => shell::run(engine, command, out),
        Command::Get(command) => point::get(engine, command, out),
        Command::Put(command) => point::put(engine, command),
        Command::Merge(command) => point::merge(engine, command),
        Command::Delete(command) => point::delete(engine, command),
        Command::DeleteRange(command) => point::delete_range(engine, command, out),
        Command::Scan(command) => scan::scan(engine, command, out),
        Command::Count(command) => scan::count(engine, command, out),
        Command::Estimate(command) => scan::estimate(engine, command, out),
        Command::Tables(command) => tables::run(engine, command, out),
        Command::Shape(command) => shape::run(engine, command, out),
        Command::Stats(command) => stats::run(engine, command, out),
        Command::Top(command) => top::run(command, out),
        Command::Cost(command) => cost::run(command, out),
        Command::Check(command) => check::run(engine, command, out),
        Command::Doctor(command) => doctor::run(command, out),
        Command::Repair(command) => repair::run(engine, command, out),
        Command::Compact(command) => compact::run(engine, command, out),
        Command::Ingest(command) => bulk::ingest(engine, command, out),
        Command::DropExtents(command) => bulk::drop_extents(engine, command, out),
        Command::Inspect(command) => bulk::inspect(command, out),
        Command::Dump(command) => dump::run(command, out),
        Command::Bench(command) => bench::run(engine, command, out),
        Command::Sim(command) => sim::run(command, out),
        Command::Checkpoint(command) => backup::checkpoint(engine, command, out),
        Command::Clone(command) => clone::run(engine, command, out),
        Command::Backup(command) => backup::run(engine, &command.command, out),
        Command::Changes(command) => changes::run(command, out),
        #[cfg(feature = "grpc")]
        Command::Serve(command) => serve::run(command, out),
        Command::Options(list) => options::run(list, out),
        Command::Completions { shell } => generate::completions(*shell, out),
        Command::Man { directory } => generate::manual(directory.as_deref(), out),
        Command::Tour { database } => tour::run(engine, database, out),
    }
}
