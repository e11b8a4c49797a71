//! Opens iterators with what their options ask for.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::ops::Bound;

use terrane::Table;

use crate::db::timestamps::versions::Versions;
use crate::db::{Database, Family, FamilyHandle, family};
use crate::ffi::failure::{Given, Result};
use crate::iterator::Iter;
use crate::iterator::live_count::Counted;
use crate::iterator::prefix::WithinPrefix;
use crate::iterator::shown::Shown;
use crate::iterator::source::Source;
use crate::options::read_write::ReadOptions;

impl Iter {
    pub(crate) fn new(family: &Family, options: Option<&ReadOptions>) -> Box<Iter> {
        match options {
            Some(options) => Iter::of(family, &family.seen(), options),
            None => Iter::of(family, &family.seen(), &ReadOptions::default()),
        }
    }

    /// An iterator over a table of a family, as it is seen at one moment.
    fn of(family: &Family, table: &Table, options: &ReadOptions) -> Box<Iter> {
        let transform = family.transform.clone().filter(|_| options.fields.prefix_same_as_start != 0);
        let is_tailing = options.fields.tailing != 0 && options.snapshot.is_none();
        let mut iter = Box::new(Iter {
            source: Source::Nothing,
            shown: Shown::nothing(),
            failure: None,
            is_plain: transform.is_none() && !is_tailing && family.statistics.is_none(),
            is_tailing,
            prefix: transform.map(|transform| WithinPrefix { transform, current: None }),
            statistics: family.statistics.clone(),
            pinned: (options.fields.pin_data != 0).then(RefCell::default),
            slot: family.slot.clone(),
            order: family.order.clone(),
            _counted: Some(Counted::new(&family.iterators)),
        });
        if let Err(failure) = iter.begin(family, table, options) {
            iter.failure = Some(failure);
        }
        iter
    }

    /// Gets the source of the rows. It is large, so it goes to its place at once.
    fn begin(&mut self, family: &Family, table: &Table, options: &ReadOptions) -> Result<()> {
        let lower = options.lower.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let upper = options.upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let bounds = options.lower.as_deref().zip(options.upper.as_deref());
        let is_empty = bounds.is_some_and(|(lower, upper)| {
            // An order that cannot say it says so to the cursor.
            match &family.history {
                Some(history) => history.compare_keys(lower, upper).is_ge(),
                None => family.table.compare_keys(lower, upper).is_ok_and(Ordering::is_ge),
            }
        });
        let range = (lower, upper);
        options.refuse_start()?;
        if let Some((history, timestamp)) = family.read_by(Some(options))? {
            options.objects.refuse_filter()?;
            let versions = Versions::new(family, table, options, history, timestamp)?;
            self.source = Source::Versions(Box::new(versions));
        } else {
            self.source = Source::Cursor(
                match (&options.snapshot, options.objects.extent_filter(&family.table, &family.order)) {
                    (Some(snapshot), Some(shows)) => snapshot.filtered_cursor(table, range, shows)?,
                    (Some(snapshot), None) => snapshot.range_cursor(table, range)?,
                    (None, Some(shows)) => table.filtered_cursor(range, shows)?,
                    (None, None) => table.range_cursor(range)?,
                },
            );
        }
        if is_empty {
            self.source = Source::Nothing;
        }
        Ok(())
    }
}

cf_variants! {
    fn rocksdb_create_iterator | rocksdb_create_iterator_cf(
        database: Option<&Database>,
        options: Option<&ReadOptions>;
    ) -> Option<Box<Iter>> as target {
        Some(Iter::new(target.family(database).ok()?, options))
    }
}

export! {
    fn rocksdb_create_iterators(
        database: Option<&Database>,
        options: Option<&ReadOptions>,
        handles: List<'_, Option<&FamilyHandle>>[count],
        iterators: OutList<'_, Option<Box<Iter>>>[count],
        count: usize,
        error: ErrPtr<'_>,
    ) {
        // All of them see one moment.
        let mut options = options.given()?.clone();
        let sight = database.given()?.sight();
        if options.fields.tailing == 0 {
            options.snapshot.get_or_insert_with(|| sight.snapshot());
        }
        let families = handles.iter().map(|handle| family(*handle)).collect::<Result<Vec<_>>>()?;
        for (place, family) in iterators.iter_mut().zip(families) {
            place.write(Some(Iter::of(family, &sight.table(family), &options)));
        }
        Ok(())
    }
}
