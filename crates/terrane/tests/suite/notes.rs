//! Table comments: a comment of the program survives every kind of reopening and copy.

use std::cmp::Ordering;
use std::sync::Arc;

use terrane::{Comparator, Db, Functions, KeyOrders, Kind, Options, Result, TableOptions};

fn noted(db: &Db, default: &str, own: &str) -> Result<()> {
    assert_eq!(db.default_table().note().as_deref(), Some(default));
    assert_eq!(db.table("own")?.note().as_deref(), Some(own));
    Ok(())
}

#[test]
fn a_note_stays_with_its_table() -> Result<()> {
    let dir = tempfile::tempdir().expect("temporary directory");
    let (path, copy, mended) = (dir.path().join("data"), dir.path().join("copy"), dir.path().join("mended"));
    let db = Db::open(&path)?;
    let own = db.create_table("own", &TableOptions::new().set("compression", "none")?)?;
    assert_eq!(own.note(), None);
    own.set_note("first")?;
    own.set_note("second")?;
    db.default_table().set_note("of the default table")?;
    own.set_option("time_to_live", "1h")?;
    own.put(b"k", b"v")?;
    noted(&db, "of the default table", "second")?;

    let too_long = own.set_note(&"x".repeat(2049)).expect_err("beyond the limit");
    assert_eq!(too_long.kind(), Kind::Invalid);
    db.checkpoint(&copy)?;
    own.set_note("third")?;
    drop(own);
    db.close()?;

    noted(&Db::open(&copy)?, "of the default table", "second")?;
    let reader = Db::open_with(&path, &Options { read_only: true, ..Options::default() })?;
    noted(&reader, "of the default table", "third")?;
    let refused = reader.default_table().set_note("by a reader").expect_err("it only reads");
    assert_eq!(refused.kind(), Kind::Invalid);
    drop(reader);

    terrane::repair(&path, &mended, &Options::default())?;
    let db = Db::open(&mended)?;
    noted(&db, "of the default table", "third")?;
    let own = db.table("own")?;
    assert_eq!(own.get(b"k")?.as_deref(), Some(&b"v"[..]));
    db.drop_table("own")?;
    assert_eq!(own.note(), None, "of a table that was dropped");
    assert_eq!(own.set_note("gone").expect_err("it was dropped").kind(), Kind::NotFound);
    Ok(())
}

#[derive(Debug)]
struct Backward;

impl Comparator for Backward {
    fn name(&self) -> &str {
        "test.backward"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        right.cmp(left)
    }
}

#[test]
fn a_repair_that_leaves_the_default_table_out_leaves_its_note_out() -> Result<()> {
    let dir = tempfile::tempdir().expect("temporary directory");
    let (path, without, with) =
        (dir.path().join("data"), dir.path().join("without"), dir.path().join("with"));
    let orders = KeyOrders::new().with_comparator(Arc::new(Backward))?;
    let functions = Functions { orders, ..Functions::default() };
    let mut options = Options::default();
    options.set("key_order", "test.backward")?;
    let db = Db::open_with_functions(&path, &options, functions.clone())?;
    let plain = TableOptions::new().set("key_order", "bytewise")?;
    db.create_table("own", &plain)?.set_note("of a table by bytes")?;
    db.default_table().set_note("of rows that lie backwards")?;
    db.put(b"k", b"v")?;
    db.close()?;

    let any = Functions { orders: KeyOrders::new().with_any(), ..Functions::default() };
    let report = terrane::repair_with_functions(&path, &without, &Options::default(), any)?;
    assert!(report.losses.iter().any(|loss| loss.table.as_deref() == Some("default")), "{:?}", report.losses);
    let db = Db::open(&without)?;
    assert_eq!((db.get(b"k")?, db.default_table().note()), (None, None));
    assert_eq!(db.table("own")?.note().as_deref(), Some("of a table by bytes"));
    db.close()?;

    terrane::repair_with_functions(&path, &with, &options, functions.clone())?;
    noted(
        &Db::open_with_functions(&with, &options, functions)?,
        "of rows that lie backwards",
        "of a table by bytes",
    )
}
