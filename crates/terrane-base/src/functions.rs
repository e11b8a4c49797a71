//! Functions of a program that tables name, passed when a database is opened.

use crate::{KeyOrders, MergeOperators, PrefixExtractors};

/// The functions that tables may name beside the built-in ones. A table that names an unavailable function is
/// not opened.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    /// How operands become values.
    pub operators: MergeOperators,
    /// Which front part of a key filters know it by.
    pub extractors: PrefixExtractors,
    /// How keys are ordered.
    pub orders: KeyOrders,
}

impl From<MergeOperators> for Functions {
    fn from(operators: MergeOperators) -> Self {
        Functions { operators, ..Functions::default() }
    }
}

impl From<KeyOrders> for Functions {
    fn from(orders: KeyOrders) -> Self {
        Functions { orders, ..Functions::default() }
    }
}

impl From<PrefixExtractors> for Functions {
    fn from(extractors: PrefixExtractors) -> Self {
        Functions { extractors, ..Functions::default() }
    }
}
