//! Operations on whole ranges: ingests of files, bulk loads, dropped extents, size estimates.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use terrane::{ExtentFileWriter, IngestOptions, Kind};
use terrane_base::Rng;
use terrane_device::Disk as _;

use crate::fault::Crash;
use crate::model::{Change, Model};
use crate::op::{KEYS_MAX, KEYS_OF_KIND, MERGED, Op, Span, Value, Way, is_of_a_kind, key};
use crate::order::{KEY_ORDER, Order};
use crate::run::Runner;
use crate::script::parse;

/// Entries of a file or a load, at most.
const ENTRIES_MAX: u64 = 60;
/// Tables that files come into at once, at most.
const TABLES_MAX: usize = 2;

/// Draws one.
pub(crate) fn draw(numbers: &mut Rng, tables: &[String]) -> Op {
    let mut pick = || numbers.pick(tables).clone();
    let (one, other) = (pick(), pick());
    let seed = numbers.next_u64();
    let (from, to) = (numbers.below(KEYS_MAX), numbers.below(KEYS_MAX));
    match numbers.below(10) {
        0..4 => Op::Ingest { tables: if one == other { vec![one] } else { vec![one, other] }, seed },
        4..6 => Op::Load { table: one, seed },
        6..8 => Op::DropExtents { table: one, from, to },
        _ => Op::Estimate { table: one, from, to },
    }
}

/// Returns true if an operation is of this module.
pub(crate) fn is_one(op: &Op) -> bool {
    matches!(op, Op::Ingest { .. } | Op::Load { .. } | Op::DropExtents { .. } | Op::Estimate { .. })
}

/// Such an operation as a line of a script.
pub(crate) fn show(op: &Op, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match op {
        Op::Ingest { tables, seed } => write!(f, "ingest {} {seed}", tables.join(",")),
        Op::Load { table, seed } => write!(f, "load {table} {seed}"),
        Op::DropExtents { table, from, to } => write!(f, "dropextents {table} {from} {to}"),
        Op::Estimate { table, from, to } => write!(f, "estimate {table} {from} {to}"),
        _ => unreachable!("shown elsewhere"),
    }
}

/// A line of a script as such an operation.
pub(crate) fn read(words: &[&str]) -> Result<Op, String> {
    let name = |text: &str| text.to_owned();
    Ok(match words {
        ["ingest", tables, seed] => {
            Op::Ingest { tables: tables.split(',').map(name).collect(), seed: parse(seed)? }
        }
        ["load", table, seed] => Op::Load { table: name(table), seed: parse(seed)? },
        ["dropextents", table, from, to] => {
            Op::DropExtents { table: name(table), from: parse(from)?, to: parse(to)? }
        }
        ["estimate", table, from, to] => {
            Op::Estimate { table: name(table), from: parse(from)?, to: parse(to)? }
        }
        _ => return Err("expected a table and numbers".to_owned()),
    })
}

/// Keys with their values; `None` is a delete.
type Rows = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// One of them.
type Row<'r> = (&'r Vec<u8>, &'r Option<Vec<u8>>);

/// Sorted rows of a load or a file that a seed stands for; `None` is a delete.
fn rows_of(seed: u64, has_deletes: bool) -> Rows {
    let mut numbers = Rng::new(seed);
    let (first, width) = (numbers.below(KEYS_MAX), 1 + numbers.skewed(KEYS_MAX));
    let value_bytes = *numbers.pick(&[10, 100, 2_000]);
    let count = 1 + numbers.skewed(ENTRIES_MAX);
    let rows = (0..count).map(|_| {
        let number = (first + numbers.below(width)) % KEYS_MAX;
        let value = Value { len: numbers.below(value_bytes), stamp: numbers.next_u64() | 1 << 62 };
        let is_delete = has_deletes && numbers.one_in(5);
        (key(number), (!is_delete).then(|| value.bytes()))
    });
    rows.collect()
}

/// The rows in the order of a table.
fn sorted(order: Order, rows: &Rows) -> Vec<Row<'_>> {
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by(|(left, _), (right, _)| order.cmp(left, right));
    rows
}

/// Where a range delete of a file begins and ends, in the order of its table.
type Range = (Vec<u8>, Vec<u8>);

