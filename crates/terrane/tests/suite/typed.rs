//! Typed tables: what they read and write, beside snapshots, batches and transactions.

use terrane::typed::TypedTable;
use terrane::{Batch, Db, Durability, IndexedBatch, Kind, Result, TableOptions, TransactionOptions};

type Readings = TypedTable<(String, i64), f64>;

fn readings(db: &Db) -> Readings {
    let table = db.table_or_create("readings").expect("a table");
    TypedTable::new(table).expect("bytewise")
}

/// Sensors whose names a plain prefix would mix up, at times on both sides of 0.
fn filled(db: &Db) -> Readings {
    let readings = readings(db);
    for sensor in ["a", "a\0", "ab", "b"] {
        for second in [-60, 0, 60] {
            readings.put((sensor, second), second as f64 / 8.0).expect("a put");
        }
    }
    readings
}

#[test]
fn rows_come_in_the_order_of_their_keys_from_both_ends() -> Result<()> {
    let db = Db::open_in_memory()?;
    let readings = filled(&db);
    db.flush()?;
    let rows: Vec<((String, i64), f64)> = readings.iter().collect::<Result<_>>()?;
    assert!(rows.is_sorted_by(|one, other| one.0 < other.0));
    assert_eq!(rows.len(), 12);
    let mut backward: Vec<_> = readings.iter().rev().collect::<Result<_>>()?;
    backward.reverse();
    assert_eq!(rows, backward);

    let of_a: Vec<i64> = readings.prefix(("a",)).keys().map(|key| Ok(key?.1)).collect::<Result<_>>()?;
    assert_eq!(of_a, [-60, 0, 60], "those of no other sensor");
    let later: Vec<_> =
        readings.range(("a", -59)..=("a", 60)).map(|row| Ok(row?.1)).collect::<Result<_>>()?;
    assert_eq!(later, [0.0, 7.5]);
    assert_eq!(readings.iter().nth(3).transpose()?, Some((("a\0".to_owned(), -60), -7.5)));
    Ok(())
}

#[test]
fn keys_are_given_in_any_form() -> Result<()> {
    let db = Db::open_in_memory()?;
    let readings = filled(&db);
    let owned = ("ab".to_owned(), 60);
    assert_eq!(readings.get(&owned)?, Some(7.5));
    assert_eq!(readings.get(("ab", 60))?, Some(7.5));
    assert_eq!(readings.get((&owned.0, &owned.1))?, Some(7.5));
    assert_eq!(readings.multi_get([("b", 0), ("c", 0)])?, [Some(0.0), None]);
    readings.delete_range(("a", 0), ("b", 0))?;
    readings.delete(&("b".to_owned(), 60))?;
    let left: Vec<_> = readings.iter().keys().collect::<Result<_>>()?;
    assert_eq!(left, [("a".to_owned(), -60), ("b".to_owned(), 0)]);
    Ok(())
}

#[test]
fn a_table_of_strings_has_the_keys_of_an_untyped_one() -> Result<()> {
    let db = Db::open_in_memory()?;
    let table = db.default_table();
    table.put("a\0b", "1")?;
    let typed: TypedTable<String, String> = TypedTable::new(table.clone())?;
    assert_eq!(typed.get("a\0b")?.as_deref(), Some("1"));
    typed.put("ab", "2")?;
    assert_eq!(table.get("ab")?.expect("it was put"), "2");
    assert_eq!(typed.prefix("a").count(), 2);
    Ok(())
}

