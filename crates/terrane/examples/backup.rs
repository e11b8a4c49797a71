//! Backups: each copies only what the one before lacks, is checked, and makes a new database when it is
//! needed.

use std::ops::ControlFlow;

use terrane::{BackupOptions, BackupProgress, Backups, Db, Kind, RestoreOptions, Result};

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (live, place, again) =
        (dir.path().join("live"), dir.path().join("backups"), dir.path().join("again"));

    let db = Db::open(&live)?;
    for number in 0..20_000u32 {
        db.put(number.to_be_bytes(), format!("monday {number}").as_bytes())?;
    }
    // A directory, best on another disk. Commits go on while a backup is made.
    let backups = Backups::open(&place);
    let options = BackupOptions::default().flush(true).bytes_per_second(1 << 30);
    let mut show = |progress: &BackupProgress| {
        println!(
            "{} of {} objects, {} bytes copied",
            progress.objects_done, progress.objects, progress.bytes_moved
        );
        ControlFlow::Continue(())
    };
    let monday = backups.create_with(&db, &options, &mut show)?;

    db.put("later", "tuesday")?;
    let tuesday = backups.create(&db)?;
    println!("{} bytes are new since monday", tuesday.copied_bytes);
    assert!(tuesday.copied_bytes < monday.copied_bytes);

    // Reads everything that it needs.
    assert!(backups.verify(tuesday.id)?.findings.is_empty());

    // The live database is lost. A restore makes a new one; over something it makes none.
    drop(db);
    let refused = backups.restore(tuesday.id, &live).expect_err("something is there");
    assert_eq!(refused.kind(), Kind::Invalid);
    backups.restore_with(tuesday.id, &again, &RestoreOptions::default(), &mut show)?;
    let db = Db::open(&again)?;
    assert_eq!(db.get("later")?.as_deref(), Some(&b"tuesday"[..]));
    assert_eq!(db.get(7u32.to_be_bytes())?.as_deref(), Some(&b"monday 7"[..]));

    // Old ones go; what the newest needs stays.
    let removed = backups.purge(1)?;
    assert_eq!(removed.backups, [monday.id]);
    assert_eq!(backups.newest()?, tuesday.id);
    assert!(backups.verify(tuesday.id)?.findings.is_empty());
    db.close()
}
