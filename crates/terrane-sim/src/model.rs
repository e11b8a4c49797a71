//! What a database should answer: per table a sorted map from key to its versions.

use std::collections::BTreeMap;
use std::ops::Bound;

/// Versions of a key: the moment and the value, `None` for a delete; oldest first.
type Versions = Vec<(u64, Option<Vec<u8>>)>;

/// A key and its value.
pub type Row = (Vec<u8>, Vec<u8>);

/// A change of one key: table, key, and the value or a delete.
pub type Change = (String, Vec<u8>, Option<Vec<u8>>);

/// The reference model of a database.
#[derive(Clone, Debug, Default)]
pub struct Model {
    tables: BTreeMap<String, BTreeMap<Vec<u8>, Versions>>,
    moment: u64,
}

impl Model {
    /// A model with the default table.
    #[must_use]
    pub fn new() -> Self {
        let mut model = Model::default();
        model.create_table("default");
        model
    }

    /// Names of the tables.
    #[must_use]
    pub fn tables(&self) -> Vec<String> {
        self.tables.keys().cloned().collect()
    }

    /// Adds an empty table.
    pub fn create_table(&mut self, name: &str) {
        self.tables.insert(name.to_owned(), BTreeMap::new());
    }

    /// Removes a table.
    pub fn drop_table(&mut self, name: &str) {
        self.tables.remove(name);
    }

    /// The present moment: what a snapshot taken now sees.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.moment
    }

    /// Applies changes as one.
    pub fn write(&mut self, changes: &[Change]) {
        self.moment += 1;
        for (table, key, value) in changes {
            let versions =
                self.tables.get_mut(table).expect("the table exists").entry(key.clone()).or_default();
            versions.push((self.moment, value.clone()));
        }
    }

    /// The value of a key at a moment.
    #[must_use]
    pub fn get(&self, table: &str, key: &[u8], at: u64) -> Option<Vec<u8>> {
        visible(self.tables.get(table)?.get(key)?, at)
    }

    /// The rows of a range at a moment, in key order.
    #[must_use]
    pub fn range(&self, table: &str, bounds: (Bound<&[u8]>, Bound<&[u8]>), at: u64) -> Vec<Row> {
        let Some(rows) = self.tables.get(table) else { return Vec::new() };
        if is_empty_range(&bounds) {
            return Vec::new();
        }
        rows.range::<[u8], _>(bounds)
            .filter_map(|(key, versions)| Some((key.clone(), visible(versions, at)?)))
            .collect()
    }

    /// Forgets versions that neither the present nor one of `moments` sees, so that long histories fit in memory.
    pub fn forget_before(&mut self, moments: &[u64]) {
        let oldest = moments.iter().copied().min().unwrap_or(self.moment);
        for rows in self.tables.values_mut() {
            for versions in rows.values_mut() {
                let kept = versions.iter().rposition(|(moment, _)| *moment <= oldest).unwrap_or(0);
                versions.drain(..kept);
            }
            rows.retain(|_, versions| versions.iter().any(|(_, value)| value.is_some()));
        }
    }
}

fn visible(versions: &Versions, at: u64) -> Option<Vec<u8>> {
    versions.iter().rev().find(|(moment, _)| *moment <= at).and_then(|(_, value)| value.clone())
}

/// `BTreeMap::range` panics on a range whose start is behind its end; a database answers with nothing.
fn is_empty_range((lower, upper): &(Bound<&[u8]>, Bound<&[u8]>)) -> bool {
    match (lower, upper) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => {
            from >= to
        }
    }
}
