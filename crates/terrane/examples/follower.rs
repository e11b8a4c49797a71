//! A follower: another process reads what this one writes, without a lock and without a copy.

use terrane::{Batch, Db, Durability, Kind, Result};

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("live");
    let primary = Db::open(&path)?;
    let (orders, items) = (primary.table_or_create("orders")?, primary.table_or_create("items")?);

    // In another process, as a rule.
    let follower = Db::open_follower(&path)?;

    for number in 0..1000u32 {
        let mut batch = Batch::new();
        batch.put(&orders, number.to_be_bytes(), "open")?;
        batch.put(&items, number.to_be_bytes(), "three apples")?;
        primary.write(&batch, Durability::Buffered)?;
    }
    println!("{} records behind", follower.lag()?);
    follower.catch_up()?;
    assert_eq!(follower.lag()?, 0);

    // A view stays what it is. Batches are whole in it.
    let view = follower.view();
    orders_delivered(&primary)?;
    assert_eq!(view.table("orders")?.iter().count(), view.table("items")?.iter().count());
    match view.table("orders")?.get(7u32.to_be_bytes()) {
        Ok(value) => assert_eq!(value.as_deref(), Some(&b"open"[..])),
        // What the primary has merged away meanwhile is perhaps gone; a view never shows anything else
        // instead.
        Err(error) => assert_eq!(error.kind(), Kind::Gone),
    }
    follower.catch_up()?;
    let value = follower.view().table("orders")?.get(7u32.to_be_bytes())?;
    assert_eq!(value.as_deref(), Some(&b"delivered"[..]));

    let stats = follower.stats();
    println!("at {} after {} catch-ups, the last in {} us", stats.seq, stats.catch_ups, stats.last_micros);
    primary.close()
}

fn orders_delivered(primary: &Db) -> Result<()> {
    let orders = primary.table("orders")?;
    for number in 0..1000u32 {
        orders.put(number.to_be_bytes(), "delivered")?;
    }
    primary.flush()?;
    primary.compact_range(&orders, ..)
}
