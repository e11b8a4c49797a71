//! Snapshots: one consistent moment of all tables, written out as text while others go on writing.

use std::io::Write;

use terrane::{Db, Kind, Result};

/// Writes every row of every table as of one moment; no writer waits for it.
fn export(db: &Db, out: &mut dyn Write) -> Result<u64> {
    let snapshot = db.snapshot();
    let mut rows = 0;
    for name in db.tables() {
        let table = db.table(&name)?;
        for row in snapshot.iter(&table) {
            let (key, value) = row?;
            // A write between two rows: the snapshot does not see it.
            table.put("later", "1")?;
            writeln!(out, "{name}\t{}\t{}", key.escape_ascii(), value.escape_ascii())
                .expect("memory takes it");
            rows += 1;
        }
    }
    Ok(rows)
}

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path().join("data"))?;
    let (ships, ports) = (db.table_or_create("ships")?, db.table_or_create("ports")?);
    ships.put("Ada", "Hamburg")?;
    ports.put("Hamburg", "Ada")?;
    let mut text = Vec::new();
    assert_eq!(export(&db, &mut text)?, 2);
    print!("{}", String::from_utf8_lossy(&text));
    assert!(ships.contains("later")? && !text.windows(5).any(|bytes| bytes == b"later"));

    // A number of its own: the order of commits.
    let (older, newer) = (db.snapshot(), {
        ships.delete("Ada")?;
        db.snapshot()
    });
    assert!(older.seq() < newer.seq());
    assert!(older.get(&ships, "Ada")?.is_some() && newer.get(&ships, "Ada")?.is_none());

    // Reads of a dropped table are refused, also through a snapshot.
    db.drop_table("ports")?;
    assert_eq!(older.get(&ports, "Hamburg").expect_err("it was dropped").kind(), Kind::NotFound);
    db.close()
}
