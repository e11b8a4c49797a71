//! The extents of a table in rows, within which none overlaps another: what one pass merges.

use std::sync::Arc;

use terrane_storage::Store;
use terrane_table::Extent;

use crate::repair::found::Found;
use crate::repair::lineage::Lineage;
use crate::repair::origins::Family;
use crate::repair::versions::Whose;

/// An extent of a row, opened as far as it is needed.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) extent: Arc<Extent>,
    pub(super) of: Whose,
}

/// The extents of a table, in rows within which none overlaps another.
pub(super) struct Rows {
    pub(super) rows: Vec<Vec<Member>>,
    pub(super) lineage: Lineage,
}

impl Rows {
    pub(super) fn of(found: Vec<Found>, family: &Family, store: &Arc<dyn Store>) -> Rows {
        let rows = rows_of(found);
        let lineage = Lineage::of(rows.iter().flatten(), family);
        let mut places = 0..;
        let rows = rows.into_iter().map(|row| {
            let members = row.into_iter().zip(&mut places).map(|(found, place)| Member {
                extent: Extent::new(found.meta, store.clone()),
                of: Whose { is_listed: found.is_listed, place },
            });
            members.collect()
        });
        Rows { rows: rows.collect(), lineage }
    }
}

/// Extents in as few rows as may be, within which none overlaps another: each row is in order.
fn rows_of(mut found: Vec<Found>) -> Vec<Vec<Found>> {
    let Some(collation) = found.first().map(|found| found.meta.collation.clone()) else { return Vec::new() };
    found.sort_by(|a, b| collation.cmp(&a.meta.smallest, &b.meta.smallest));
    let mut rows: Vec<Vec<Found>> = Vec::new();
    for one in found {
        let ends_before = |row: &&mut Vec<Found>| {
            row.last().is_some_and(|last| collation.lt(&last.meta.largest, &one.meta.smallest))
        };
        match rows.iter_mut().find(ends_before) {
            Some(row) => row.push(one),
            None => rows.push(vec![one]),
        }
    }
    rows
}
