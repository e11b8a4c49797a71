//! Reads of the simulated user, compared with the model.

use std::mem::MaybeUninit;
use std::ops::Bound;

use terrane::{Cursor, Iter, Kind, Snapshot, Table};
use terrane_base::Rng;

use crate::model::Row;
use crate::op::{Op, Span, Way, key};
use crate::run::Runner;
use crate::trace::hash;
use crate::walker::Walker;

type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The bytes of a range of keys.
pub(crate) fn bounds(span: Span) -> Bounds {
    (span.lower.map(key), span.upper.map(key))
}

/// A range that borrows.
pub(crate) fn borrow(bounds: &Bounds) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (bounds.0.as_ref().map(Vec::as_slice), bounds.1.as_ref().map(Vec::as_slice))
}

/// Where a read looks: the present, or a snapshot.
struct View {
    table: Table,
    snapshot: Option<Snapshot>,
    /// The moment; of the present, that at which the read began.
    moment: u64,
}

impl View {
    fn iter(&self, range: (Bound<&[u8]>, Bound<&[u8]>)) -> Iter {
        match &self.snapshot {
            Some(snapshot) => snapshot.range(&self.table, range),
            None => self.table.range(range),
        }
    }

    fn cursor(&self) -> Cursor {
        match &self.snapshot {
            Some(snapshot) => snapshot.cursor(&self.table),
            None => self.table.cursor(),
        }
    }
}

/// How an answer failed: an error, or rows that are not the model's.
enum Miss {
    Error(terrane::Error),
    Wrong(String),
}

impl From<terrane::Error> for Miss {
    fn from(error: terrane::Error) -> Self {
        Miss::Error(error)
    }
}

impl Runner {
    /// Does a read; everything else is not the business of this module.
    pub(crate) fn read(&self, op: &Op) {
        if let Op::Plain(op) = op {
            self.is_plain.set(true);
            self.read(op);
            return self.is_plain.set(false);
        }
        let struck = self.struck().sum();
        let done = match op {
            Op::Get { table, key: number, at } => self.get(table, *number, *at),
            Op::Contains { table, key: number, at } => self.contains(table, *number, *at),
            Op::MultiGet { table, keys, at } => self.multi_get(table, keys, *at),
            Op::Scan { table, span, way, limit, at } => self.scan(table, *span, *way, *limit as usize, *at),
            Op::Prefix { table, key: number, len, at } => self.prefix(table, *number, *len as usize, *at),
            _ => Ok(()),
        };
        if self.disk().has_crashed() {
            return;
        }
        match done {
            Ok(()) => {}
            Err(Miss::Error(error)) => self.met_in_read(op, struck, &error),
            Err(Miss::Wrong(message)) => self.fail(format!("{op}: {message}")),
        }
    }

    /// Notes an error of a read that may not come now. Whatever was refused before, to whomever, is not a
    /// ground: reads go on after every fault, so only a call of this read can have failed.
    fn met_in_read(&self, op: &Op, struck_before: u64, error: &terrane::Error) {
        let is_ground = error.kind() == Kind::Corrupt || self.struck().sum() > struck_before;
        if is_ground || self.is_damaged.get() {
            return self.met(&format!("{op}"), error);
        }
        self.fail(format!("{op}: {error} ({:?}), and nothing was refused to it", error.kind()));
    }

    /// The table and moment of a read; `None` if the table does not exist.
    fn view(&self, table: &str, at: Option<u64>) -> Result<Option<View>, Miss> {
        if !self.model.borrow().has_table(table) {
            return Ok(None);
        }
        let snapshot = at.and_then(|name| self.life.borrow().snapshots.get(&name).cloned());
        let table = match self.db().table(table) {
            // The rest of a drop takes back space, and the table is gone before.
            Err(error) if error.kind() == Kind::NotFound && self.is_being_dropped(table) => return Ok(None),
            table => table?,
        };
        let table = if self.is_plain.get() { table.without_filters() } else { table };
        let now = self.model.borrow().now();
        Ok(Some(match snapshot {
            Some((snapshot, moment)) => View { table, snapshot: Some(snapshot), moment },
            None => View { table, snapshot: None, moment: now },
        }))
    }

