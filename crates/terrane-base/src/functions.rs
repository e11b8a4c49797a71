//! Functions of a program that tables name, passed when a database is opened.

use crate::{KeyOrders, MergeOperators, PrefixExtractors};

/// The functions that tables may name beside the built-in ones. A table that names an unavailable function is
/// not opened, unless any is accepted ([`Functions::any`]).
///
/// ```
/// # use std::sync::Arc;
/// # use terrane_base::{Comparator, Functions, KeyOrders};
/// # use std::cmp::Ordering;
/// #[derive(Debug)]
/// struct ByLength;
///
/// impl Comparator for ByLength {
///     fn name(&self) -> &str {
///         "by-length"
///     }
///
///     fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
///         left.len().cmp(&right.len()).then_with(|| left.cmp(right))
///     }
/// }
///
/// // One kind alone, or some of each.
/// let one: Functions = KeyOrders::new().with_comparator(Arc::new(ByLength))?.into();
/// let some = Functions { orders: one.orders, ..Functions::default() };
/// assert!(some.orders.has("by-length"));
/// # Ok::<(), terrane_base::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Functions {
    /// How operands become values.
    pub operators: MergeOperators,
    /// Which front part of a key filters know it by.
    pub extractors: PrefixExtractors,
    /// How keys are ordered.
    pub orders: KeyOrders,
}

impl Functions {
    /// No functions but the built-in ones; a database whose tables name others opens all the same, with what
    /// can be read without them: see [`MergeOperators::with_any`], [`PrefixExtractors::with_any`] and
    /// [`KeyOrders::with_any`]. For tools that read databases of any program.
    ///
    /// ```
    /// # use terrane_base::Functions;
    /// let functions = Functions::any();
    /// assert!(functions.operators.find("theirs").is_ok());
    /// ```
    #[must_use]
    pub fn any() -> Self {
        Functions {
            operators: MergeOperators::new().with_any(),
            extractors: PrefixExtractors::new().with_any(),
            orders: KeyOrders::new().with_any(),
        }
    }
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
