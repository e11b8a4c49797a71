//! Operands that the writer refuses.

use terrane::{Batch, Db, Kind, TableOptions};

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
