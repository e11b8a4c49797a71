//! Tables: batches over several of them, the ways to write and to read, options of their own, and one that is
//! changed while it is open.

use terrane::{Batch, Db, Durability, Kind, Options, Result, TableOptions};

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("data");
    let db = Db::open_with(&path, &Options { memory_bytes: 64 << 20, ..Options::default() })?;

    // Options of a table are checked when it is made, and stored with it.
    let refused = TableOptions::new().set("compression", "best");
    println!("refused: {}", refused.expect_err("there is no such codec"));
    let words = db.create_table("words", &TableOptions::new().set("compression", "lz4")?)?;
    let lengths = db.table_or_create("lengths")?;

    // One commit for both tables, durable on return.
    let mut batch = Batch::new();
    for word in ["apple", "pear", "plum"] {
        batch.put(&words, word.as_bytes(), "fruit")?;
        batch.put(&lengths, word.as_bytes(), [word.len() as u8])?;
    }
    db.write(&batch, Durability::Synced)?;

    // A key that was put once is removed with all that it left, by the cheaper delete.
    words.single_delete("plum")?;
    words.delete("melon")?; // fine: it is not there

    let found = words.multi_get(&["apple", "plum", "pear"])?;
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(words.range("b"..).count(), 1);
    let backward: Vec<_> = lengths.iter().rev().map(|row| row.map(|(key, _)| key)).collect::<Result<_>>()?;
    assert_eq!(backward, [b"plum".as_slice(), b"pear", b"apple"]);

    // A cursor goes to and fro.
    let mut cursor = lengths.cursor();
    cursor.seek("b")?;
    assert_eq!(cursor.row().map(|(key, _)| key), Some(&b"pear"[..]));
    cursor.prev()?;
    assert_eq!(cursor.row().map(|(key, _)| key), Some(&b"apple"[..]));

    // Changed while it is open, durable on return; what cannot be changed says so.
    words.set_option("time_to_live", "1d")?;
    assert_eq!(
        words.set_option("key_order", "reverse").expect_err("fixed when the table is made").kind(),
        Kind::Invalid
    );
    drop((words, lengths, cursor, batch));
    db.close()?;

    // A read-only database excludes no other reader, and cannot write.
    let options = Options { read_only: true, ..Options::default() };
    let (one, two) = (Db::open_with(&path, &options)?, Db::open_with(&path, &options)?);
    assert_eq!(one.table("words")?.get("apple")?, two.table("words")?.get("apple")?);
    assert_eq!(one.put("k", "v").expect_err("it only reads").kind(), Kind::Invalid);
    Ok(())
}
