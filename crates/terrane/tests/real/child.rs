//! The process that suffers. It tells its parent through a pipe what was acknowledged, one line each.
//!
//! * `writers`: several threads write batches over three tables, every eighth durable, while another flushes and
//!   compacts, until somebody kills it.
//! * `script`: waits for a line, then does one thing after the other, each phase announced; an error is told and the
//!   script goes on where a careful program would.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrane::{Db, Error, Sync, Table, TableOptions};

use crate::number_from_env;
use crate::workload::{TABLES, batch, counter, tables, tiny_options};

/// Longest life of a child that nobody kills.
const LIFE: Duration = Duration::from_secs(60);
/// Operations of the script in each of its phases of writing.
const SCRIPT_OPS: u64 = 30;

/// Says one line; a line this short goes into the pipe whole or not at all.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(format!("{line}\n").as_bytes());
    let _ = out.flush();
}

pub(crate) fn run(role: &str) -> ExitCode {
    let dir = PathBuf::from(std::env::var_os("TERRANE_REAL_DIR").expect("the parent names the directory"));
    match role {
        "writers" => {
            writers(&dir).expect("nothing but a kill ends the writers");
            ExitCode::SUCCESS
        }
        "script" => script(&dir),
        _ => panic!("no role {role}"),
    }
}

fn writers(dir: &std::path::Path) -> Result<(), Error> {
    let count = number_from_env("TERRANE_REAL_WRITERS", 4);
    let db = Db::open_with(dir, &tiny_options())?;
    let tables = Arc::new(tables(&db)?);
    say("open");
    // What is there now was recovered: no later recovery may lose it.
    for writer in 0..count {
        say(&format!("a {writer} {}", counter(&tables[0], writer)?));
    }
    let ends = Arc::new(AtomicBool::new(false));
    let mut threads = Vec::new();
    for writer in 0..count {
        let (db, tables, ends) = (db.clone(), tables.clone(), ends.clone());
        threads.push(std::thread::spawn(move || write(&db, &tables, writer, count, &ends)));
    }
    let (maintained, seen) = (db.clone(), ends.clone());
    threads.push(std::thread::spawn(move || maintain(&maintained, &seen)));
    std::thread::sleep(LIFE);
    ends.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
    db.close()
}

fn write(db: &Db, tables: &[Table], writer: u64, writers: u64, ends: &AtomicBool) {
    let mut op = counter(&tables[0], writer).unwrap();
    while !ends.load(Ordering::Relaxed) {
        op += 1;
        let saw: Vec<u64> =
            (0..writers).map(|other| counter(&tables[(op % 3) as usize], other).unwrap()).collect();
        let batch = batch(tables, writer, op, &saw).unwrap();
        let sync = if op % 8 == writer { Sync::Yes } else { Sync::No };
        db.write(&batch, sync).unwrap();
        say(&format!("a {writer} {op}"));
    }
}

fn maintain(db: &Db, ends: &AtomicBool) {
    let mut turn = 0;
    while !ends.load(Ordering::Relaxed) {
        turn += 1;
        match turn % 4 {
            0 => {
                let table = db.table(TABLES[turn / 4 % 3]).unwrap();
                db.compact_range(&table, ..).unwrap();
            }
            1 => drop(db.create_table("passing", &TableOptions::new())),
            2 => drop(db.drop_table("passing")),
            _ => db.flush().unwrap(),
        }
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// Tells an error; `None` after one.
fn told<T>(result: Result<T, Error>) -> Option<T> {
    result.map_err(|error| say(&format!("error {} {error}", error.kind().as_str()))).ok()
}

fn script(dir: &std::path::Path) -> ExitCode {
    let first = std::env::var("TERRANE_REAL_PHASE").unwrap_or_else(|_| "open".into());
    let dies = std::env::var_os("TERRANE_REAL_DIES").is_some();
    let mut line = String::new();
    let _ = std::io::stdin().lock().read_line(&mut line);
    say(&format!("phase {first}"));
    let Some(db) = told(Db::open_with(dir, &tiny_options())) else { return end() };
    if let Some(tables) = told(tables(&db)) {
        if dies {
            write_some(&db, &tables);
            std::process::abort();
        }
        work(&db, &tables);
    }
    say("phase close");
    told(db.close());
    end()
}

fn end() -> ExitCode {
    say("end");
    ExitCode::SUCCESS
}

fn work(db: &Db, tables: &[Table]) {
    say("phase write");
    write_some(db, tables);
    say("phase flush");
    told(db.flush());
    read_all(tables);
    say("phase write");
    write_some(db, tables);
    say("phase compact");
    for table in tables {
        told(db.compact_range(table, ..));
    }
    read_all(tables);
    say("phase write");
    write_some(db, tables);
}

fn read_all(tables: &[Table]) {
    for table in tables {
        let rows: Result<Vec<_>, Error> = table.iter().collect();
        told(rows);
        told(table.get(b"counter/0"));
    }
}

/// Writes until an error: after one the operation may be there or not.
fn write_some(db: &Db, tables: &[Table]) {
    let Some(done) = told(counter(&tables[0], 0)) else { return };
    for op in done + 1..=done + SCRIPT_OPS {
        let Some(batch) = told(batch(tables, 0, op, &[op - 1])) else { return };
        let sync = if op % 8 == 0 { Sync::Yes } else { Sync::No };
        if told(db.write(&batch, sync)).is_none() {
            return;
        }
        say(&format!("a 0 {op}"));
    }
}
