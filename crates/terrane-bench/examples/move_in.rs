//! Copies the tables of fjall and redb databases into one of Terrane, sorted, without journal and memory. For
//! other engines with ordered iterators it is the same loop.
//!
//! `cargo run --release -p terrane-bench --example move_in`

use std::error::Error;
use std::path::Path;

use redb::{ReadableDatabase, ReadableTable, TableDefinition};
use terrane::Db;

type Done = Result<(), Box<dyn Error>>;
const BOOKS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("books");

/// Loads rows that come in key order, and stops at the first that could not be read.
fn load<E: Error + 'static>(
    db: &Db,
    table: &str,
    rows: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), E>>,
) -> Result<u64, Box<dyn Error>> {
    let table = db.table_or_create(table)?;
    let mut failed = None;
    let rows = rows.map_while(|row| row.map_err(|error| failed = Some(error)).ok());
    let loaded = db.bulk_load(&table, rows)?;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(loaded.entries),
    }
}

fn from_fjall(db: &Db, path: &Path) -> Result<u64, Box<dyn Error>> {
    let source = fjall::Database::builder(path).open()?;
    let books = source.keyspace("books", fjall::KeyspaceCreateOptions::default)?;
    let rows =
        books.iter().map(|guard| guard.into_inner().map(|(key, value)| (key.to_vec(), value.to_vec())));
    load(db, "from fjall", rows)
}

fn from_redb(db: &Db, path: &Path) -> Result<u64, Box<dyn Error>> {
    let source = redb::Database::open(path)?;
    let transaction = source.begin_read()?;
    let books = transaction.open_table(BOOKS)?;
    let rows =
        books.iter()?.map(|row| row.map(|(key, value)| (key.value().to_vec(), value.value().to_vec())));
    load(db, "from redb", rows)
}

/// Two small databases to copy.
fn prepare(fjall: &Path, redb: &Path) -> Done {
    let database = fjall::Database::builder(fjall).open()?;
    let keyspace = database.keyspace("books", fjall::KeyspaceCreateOptions::default)?;
    let mut batch = database.batch();
    batch.insert(&keyspace, "typee", "1846");
    batch.insert(&keyspace, "omoo", "1847");
    batch.commit()?;
    database.persist(fjall::PersistMode::SyncAll)?;

    let database = redb::Database::create(redb)?;
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(BOOKS)?;
        table.insert(b"mardi".as_slice(), b"1849".as_slice())?;
        table.insert(b"typee".as_slice(), b"1846".as_slice())?;
        table.remove(b"omoo".as_slice())?;
    }
    transaction.commit()?;
    Ok(())
}

fn main() -> Done {
    let dir = tempfile::tempdir()?;
    let (fjall, redb) = (dir.path().join("fjall"), dir.path().join("books.redb"));
    prepare(&fjall, &redb)?;
    let db = Db::open(dir.path().join("books.terrane"))?;
    let copied = (from_fjall(&db, &fjall)?, from_redb(&db, &redb)?);
    println!("{} rows of fjall, {} rows of redb", copied.0, copied.1);
    assert_eq!(copied, (2, 2));
    assert_eq!(db.table("from fjall")?.get("omoo")?.expect("it was copied"), "1847");
    db.close()?;
    Ok(())
}