    fn is_being_dropped(&self, table: &str) -> bool {
        let life = self.life.borrow();
        !self.is_outermost() && life.events.iter().any(|event| event.table == table && !event.is_created)
    }

    /// Checks an answer that is of one moment, from that at which the read began: others may have written
    /// meanwhile.
    fn check(&self, view: &View, is_right: impl Fn(&crate::model::Model, u64) -> bool) -> Result<(), Miss> {
        let model = self.model.borrow();
        let last = if view.snapshot.is_some() { view.moment } else { model.now() };
        if (view.moment..=last).any(|at| is_right(&model, at)) {
            return Ok(());
        }
        Err(Miss::Wrong(format!("not the answer of any moment from {} to {last}", view.moment)))
    }

    pub(crate) fn note_answer(&self, answer: Option<&[u8]>) {
        let number = answer.map_or(0, |bytes| hash(bytes) | 1);
        self.world.note(number);
        let mut answers = self.answers.get();
        answers.note(number);
        self.answers.set(answers);
    }

    fn get(&self, table: &str, number: u64, at: Option<u64>) -> Result<(), Miss> {
        let Some(view) = self.view(table, at)? else { return Ok(()) };
        let key = key(number);
        let mut answer = Vec::new();
        let is_there = match &view.snapshot {
            Some(snapshot) => match snapshot.get(&view.table, &key)? {
                Some(value) => {
                    answer = value.into_vec();
                    true
                }
                None => false,
            },
            None if self.is_through.get() => {
                let found = self.read_through(&view.table, &[key.as_slice()])?.remove(0);
                let is_there = found.is_some();
                answer.extend(found.unwrap_or_default());
                is_there
            }
            None => view.table.get_into(&key, &mut answer)?,
        };
        let answer = is_there.then_some(&answer[..]);
        self.note_answer(answer);
        self.check(&view, |model, at| model.get(table, &key, at) == answer)?;
        // Into memory of the caller, of which there is some, but not for all values.
        if view.snapshot.is_none() && !self.is_through.get() && number % 4 == 3 {
            let len = view.table.get_to(&key, &mut [MaybeUninit::uninit(); 16])?;
            return self.check(&view, |model, at| model.get(table, &key, at).map(<[u8]>::len) == len);
        }
        Ok(())
    }

    fn contains(&self, table: &str, number: u64, at: Option<u64>) -> Result<(), Miss> {
        let Some(view) = self.view(table, at)? else { return Ok(()) };
        let key = key(number);
        let answer = match &view.snapshot {
            Some(snapshot) => snapshot.contains(&view.table, &key)?,
            None => view.table.contains(&key)?,
        };
        self.note_answer(Some(&[u8::from(answer)]));
        self.check(&view, |model, at| model.get(table, &key, at).is_some() == answer)
    }

    fn multi_get(&self, table: &str, numbers: &[u64], at: Option<u64>) -> Result<(), Miss> {
        let Some(view) = self.view(table, at)? else { return Ok(()) };
        let keys: Vec<_> = numbers.iter().map(|number| key(*number)).collect();
        let refs: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let bytes = |values: Vec<Option<terrane::Value>>| -> Vec<Option<Vec<u8>>> {
            values.into_iter().map(|value| value.map(terrane::Value::into_vec)).collect()
        };
        let answers = match &view.snapshot {
            Some(snapshot) => bytes(snapshot.multi_get(&view.table, &refs)?),
            None if self.is_through.get() => self.read_through(&view.table, &refs)?,
            None => bytes(view.table.multi_get(&refs)?),
        };
        answers.iter().for_each(|answer| self.note_answer(answer.as_deref()));
        self.check(&view, |model, at| {
            let mut pairs = keys.iter().zip(&answers);
            answers.len() == keys.len()
                && pairs.all(|(key, answer)| model.get(table, key, at) == answer.as_deref())
        })
    }

