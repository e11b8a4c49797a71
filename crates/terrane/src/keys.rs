//! Encodes and decodes keys: a table with a key order stores its keys encoded (`terrane_base::key_order`),
//! and all code below this module sees encoded keys. Without an order a key is not changed.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use terrane_base::key_order::encoded;
use terrane_base::{Result, SeqNo};
use terrane_engine::{Bounds, ExtentFilter, Origin, PinnedRange, ReaderKind};

use crate::snapshot::{self, Pin};
use crate::{Cursor, Iter, Table, Value, Values};

impl Table {
    /// Returns true if its keys can be compared. Returns false if the comparator that the table was made with
    /// is not registered and any order was accepted at opening ([`crate::KeyOrders::with_any`]): reads of its
    /// rows have no meaning then.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// assert!(db.default_table().is_ordered()); // by bytes, as every table is unless it names an order
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        !self.inner.semantics.collation().is_missing()
    }

    /// Calls `go` with `key` as the table keeps it.
    #[inline]
    pub(crate) fn encoding<R>(&self, key: &[u8], go: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
        match &self.order {
            None => go(key),
            Some(order) => {
                let done = go(&order.encode(key)?);
                // If the comparator failed meanwhile, neither a value nor damage is reported.
                order.collation().check()?;
                done
            }
        }
    }

    /// Compares two keys in the table's order.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// let table = db.create_table("t", &terrane::TableOptions::new().key_order("reverse"))?;
    /// assert!(table.compare_keys("b", "a")?.is_lt());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a key that the order cannot encode, `Poisoned` after the table's comparator panicked.
    pub fn compare_keys(&self, left: impl AsRef<[u8]>, right: impl AsRef<[u8]>) -> Result<Ordering> {
        self.compare_bytes(left.as_ref(), right.as_ref())
    }

    fn compare_bytes(&self, left: &[u8], right: &[u8]) -> Result<Ordering> {
        let collation = self.inner.semantics.collation();
        self.encoding(left, |left| self.encoding(right, |right| Ok(collation.cmp(left, right))))
    }

    pub(crate) fn multi_get_at(&self, keys: &[&[u8]], at: Option<SeqNo>) -> Result<Vec<Option<Value>>> {
        let mut values = Values::new();
        self.multi_get_into_at(keys, at, &mut values)?;
        let values: Vec<_> =
            values.iter().map(|value| value.map(|bytes| Value::new(bytes.to_vec()))).collect();
        debug_assert_eq!(values.len(), keys.len(), "each key has an answer");
        Ok(values)
    }

    pub(crate) fn multi_get_into_at(
        &self,
        keys: &[&[u8]],
        at: Option<SeqNo>,
        values: &mut Values,
    ) -> Result<()> {
        self.refuse_if_dropped()?;
        let Some(order) = &self.order else {
            return self.engine.multi_get_into(&self.inner, keys, self.mode(at), values);
        };
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(keys.len()));
        for key in keys {
            order.append(key, &mut bytes)?;
            ends.push(bytes.len());
        }
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let keys: Vec<&[u8]> = starts.zip(&ends).map(|(start, end)| &bytes[start..*end]).collect();
        self.engine.multi_get_into(&self.inner, &keys, self.mode(at), values)?;
        order.collation().check()
    }

    /// Pins the present state for a scan.
    #[track_caller]
    pub(crate) fn pin(&self) -> Pin {
        snapshot::pin(&self.handle, Origin::here(ReaderKind::Scan))
    }

    /// The rows within encoded bounds; none but the error where there are no such bounds.
    pub(crate) fn iter_at(&self, bounds: Result<Bounds>, pin: Pin) -> Iter {
        let bounds = self.refuse_pin(&pin).and(bounds);
        Iter::new(bounds.map(|bounds| self.encoded_iter_at(bounds, pin)), self.order.clone())
    }

    /// As [`Table::iter_at`], of the present state: a reader of its own.
    pub(crate) fn iter_now(&self, bounds: Result<Bounds>, origin: Origin) -> Iter {
        let bounds = self.refuse_if_dropped().and(bounds);
        let rows = bounds.map(|bounds| PinnedRange::own(self.handle.clone(), &self.inner, bounds, origin));
        Iter::new(rows, self.order.clone())
    }

    /// The rows within encoded bounds, with stored keys.
    pub(crate) fn encoded_iter_at(&self, bounds: Bounds, pin: Pin) -> PinnedRange {
        PinnedRange::new(&self.inner, bounds, pin)
    }

    pub(crate) fn cursor_at(&self, bounds: Bounds, pin: Pin) -> Cursor {
        self.filtered_cursor_at(bounds, pin, None)
    }

    pub(crate) fn filtered_cursor_at(
        &self,
        bounds: Bounds,
        pin: Pin,
        filter: Option<Arc<ExtentFilter>>,
    ) -> Cursor {
        let scan = self.engine.filtered_scan(&self.inner, bounds, pin.seq(), filter);
        Cursor::new(scan, self.clone(), pin)
    }

    /// A range of keys as bounds of encoded ones.
    pub(crate) fn bounds(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<Bounds> {
        let own = |bound: Bound<&[u8]>| -> Result<Bound<Vec<u8>>> {
            let key = match bound {
                Bound::Unbounded => return Ok(Bound::Unbounded),
                Bound::Included(key) | Bound::Excluded(key) => {
                    encoded(self.order.as_deref(), key)?.into_owned()
                }
            };
            Ok(if matches!(bound, Bound::Included(_)) { Bound::Included(key) } else { Bound::Excluded(key) })
        };
        let (lower, upper) = (own(lower)?, own(upper)?);
        Ok(Bounds { lower, upper, collation: self.inner.semantics.collation().clone() })
    }

    /// The keys that begin with `prefix` as bounds of encoded ones.
    pub(crate) fn prefix_bounds(&self, prefix: &[u8]) -> Result<Bounds> {
        match &self.order {
            None => Ok(Bounds::prefix(prefix)),
            Some(order) => Ok(Bounds::prefix(&order.encode_prefix(prefix)?)),
        }
    }
}
