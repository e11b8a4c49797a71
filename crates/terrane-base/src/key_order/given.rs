//! The key orders by name: those that a program registers, and the built-in ones.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{AsKept, BYTEWISE, KeyOrder, Marked, Order, REVERSE, Reverse};
use crate::merge_operator::check_name;
use crate::sync::Mutex;
use crate::{Collation, Comparator, Error, Result};

/// Orders of a program, by name, given when a database is opened.
///
/// ```
/// # use std::cmp::Ordering;
/// # use std::sync::Arc;
/// # use terrane_base::{Comparator, KeyOrders};
/// # #[derive(Debug)]
/// # struct ByLength;
/// # impl Comparator for ByLength {
/// #     fn name(&self) -> &str {
/// #         "by-length"
/// #     }
/// #     fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
/// #         left.len().cmp(&right.len()).then_with(|| left.cmp(right))
/// #     }
/// # }
/// let orders = KeyOrders::new().with_comparator(Arc::new(ByLength))?; // passed at opening
/// assert!(orders.has("by-length") && orders.has("reverse")); // the second one is built in
/// assert_eq!(orders.find("by-length")?.name(), "by-length");
/// # Ok::<(), terrane_base::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct KeyOrders {
    by_name: BTreeMap<String, Given>,
    sourced: Option<Arc<Sourced>>,
    /// True if a stand-in replaces a comparator that is not registered.
    takes_any: bool,
}

/// Comparators that a program gives by name when they are asked for.
///
/// ```
/// # use std::cmp::Ordering;
/// # use std::sync::Arc;
/// # use terrane_base::Comparator;
/// # use terrane_base::key_order::ComparatorSource;
/// /// By the bytes from the place on that the name says: `from:4`.
/// #[derive(Debug)]
/// struct From(String, usize);
///
/// impl Comparator for From {
///     fn name(&self) -> &str {
///         &self.0
///     }
///
///     fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
///         left.iter().skip(self.1).cmp(right.iter().skip(self.1)).then_with(|| left.cmp(right))
///     }
/// }
///
/// #[derive(Debug)]
/// struct AnyPlace;
///
/// impl ComparatorSource for AnyPlace {
///     fn comparator(&self, name: &str) -> Option<Arc<dyn Comparator>> {
///         let place = name.strip_prefix("from:")?.parse().ok()?;
///         Some(Arc::new(From(name.to_owned(), place)))
///     }
/// }
///
/// assert!(AnyPlace.comparator("from:4").is_some() && AnyPlace.comparator("to:4").is_none());
/// ```
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
    ///
    /// ```
    /// # use terrane_base::KeyOrders;
    /// assert!(KeyOrders::new().has("bytewise") && KeyOrders::new().has("reverse"));
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an order.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use terrane_base::{KeyOrder, KeyOrders, Result};
    /// # #[derive(Debug)]
    /// # struct Plain;
    /// # impl KeyOrder for Plain {
    /// #     fn name(&self) -> &str {
    /// #         "plain"
    /// #     }
    /// #     fn encode(&self, key: &[u8], out: &mut Vec<u8>) -> Result<()> {
    /// #         out.extend_from_slice(key);
    /// #         Ok(())
    /// #     }
    /// #     fn decode(&self, encoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
    /// #         out.extend_from_slice(encoded);
    /// #         Ok(())
    /// #     }
    /// # }
    /// let orders = KeyOrders::new().with(Arc::new(Plain))?;
    /// assert!(orders.with(Arc::new(Plain)).is_err()); // the name is taken
    /// # Ok::<(), terrane_base::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a bad name, one that is taken, or that of a built-in order.
    pub fn with(self, order: Arc<dyn KeyOrder>) -> Result<Self> {
        let name = order.name().to_owned();
        self.add(name, Given::Encoding(order))
    }

    /// Adds an order that is a comparison.
    ///
    /// ```
    /// # use std::cmp::Ordering;
    /// # use std::sync::Arc;
    /// # use terrane_base::{Comparator, KeyOrders};
    /// # #[derive(Debug)]
    /// # struct ByLength;
    /// # impl Comparator for ByLength {
    /// #     fn name(&self) -> &str {
    /// #         "by-length"
    /// #     }
    /// #     fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
    /// #         left.len().cmp(&right.len()).then_with(|| left.cmp(right))
    /// #     }
    /// # }
    /// let orders = KeyOrders::new().with_comparator(Arc::new(ByLength))?;
    /// assert!(orders.has("by-length"));
    /// # Ok::<(), terrane_base::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`KeyOrders::with`].
    pub fn with_comparator(self, comparator: Arc<dyn Comparator>) -> Result<Self> {
        let name = comparator.name().to_owned();
        self.add(name, Given::Comparator(Collation::by(comparator)))
    }

    /// Searches `source` for comparators whose names are not registered, at any time while the database is
    /// open.
    ///
    /// ```
    /// # use std::cmp::Ordering;
    /// # use std::sync::Arc;
    /// # use terrane_base::key_order::ComparatorSource;
    /// # use terrane_base::{Comparator, KeyOrders};
    /// # #[derive(Debug)]
    /// # struct From(String, usize);
    /// # impl Comparator for From {
    /// #     fn name(&self) -> &str {
    /// #         &self.0
    /// #     }
    /// #     fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
    /// #         left.iter().skip(self.1).cmp(right.iter().skip(self.1)).then_with(|| left.cmp(right))
    /// #     }
    /// # }
    /// # #[derive(Debug)]
    /// # struct AnyPlace;
    /// # impl ComparatorSource for AnyPlace {
    /// #     fn comparator(&self, name: &str) -> Option<Arc<dyn Comparator>> {
    /// #         let place = name.strip_prefix("from:")?.parse().ok()?;
    /// #         Some(Arc::new(From(name.to_owned(), place)))
    /// #     }
    /// # }
    /// let orders = KeyOrders::new().with_source(Arc::new(AnyPlace));
    /// assert!(orders.has("from:4") && !orders.has("to:4"));
    /// ```
    #[must_use]
    pub fn with_source(self, source: Arc<dyn ComparatorSource>) -> Self {
        KeyOrders { sourced: Some(Sourced::of(source)), ..self }
    }

    /// Orders for tools that inspect a database without its rows: a table whose comparator is not registered
    /// is opened all the same, with its keys in some order. Such a database may only be inspected, or
    /// removed.
    ///
    /// ```
    /// # use terrane_base::KeyOrders;
    /// // For a tool that shows databases of any program.
    /// assert!(KeyOrders::new().find("theirs").is_err());
    /// assert!(KeyOrders::new().with_any().find("theirs").is_ok());
    /// ```
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
    ///
    /// ```
    /// # use terrane_base::KeyOrders;
    /// assert!(KeyOrders::new().has("reverse") && !KeyOrders::new().has("revers"));
    /// ```
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let is_built_in = [BYTEWISE, REVERSE].contains(&name);
        is_built_in || self.by_name.contains_key(name) || !self.collation(name).is_missing()
    }

    /// The order with this name.
    ///
    /// ```
    /// # use terrane_base::KeyOrders;
    /// let error = KeyOrders::new().find("revers").unwrap_err();
    /// assert!(error.message().contains("bytewise, reverse"));
    /// ```
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