/// The entry of a file for a key.
enum Entry<'c> {
    Put(&'c [u8]),
    Merge(&'c [u8]),
    Delete,
}

/// The content of a file.
struct Content {
    rows: Rows,
    ranges: Vec<Range>,
    /// Operands, by key: over the ranges of the same file.
    operands: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Content {
    fn of(seed: u64, order: Order) -> Content {
        let mut numbers = Rng::part(seed, 2);
        let mut ranges: Vec<Range> = Vec::new();
        for _ in 0..numbers.below(4) {
            let from = numbers.below(KEYS_MAX);
            let (one, other) = (key(from), key(from + 1 + numbers.skewed(KEYS_MAX / 4)));
            let range = if order.cmp(&one, &other).is_lt() { (one, other) } else { (other, one) };
            // Operations around this one leave keys of a kind to each other.
            let within = order.keys_between(&range.0, &range.1);
            if within.is_some_and(|keys| keys.iter().all(|key| !is_of_a_kind(key))) {
                ranges.push(range);
            }
        }
        Content { rows: rows_of(seed, true), ranges, operands: BTreeMap::new() }
    }

    /// Adds operands of merges, and in every other file a range delete of some that they are merged to.
    fn add_merges(&mut self, seed: u64, order: Order) {
        let mut numbers = Rng::part(seed, 3);
        let mut merged = || MERGED + numbers.below(KEYS_OF_KIND);
        let (keys, from, to) = ([merged(), merged()], merged(), merged());
        if numbers.one_in(2) {
            let (one, other) = (key(from.min(to)), key(from.max(to) + 1));
            self.ranges.push(if order.cmp(&one, &other).is_lt() { (one, other) } else { (other, one) });
        }
        for number in keys {
            let operand = Value { len: numbers.skewed(40), stamp: numbers.next_u64() | 1 << 62 };
            self.operands.insert(key(number), operand.bytes());
        }
    }

    /// For the model a delete of each key in the ranges that has nothing else, the rows, and what the
    /// operands make.
    fn changes(&self, table: &str, model: &Model) -> Vec<Change> {
        let order = model.order(table);
        let within = self.ranges.iter().filter_map(|(start, end)| order.keys_between(start, end));
        let within: BTreeSet<_> = within.flatten().collect();
        let has = |key: &Vec<u8>| self.rows.contains_key(key) || self.operands.contains_key(key);
        let deletes = within.iter().filter(|key| !has(key)).map(|key| (table.to_owned(), key.clone(), None));
        let rows = self.rows.iter().map(|(key, value)| (table.to_owned(), key.clone(), value.clone()));
        let merged = self.operands.iter().map(|(key, operand)| {
            let before = model.get(table, key, model.now()).filter(|_| !within.contains(key));
            (table.to_owned(), key.clone(), Some([before.unwrap_or_default(), operand].concat()))
        });
        deletes.chain(rows).chain(merged).collect()
    }

    /// Keys and what they have, in the order of a table.
    fn entries(&self, order: Order) -> Vec<(&[u8], Entry<'_>)> {
        let rows = self.rows.iter().map(|(key, value)| match value {
            Some(value) => (&key[..], Entry::Put(value)),
            None => (&key[..], Entry::Delete),
        });
        let operands = self.operands.iter().map(|(key, operand)| (&key[..], Entry::Merge(operand)));
        let mut entries: Vec<_> = rows.chain(operands).collect();
        entries.sort_by(|(left, _), (right, _)| order.cmp(left, right));
        entries
    }
}

impl Runner {
    /// Writes files on the same device and takes them in as one.
    pub(crate) fn ingest(&self, names: &[String], seed: u64) {
        let known = names.iter().filter(|name| self.model.borrow().has_table(name)).take(TABLES_MAX);
        // Operations around this one leave keys of a kind to each other.
        let merges = self.is_outermost() && self.options().merge_operator.get().is_some();
        let content = |number, name: &str| {
            let (seed, order) = (seed ^ number, self.model.borrow().order(name));
            let mut content = Content::of(seed, order);
            if merges {
                content.add_merges(seed, order);
            }
            content
        };
        let files: Vec<(&String, Content)> =
            (0..).zip(known).map(|(number, name)| (name, content(number, name))).collect();
        if files.is_empty() {
            return;
        }
        let mut numbers = Rng::part(seed, 1);
        let options =
            IngestOptions { copy: numbers.one_in(4), remove: !numbers.one_in(4), ..IngestOptions::default() };
        let mut paths = Vec::new();
        for (number, (table, content)) in files.iter().enumerate() {
            let path = format!("/{seed:016x}-{number}.extents");
            if let Err(error) = self.write_file(&path, table, content) {
                return self.met_outside(&error);
            }
            paths.push(path);
        }
        let changes: Vec<Change> =
            files.iter().flat_map(|(name, content)| content.changes(name, &self.model.borrow())).collect();
        let db = self.db();
        let is_in = self.write(changes.clone(), true, |_| {
            let tables = files.iter().map(|(name, _)| db.table(name)).collect::<terrane::Result<Vec<_>>>()?;
            let files: Vec<_> = tables.iter().zip(&paths).collect();
            db.ingest(&files, options).map(drop)
        });
        if !is_in {
            return self.end_in_doubt(changes, numbers.next_u64());
        }
        if files.iter().any(|(_, content)| !content.ranges.is_empty()) {
            self.did("range deletes of a file");
        }
        if merges {
            self.did("merges of a file");
        }
    }

    /// The extents did not come in; but perhaps their edit is in the manifest, and then they are there after
    /// the next opening. The run opens again at once: no commit behind the ingest would show which.
    fn end_in_doubt(&self, changes: Vec<Change>, seed: u64) {
        if self.disk().has_crashed() {
            return;
        }
        self.did("ingest or load that failed");
        for table in self.model.borrow().tables() {
            let span = Span { lower: Bound::Unbounded, upper: Bound::Unbounded };
            self.read(&Op::Scan { table, span, way: Way::Forward, limit: u64::from(u32::MAX), at: None });
        }
        let mut numbers = Rng::new(seed);
        let crash = if numbers.one_in(3) { Crash::Kill } else { Crash::Power(numbers.next_u64()) };
        {
            let mut life = self.life.borrow_mut();
            life.doubt.get_or_insert(changes);
            life.armed = Some((crash, None));
        }
        self.disk().crash_now(crash);
    }

    fn write_file(&self, path: &str, table: &str, content: &Content) -> terrane::Result<()> {
        let mut options = self.options();
        let order = self.model.borrow().order(table);
        options.set(KEY_ORDER, order.name())?;
        let orders = crate::order::orders()?;
        let mut file = ExtentFileWriter::create_on(Arc::new(self.disk()), path, &options, &orders)?;
        let (before, behind) = content.ranges.split_at(content.ranges.len() / 2);
        before.iter().try_for_each(|(start, end)| file.delete_range(start, end))?;
        for (key, entry) in content.entries(order) {
            match entry {
                Entry::Put(value) => file.put(key, value)?,
                Entry::Merge(operand) => file.merge(key, operand)?,
                Entry::Delete => file.delete(key)?,
            }
        }
        behind.iter().try_for_each(|(start, end)| file.delete_range(start, end))?;
        file.finish().map(drop)
    }

    /// Nothing of the database was touched. A file of the same name may be left of an earlier life.
    fn met_outside(&self, error: &terrane::Error) {
        if error.kind() != Kind::Invalid {
            self.met("write an external file", error);
        }
    }

    /// Returns true if any file is left that was written to be taken in.
    pub(crate) fn has_external_files(&self) -> bool {
        let names = self.disk().device().list(Path::new("/"));
        names.is_ok_and(|names| names.iter().any(|name| name.ends_with(".extents")))
    }

    /// Loads sorted rows past memory.
    pub(crate) fn load(&self, name: &str, seed: u64) {
        if !self.model.borrow().has_table(name) {
            return;
        }
        let rows = rows_of(seed, false);
        let order = self.model.borrow().order(name);
        let changes: Vec<Change> =
            rows.iter().map(|(key, value)| (name.to_owned(), key.clone(), value.clone())).collect();
        let db = self.db();
        let is_in = self.write(changes.clone(), true, |_| {
            let table = db.table(name)?;
            let rows = sorted(order, &rows).into_iter();
            db.bulk_load(&table, rows.map(|(key, value)| (key, value.as_deref().unwrap_or_default())))
                .map(drop)
        });
        if !is_in {
            self.end_in_doubt(changes, seed);
        }
    }

    /// Drops the extents of a range that was deleted before: no read may notice it.
    pub(crate) fn drop_extents(&self, name: &str, from: u64, to: u64) {
        let is_deleted = self.delete_range(name, from, to);
        if !is_deleted || self.disk().has_crashed() || !self.model.borrow().has_table(name) {
            return;
        }
        let (start, end) = (key(from), key(to));
        let db = self.db();
        let dropped = db.table(name).and_then(|table| table.delete_files_in_range(&start[..]..&end[..]));
        match dropped {
            // Snapshots, and iterators of what goes on around this.
            Err(error) if error.kind() == Kind::Busy => {
                let is_seen = !self.life.borrow().snapshots.is_empty() || !self.is_outermost();
                if !is_seen && !self.life.borrow().is_paused {
                    self.fail(format!("drop extents: {error}, and no reader exists"));
                }
            }
            Err(error) => self.met_in_background("drop extents", &error),
            Ok(_) => {}
        }
    }

    /// Compares an estimate with what the model has: at least the rows that are there must be possible.
    pub(crate) fn estimate(&self, name: &str, from: u64, to: u64) {
        if !self.model.borrow().has_table(name) {
            return;
        }
        let (start, end) = (key(from), key(to));
        let db = self.db();
        let range = (Bound::Included(&start[..]), Bound::Excluded(&end[..]));
        let estimate = db.table(name).and_then(|table| table.approximate_count(range));
        if self.disk().has_crashed() {
            return;
        }
        let within = self.model.borrow().order(name).keys_between(&start, &end).unwrap_or_default();
        match estimate {
            Ok(estimate) if !within.is_empty() => {
                let model = self.model.borrow();
                let rows =
                    within.iter().filter(|key| model.get(name, key, model.now()).is_some()).count() as u64;
                if estimate.value + estimate.error < rows {
                    self.fail(format!("estimate {estimate:?} of {rows} rows"));
                }
            }
            Ok(estimate) if estimate.value > 0 => self.fail(format!("estimate {estimate:?} of nothing")),
            Ok(_) => {}
            Err(error) => self.met("estimate", &error),
        }
    }
}
