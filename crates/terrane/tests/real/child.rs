//! The child process, in which the faults happen. It writes a line to a pipe for each acknowledged operation.
//!
//! * `writers`: several threads write batches over three tables, every eighth durable, while another flushes
//!   and compacts, until the parent kills it.
//! * `script`: says that it is ready, waits for a line, then does one thing after the other, each phase
//!   announced; an error is printed and the script goes on where a careful program would. It compares what it
//!   reads with the rows that its operations leave: a read that fails may end early, but then it returns an
//!   error, and it never returns other rows.
//! * `memory`: loads and reads under a ceiling, see `memory.rs`.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrane::{Db, Durability, Error, Table, TableOptions};

use crate::number_from_env;
use crate::workload::{Rows, TABLES, batch, changes, counter, is_view, tables, tiny_options};

/// Longest life of a child that is not killed.
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
        "memory" => {
            crate::memory::child(&dir);
            ExitCode::SUCCESS
        }
        _ => panic!("no role {role}"),
    }
}

fn writers(dir: &std::path::Path) -> Result<(), Error> {
    let count = number_from_env("TERRANE_REAL_WRITERS", 4);
    let db = Db::open_with(dir, &tiny_options())?;
    let tables = Arc::new(tables(&db)?);
    say("open");
    // The present rows were recovered: no later recovery may lose them.
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
        let sync = if op % 8 == writer { Durability::Synced } else { Durability::Buffered };
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

/// Prints the error, if there is one, and returns `None` then.
fn ok_or_say<T>(result: Result<T, Error>) -> Option<T> {
    result.map_err(|error| say(&format!("error {} {error}", error.kind().as_str()))).ok()
}

fn script(dir: &std::path::Path) -> ExitCode {
    let first = std::env::var("TERRANE_REAL_PHASE").unwrap_or_else(|_| "open".into());
    let dies = std::env::var_os("TERRANE_REAL_DIES").is_some();
    let mut line = String::new();
    say("ready");
    let _ = std::io::stdin().lock().read_line(&mut line);
    say(&format!("phase {first}"));
    let Some(db) = ok_or_say(Db::open_with(dir, &tiny_options())) else { return end() };
    if let Some(tables) = ok_or_say(tables(&db)) {
        if dies {
            write_some(&db, &tables, &mut Book::default());
            std::process::abort();
        }
        work(&db, &tables);
    }
    say("phase close");
    ok_or_say(db.close());
    end()
}

fn end() -> ExitCode {
    say("end");
    ExitCode::SUCCESS
}

fn work(db: &Db, tables: &[Table]) {
    let mut book = Book::default();
    say("phase write");
    write_some(db, tables, &mut book);
    say("phase flush");
    ok_or_say(db.flush());
    read_all(tables, &mut book);
    say("phase write");
    write_some(db, tables, &mut book);
    say("phase compact");
    for table in tables {
        ok_or_say(db.compact_range(table, ..));
    }
    read_all(tables, &mut book);
    say("phase write");
    write_some(db, tables, &mut book);
    read_all(tables, &mut book);
}

/// The expected rows of this life: the number of its writer's operations, once it has read that, and the rows
/// up to there.
#[derive(Default)]
struct Book {
    done: Option<u64>,
    replayed: u64,
    rows: Rows,
}

impl Book {
    /// Reads how far the writer is; that is what it was the first time, and what was acknowledged since.
    fn read_counter(&mut self, table: &Table) -> Option<u64> {
        let found = ok_or_say(counter(table, 0))?;
        if self.done.is_some_and(|done| done != found) {
            say(&format!("wrong counter {found}, expected {:?}", self.done));
        }
        self.done = Some(found);
        Some(found)
    }

    /// The rows of each table after everything that was done.
    fn rows(&mut self, done: u64) -> &Rows {
        for change in (self.replayed + 1..=done).flat_map(|op| changes(0, op)) {
            match change.value {
                Some(value) => drop(self.rows[change.table].insert(change.key, value)),
                None => drop(self.rows[change.table].remove(&change.key)),
            }
        }
        self.replayed = self.replayed.max(done);
        &self.rows
    }
}

fn read_all(tables: &[Table], book: &mut Book) {
    for (index, table) in tables.iter().enumerate() {
        ok_or_say(table.get(b"counter/0"));
        let Some(done) = book.read_counter(&tables[0]) else { continue };
        let rows = &book.rows(done)[index];
        let name = TABLES[index];
        compare(&format!("{name} forward"), table.iter(), rows.iter());
        compare(&format!("{name} backward"), table.iter().rev(), rows.iter().rev());
    }
}

/// Compares rows up to an error, which is printed; a scan that ends without an error has all rows.
fn compare<'r>(
    what: &str,
    found: impl Iterator<Item = Result<terrane::Row, Error>>,
    mut expected: impl Iterator<Item = (&'r Vec<u8>, &'r Vec<u8>)>,
) {
    for row in found {
        let Some((key, value)) = ok_or_say(row) else { return };
        if is_view(&key) {
            continue;
        }
        match expected.next() {
            Some(row) if (&row.0[..], &row.1[..]) == (&key[..], &value[..]) => {}
            other => {
                let (found, other) = (key.escape_ascii(), other.map(|row| row.0.escape_ascii().to_string()));
                return say(&format!("wrong row, {what}: {found}, expected {other:?}"));
            }
        }
    }
    if let Some((key, _)) = expected.next() {
        say(&format!("wrong end, {what}: without an error before {}", key.escape_ascii()));
    }
}

/// Writes until an error: after one the operation may be there or not once the database was opened again;
/// until then it is not.
fn write_some(db: &Db, tables: &[Table], book: &mut Book) {
    let Some(done) = book.read_counter(&tables[0]) else { return };
    for op in done + 1..=done + SCRIPT_OPS {
        let Some(batch) = ok_or_say(batch(tables, 0, op, &[op - 1])) else { return };
        let sync = if op % 8 == 0 { Durability::Synced } else { Durability::Buffered };
        if ok_or_say(db.write(&batch, sync)).is_none() {
            return;
        }
        book.done = Some(op);
        say(&format!("a 0 {op}"));
    }
}
