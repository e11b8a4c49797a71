//! Keys of one table between two bounds, as transactions scan and delete them.

use std::ops::Bound;
use std::sync::Arc;

use terrane_base::record::Record;
use terrane_base::{Batch, Collation, RecordKind, TableId};

use crate::locks::lock_table::LockKey;
use crate::read::scan::Bounds;

/// A key in the order of keys: by table, then key.
pub(crate) type TableKey = (TableId, Arc<[u8]>);

/// Keys of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRange {
    /// The table.
    pub(crate) table: TableId,
    /// Where they begin and end.
    pub(crate) bounds: Bounds,
}

impl KeyRange {
    /// Returns true if the range holds the key.
    pub(crate) fn holds(&self, key: &LockKey) -> bool {
        key.table == self.table && self.bounds.above_lower(&key.key) && self.bounds.below_upper(&key.key)
    }

    /// Returns true if every key of the other range is in this one. Works for ranges with the ends of range
    /// deletes; for others it returns false.
    pub(crate) fn covers(&self, other: &KeyRange) -> bool {
        let collation = self.ordered_as(other);
        match (&self.bounds.lower, &self.bounds.upper, &other.bounds.lower, &other.bounds.upper) {
            (Bound::Included(from), Bound::Excluded(to), Bound::Included(lower), Bound::Excluded(upper)) => {
                self.table == other.table && collation.le(from, lower) && collation.le(upper, to)
            }
            _ => false,
        }
    }

    /// A key at its beginning, to name it.
    pub(crate) fn first(&self) -> LockKey {
        match &self.bounds.lower {
            Bound::Included(key) | Bound::Excluded(key) => LockKey::new(self.table, key),
            Bound::Unbounded => LockKey::new(self.table, &[]),
        }
    }

    /// Returns true if a key may be in both ranges.
    pub(crate) fn meets(&self, other: &KeyRange) -> bool {
        let collation = self.ordered_as(other);
        let begins_before_end = |one: &KeyRange, other: &KeyRange| match &other.bounds.upper {
            Bound::Unbounded => true,
            Bound::Included(upper) => match &one.bounds.lower {
                Bound::Unbounded => true,
                Bound::Included(lower) => collation.le(lower, upper),
                Bound::Excluded(lower) => collation.lt(lower, upper),
            },
            Bound::Excluded(upper) => match &one.bounds.lower {
                Bound::Unbounded => !upper.is_empty(),
                Bound::Included(lower) | Bound::Excluded(lower) => collation.lt(lower, upper),
            },
        };
        self.table == other.table && begins_before_end(self, other) && begins_before_end(other, self)
    }

    /// The key order of both ranges; a range of all keys does not have it.
    fn ordered_as<'r>(&'r self, other: &'r KeyRange) -> &'r Collation {
        let (own, others) = (&self.bounds.collation, &other.bounds.collation);
        debug_assert!(
            self.table != other.table || own.is_bytes() || others.is_bytes() || own == others,
            "the keys of a table have one order"
        );
        if own.is_bytes() { others } else { own }
    }

    /// The range as bounds of a map of places, which is one by bytes; `None` if nothing can be in it.
    pub(crate) fn in_map(&self) -> Option<(Bound<TableKey>, Bound<TableKey>)> {
        debug_assert!(
            self.bounds.collation.is_bytes(),
            "a map by bytes does not have the order of a comparator"
        );
        let place = |key: &[u8]| -> TableKey { (self.table, key.into()) };
        let lower = match &self.bounds.lower {
            Bound::Included(key) => Bound::Included(place(key)),
            Bound::Excluded(key) => Bound::Excluded(place(key)),
            Bound::Unbounded => Bound::Included(place(&[])),
        };
        let upper = match &self.bounds.upper {
            Bound::Included(key) => Bound::Included(place(key)),
            Bound::Excluded(key) => Bound::Excluded(place(key)),
            Bound::Unbounded => Bound::Excluded((TableId(self.table.0 + 1), [].into())),
        };
        let is_empty = match (&lower, &upper) {
            (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
            (
                Bound::Included(lower) | Bound::Excluded(lower),
                Bound::Excluded(upper) | Bound::Included(upper),
            ) => lower >= upper,
            _ => false,
        };
        (!is_empty).then_some((lower, upper))
    }
}

/// The ranges that a batch deletes.
pub(crate) fn deletes_of(batch: &Batch, collation: impl Fn(TableId) -> Collation) -> Arc<[KeyRange]> {
    let deletes = batch.records().filter(|record| record.kind == RecordKind::RangeDelete);
    let range = |Record { table, key, value, .. }: Record<'_>| {
        let (lower, upper) = (Bound::Included(key.to_vec()), Bound::Excluded(value.to_vec()));
        KeyRange { table, bounds: Bounds { lower, upper, collation: collation(table) } }
    };
    deletes.map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_meet_where_a_key_may_be_in_both() {
        let bound = |text: &str| match text.split_at(1) {
            ("[", key) => Bound::Included(key.as_bytes().to_vec()),
            ("(", key) => Bound::Excluded(key.as_bytes().to_vec()),
            _ => Bound::Unbounded,
        };
        let range = |lower, upper| KeyRange {
            table: TableId(1),
            bounds: Bounds { lower: bound(lower), upper: bound(upper), ..Bounds::all() },
        };
        let cases = [
            (range("[b", "(d"), range("[d", "(f"), false),
            (range("[b", "[d"), range("[d", "(f"), true),
            (range("[b", "[d"), range("(d", "(f"), false),
            (range("[b", "(d"), range("[c", "(f"), true),
            (range("-", "-"), range("[c", "(f"), true),
            (range("-", "(b"), range("[b", "-"), false),
            (range("-", "("), range("-", "-"), false),
        ];
        for (one, other, wanted) in cases {
            assert_eq!(one.meets(&other), wanted, "{one:?} {other:?}");
            assert_eq!(other.meets(&one), wanted, "{other:?} {one:?}");
        }
        let wide = range("[b", "(e");
        assert!(wide.covers(&wide) && wide.covers(&range("[c", "(e")) && wide.covers(&range("[b", "(d")));
        assert!(
            !wide.covers(&range("[a", "(c"))
                && !wide.covers(&range("[d", "(f"))
                && !wide.covers(&range("-", "-"))
        );
        let elsewhere = KeyRange { table: TableId(2), ..wide.clone() };
        assert!(!wide.covers(&elsewhere));

        let elsewhere = KeyRange { table: TableId(2), bounds: Bounds::all() };
        assert!(!elsewhere.meets(&range("-", "-")));
    }
}
