//! Typed tables: keys and values of Rust types, an index beside a table, and a key type of the program's own.

use terrane::typed::{DecodeKey, DecodeValue, EncodeKey, EncodeValue, TypedTable};
use terrane::{Db, Durability, Result, TransactionOptions};

/// A key of its own: encoded as its one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UserId(u64);

impl EncodeKey for UserId {
    fn encode_part(&self, to: &mut Vec<u8>) {
        self.0.encode_part(to);
    }
}

impl DecodeKey for UserId {
    fn decode_part(from: &mut &[u8]) -> Option<Self> {
        u64::decode_part(from).map(UserId)
    }
}

/// A value of its own: the year of birth, then the name.
#[derive(Debug, PartialEq)]
struct User {
    born: u16,
    name: String,
}

impl EncodeValue for User {
    fn encode_value(&self, to: &mut Vec<u8>) -> Result<()> {
        self.born.encode_value(to)?;
        self.name.encode_value(to)
    }
}

impl DecodeValue for User {
    fn decode_value(mut bytes: Vec<u8>) -> Option<Self> {
        let name = bytes.split_off_checked(2)?;
        Some(User { born: u16::decode_value(bytes)?, name: String::decode_value(name)? })
    }
}

/// `Vec::split_off` that refuses a vector that is too short.
trait SplitOff: Sized {
    fn split_off_checked(&mut self, at: usize) -> Option<Self>;
}

impl SplitOff for Vec<u8> {
    fn split_off_checked(&mut self, at: usize) -> Option<Self> {
        (at <= self.len()).then(|| self.split_off(at))
    }
}

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path().join("data"))?;
    let users: TypedTable<UserId, User> = TypedTable::new(db.table_or_create("users")?)?;
    // By year of birth; the value of a row is in its key.
    let births: TypedTable<(u16, UserId), ()> = TypedTable::new(db.table_or_create("births")?)?;

    // A row and its entry in the index, in one commit.
    for (number, (born, name)) in (1..).zip([(1906, "grace"), (1815, "ada"), (1912, "alan")]) {
        let (id, user) = (UserId(number), User { born, name: name.to_owned() });
        db.transact(&TransactionOptions::default(), Durability::Synced, 3, |transaction| {
            if let Some(before) = users.get_in(transaction, &id)? {
                births.delete_in(transaction, (before.born, &id))?;
            }
            users.put_in(transaction, &id, &user)?;
            births.put_in(transaction, (born, &id), ())
        })?;
    }

    // Numbers are ordered as numbers.
    let modern = births.range((1900, &UserId(0))..).keys();
    let modern: Vec<(u16, UserId)> = modern.collect::<Result<_>>()?;
    assert_eq!(modern, [(1906, UserId(1)), (1912, UserId(3))]);
    for ((born, id), name) in modern.iter().zip(["grace", "alan"]) {
        assert_eq!(users.get(id)?, Some(User { born: *born, name: name.to_owned() }));
    }
    assert_eq!(births.prefix((1815,)).count(), 1);

    // The table below takes and returns bytes.
    assert!(users.table().contains(2u64.to_be_bytes())?);
    Ok(())
}
