//! The key orders by name: those that a program registers, and the built-in ones.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{AsKept, BYTEWISE, KeyOrder, Marked, Order, REVERSE, Reverse};
use crate::merge_operator::check_name;
use crate::sync::Mutex;
use crate::{Collation, Comparator, Error, Result};

/// Orders of a program, by name, given when a database is opened.
#[derive(Clone, Debug, Default)]
pub struct KeyOrders {
    by_name: BTreeMap<String, Given>,
    sourced: Option<Arc<Sourced>>,
    /// True if a stand-in replaces a comparator that is not registered.
    takes_any: bool,
}

/// Comparators that a program gives by name when they are asked for.
pub trait ComparatorSource: Send + Sync + fmt::Debug {
    /// The comparator with this name, if there is one.
    fn comparator(&self, name: &str) -> Option<Arc<dyn Comparator>>;
}

/// A source and its orders: all tables of an opening that name a comparator share its state.
#[derive(Debug)]
struct Sourced {
    source: Arc<dyn ComparatorSource>,
    known: Mutex<BTreeMap<String, Collation>>,
}

impl Sourced {
    fn of(source: Arc<dyn ComparatorSource>) -> Arc<Self> {
        Arc::new(Sourced { source, known: Mutex::default() })
    }

    fn collation(&self, name: &str) -> Option<Collation> {
        let mut known = self.known.lock();
        if let Some(collation) = known.get(name) {
            return Some(collation.clone());
        }
        let collation = Collation::by(self.source.comparator(name)?);
        known.insert(name.to_owned(), collation.clone());
        Some(collation)
    }
}

/// An order that a program registered under a name.
#[derive(Clone, Debug)]
enum Given {
    Encoding(Arc<dyn KeyOrder>),
    /// The tables of an open database that name the comparator share it, with its state.
    Comparator(Collation),
}

impl KeyOrders {
    /// No orders but the built-in ones.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an order.
    ///
    /// # Errors
    /// `Invalid` for a bad name, one that is taken, or that of a built-in order.
    pub fn with(self, order: Arc<dyn KeyOrder>) -> Result<Self> {
        let name = order.name().to_owned();
        self.add(name, Given::Encoding(order))
    }

    /// Adds an order that is a comparison.
    ///
    /// # Errors
    /// As [`KeyOrders::with`].
    pub fn with_comparator(self, comparator: Arc<dyn Comparator>) -> Result<Self> {
        let name = comparator.name().to_owned();
        self.add(name, Given::Comparator(Collation::by(comparator)))
    }

    /// Searches `source` for comparators whose names are not registered, at any time while the database is
    /// open.
    #[must_use]
    pub fn with_source(self, source: Arc<dyn ComparatorSource>) -> Self {
        KeyOrders { sourced: Some(Sourced::of(source)), ..self }
    }

    /// Orders for tools that inspect a database without its rows: a table whose comparator is not registered
    /// is opened all the same, with its keys in some order. Such a database may only be inspected, or
    /// removed.
    #[must_use]
    pub fn with_any(self) -> Self {
        KeyOrders { takes_any: true, ..self }
    }

    fn add(mut self, name: String, given: Given) -> Result<Self> {
        check_name(&name).map_err(|why| Error::invalid(format!("key order {name:?}: {why}")))?;
        if [BYTEWISE, REVERSE].contains(&&*name) || self.by_name.contains_key(&name) {
            return Err(Error::invalid(format!("key order {name:?}: the name is taken, choose another")));
        }
        self.by_name.insert(name, given);
        Ok(self)
    }

    /// Returns true if the order with this name is registered; a stand-in does not count
    /// ([`KeyOrders::with_any`]).
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let is_built_in = [BYTEWISE, REVERSE].contains(&name);
        is_built_in || self.by_name.contains_key(name) || !self.collation(name).is_missing()
    }

    /// The order with this name.
    ///
    /// # Errors
    /// `Invalid`, naming the order and the remedy.
    pub fn find(&self, name: &str) -> Result<Arc<Order>> {
        let (function, collation) = match self.by_name.get(name) {
            Some(Given::Encoding(order)) => (order.clone(), Collation::BYTES),
            Some(Given::Comparator(collation)) => (Arc::new(Marked) as Arc<dyn KeyOrder>, collation.clone()),
            None if name == REVERSE => (Arc::new(Reverse) as Arc<dyn KeyOrder>, Collation::BYTES),
            None if self.takes_any || !self.collation(name).is_missing() => {
                (Arc::new(Marked) as Arc<dyn KeyOrder>, self.collation(name))
            }
            None => {
                return Err(Error::invalid(format!(
                    "there is no key order {name:?}: give it at opening, or use one of {BYTEWISE}, {REVERSE}"
                )));
            }
        };
        Ok(Arc::new(Order { name: name.to_owned(), function, collation }))
    }

    /// The order with this name of a table that was made with functions that encode and decode. Where none is
    /// registered and a stand-in is allowed ([`KeyOrders::with_any`]), callers see the stored keys, which are
    /// in that order.
    ///
    /// # Errors
    /// As [`KeyOrders::find`].
    pub fn find_encoding(&self, name: &str) -> Result<Arc<Order>> {
        if self.takes_any && !self.has(name) {
            let (name, collation) = (name.to_owned(), Collation::BYTES);
            return Ok(Arc::new(Order { name, function: Arc::new(AsKept), collation }));
        }
        self.find(name)
    }

    /// Returns true if tables whose key order is not registered are accepted.
    #[must_use]
    pub fn takes_any(&self) -> bool {
        self.takes_any
    }

    /// The same orders for another opening: the failures of comparators in this one are
    /// forgotten.
    #[must_use]
    pub fn renewed(&self) -> Self {
        let renewed = |given: &Given| match given {
            Given::Encoding(order) => Given::Encoding(order.clone()),
            Given::Comparator(collation) => Given::Comparator(collation.renewed()),
        };
        let by_name = self.by_name.iter().map(|(name, given)| (name.clone(), renewed(given)));
        let sourced = self.sourced.as_ref().map(|sourced| Sourced::of(sourced.source.clone()));
        KeyOrders { by_name: by_name.collect(), sourced, takes_any: self.takes_any }
    }

    /// The collation of a table with the comparator `name`, registered or not.
    #[must_use]
    pub fn collation(&self, name: &str) -> Collation {
        match self.by_name.get(name) {
            Some(Given::Comparator(collation)) => collation.clone(),
            Some(Given::Encoding(_)) => Collation::missing(name),
            None => {
                let sourced = self.sourced.as_ref().and_then(|sourced| sourced.collation(name));
                sourced.unwrap_or_else(|| Collation::missing(name))
            }
        }
    }
}
