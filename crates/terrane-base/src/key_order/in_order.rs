//! Functions of the user that are called with keys as users know them.

use std::sync::Arc;

use super::Order;
use crate::{CompactionContext, CompactionFilter, FilterDecision, MergeOperator, Result};

/// A merge operator that is called with keys as users know them.
#[derive(Debug)]
pub struct OperatorInOrder {
    operator: Arc<dyn MergeOperator>,
    order: Arc<Order>,
}

impl OperatorInOrder {
    /// The operator of a table whose keys have this order.
    #[must_use]
    pub fn new(operator: Arc<dyn MergeOperator>, order: Arc<Order>) -> Self {
        OperatorInOrder { operator, order }
    }
}

impl MergeOperator for OperatorInOrder {
    fn name(&self) -> &str {
        self.operator.name()
    }

    fn full(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]], out: &mut Vec<u8>) -> Result<()> {
        self.operator.full(&self.order.decode(key)?, base, operands, out)
    }

    fn partial(&self, key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> Result<bool> {
        self.operator.partial(&self.order.decode(key)?, operands, out)
    }

    fn check_operand(&self, operand: &[u8]) -> Result<()> {
        self.operator.check_operand(operand)
    }

    fn check_value(&self, value: &[u8]) -> Result<()> {
        self.operator.check_value(value)
    }

    fn checks_values(&self) -> bool {
        self.operator.checks_values()
    }

    fn joins_first(&self) -> bool {
        self.operator.joins_first()
    }
}

/// A compaction filter that is shown keys as users know them.
#[derive(Debug)]
pub struct FilterInOrder {
    filter: Arc<dyn CompactionFilter>,
    order: Arc<Order>,
}

impl FilterInOrder {
    /// The filter of a table whose keys have this order.
    #[must_use]
    pub fn new(filter: Arc<dyn CompactionFilter>, order: Arc<Order>) -> Self {
        FilterInOrder { filter, order }
    }
}

impl CompactionFilter for FilterInOrder {
    fn name(&self) -> &str {
        self.filter.name()
    }

    /// A key that cannot be decoded stays: its readers get the error.
    fn filter(&self, key: &[u8], value: &[u8]) -> FilterDecision {
        let Ok(key) = self.order.decode(key) else { return FilterDecision::Keep };
        match self.filter.filter(&key, value) {
            FilterDecision::RemoveUntil(end) => match self.order.encode(&end) {
                Ok(end) => FilterDecision::RemoveUntil(end),
                Err(_) => FilterDecision::Remove,
            },
            decision => decision,
        }
    }

    fn sees_all(&self) -> bool {
        self.filter.sees_all()
    }

    fn for_compaction(&self, compaction: CompactionContext) -> Option<Arc<dyn CompactionFilter>> {
        let filter = self.filter.for_compaction(compaction)?;
        Some(Arc::new(FilterInOrder { filter, order: self.order.clone() }))
    }
}
