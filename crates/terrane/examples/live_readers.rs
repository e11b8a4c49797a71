//! Lists the readers that keep old versions alive, and limits their age.

use std::time::Duration;

use terrane::{Db, Env, Kind, Options, Result};

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    // No reader may keep one moment for longer than a second; a server would say an hour.
    let options = Options { reader_age_max_ms: 1000, ..Options::default() };
    let db = Db::open_with(dir.path().join("data"), &options)?;
    db.put("k", "old")?;
    let report = db.snapshot_labelled("nightly report");
    db.put("k", "new")?;
    for reader in db.live_readers() {
        println!(
            "{:?} {:?} made at {}: {:?} old, {} records behind",
            reader.origin.kind, reader.origin.label, reader.origin.place, reader.age, reader.records_since
        );
    }
    // The report takes too long. What it reads is refused from then on; what it kept is free.
    let clock = Env::real().clock;
    let error = loop {
        match report.get(db.default_table(), "k") {
            Ok(value) => assert_eq!(value.as_deref(), Some(&b"old"[..])),
            Err(error) => break error,
        }
        clock.sleep(Duration::from_millis(10));
    };
    assert_eq!(error.kind(), Kind::TooOld);
    println!("{error}");
    // The remedy: begin again, as often as it takes.
    let value = loop {
        match db.snapshot().get(db.default_table(), "k") {
            Err(error) if error.kind() == Kind::TooOld => {}
            value => break value?,
        }
    };
    assert_eq!(value.as_deref(), Some(&b"new"[..]));
    db.close()
}
