//! The value tables of a table in sums, and how much of them is dead.

use std::fmt;

use terrane_levels::Metasnapshot;

use crate::table::Table;

/// The state of the value tables of one tree.
///
/// ```
/// # use terrane_engine::ValuesShape;
/// let mut values = ValuesShape::default();
/// (values.entries, values.live_entries) = (1000, 900);
/// (values.bytes, values.live_bytes) = (50_000, 40_000);
/// assert_eq!((values.dead_permille(), values.space_permille()), (100, 1250));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValuesShape {
    /// Value tables.
    pub tables: u64,
    /// Their stored bytes.
    pub bytes: u64,
    /// Values in them.
    pub entries: u64,
    /// Values that an entry of the levels points to.
    pub live_entries: u64,
    /// Of the stored bytes, those that live values need, by their number.
    pub live_bytes: u64,
    /// Stored bytes per thousand live ones above which dead values are collected; 0 for no limit.
    pub space_permille_max: u64,
}

impl ValuesShape {
    /// Values that no entry points to any more, per thousand; 0 without value tables.
    #[must_use]
    pub fn dead_permille(&self) -> u64 {
        let dead = self.entries.saturating_sub(self.live_entries);
        let permille = (u128::from(dead) * 1000).checked_div(u128::from(self.entries)).unwrap_or(0);
        debug_assert!(permille <= 1000, "more values are dead than there are: {self:?}");
        u64::try_from(permille).unwrap_or(u64::MAX)
    }

    /// Stored bytes per thousand that live values need; 0 without value tables.
    #[must_use]
    pub fn space_permille(&self) -> u64 {
        match (self.bytes, self.live_bytes) {
            (0, _) => 0,
            (_, 0) => u64::MAX,
            (bytes, live) => u64::try_from(u128::from(bytes) * 1000 / u128::from(live)).unwrap_or(u64::MAX),
        }
    }
}

/// One line, in exact numbers.
impl fmt::Display for ValuesShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ValuesShape { tables, bytes, entries, live_entries, live_bytes, space_permille_max } = self;
        write!(
            f,
            "{tables} value tables, {entries} values ({live_entries} live), {bytes} bytes ({live_bytes} live), "
        )?;
        write!(f, "{} permille of space", self.space_permille())?;
        if *space_permille_max > 0 { write!(f, " of at most {space_permille_max}") } else { Ok(()) }
    }
}

/// The sizes of the value tables of this tree.
pub(crate) fn values_shape(table: &Table, tree: &Metasnapshot) -> ValuesShape {
    let totals = tree.values.totals();
    debug_assert!(tree.values.live_entries() <= totals.entries, "more live values than there are");
    ValuesShape {
        tables: totals.extents,
        bytes: totals.bytes,
        entries: totals.entries,
        live_entries: tree.values.live_entries(),
        live_bytes: tree.values.live_stored_bytes(),
        space_permille_max: table.settings().limits.value_space_permille,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_entries_and_of_bytes() {
        let shape = ValuesShape {
            tables: 2,
            bytes: 3000,
            entries: 40,
            live_entries: 30,
            live_bytes: 2250,
            space_permille_max: 1250,
        };
        assert_eq!((shape.dead_permille(), shape.space_permille()), (250, 1333));
        let empty = ValuesShape { space_permille_max: 1250, ..ValuesShape::default() };
        assert_eq!((empty.dead_permille(), empty.space_permille()), (0, 0));
        assert_eq!(ValuesShape { bytes: 7, ..empty }.space_permille(), u64::MAX);
    }
}
