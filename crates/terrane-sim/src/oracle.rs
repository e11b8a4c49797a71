//! The oracle: decides whether the rows of a database are allowed. They must be those of a prefix of the
//! commits, which includes all that must be durable and nothing that was not begun, with the tables of that
//! moment.

use terrane::{Db, Kind};

use crate::model::{Change, EXPIRING, Model, Print};
use crate::order::Order;

/// A table created, or dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) table: String,
    pub(crate) is_created: bool,
    /// In which order its keys lie.
    pub(crate) order: Order,
    /// It takes back what was done before: a table that is there again has its old rows.
    pub(crate) is_undone: bool,
}

impl Event {
    /// A table is created, or dropped.
    pub(crate) fn new(table: &str, is_created: bool, order: Order) -> Self {
        Event { table: table.to_owned(), is_created, order, is_undone: false }
    }
}

/// The states that are allowed after a life of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowed {
    /// Commits that must be there.
    pub(crate) floor: u64,
    /// Commits that a loss of power after this must leave.
    pub(crate) durable: u64,
    /// Commits that were acknowledged: more are not there, but for `extra`.
    pub(crate) acked: u64,
    /// One more commit, begun and not acknowledged.
    pub(crate) extra: Option<Vec<Change>>,
    /// Tables that may have changed, begun and not acknowledged.
    pub(crate) events: Vec<Event>,
}

/// The state that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// So many commits; one more than `acked` if the extra one is there.
    pub(crate) commits: u64,
    /// The rows are the same as after fewer commits, down to this number: a check of a commit's other effects
    /// must allow for that.
    pub(crate) commits_min: u64,
    /// The events that took place.
    pub(crate) events: Vec<Event>,
}

/// Why a database was not judged: damage that it reported.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It is wrong.
    Wrong(String),
    /// It said itself that it is damaged.
    Refused(String),
    /// It could not be read.
    Unread(terrane::Error),
}

impl From<terrane::Error> for Verdict {
    fn from(error: terrane::Error) -> Self {
        match error.kind() {
            Kind::Corrupt => Verdict::Refused(error.to_string()),
            _ => Verdict::Unread(error),
        }
    }
}

/// Sets the model to what was found.
pub(crate) fn adopt(model: &mut Model, found: &Found, allowed: &Allowed) {
    for event in &found.events {
        if event.is_created {
            model.create_table_in(&event.table, event.order);
        } else {
            model.drop_table(&event.table);
        }
    }
    if found.commits > allowed.acked {
        model.write(allowed.extra.as_deref().unwrap_or_default());
    }
    model.roll_back(found.commits);
    model.forget_before(&[found.commits]);
}

/// Recognises the state of `db`.
pub(crate) fn judge(db: &Db, model: &Model, allowed: &Allowed) -> Result<Found, Verdict> {
    let events = judge_tables(db, model, allowed).map_err(Verdict::Wrong)?;
    let mut prints = Vec::new();
    for name in model.tables() {
        if !events.iter().any(|event| event.table == name) {
            prints.push((print_of(db, &name, model.order(&name))?, name));
        }
    }
    for event in events.iter().filter(|event| event.is_created) {
        let print = print_of(db, &event.table, event.order)?;
        if print != Print::default() && !event.is_undone {
            return Err(Verdict::Wrong(format!("table {:?} was just created and has rows", event.table)));
        }
    }
    let (commits_min, commits) = recognise(&prints, model, allowed).ok_or_else(|| {
        let Allowed { floor, acked, extra, .. } = allowed;
        let found = describe(&prints, model, allowed);
        Verdict::Wrong(format!(
            "the rows are those of no moment from {floor} to {acked} (and {} more): {found}",
            u64::from(extra.is_some())
        ))
    })?;
    Ok(Found { commits, commits_min, events })
}

fn judge_tables(db: &Db, model: &Model, allowed: &Allowed) -> Result<Vec<Event>, String> {
    let mut names = db.tables();
    names.sort();
    let expected = model.tables();
    let mut happened = Vec::new();
    for event in &allowed.events {
        let is_there = names.contains(&event.table);
        let was_there = expected.contains(&event.table);
        if is_there != was_there && is_there == event.is_created && !happened.contains(event) {
            happened.push(event.clone());
        }
    }
    let is_explained = |name: &String| happened.iter().any(|event: &Event| event.table == *name);
    let is_right = names.iter().all(|name| expected.contains(name) || is_explained(name))
        && expected.iter().all(|name| names.contains(name) || is_explained(name));
    if is_right { Ok(happened) } else { Err(format!("tables {names:?}, expected {expected:?}")) }
}

fn print_of(db: &Db, name: &str, order: Order) -> Result<Print, Verdict> {
    let table = db.table(name)?;
    if table.key_order() != order.name() {
        let found = table.key_order();
        return Err(Verdict::Wrong(format!("table {name:?} has the order {found:?}, expected {order:?}")));
    }
    let mut cursor = table.cursor();
    let mut print = Print::default();
    let mut before: Option<Vec<u8>> = None;
    cursor.seek_first()?;
    while let Some((key, value)) = cursor.row() {
        if !key.starts_with(EXPIRING) {
            print.add(key, value);
        }
        if before.as_deref().is_some_and(|before| order.cmp(before, key).is_ge()) {
            return Err(Verdict::Wrong(format!("table {name:?}: key {key:?} comes after {before:?}")));
        }
        before = Some(key.to_vec());
        cursor.next()?;
    }
    Ok(print)
}

/// The first and the last allowed moment at which every table has its print. Not every moment between them
/// need be one.
fn recognise(prints: &[(Print, String)], model: &Model, allowed: &Allowed) -> Option<(u64, u64)> {
    let fits = |at: &u64| prints.iter().all(|(print, name)| model.print(name, *at) == *print);
    let mut moments = (allowed.floor..=allowed.acked).filter(fits);
    let extra = allowed
        .extra
        .as_ref()
        .filter(|extra| prints.iter().all(|(print, name)| model.print_with(name, extra) == *print));
    let (first, last) = (moments.next(), moments.next_back());
    let last = extra.map(|_| allowed.acked + 1).or(last).or(first)?;
    Some((first.unwrap_or(last), last))
}

/// The moments that each table alone fits: the fault is often plain from that.
fn describe(prints: &[(Print, String)], model: &Model, allowed: &Allowed) -> String {
    let fitting = prints.iter().map(|(print, name)| {
        let fits: Vec<u64> = (0..=allowed.acked).filter(|at| model.print(name, *at) == *print).collect();
        match (fits.first(), fits.last()) {
            (Some(first), Some(last)) => format!("{name} as at {first} to {last}"),
            _ => format!("{name} as at no moment"),
        }
    });
    fitting.collect::<Vec<_>>().join(", ")
}
