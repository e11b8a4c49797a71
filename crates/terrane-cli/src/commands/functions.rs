//! Functions that only another program has: merge operators, prefix extractors and key orders of tables.
//!
//! A database opens without them. For reading, the operands of an unknown merge operator are shown as they
//! are, and so are operands that their operator cannot fold; for writing, they stay as they are. What would
//! not come back as it was is left out of exports and copies.

use std::sync::Arc;

use terrane::{
    Db, Functions, KeyOrders, MergeOperator, MergeOperators, OperatorSource, PrefixExtractors, Table,
};

use crate::exit::{Code, Failure};

/// First bytes of what a key with operands of an unknown operator reads as.
const MARK: &[u8] = b"\0terrane: operands of an unknown merge operator\0";

/// The functions with which databases are opened for reading.
pub(super) fn reading() -> Functions {
    let operators = MergeOperators::new().with_source(Arc::new(AnyOperator)).wrapped(Tolerant::wrap);
    Functions { operators, ..Functions::any() }
}

/// The functions with which databases are opened for writing: keys in an unknown order cannot be written.
pub(super) fn writing() -> Functions {
    Functions { orders: KeyOrders::new(), ..Functions::any() }
}

/// Gives a stand-in for each operator.
#[derive(Debug)]
struct AnyOperator;

impl OperatorSource for AnyOperator {
    fn operator(&self, name: &str) -> Option<Arc<dyn MergeOperator>> {
        Some(Arc::new(Shown { name: name.to_owned() }))
    }
}

/// Makes of operands a text that shows them. For databases that are only read.
#[derive(Debug)]
struct Shown {
    name: String,
}

impl MergeOperator for Shown {
    fn name(&self) -> &str {
        &self.name
    }

    fn full(
        &self,
        _key: &[u8],
        base: Option<&[u8]>,
        operands: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> terrane::Result<()> {
        assert!(!operands.is_empty(), "an operator is called for operands");
        let quoted = |bytes: &[u8]| format!("\"{}\"", bytes.escape_ascii());
        let operands: Vec<String> = operands.iter().map(|operand| quoted(operand)).collect();
        let base = base.map_or_else(|| "nothing".to_owned(), quoted);
        out.extend_from_slice(MARK);
        let text = format!("operands of {}: {} on {base}", self.name, operands.join(", "));
        out.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// An operator that shows what it cannot fold, so that the rows behind such a key are read. For databases
/// that are only read.
#[derive(Debug)]
struct Tolerant(Arc<dyn MergeOperator>);

impl Tolerant {
    fn wrap(operator: Arc<dyn MergeOperator>) -> Arc<dyn MergeOperator> {
        Arc::new(Tolerant(operator))
    }
}

impl MergeOperator for Tolerant {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn full(
        &self,
        key: &[u8],
        base: Option<&[u8]>,
        operands: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> terrane::Result<()> {
        let start = out.len();
        self.0.full(key, base, operands, out).or_else(|_| {
            out.truncate(start);
            Shown { name: self.0.name().to_owned() }.full(key, base, operands, out)
        })
    }
}

/// The text that shows operands, if that is what a key was read as.
pub(super) fn operands(value: &[u8]) -> Option<&[u8]> {
    value.strip_prefix(MARK)
}

/// Checks that a function which the command line names is one that the command has.
pub(super) fn check_named(option: &str, value: &str) -> Result<(), Failure> {
    match (option, value) {
        (_, "none") | ("merge_operator", "json_merge_patch") => Ok(()),
        ("merge_operator", name) => Ok(MergeOperators::new().find(name).map(drop)?),
        ("prefix_extractor", name) => Ok(PrefixExtractors::new().find(name).map(drop)?),
        _ => Ok(()),
    }
}

/// Returns true if the command has the merge operator of this name.
fn has_operator(name: &str) -> bool {
    check_named("merge_operator", name).is_ok()
}

/// The name of the merge operator of a table, if the command has it.
pub(super) fn known_operator(table: &Table) -> Option<String> {
    operator_of(table).filter(|name| has_operator(name))
}

/// The merge operator of a table, if it has one.
fn operator_of(table: &Table) -> Option<String> {
    let mut options = table.kept_options().into_iter();
    options.find(|(name, value)| name == "merge_operator" && value != "none").map(|(_, value)| value)
}

/// Returns true if a table takes operands.
pub(super) fn has_merges(table: &Table) -> bool {
    operator_of(table).is_some()
}

/// Returns true if the values of a table are counters.
pub(super) fn is_counter(table: &Table) -> bool {
    operator_of(table).is_some_and(|operator| operator == "counter")
}

/// Returns true if the command has the order of a table's keys.
fn has_order(table: &Table) -> bool {
    KeyOrders::new().has(table.key_order())
}

/// Refuses to read rows of a table whose comparator is unknown; says when keys are shown as they are stored.
pub(super) fn check_order(table: &Table) -> Result<(), Failure> {
    let (name, order) = (table.name(), table.key_order());
    if !table.is_ordered() {
        let why = format!(
            "table {name:?}: the order of its keys, {order:?}, is a comparator that this command does not have: read its rows \
             with the program that has it; check, tables, shape and stats work here"
        );
        return Err(Failure::new(Code::Usage, why));
    }
    if !has_order(table) {
        eprintln!(
            "terrane: table {name:?}: its key order {order:?} is unknown: keys are shown as they are stored"
        );
    }
    Ok(())
}

/// Names of the parts that an export or a copy leaves out.
#[derive(Debug, Default)]
pub(super) struct LeftOut(Vec<String>);

impl LeftOut {
    /// Of the tables with these names those that can be read whole. The others have an unknown key order:
    /// their keys would come back as other ones.
    pub(super) fn split(db: &Db, names: Vec<String>) -> Result<(Vec<String>, LeftOut), Failure> {
        let (all, mut whole, mut left_out) = (names.len(), Vec::new(), Vec::new());
        for name in names {
            let table = db.table(&name)?;
            if has_order(&table) {
                whole.push(name);
            } else {
                left_out.push(format!("table {name:?}, whose key order {:?} is unknown", table.key_order()));
            }
        }
        assert_eq!(whole.len() + left_out.len(), all, "each table is read or named");
        Ok((whole, LeftOut(left_out)))
    }

    /// Rows of a table that have operands.
    pub(super) fn rows(&mut self, table: &Table, rows: u64) {
        if rows == 0 {
            return;
        }
        let options = table.kept_options();
        let operator = options.iter().find(|(name, _)| name == "merge_operator").map_or("", |(_, name)| name);
        let keys = if rows == 1 { "key" } else { "keys" };
        let (rows, name) = (crate::text::count(rows), table.name());
        let why = if has_operator(operator) {
            "cannot fold them; `terrane check` names them"
        } else {
            "is unknown"
        };
        self.0.push(format!(
            "{rows} {keys} of table {name:?} with operands, whose merge operator {operator:?} {why}"
        ));
    }

    /// The end of a command that leaves nothing out.
    ///
    /// # Errors
    /// Names the parts that are left out, if there are any.
    pub(super) fn end(self) -> Result<(), Failure> {
        match self.0.as_slice() {
            [] => Ok(()),
            some => Err(Failure::new(Code::Usage, format!("left out: {}", some.join("; ")))),
        }
    }
}
