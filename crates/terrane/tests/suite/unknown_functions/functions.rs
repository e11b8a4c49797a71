//! Functions of tables that a test registers and then opens without. The tests of the command use them, too.

#![allow(unreachable_pub, clippy::unwrap_used, reason = "a test")]

use std::cmp::Ordering;
use std::sync::Arc;

use terrane::{
    Comparator, Db, Functions, KeyOrder, KeyOrders, MergeOperator, MergeOperators, PrefixExtractor,
    PrefixExtractors, Result, Table, TableOptions,
};

/// Joins operands with a plus sign; with its name.
#[derive(Debug)]
pub struct Joined(pub &'static str);

impl MergeOperator for Joined {
    fn name(&self) -> &str {
        self.0
    }

    fn full(&self, _: &[u8], base: Option<&[u8]>, operands: &[&[u8]], out: &mut Vec<u8>) -> Result<()> {
        let parts: Vec<&[u8]> = base.into_iter().chain(operands.iter().copied()).collect();
        out.extend_from_slice(&parts.join(&b"+"[..]));
        Ok(())
    }
}

/// Keys that begin with the same byte.
#[derive(Debug)]
pub struct FirstByte;

impl PrefixExtractor for FirstByte {
    fn name(&self) -> &str {
        "test.first"
    }

    fn prefix_len(&self, key: &[u8]) -> Option<usize> {
        (!key.is_empty()).then_some(1)
    }
}

/// Keys are stored with their bytes in reverse.
#[derive(Debug)]
pub struct Mirrored;

impl KeyOrder for Mirrored {
    fn name(&self) -> &str {
        "test.mirrored"
    }

    fn encode(&self, key: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.extend(key.iter().rev());
        Ok(())
    }

    fn decode(&self, encoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.encode(encoded, out)
    }
}

/// Keys in descending order.
#[derive(Debug)]
pub struct Backward;

impl Comparator for Backward {
    fn name(&self) -> &str {
        "test.backward"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        right.cmp(left)
    }
}

/// All of them.
pub fn functions() -> Functions {
    Functions {
        operators: MergeOperators::new().with(Arc::new(Joined("test.joined"))).unwrap(),
        extractors: PrefixExtractors::new().with(Arc::new(FirstByte)).unwrap(),
        orders: KeyOrders::new()
            .with(Arc::new(Mirrored))
            .unwrap()
            .with_comparator(Arc::new(Backward))
            .unwrap(),
    }
}

/// A new table with one option.
pub fn table(db: &Db, name: &str, option: (&str, &str)) -> Table {
    db.create_table(name, &TableOptions::new().set(option.0, option.1).unwrap()).unwrap()
}
