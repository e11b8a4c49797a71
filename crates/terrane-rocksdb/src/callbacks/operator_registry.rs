//! Where merge operators meet column families.
//!
//! RocksDB takes an operator at each opening and stores its name for a look only; Terrane stores with a
//! table, once, the name of its operator. So every table has the operator of its own slot, named after it,
//! and the slot has the operator that the column family was opened with: none, until a caller gives one.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use terrane::{
    ComparatorSource, Error, Functions, KeyOrders, MergeOperators, OperatorSource, PrefixExtractors, Result,
};

use crate::callbacks::comparator::UserComparator;
use crate::callbacks::merge::MergeOperator;
use crate::ffi::failure::MERGE_FAILED;

/// First part of the names of slots. The engine opens tables with such an operator though it has none.
const PREFIX: &str = "rocksdb:";
/// Longest name of a table that is part of the name of its slot; of longer ones a hash is.
const NAME_BYTES_MAX: usize = 40;

/// The slots of one opened database, by the names of their operators.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    by_name: RwLock<BTreeMap<String, Arc<Slot>>>,
    /// Comparators that column families were opened with, by their own names. The engine asks the first of a
    /// name; each of the others is asked by the history of its column family, which a compaction may hold
    /// longer than the column family is there.
    comparators: RwLock<BTreeMap<String, Vec<Arc<UserComparator>>>>,
}

/// The operator of one column family.
#[derive(Debug)]
pub(crate) struct Slot {
    name: String,
    operator: RwLock<Option<Arc<MergeOperator>>>,
}

impl Slots {
    /// The slot of the column family `family`.
    pub(crate) fn of(&self, family: &str) -> Arc<Slot> {
        self.named(&slot_name(family))
    }

    /// Registers a comparator.
    pub(crate) fn compare_by(&self, comparator: Option<&Arc<UserComparator>>) {
        let Some(comparator) = comparator else { return };
        let mut comparators = self.comparators.write().unwrap_or_else(PoisonError::into_inner);
        let name = terrane::Comparator::name(&**comparator).to_owned();
        let of_name = comparators.entry(name).or_default();
        if !of_name.iter().any(|known| Arc::ptr_eq(known, comparator)) {
            of_name.push(comparator.clone());
        }
    }

    /// The functions of a database with these slots. Operators and extractors that only a Rust program has
    /// keep no table closed: what needs them is refused, as RocksDB refuses operands without an operator.
    pub(crate) fn functions(self: &Arc<Self>) -> Functions {
        Functions {
            operators: MergeOperators::new().with_source(self.clone()).with_any(),
            extractors: PrefixExtractors::new().with_any(),
            orders: KeyOrders::new().with_source(self.clone()),
        }
    }

    fn named(&self, name: &str) -> Arc<Slot> {
        let mut slots = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Slot { name: name.to_owned(), operator: RwLock::default() });
        slots.entry(name.to_owned()).or_insert_with(new).clone()
    }
}

/// Functions to open any database with, but not for its rows: all slots are empty.
pub(crate) fn any_functions() -> Functions {
    let mut functions = Arc::new(Slots::default()).functions();
    functions.orders = functions.orders.with_any();
    functions
}

impl ComparatorSource for Slots {
    fn comparator(&self, name: &str) -> Option<Arc<dyn terrane::Comparator>> {
        let comparators = self.comparators.read().unwrap_or_else(PoisonError::into_inner);
        // These slots live as long as the engine that has them as its source, and they keep the comparator.
        comparators.get(name)?.first().map(|comparator| Arc::new(comparator.to_ask()) as _)
    }
}

impl OperatorSource for Slots {
    fn operator(&self, name: &str) -> Option<Arc<dyn terrane::MergeOperator>> {
        name.starts_with(PREFIX).then(|| self.named(name) as _)
    }
}

impl Slot {
    /// The name that is stored with the table.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Puts an operator in, or takes it out.
    pub(crate) fn set(&self, operator: Option<Arc<MergeOperator>>) {
        *self.operator.write().unwrap_or_else(PoisonError::into_inner) = operator;
    }

    /// The operator that is in it.
    pub(crate) fn operator(&self) -> Option<Arc<MergeOperator>> {
        self.operator.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl terrane::MergeOperator for Slot {
    fn name(&self) -> &str {
        &self.name
    }

    fn full(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]], out: &mut Vec<u8>) -> Result<()> {
        let operator = self.operator();
        let operator = operator.ok_or_else(|| {
            Error::invalid("merge_operator is not properly initialized: open the column family with the one it was written with")
        })?;
        let value = operator.full(key, base, operands);
        let value = value.ok_or_else(|| Error::invalid(format!("{MERGE_FAILED}: {}", operator.name())))?;
        out.extend_from_slice(&value);
        Ok(())
    }

    fn partial(&self, key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> Result<bool> {
        let Some(operand) = self.operator().and_then(|operator| operator.partial(key, operands)) else {
            return Ok(false);
        };
        out.extend_from_slice(&operand);
        Ok(true)
    }

    /// RocksDB's operators check none.
    fn checks_values(&self) -> bool {
        false
    }

    fn joins_first(&self) -> bool {
        self.operator().is_some_and(|operator| matches!(*operator, MergeOperator::User(_)))
    }
}

fn slot_name(family: &str) -> String {
    if family.len() <= NAME_BYTES_MAX && !family.chars().any(char::is_control) {
        return format!("{PREFIX}{family}");
    }
    // FNV-1a, from two ends: names of one database that meet in both are not worth a thought.
    let hash = |bytes: &mut dyn Iterator<Item = u8>| {
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
    };
    let (there, back) = (hash(&mut family.bytes()), hash(&mut family.bytes().rev()));
    format!("{PREFIX}#{there:016x}{back:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_has_one_slot() {
        let slots = Slots::default();
        assert_eq!(slots.of("default").name(), "rocksdb:default");
        let long = "n".repeat(100);
        assert!(slots.of(&long).name().len() <= 64);
        assert!(Arc::ptr_eq(&slots.of(&long), &slots.of(&long)));
        assert_ne!(slots.of(&long).name(), slots.of(&"n".repeat(101)).name());
        assert!(slots.operator("counter").is_none() && slots.operator("rocksdb:x").is_some());
    }
}
