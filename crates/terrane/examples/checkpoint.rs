//! A checkpoint before a risky change: a second database, at once, to go back to or to look at.

use terrane::{Batch, Db, Durability, Result};

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (live, before) = (dir.path().join("live"), dir.path().join("before-migration"));

    let db = Db::open(&live)?;
    let users = db.table_or_create("users")?;
    for number in 0..1000u32 {
        users.put(number.to_be_bytes(), "v1")?;
    }

    // Data files are linked, not copied; records that are only in memory are written. Others may write
    // meanwhile.
    let checkpoint = db.checkpoint(&before)?;
    println!("everything up to {} is in {}", checkpoint.last_seq, checkpoint.path.display());

    // The risky change.
    let mut batch = Batch::new();
    for number in 0..1000u32 {
        batch.put(&users, number.to_be_bytes(), "v2")?;
    }
    db.write(&batch, Durability::Synced)?;

    // The checkpoint is a database like any other: it can be opened beside the live one, and written to.
    let second = Db::open(&before)?;
    let old = second.table("users")?;
    assert_eq!(old.get(7u32.to_be_bytes())?.as_deref(), Some(&b"v1"[..]));
    assert_eq!(users.get(7u32.to_be_bytes())?.as_deref(), Some(&b"v2"[..]));
    old.put(7u32.to_be_bytes(), "repaired")?;
    assert_eq!(users.get(7u32.to_be_bytes())?.as_deref(), Some(&b"v2"[..]));

    // A name that is taken is never written over.
    let refused = db.checkpoint(&before).expect_err("it exists");
    println!("{refused}");
    second.close()?;
    db.close()
}
