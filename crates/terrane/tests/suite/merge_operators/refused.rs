//! Operands that the writer refuses.

use std::sync::Arc;
use std::time::Duration;

use terrane::{
    Batch, Db, Durability, Error, Kind, MergeOperator, MergeOperators, Options, Result, TableOptions,
    TransactionOptions,
};

#[test]
fn an_operand_that_no_value_can_be_made_of_is_refused_by_the_writer() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    for (operator, good, bad) in
        [("counter", &7i64.to_le_bytes()[..], &b"7"[..]), ("json_merge_patch", b"{\"a\":1}", b"{\"a\":")]
    {
        if cfg!(not(feature = "json")) && operator != "counter" {
            continue;
        }
        let options = TableOptions::new().set("merge_operator", operator).unwrap();
        let table = db.create_table(operator, &options).unwrap();
        table.merge(b"k", good).unwrap();
        let mut batch = Batch::new();
        for refused in [table.merge(b"k", bad), batch.merge(&table, b"k", bad)] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), Kind::Invalid, "{error}");
            assert!(error.to_string().contains(operator), "{error}");
        }
        assert!(batch.is_empty());
        assert_eq!(table.get(b"k").unwrap().as_deref(), Some(good));
    }
}

/// An operand could not be folded onto it, and every later read of the key would fail.
#[test]
fn a_value_that_no_operand_can_be_folded_onto_is_refused_by_the_writer() {
    let db = Db::open_in_memory().unwrap();
    let hour = Duration::from_secs(3600);
    for (operator, good, bad) in
        [("counter", &7i64.to_le_bytes()[..], &b"7"[..]), ("json_merge_patch", b"{\"a\":1}", b"{\"a\":")]
    {
        if cfg!(not(feature = "json")) && operator != "counter" {
            continue;
        }
        for order in ["bytewise", "reverse"] {
            let options = TableOptions::new().merge_operator(operator).key_order(order);
            let table = db.create_table(&format!("{operator} {order}"), &options).unwrap();
            table.put(b"k", good).unwrap();
            let mut batch = Batch::new();
            let mut transaction = db.transaction(&TransactionOptions::default()).unwrap();
            for refused in [
                table.put(b"k", bad),
                table.put_with(b"k", bad, Durability::Synced),
                table.put_with_ttl(b"k", bad, hour),
                table.put_until(b"k", bad, Duration::from_secs(4_102_444_800)),
                batch.put(&table, b"k", bad),
                batch.put_with_ttl(&table, b"k", bad, hour),
                batch.put_all(&table, [(b"k", bad)]),
                transaction.put(&table, b"k", bad),
                transaction.put_with_ttl(&table, b"k", bad, hour),
            ] {
                let error = refused.unwrap_err();
                assert_eq!(error.kind(), Kind::Invalid, "{error}");
                assert!(error.to_string().contains("value of"), "{error}");
            }
            assert!(batch.is_empty());
            assert_eq!(batch.put_all(&table, [(b"j", good), (b"k", bad)]).unwrap_err().kind(), Kind::Invalid);
            assert_eq!(batch.len(), 1, "the puts before the failed one");
            // A put that is refused leaves no lock.
            table.put(b"k", good).unwrap();
            drop(transaction);
            assert_eq!(table.get(b"k").unwrap().as_deref(), Some(good));
        }
    }
}

/// Refuses every value, if it is asked.
#[derive(Debug)]
struct Strict {
    name: &'static str,
    checks_values: bool,
}

impl MergeOperator for Strict {
    fn name(&self) -> &str {
        self.name
    }

    fn full(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]], _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }

    fn check_value(&self, _: &[u8]) -> Result<()> {
        Err(Error::invalid("no value is accepted"))
    }

    fn checks_values(&self) -> bool {
        self.checks_values
    }
}

/// Its answer counts behind an order of keys, too, which the operator is called through.
#[test]
fn values_are_put_without_a_check_where_the_operator_says_that_it_checks_none() {
    let operators =
        [Strict { name: "asked", checks_values: true }, Strict { name: "silent", checks_values: false }];
    let operators = operators
        .into_iter()
        .fold(MergeOperators::new(), |operators, operator| operators.with(Arc::new(operator)).unwrap());
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with_operators(dir.path().join("data"), &Options::default(), operators).unwrap();
    for order in ["bytewise", "reverse"] {
        for name in ["asked", "silent"] {
            let options = TableOptions::new().merge_operator(name).key_order(order);
            let table = db.create_table(&format!("{name} {order}"), &options).unwrap();
            let mut batch = Batch::new();
            let puts =
                [table.put("k", "v"), batch.put(&table, "k", "v"), batch.put_all(&table, [("k", "v")])];
            for put in puts {
                assert_eq!(
                    put.map_err(|error| error.kind()),
                    if name == "asked" { Err(Kind::Invalid) } else { Ok(()) }
                );
            }
        }
    }
}

/// Only the rows of these tables are folded, so only these are read behind a check.
#[test]
fn a_check_names_the_tables_that_have_operands() {
    let db = Db::open_in_memory().unwrap();
    let counters = TableOptions::new().merge_operator("counter");
    let tables = ["in memory", "in levels", "folded", "put"].map(|name| {
        let table = db.create_table(name, &counters).unwrap();
        table.put(b"k", 1i64.to_le_bytes()).unwrap();
        table
    });
    let named = || db.check(&mut |_, _| {}).unwrap().with_operands;
    assert!(named().is_empty());
    for table in &tables[1..3] {
        table.merge(b"k", 2i64.to_le_bytes()).unwrap();
    }
    assert_eq!(named(), ["in levels", "folded"]);
    // A snapshot keeps the operand apart from the value.
    let snapshot = db.snapshot();
    tables[1].merge(b"k", 3i64.to_le_bytes()).unwrap();
    db.flush().unwrap();
    db.compact_range(&tables[2], ..).unwrap();
    tables[0].merge(b"k", 2i64.to_le_bytes()).unwrap();
    assert_eq!(named(), ["in memory", "in levels"]);
    drop(snapshot);
    assert_eq!(tables[2].get(b"k").unwrap().as_deref(), Some(&3i64.to_le_bytes()[..]));
}