    fn prefix(&self, table: &str, number: u64, len: usize, at: Option<u64>) -> Result<(), Miss> {
        let Some(view) = self.view(table, at)? else { return Ok(()) };
        let mut prefix = key(number);
        prefix.truncate(len);
        let iter = match &view.snapshot {
            Some(snapshot) => snapshot.prefix(&view.table, &prefix),
            None => view.table.prefix(&prefix),
        };
        let answer = iter.collect::<terrane::Result<Vec<Row>>>();
        if self.model.borrow().order(table).is_compared() {
            // Keys with one prefix lie anywhere.
            return match answer {
                Err(error) if error.kind() == Kind::Invalid => Ok(()),
                answer => Err(Miss::Wrong(format!("{} rows of a prefix", answer?.len()))),
            };
        }
        let answer = answer?;
        self.note_rows(&answer);
        let (model, all) = (self.model.borrow(), (Bound::Unbounded, Bound::Unbounded));
        compare(&answer, model.rows(table, all, view.moment).filter(|(key, _)| key.starts_with(&prefix)))
    }

    fn note_rows(&self, rows: &[Row]) {
        rows.iter().for_each(|(key, value)| self.note_row(key, value));
    }

    pub(crate) fn note_row(&self, key: &[u8], value: &[u8]) {
        self.note_answer(Some(key));
        self.note_answer(Some(value));
    }

    fn scan(&self, table: &str, span: Span, way: Way, limit: usize, at: Option<u64>) -> Result<(), Miss> {
        let Some(view) = self.view(table, at)? else { return Ok(()) };
        let range = bounds(span);
        let range = borrow(&range);
        match way {
            Way::Forward => {
                let answer: Vec<Row> = view.iter(range).take(limit).collect::<terrane::Result<_>>()?;
                self.note_rows(&answer);
                compare(&answer, self.model.borrow().rows(table, range, view.moment).take(limit))
            }
            Way::Backward => {
                let answer: Vec<Row> = view.iter(range).rev().take(limit).collect::<terrane::Result<_>>()?;
                self.note_rows(&answer);
                compare(&answer, self.model.borrow().rows(table, range, view.moment).rev().take(limit))
            }
            Way::Both(turns) => {
                let answer = both_ends(view.iter(range), &mut Rng::new(turns))?;
                self.note_rows(&answer);
                compare(&answer, self.model.borrow().rows(table, range, view.moment))
            }
            Way::Cursor(turns) => self.walk(table, &view, &mut Rng::new(turns), limit),
        }
    }

    /// A cursor that seeks and turns at random, every position compared.
    fn walk(&self, table: &str, view: &View, numbers: &mut Rng, limit: usize) -> Result<(), Miss> {
        // Drawn from `limit`, which is drawn already, so that histories stay as they are.
        let mut cursor = Walker::new(view.cursor(), limit % 3 == 1);
        if view.snapshot.is_none() && numbers.one_in(2) {
            cursor.refresh();
        }
        let mut position: Option<Vec<u8>> = None;
        for _ in 0..limit.min(24) {
            let turn = numbers.below(8);
            let target = key(numbers.skewed(400));
            let all = (Bound::Unbounded, Bound::Unbounded);
            let here = position.clone().unwrap_or_default();
            let after = (Bound::Excluded(&here[..]), Bound::Unbounded);
            let before = (Bound::Unbounded, Bound::Excluded(&here[..]));
            let (from, to) = (
                (Bound::Included(&target[..]), Bound::Unbounded),
                (Bound::Unbounded, Bound::Included(&target[..])),
            );
            let (range, is_backward) = match (turn, &position) {
                (0..3, Some(_)) => (after, false),
                (3..6, Some(_)) => (before, true),
                (6, _) => (from, false),
                (7, _) => (to, true),
                (turn, None) => (all, turn.is_multiple_of(2)),
                (_, Some(_)) => (all, false),
            };
            match (turn, &position) {
                (0..3, Some(_)) => cursor.next()?,
                (3..6, Some(_)) => cursor.prev()?,
                (6, _) => cursor.seek(&target)?,
                (7, _) => cursor.seek_back(&target)?,
                (_, _) if is_backward => cursor.seek_last()?,
                (_, _) => cursor.seek_first()?,
            }
            let answer = cursor.shown()?;
            self.note_answer(answer.as_ref().map(|(key, _)| &key[..]));
            let model = self.model.borrow();
            let mut rows = model.rows(table, range, view.moment);
            let expected = if is_backward { rows.next_back() } else { rows.next() };
            let is_right = match (&answer, expected) {
                (Some((key, value)), Some((expected_key, expected_value))) => {
                    key == expected_key && value.as_deref().is_none_or(|value| value == expected_value)
                }
                (answer, expected) => answer.is_none() && expected.is_none(),
            };
            if !is_right {
                return Err(Miss::Wrong(format!(
                    "cursor from {position:?}: {answer:?}, expected {expected:?}"
                )));
            }
            position = answer.map(|(key, _)| key);
        }
        Ok(())
    }

