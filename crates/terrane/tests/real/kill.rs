//! SIGKILL, again and again, over a process of several threads that write batches over several tables while
//! it flushes, compacts, and makes and drops a table. Creation and recovery are killed as well: some kills
//! come within the first milliseconds, and some databases are left as the kill left them, or only read,
//! before the next child recovers them.
//!
//! `TERRANE_KILLS` is the number of kills (default 10).

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::oracle::Model;
use crate::{Outcome, number_from_env};
use terrane_base::Rng;

const WRITERS: usize = 4;
/// Kills of one database; then a new one is begun.
const KILLS_PER_DATABASE: u64 = 25;

/// Counts of the phases that the kills hit.
#[derive(Debug, Default)]
struct Seen {
    kills: u64,
    in_recovery: u64,
    verified: u64,
    acknowledged: u64,
    databases: u64,
}

pub(crate) fn run() -> Outcome {
    let kills = number_from_env("TERRANE_KILLS", 10);
    let seed = number_from_env("TERRANE_SEED", 1);
    let mut numbers = Rng::new(seed);
    let mut seen = Seen::default();
    let start = Instant::now();
    while seen.kills < kills {
        let dir = tempfile::tempdir().unwrap();
        let db = dir.path().join("db");
        let mut model = Model::new(WRITERS);
        seen.databases += 1;
        for _ in 0..KILLS_PER_DATABASE.min(kills - seen.kills) {
            let place = format!("seed {seed}, kill {}", seen.kills + 1);
            cycle(&db, &mut model, &mut numbers, &mut seen, &place);
            match numbers.below(4) {
                0 => continue,
                1 => model.verify(&db, true, &place),
                _ => model.verify(&db, false, &place),
            }
            seen.verified += 1;
        }
        model.verify(&db, false, &format!("seed {seed}, after kill {}", seen.kills));
        seen.acknowledged += model.acknowledged.iter().sum::<u64>();
    }
    Outcome::Passed(format!("{seen:?} in {:.0} s, TERRANE_SEED={seed}", start.elapsed().as_secs_f64()))
}

/// Starts a child, kills it after a while, and takes its acknowledgements.
fn cycle(db: &Path, model: &mut Model, numbers: &mut Rng, seen: &mut Seen, place: &str) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env("TERRANE_REAL_CHILD", "writers")
        .env("TERRANE_REAL_DIR", db)
        .env("TERRANE_REAL_WRITERS", WRITERS.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).map(|_| bytes)
    });
    let longest = if numbers.below(3) == 0 { 12_000 } else { 250_000 };
    std::thread::sleep(Duration::from_micros(numbers.below(longest)));
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(reader.join().unwrap().unwrap()).unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code().is_none() && complaint.is_empty(),
        "{place}: {}: {complaint}",
        output.status
    );
    seen.kills += 1;
    seen.in_recovery += u64::from(!said.contains("open\n"));
    let whole = said.rfind('\n').map_or("", |end| &said[..end]);
    for line in whole.lines().filter(|line| line.starts_with("a ")) {
        let mut parts = line.split(' ').skip(1).map(|part| part.parse::<u64>().unwrap());
        let (writer, op) = (parts.next().unwrap(), parts.next().unwrap());
        model.acknowledge(writer as usize, op);
    }
}
