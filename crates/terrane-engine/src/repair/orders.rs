//! Tables whose key order is not registered. Without it their rows cannot be written again, so they are left
//! out.

use std::collections::BTreeSet;

use terrane_base::key_order::{BYTEWISE, REVERSE};
use terrane_base::{Error, Functions, Result, TableId};
use terrane_format::external::COMPARATOR;
use terrane_levels::{State, Table};

use crate::repair::{Loss, Repair};
use crate::table::settings::{KEY_ORDER, known_as};

/// The name of the order of a table's keys.
pub(super) fn order_of(table: &Table) -> &str {
    let stored = table.options.iter().find(|(name, _)| known_as(name) == KEY_ORDER);
    stored.map_or(BYTEWISE, |(_, order)| order)
}

/// The tables whose key order is not registered: without it a table would have other keys.
///
/// # Errors
/// `Invalid`, naming the first one, if orders are not to be taken as they come.
pub(super) fn unordered_of(state: &State, functions: &Functions) -> Result<BTreeSet<TableId>> {
    let mut unordered = BTreeSet::new();
    for table in state.tables.values().filter(|table| !table.dropped) {
        let (order, orders) = (order_of(table), &functions.orders);
        let is_comparator = table.options.iter().any(|(name, _)| name == COMPARATOR);
        // A function of the other kind with this name would misread the stored keys.
        let is_of_kind =
            [BYTEWISE, REVERSE].contains(&order) || is_comparator != orders.collation(order).is_missing();
        if orders.has(order) && is_of_kind {
            continue;
        }
        if !orders.takes_any() {
            let of_table = |error: Error| error.context(format!("table {:?}", table.name));
            orders.find(order).map_err(of_table)?;
            return Err(of_table(Error::invalid(format!(
                "its key order {order:?} is a comparator where functions that encode keys are given, or the other way round"
            ))));
        }
        unordered.insert(table.id);
    }
    Ok(unordered)
}

impl Repair<'_> {
    /// Tells which tables are left out for want of their order.
    pub(super) fn lose_unordered(&mut self, state: &State) {
        for table in self.unordered.clone().iter().filter_map(|id| state.tables.get(id)) {
            let metas = table.extents.places().flat_map(|(_, level)| level.iter());
            let entries = metas.map(|meta| meta.entries).fold(0, u64::saturating_add);
            let error = Error::invalid(format!(
                "its key order {:?} is not registered: its rows are left out, those in the journal too; repair with the program's \
                 functions to have them",
                order_of(table)
            ));
            self.report.lose_keys(Loss {
                table: Some(table.name.clone()),
                keys: None,
                entries: Some(entries),
                error,
            });
        }
    }
}
