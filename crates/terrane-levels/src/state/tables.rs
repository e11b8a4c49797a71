//! The tables of a state, by number. States share what an edit does not change, so that an edit costs the
//! same however many tables there are.

use std::ops::Index;
use std::sync::Arc;

use rpds::RedBlackTreeMapSync;
use terrane_base::TableId;

use super::Table;

/// Tables by number, in their order.
#[derive(Clone, Debug)]
pub struct Tables(RedBlackTreeMapSync<TableId, Arc<Table>>);

impl Default for Tables {
    fn default() -> Self {
        Tables(RedBlackTreeMapSync::new_sync())
    }
}

impl Tables {
    /// The table with this number.
    #[must_use]
    pub fn get(&self, id: &TableId) -> Option<&Arc<Table>> {
        self.0.get(id)
    }

    /// Returns true if there is a table with this number.
    #[must_use]
    pub fn contains_key(&self, id: &TableId) -> bool {
        self.0.contains_key(id)
    }

    /// The tables, by number.
    pub fn values(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.0.values()
    }

    /// Number of tables.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.size()
    }

    /// Returns true if there is no table.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get_mut(&mut self, id: &TableId) -> Option<&mut Arc<Table>> {
        self.0.get_mut(id)
    }

    /// Puts a table in the place of the one with its number; returns whether there was one.
    pub(super) fn put(&mut self, table: Arc<Table>) -> bool {
        let had = self.0.contains_key(&table.id);
        self.0.insert_mut(table.id, table);
        had
    }

    pub(super) fn remove(&mut self, id: &TableId) -> bool {
        self.0.remove_mut(id)
    }
}

impl Index<&TableId> for Tables {
    type Output = Arc<Table>;

    fn index(&self, id: &TableId) -> &Arc<Table> {
        &self.0[id]
    }
}
