//! How the levels of a column family are numbered for callers.
//!
//! With `level_compaction_dynamic_level_bytes`, which new options have, RocksDB fills its last level first:
//! compacted files are in `num_levels - 1`, and levels above it count down from there. The engine's levels
//! count from the top. So the deepest one that has extents has the number of the last one, and those above it
//! count down; where the option is off, the engine's numbers hold. Level 0, the overflow runs, is level 0
//! either way. A level that gets a deeper one below it has another number from then on.

use terrane::{ExtentInfo, TableShape};

use crate::generated::options::OptionsFields;

/// Most levels that have a number: lists are made of all of them.
const COUNT_MAX: usize = 256;

/// The numbers of the levels of a column family, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Levels {
    /// By how much RocksDB's number of a level is greater.
    lead: usize,
}

impl Levels {
    /// Of a column family with these fields whose deepest level with extents is `deepest`. More levels than
    /// `num_levels` says have their own numbers: no two have the same.
    pub(crate) fn new(fields: &OptionsFields, deepest: usize) -> Levels {
        let last = usize::try_from(fields.num_levels).unwrap_or(0).min(COUNT_MAX).saturating_sub(1);
        let is_dynamic = fields.level_compaction_dynamic_level_bytes != 0;
        Levels { lead: if is_dynamic { last.saturating_sub(deepest.max(1)) } else { 0 } }
    }

    /// The number that callers see for the engine's level `level`.
    pub(crate) fn number_of(self, level: usize) -> usize {
        if level == 0 { 0 } else { level + self.lead }
    }

    /// The engine's level that callers see as `number`; `None` if it would be above the first.
    pub(crate) fn meant(self, number: usize) -> Option<usize> {
        match number {
            0 => Some(0),
            _ => number.checked_sub(self.lead).filter(|level| *level > 0),
        }
    }
}

/// The deepest level that has one of these extents; 0 if none has.
pub(crate) fn deepest_of(extents: &[ExtentInfo]) -> usize {
    extents.iter().map(|extent| usize::from(extent.summary.level)).max().unwrap_or(0)
}

/// The deepest level of a table that has extents; 0 if none has.
pub(crate) fn deepest_in(shape: &TableShape) -> usize {
    shape.levels.iter().rposition(|level| level.extents > 0).map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(is_dynamic: u8, count: i32, deepest: usize) -> Levels {
        let mut fields = OptionsFields::default();
        (fields.level_compaction_dynamic_level_bytes, fields.num_levels) = (is_dynamic, count);
        Levels::new(&fields, deepest)
    }

    #[test]
    fn the_deepest_level_is_the_last_one() {
        for (deepest, expected) in [(1, [0, 6, 7, 8]), (2, [0, 5, 6, 7]), (3, [0, 4, 5, 6])] {
            assert_eq!(
                [0, 1, 2, 3].map(|level| levels(1, 7, deepest).number_of(level)),
                expected,
                "{deepest}"
            );
        }
        assert_eq!(levels(1, 7, 0), levels(1, 7, 1), "flushed files go to the last level");
        assert_eq!(levels(1, i32::MAX, 1).number_of(1), COUNT_MAX - 1, "there is no end to what may be set");
    }

    #[test]
    fn numbers_are_the_engines_where_the_option_is_off_or_levels_are_more() {
        for levels in [levels(0, 7, 2), levels(1, 2, 3), levels(1, 1, 1), levels(1, -1, 1), levels(1, 0, 0)] {
            assert_eq!([0, 1, 2, 3].map(|level| levels.number_of(level)), [0, 1, 2, 3]);
        }
    }

    #[test]
    fn a_level_number_of_rocksdb_names_one_level() {
        for levels in [levels(1, 7, 1), levels(1, 7, 3), levels(0, 7, 3), levels(1, 3, 4)] {
            assert!((0..5).all(|level| levels.meant(levels.number_of(level)) == Some(level)), "{levels:?}");
        }
        assert_eq!(
            [1, 3, 4, 5, 6].map(|number| levels(1, 7, 2).meant(number)),
            [None, None, None, Some(1), Some(2)]
        );
    }
}
