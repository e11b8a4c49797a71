//! The model, which gives the correct answers: for each table a sorted map from key to its versions.
//!
//! A *moment* is a number of commits. For each table and moment it keeps a *print*, a sum of the hashes of
//! its rows, so that the state after a recovery is found among all moments with one comparison each. A table
//! that is created again under the same name has prints of its own.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::order::{Order, Placed};
use crate::trace::hash;
use terrane_base::rng::mix;

/// The first bytes of keys whose values expire. Their values begin with the moment, 8 bytes, in milliseconds.
/// They are there or not by the moment of the read, so prints leave them out: every commit of one changes
/// another key as well.
pub(crate) const EXPIRING: &[u8] = b"ttl/";

/// Versions of a key: the moment and the value, `None` for a delete; oldest first.
type Versions = Vec<(u64, Option<Vec<u8>>)>;

/// A key and its value.
pub type Row = (Vec<u8>, Vec<u8>);

/// A change of one key: table, key, and the value or a delete.
pub type Change = (String, Vec<u8>, Option<Vec<u8>>);

/// Rows of a table as a sum of hashes: equal for equal rows, whatever their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Print(u64);

impl Print {
    /// Adds a row.
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        self.0 = self.0.wrapping_add(row_hash(key, value));
    }

    fn remove(&mut self, key: &[u8], value: &[u8]) {
        self.0 = self.0.wrapping_sub(row_hash(key, value));
    }

    /// The number.
    #[must_use]
    pub fn value(self) -> u64 {
        self.0
    }
}

fn row_hash(key: &[u8], value: &[u8]) -> u64 {
    mix(hash(key).rotate_left(1) ^ mix(hash(value)))
}

/// The ends of a range.
type Bounds<'b> = (Bound<&'b [u8]>, Bound<&'b [u8]>);

/// One life of a table.
#[derive(Clone, Debug, Default)]
struct Life {
    order: Order,
    rows: BTreeMap<Placed, Versions>,
    /// The print after each moment that changed it; empty before the first.
    prints: Vec<(u64, Print)>,
}

impl Life {
    fn print_at(&self, moment: u64) -> Print {
        let after = self.prints.partition_point(|(at, _)| *at <= moment);
        after.checked_sub(1).map_or(Print::default(), |index| self.prints[index].1)
    }

    fn write(&mut self, moment: u64, key: &[u8], value: Option<&[u8]>) {
        let versions = self.rows.entry(Placed::new(self.order, key)).or_default();
        if key.starts_with(EXPIRING) {
            versions.push((moment, value.map(<[u8]>::to_vec)));
            return;
        }
        let mut print = self.prints.last().map(|(_, print)| *print).unwrap_or_default();
        if let Some((_, Some(old))) = versions.last() {
            print.remove(key, old);
        }
        if let Some(new) = value {
            print.add(key, new);
        }
        versions.push((moment, value.map(<[u8]>::to_vec)));
        match self.prints.last_mut() {
            Some((at, last)) if *at == moment => *last = print,
            _ => self.prints.push((moment, print)),
        }
    }

    /// The rows within bounds; none where the range ends before it begins, where `BTreeMap::range` panics.
    fn range<'m>(
        &'m self,
        bounds: Bounds<'_>,
    ) -> impl DoubleEndedIterator<Item = (&'m [u8], &'m Versions)> + use<'m> {
        let place = |bound: Bound<&[u8]>| bound.map(|key| Placed::new(self.order, key));
        let (lower, upper) = (place(bounds.0), place(bounds.1));
        let rows = (!is_empty_range(&lower, &upper)).then(|| self.rows.range((lower, upper)));
        rows.into_iter().flatten().map(|(placed, versions)| (placed.key(), versions))
    }

    fn roll_back(&mut self, moment: u64) {
        self.prints.truncate(self.prints.partition_point(|(at, _)| *at <= moment));
        self.rows.retain(|_, versions| {
            versions.truncate(versions.partition_point(|(at, _)| *at <= moment));
            !versions.is_empty()
        });
    }
}

/// The reference model of a database.
#[derive(Clone, Debug, Default)]
pub struct Model {
    lives: BTreeMap<usize, Life>,
    tables: BTreeMap<String, usize>,
    next_life: usize,
    moment: u64,
    /// The wall clock, in milliseconds.
    clock: u64,
}

impl Model {
    /// A model with the default table.
    #[must_use]
    pub fn new() -> Self {
        Model::in_order(Order::Bytes)
    }

    /// A model whose default table has this order.
    pub(crate) fn in_order(order: Order) -> Self {
        let mut model = Model::default();
        model.create_table_in("default", order);
        model
    }

    /// Sets the clock by which values expire.
    pub fn set_clock(&mut self, millis: u64) {
        self.clock = millis;
    }

    /// Names of the tables.
    #[must_use]
    pub fn tables(&self) -> Vec<String> {
        self.tables.keys().cloned().collect()
    }

    /// Returns true if there is a table of this name.
    #[must_use]
    pub fn has_table(&self, name: &str) -> bool {
        self.tables.contains_key(name)
    }

    /// In which order the keys of a table lie; in that of bytes for a table that is not there.
    pub(crate) fn order(&self, table: &str) -> Order {
        self.life(table).map(|life| life.order).unwrap_or_default()
    }

    /// Adds an empty table, in the order of bytes.
    pub fn create_table(&mut self, name: &str) {
        self.create_table_in(name, Order::Bytes);
    }

