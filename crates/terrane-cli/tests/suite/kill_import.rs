//! Kills the importer with SIGKILL at random moments, again and again over one database, and verifies after
//! each kill that (1) every acknowledged record is there, (2) the records are a prefix of the input, (3) no
//! batch is half there, over both tables that a batch changes, (4) `check` finds nothing. `TERRANE_KILLS`
//! sets how many times (default 6; the release check does 200).
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test of the binary from outside uses real files and time"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use terrane_base::Rng;

const BATCH: u64 = 37;
const RECORDS: u64 = 60_000;

fn terrane() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_terrane"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn kills() -> u64 {
    std::env::var("TERRANE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

fn write_input(path: &Path) {
    let mut text = String::new();
    for number in 0..RECORDS {
        // Scattered keys, so that flushes overlap stored extents.
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        writeln!(text, "{{\"id\":\"{key:016x}\",\"number\":{number},\"text\":\"{}\"}}", "x".repeat(60))
            .unwrap();
    }
    std::fs::write(path, text).unwrap();
}

struct Cycle {
    input: PathBuf,
    db: PathBuf,
    ack: PathBuf,
}

impl Cycle {
    fn import(&self, sync: bool) -> Command {
        let mut command = terrane();
        command.args([
            "-o",
            "memory_bytes=16MiB",
            "-o",
            "memtable_bytes=512KiB",
            "-o",
            "segment_bytes=256KiB",
        ]);
        command.args([
            "import",
            "--format",
            "jsonl",
            "--key",
            "id",
            "--batch",
            &BATCH.to_string(),
            "--ack-file",
        ]);
        command.arg(&self.ack);
        if sync {
            command.arg("--sync");
        }
        command.arg(&self.db).arg(&self.input);
        command
    }

    fn acknowledged(&self) -> u64 {
        let text = std::fs::read_to_string(&self.ack).unwrap_or_default();
        // A line that the kill cut short is not an acknowledgement.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().next_back().and_then(|line| line.trim().parse().ok()).unwrap_or(0)
    }

    /// Opens the database as its next user would and counts the prefix of the input that is there.
    fn verify(&self, acknowledged: u64) -> u64 {
        let db = terrane::Db::open(&self.db).unwrap();
        let table = db.default_table();
        let rows: Result<Vec<_>, _> = table.iter().collect();
        let present = rows.unwrap().len() as u64;
        for number in 0..present {
            let key = format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let value = table.get(key.as_bytes()).unwrap();
            let value =
                value.unwrap_or_else(|| panic!("{present} records are there but not number {number}"));
            let expected = format!("\"number\":{number},");
            assert!(value.windows(expected.len()).any(|part| part == expected.as_bytes()), "record {number}");
        }
        assert!(present >= acknowledged, "{acknowledged} were acknowledged, {present} are there");
        assert!(present == RECORDS || present.is_multiple_of(BATCH), "half a batch: {present} records");
        let position = db.table("terrane.import").ok().and_then(|table| table.iter().next());
        let records = position.map_or(0, |row| {
            let stored: serde_json::Value = serde_json::from_slice(&row.unwrap().1).unwrap();
            stored["records"].as_u64().unwrap()
        });
        assert_eq!(records, present, "the position is in the same batch as the records");
        db.close().unwrap();
        present
    }
}

#[test]
fn acknowledged_rows_are_there_after_every_kill() {
    let dir = tempfile::tempdir().unwrap();
    let mut cycle = Cycle {
        input: dir.path().join("input.jsonl"),
        db: dir.path().join("db0"),
        ack: dir.path().join("ack"),
    };
    write_input(&cycle.input);
    let mut rng = Rng::new(0x1234_5678);
    let mut killed = 0;
    let mut round = 0;
    while killed < kills() {
        let mut child = cycle.import(killed % 4 == 3).spawn().unwrap();
        let wait = Duration::from_micros(rng.below(120_000));
        let start = Instant::now();
        while start.elapsed() < wait && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        let finished = child.try_wait().unwrap().is_some();
        if !finished {
            child.kill().unwrap();
            killed += 1;
        }
        child.wait().unwrap();
        let acknowledged = cycle.acknowledged();
        if !cycle.db.exists() {
            continue;
        }
        let present = cycle.verify(acknowledged);
        let check = terrane().arg("check").arg(&cycle.db).status().unwrap();
        assert!(check.success(), "check failed after kill {killed}");
        if present == RECORDS {
            round += 1;
            cycle.db = dir.path().join(format!("db{round}"));
            std::fs::remove_file(&cycle.ack).unwrap();
        }
    }
}