#[test]
fn batches_snapshots_and_transactions_take_typed_rows() -> Result<()> {
    let db = Db::open_in_memory()?;
    let readings = readings(&db);
    let before = db.snapshot();
    let mut batch = Batch::new();
    readings.put_in(&mut batch, ("a", 1), 1.0)?;
    readings.put_in(&mut batch, ("a", 2), 2.0)?;
    db.write(&batch, Durability::Buffered)?;
    assert_eq!(readings.get_in(&before, ("a", 1))?, None);
    assert_eq!(readings.range_in(&before, ..)?.count(), 0);

    let mut transaction = db.transaction(&TransactionOptions::default())?;
    readings.delete_in(&mut transaction, ("a", 1))?;
    readings.put_in(&mut transaction, ("a", 3), 3.0)?;
    assert_eq!(readings.get_in(&transaction, ("a", 1))?, None);
    let seconds = readings.range_in(&transaction, ..)?.map(|row| Ok(row?.0.1)).collect::<Result<Vec<_>>>()?;
    assert_eq!(seconds, [2, 3]);
    let backward =
        readings.range_in(&transaction, ..)?.rev().map(|row| Ok(row?.0.1)).collect::<Result<Vec<_>>>()?;
    assert_eq!(backward, [3, 2]);
    assert_eq!(readings.get(("a", 1))?, Some(1.0), "not committed");
    transaction.commit(Durability::Buffered)?;

    let mut changes = IndexedBatch::new();
    readings.put_in(&mut changes, ("a", 2), 20.0)?;
    assert_eq!(readings.get_in(&changes, ("a", 2))?, Some(20.0));
    assert_eq!(readings.range_in(&changes, ("a", 2)..=("a", 2))?.count(), 1);
    assert_eq!(readings.get(("a", 2))?, Some(2.0), "not written");
    Ok(())
}

#[test]
fn rows_of_another_type_are_refused_by_name_and_the_others_are_read() -> Result<()> {
    let db = Db::open_in_memory()?;
    let table = db.table_or_create("ids")?;
    let ids: TypedTable<u32, u64> = TypedTable::new(table.clone())?;
    ids.put(1, 10)?;
    table.put([0, 0, 0, 2], "short")?;
    table.put("text as a key", 7u64.to_le_bytes())?;
    let wrong = ids.get(2).expect_err("five bytes are not a u64");
    assert_eq!(wrong.kind(), Kind::Invalid);
    assert!(
        wrong.message().contains(r#"table "ids": the value of b"\x00\x00\x00\x02" is not a u64"#),
        "{wrong}"
    );
    let rows: Vec<Result<(u32, u64)>> = ids.iter().collect();
    assert_eq!(rows.len(), 3);
    assert!(matches!(rows[0], Ok((1, 10))) && rows[1].is_err());
    let wrong = rows[2].as_ref().expect_err("13 bytes are not a u32");
    assert!(wrong.message().contains(r#"the key b"text as a key" is not a u32"#), "{wrong}");
    assert!(ids.contains(2)?, "a value that is not decoded");
    Ok(())
}

#[test]
fn a_table_with_another_order_is_refused_by_name() -> Result<()> {
    let db = Db::open_in_memory()?;
    let table = db.create_table("newest", &TableOptions::new().key_order("reverse"))?;
    let refused = TypedTable::<u64, ()>::new(table).expect_err("reverse");
    assert_eq!(refused.kind(), Kind::Invalid);
    assert!(refused.message().contains(r#"table "newest" has the key order "reverse""#), "{refused}");
    Ok(())
}

#[test]
#[cfg(feature = "json")]
fn values_of_json_are_rows_that_every_program_reads() -> Result<()> {
    use std::collections::BTreeMap;

    use terrane::typed::Json;

    type Cart = BTreeMap<String, u32>;
    let db = Db::open_in_memory()?;
    let carts: TypedTable<u64, Json<Cart>> = TypedTable::new(db.table_or_create("carts")?)?;
    let cart = Cart::from([("apples".to_owned(), 3)]);
    let whole = Json(cart.clone());
    carts.put(7, &whole)?;
    carts.put(8, Json(&cart))?;
    carts.put(9, Json(cart))?;
    assert_eq!(carts.multi_get([7, 8, 9])?, vec![Some(whole); 3]);
    assert_eq!(db.table("carts")?.get(7u64.to_be_bytes())?.expect("it was put"), r#"{"apples":3}"#);
    db.table("carts")?.put(10u64.to_be_bytes(), "{")?;
    assert_eq!(carts.get(10).expect_err("half an object").kind(), Kind::Invalid);

    let odd: TypedTable<u64, Json<BTreeMap<Option<u8>, u8>>> = TypedTable::new(db.table_or_create("odd")?)?;
    let refused = odd.put(1, Json(BTreeMap::from([(None, 1)]))).expect_err("a key that is not text");
    assert!(refused.message().contains("the value is not JSON"), "{refused}");
    Ok(())
}