    /// Adds an empty table.
    pub(crate) fn create_table_in(&mut self, name: &str, order: Order) {
        self.lives.insert(self.next_life, Life { order, ..Life::default() });
        self.tables.insert(name.to_owned(), self.next_life);
        self.next_life += 1;
    }

    /// Removes a table.
    pub fn drop_table(&mut self, name: &str) {
        if let Some(life) = self.tables.remove(name) {
            self.lives.remove(&life);
        }
    }

    /// The present moment: what a snapshot taken now sees.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.moment
    }

    /// Applies changes as one. Those of a table that is gone change nothing.
    pub fn write(&mut self, changes: &[Change]) {
        self.moment += 1;
        for (table, key, value) in changes {
            if let Some(life) = self.tables.get(table).and_then(|life| self.lives.get_mut(life)) {
                life.write(self.moment, key, value.as_deref());
            }
        }
    }

    /// Forgets everything after a moment; tables stay.
    pub fn roll_back(&mut self, moment: u64) {
        if moment < self.moment {
            self.lives.values_mut().for_each(|life| life.roll_back(moment));
            self.moment = moment;
        }
    }

    /// The rows of a table at a moment as a number; that of no rows for a table that is not there.
    #[must_use]
    pub fn print(&self, table: &str, at: u64) -> Print {
        self.life(table).map(|life| life.print_at(at)).unwrap_or_default()
    }

    /// [`Model::print`] of the present, were `changes` written.
    #[must_use]
    pub fn print_with(&self, table: &str, changes: &[Change]) -> Print {
        let mut print = self.print(table, self.moment);
        let mut last: BTreeMap<&[u8], Option<&[u8]>> = BTreeMap::new();
        for (_, key, value) in changes.iter().filter(|(of, key, _)| of == table && !key.starts_with(EXPIRING))
        {
            last.insert(key, value.as_deref());
        }
        for (key, value) in last {
            if let Some(old) = self.get(table, key, self.moment) {
                print.remove(key, old);
            }
            if let Some(new) = value {
                print.add(key, new);
            }
        }
        print
    }

    fn life(&self, table: &str) -> Option<&Life> {
        self.lives.get(self.tables.get(table)?)
    }

    /// The value of a key at a moment.
    #[must_use]
    pub fn get(&self, table: &str, key: &[u8], at: u64) -> Option<&[u8]> {
        let life = self.life(table)?;
        self.visible(key, life.rows.get(&Placed::new(life.order, key))?, at)
    }

    /// The visible value of the versions of a key.
    fn visible<'m>(&self, key: &[u8], versions: &'m Versions, at: u64) -> Option<&'m [u8]> {
        let value = visible(versions, at)?;
        let until = value.first_chunk().filter(|_| key.starts_with(EXPIRING));
        until.is_none_or(|until| u64::from_le_bytes(*until) > self.clock).then_some(value)
    }

    /// Returns true if a key was written or removed after a moment that is not forgotten.
    #[must_use]
    pub fn changed_since(&self, table: &str, key: &[u8], moment: u64) -> bool {
        let life = self.life(table);
        let versions = life.and_then(|life| life.rows.get(&Placed::new(life.order, key)));
        versions.and_then(|versions| versions.last()).is_some_and(|(at, _)| *at > moment)
    }

    /// Returns true if a key of a range was written or removed after a moment that is not forgotten.
    #[must_use]
    pub fn has_changed_in(&self, table: &str, bounds: (Bound<&[u8]>, Bound<&[u8]>), moment: u64) -> bool {
        let mut rows = self.life(table).into_iter().flat_map(|life| life.range(bounds));
        rows.any(|(_, versions)| versions.last().is_some_and(|(at, _)| *at > moment))
    }

    /// The rows of a range at a moment, in the table's order.
    pub fn rows<'m>(
        &'m self,
        table: &str,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        at: u64,
    ) -> impl DoubleEndedIterator<Item = (&'m [u8], &'m [u8])> {
        let rows = self.life(table).into_iter().flat_map(move |life| life.range(bounds));
        rows.filter_map(move |(key, versions)| Some((key, self.visible(key, versions, at)?)))
    }

    /// [`Model::rows`], copied.
    #[must_use]
    pub fn range(&self, table: &str, bounds: (Bound<&[u8]>, Bound<&[u8]>), at: u64) -> Vec<Row> {
        self.rows(table, bounds, at).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
    }

    /// Forgets versions that neither the present nor one of `moments` sees, so that long histories fit in
    /// memory.
    pub fn forget_before(&mut self, moments: &[u64]) {
        let oldest = moments.iter().copied().min().unwrap_or(self.moment);
        for life in self.lives.values_mut() {
            life.rows.retain(|_, versions| {
                let kept = versions.iter().rposition(|(moment, _)| *moment <= oldest).unwrap_or(0);
                versions.drain(..kept);
                versions.iter().any(|(_, value)| value.is_some())
            });
            let kept = life.prints.iter().rposition(|(moment, _)| *moment <= oldest).unwrap_or(0);
            life.prints.drain(..kept);
        }
    }
}

fn visible(versions: &Versions, at: u64) -> Option<&[u8]> {
    versions.iter().rev().find(|(moment, _)| *moment <= at).and_then(|(_, value)| value.as_deref())
}

fn is_empty_range(lower: &Bound<Placed>, upper: &Bound<Placed>) -> bool {
    match (lower, upper) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => {
            from >= to
        }
    }
}
