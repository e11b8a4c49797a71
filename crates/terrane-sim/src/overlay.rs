//! The model of a transaction or an indexed batch: its own changes over the rows below it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use terrane::{IndexedBatch, Result, Table, Transaction};

use crate::model::{Change, Model, Row};

/// A key of a table.
pub(crate) type RowKey = (String, Vec<u8>);

/// The effect of the changes on one key.
#[derive(Clone, Debug)]
enum Own {
    /// This, or nothing.
    Set(Option<Vec<u8>>),
    /// The value below, with these bytes appended: the merge operator of the tables appends.
    Append(Vec<u8>),
}

/// Changes that are not committed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlay {
    rows: BTreeMap<RowKey, Own>,
    /// Keys that are written one by one, those that a range delete hides later as well.
    pub(crate) written: BTreeSet<RowKey>,
    /// Keys of ranges that are deleted.
    pub(crate) deleted: BTreeSet<RowKey>,
}

impl Overlay {
    /// Returns true if there is nothing to commit.
    pub(crate) fn is_empty(&self) -> bool {
        self.written.is_empty() && self.deleted.is_empty()
    }

    /// Returns true if the rows under the batch count for a key.
    pub(crate) fn is_open(&self, place: &RowKey) -> bool {
        !matches!(self.rows.get(place), Some(Own::Set(_)))
    }

    /// Makes a change.
    pub(crate) fn make(&mut self, edit: &Edit) {
        let place = |key: &Vec<u8>| (edit.table.clone(), key.clone());
        match &edit.what {
            What::Put { key, value } | What::PutUntil { key, value, .. } => {
                self.set(place(key), Some(value.clone()));
            }
            What::Delete { key } | What::SingleDelete { key } => self.set(place(key), None),
            What::Merge { key, operand } => {
                self.written.insert(place(key));
                let own = self.rows.entry(place(key)).or_insert_with(|| Own::Append(Vec::new()));
                match own {
                    Own::Set(value) => value.get_or_insert_default().extend_from_slice(operand),
                    Own::Append(operands) => operands.extend_from_slice(operand),
                }
            }
            What::DeleteRange { keys, .. } => {
                for key in keys {
                    self.deleted.insert(place(key));
                    self.rows.insert(place(key), Own::Set(None));
                }
            }
        }
    }

    fn set(&mut self, place: RowKey, value: Option<Vec<u8>>) {
        self.written.insert(place.clone());
        self.rows.insert(place, Own::Set(value));
    }

    /// The value of a key over that of a moment.
    pub(crate) fn get(&self, model: &Model, place: &RowKey, at: u64) -> Option<Vec<u8>> {
        let below = || model.get(&place.0, &place.1, at).map(<[u8]>::to_vec);
        match self.rows.get(place) {
            None => below(),
            Some(Own::Set(value)) => value.clone(),
            Some(Own::Append(operands)) => Some([below().unwrap_or_default(), operands.clone()].concat()),
        }
    }

    /// The rows of a range over those of a moment.
    pub(crate) fn rows(
        &self,
        model: &Model,
        table: &str,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        at: u64,
    ) -> Vec<Row> {
        let mut rows: BTreeMap<Vec<u8>, Vec<u8>> = model.range(table, bounds, at).into_iter().collect();
        let order = model.order(table);
        let own = self.rows.keys().filter(|(of, key)| of == table && order.holds(bounds, key));
        for place in own {
            match self.get(model, place, at) {
                Some(value) => drop(rows.insert(place.1.clone(), value)),
                None => drop(rows.remove(&place.1)),
            }
        }
        let mut rows: Vec<Row> = rows.into_iter().collect();
        rows.sort_by(|(left, _), (right, _)| order.cmp(left, right));
        rows
    }

    /// The changes of a commit at this moment.
    pub(crate) fn changes(&self, model: &Model) -> Vec<Change> {
        let change = |place: &RowKey| (place.0.clone(), place.1.clone(), self.get(model, place, model.now()));
        self.rows.keys().map(change).collect()
    }
}

/// A change of one table.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    pub(crate) table: String,
    pub(crate) what: What,
}

/// The kind of a change.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Put {
        key: Vec<u8>,
        value: Vec<u8>,
    },
    Delete {
        key: Vec<u8>,
    },
    SingleDelete {
        key: Vec<u8>,
    },
    Merge {
        key: Vec<u8>,
        operand: Vec<u8>,
    },
    PutUntil {
        key: Vec<u8>,
        value: Vec<u8>,
        until: Duration,
    },
    /// From the first one to before the other, in the order of the table; the keys that a run may have there.
    DeleteRange {
        first: Vec<u8>,
        behind: Vec<u8>,
        keys: Vec<Vec<u8>>,
    },
}

impl What {
    /// The key, if it is one.
    pub(crate) fn key(&self) -> Option<&Vec<u8>> {
        match self {
            What::Put { key, .. }
            | What::Delete { key }
            | What::SingleDelete { key }
            | What::Merge { key, .. }
            | What::PutUntil { key, .. } => Some(key),
            What::DeleteRange { .. } => None,
        }
    }

    /// Its name in the counts of a run.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            What::Put { .. } => "put",
            What::Delete { .. } => "delete",
            What::SingleDelete { .. } => "single delete",
            What::Merge { .. } => "merge",
            What::PutUntil { .. } => "put until",
            What::DeleteRange { .. } => "delete range",
        }
    }
}

/// The object that takes the changes: a transaction or a batch.
pub(crate) trait Edits {
    /// Makes one.
    fn edit(&mut self, table: &Table, what: &What) -> Result<()>;
    /// Marks a moment.
    fn mark(&mut self);
    /// Goes back to the last mark.
    fn go_back(&mut self) -> Result<()>;
}

macro_rules! edits {
    ($($name:ty),*) => {$(
        impl Edits for $name {
            fn edit(&mut self, table: &Table, what: &What) -> Result<()> {
                match what {
                    What::Put { key, value } => self.put(table, key, value),
                    What::Delete { key } => self.delete(table, key),
                    What::SingleDelete { key } => self.single_delete(table, key),
                    What::Merge { key, operand } => self.merge(table, key, operand),
                    What::PutUntil { key, value, until } => self.put_until(table, key, value, *until),
                    What::DeleteRange { first, behind, .. } => self.delete_range(table, first, behind),
                }
            }

            fn mark(&mut self) {
                self.set_savepoint();
            }

            fn go_back(&mut self) -> Result<()> {
                self.rollback_to_savepoint()
            }
        }
    )*};
}

edits!(Transaction, IndexedBatch);
