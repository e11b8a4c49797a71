//! The program of `docs/start.md`: a database of books with a count of their readers.

use terrane::{Batch, Db, Durability, Result, TableOptions, counter};

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path().join("library"))?; // creates it if it is not there

    // A table is a key space of its own. The second one counts.
    let books = db.table_or_create("books")?;
    let reads = db.create_table("reads", &TableOptions::new().merge_operator("counter"))?;

    // One key at a time: kept when the process dies, but not yet when the power fails.
    books.put("melville/moby-dick", "1851")?;
    books.put("melville/typee", "1846")?;
    books.put("shelley/frankenstein", "1818")?;

    // Several changes at once, over any number of tables: all or none, on the disk when it returns.
    let mut batch = Batch::new();
    batch.put(&books, "melville/typee", "1846, first book")?;
    batch.merge(&reads, "melville/typee", counter::encode(2))?;
    batch.merge(&reads, "melville/typee", counter::encode(1))?;
    db.write(&batch, Durability::Synced)?;

    // A key that is not there gives `None`, not an error.
    assert_eq!(books.get("melville/typee")?.expect("it was put"), "1846, first book");
    assert!(books.get("melville/omoo")?.is_none());
    let count = reads.get("melville/typee")?.expect("it was counted");
    println!("typee was read {} times", counter::decode(&count)?);

    // A snapshot sees one moment, whatever is written later.
    let before = db.snapshot();
    books.delete("melville/moby-dick")?;
    for row in books.prefix("melville/") {
        let (key, value) = row?;
        println!("now:    {} = {}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value));
    }
    for row in before.range(&books, "melville/".."n").rev() {
        let (key, _) = row?;
        println!("before: {}", String::from_utf8_lossy(&key));
    }
    drop(before);
    db.close() // returns errors, which a drop cannot
}
