//! A replica that is fed by changes: it applies each batch as it was committed, and keeps in the same batch
//! where it is, so that it goes on exactly there after a crash. Where the source no longer keeps what it
//! needs, it begins with a copy.

use std::time::Duration;

use terrane::{Batch, Changes, Db, Durability, Kind, Options, Result, SeqNo};

/// Where the replica keeps its position.
const POSITION: &[u8] = b"position";

/// The number with which the replica goes on.
fn position(replica: &Db) -> Result<SeqNo> {
    let stored = replica.table_or_create("replica.position")?.get(POSITION)?;
    let bytes = stored.and_then(|value| value.first_chunk::<8>().copied());
    Ok(SeqNo(bytes.map_or(1, u64::from_be_bytes)))
}

/// Applies what there is.
fn apply(changes: &mut Changes, replica: &Db) -> Result<u64> {
    let progress = replica.table_or_create("replica.position")?;
    let mut count = 0;
    while let Some(change_batch) = changes.next_within(Duration::ZERO)? {
        let mut batch = Batch::new();
        for change in change_batch.changes() {
            // A change of a table that was dropped since has no name any more, and no reader.
            let Some(name) = change.table else { continue };
            batch.add_change(&replica.table_or_create(name)?, &change)?;
        }
        batch.put(&progress, POSITION, (change_batch.last_seq().0 + 1).to_be_bytes())?;
        replica.write(&batch, Durability::Buffered)?;
        count += 1;
    }
    Ok(count)
}

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    // 256 MiB of the journal stay after their records are in the levels. The rule is stored with the
    // database.
    let mut options = Options::default();
    options.set("history_bytes", "256MiB")?;
    let db = Db::open_with(dir.path().join("source"), &options)?;
    let replica = Db::open(dir.path().join("replica"))?;

    let users = db.table_or_create("users")?;
    for number in 0..1000u32 {
        users.put(number.to_be_bytes(), "here")?;
    }
    users.delete_range(100u32.to_be_bytes(), 200u32.to_be_bytes())?;
    db.flush()?; // the journal's segments may go now, but are kept

    let mut changes = db.changes(position(&replica)?)?;
    println!("{} batches applied", apply(&mut changes, &replica)?);
    assert_eq!(replica.table("users")?.iter().count(), 900);

    // Both close; the source goes on; the replica goes on where it was.
    let from = changes.position();
    drop(changes);
    users.put("later", "too")?;
    let mut changes = db.changes(position(&replica)?)?;
    assert_eq!(changes.position(), from);
    apply(&mut changes, &replica)?;
    assert!(replica.table("users")?.contains("later")?);

    // Without history, changes that were flushed are gone; a reader that comes too late gets the oldest
    // number there is.
    options.set("history_bytes", "0")?;
    drop((changes, users));
    db.close()?;
    let db = Db::open_with(dir.path().join("source"), &options)?;
    db.put("k", "v")?;
    db.flush()?;
    match db.changes(SeqNo(1)) {
        Err(error) if error.kind() == Kind::Gone => println!("{error}"),
        _ => println!("the segment is still in use"),
    }
    db.close()
}