    /// Compares everything, and has the database check itself.
    pub(crate) fn check_all(&self) {
        let span = Span { lower: Bound::Unbounded, upper: Bound::Unbounded };
        let tables = self.model.borrow().tables();
        for table in tables {
            for way in [Way::Forward, Way::Backward] {
                self.read(&Op::Scan {
                    table: table.clone(),
                    span,
                    way,
                    limit: u64::from(u32::MAX),
                    at: None,
                });
            }
        }
        self.judge_background();
        let report = self.db().check(&mut |_, _| ());
        if self.disk().has_crashed() {
            return;
        }
        match report {
            Ok(report) => {
                for finding in report.findings {
                    self.met("check", &finding.error);
                }
            }
            Err(error) => self.met("check", &error),
        }
    }
}

/// Where rows begin to differ from what they should be, as the end of a message.
pub(crate) fn first_difference(rows: &[Row], expected: &[Row]) -> String {
    let is_same = |at: &usize| rows.get(*at) == expected.get(*at);
    let at = (0..rows.len().max(expected.len())).find(|at| !is_same(at)).unwrap_or_default();
    let show = |rows: &[Row]| rows.get(at).map(|(key, value)| (key.escape_ascii().to_string(), value.len()));
    format!("; row {at} is {:?}, expected {:?} (key, bytes of value)", show(rows), show(expected))
}

/// Takes rows from the front and from the back by turns until the two ends meet.
pub(crate) fn both_ends(
    mut iter: impl DoubleEndedIterator<Item = terrane::Result<Row>>,
    numbers: &mut Rng,
) -> terrane::Result<Vec<Row>> {
    let (mut front, mut back) = (Vec::new(), Vec::new());
    loop {
        let from_front = numbers.one_in(2);
        let row = if from_front { iter.next() } else { iter.next_back() };
        match row.transpose()? {
            Some(row) if from_front => front.push(row),
            Some(row) => back.push(row),
            None => break,
        }
    }
    front.extend(back.into_iter().rev());
    Ok(front)
}

fn compare<'m>(answer: &[Row], expected: impl Iterator<Item = (&'m [u8], &'m [u8])>) -> Result<(), Miss> {
    let mut count = 0;
    for (index, row) in expected.enumerate() {
        let found = answer.get(index).map(|(key, value)| (&key[..], &value[..]));
        if found != Some(row) {
            let found = found.map(|(key, value)| (key.escape_ascii().to_string(), value.len()));
            let row = (row.0.escape_ascii().to_string(), row.1.len());
            return Err(Miss::Wrong(format!(
                "row {index} is {found:?}, expected {row:?} (key, bytes of value)"
            )));
        }
        count = index + 1;
    }
    if answer.len() > count {
        return Err(Miss::Wrong(format!("{} rows, expected {count}", answer.len())));
    }
    Ok(())
}
