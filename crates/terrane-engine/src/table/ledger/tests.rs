//! Read views that would lose records, one of each kind: the ledger refuses them, and the read view stays.

use super::*;
use crate::background::flush::merge_frozen::tests::{freeze, open, put};
use crate::engine::Engine;
use crate::table::Table;

/// A generation, two frozen memtables and an active one, all with records.
fn filled() -> (Arc<Engine>, Arc<Table>) {
    let (engine, table) = open();
    for key in ["a", "b", "c", "d"] {
        put(&engine, key, 10);
        if key != "d" {
            freeze(&engine, &table);
        }
        if key == "a" {
            assert!(engine.promote(&table).expect("nothing is lost"));
        }
    }
    (engine, table)
}

fn refuses(table: &Table, leaves: &Leaves<'_>, why: &str, change: impl FnOnce(&mut ReadView)) {
    let before = table.pinned();
    let mut edit = table.edit();
    let mut next = edit.view();
    change(&mut next);
    let error = edit.replace(next, leaves).expect_err("it would lose records");
    assert_eq!(error.kind(), Kind::Poisoned);
    assert!(error.to_string().contains(why), "{error}");
    assert!(error.to_string().contains("reopen"), "{error}");
    drop(edit);
    assert!(table.pinned().is_same(&before), "the view stays");
    // And so does the ledger.
    table.edit().replace(before, &Leaves::Nothing).expect("nothing has changed");
}

#[test]
fn a_memtable_does_not_leave_without_a_generation_that_has_it() {
    let (engine, table) = filled();
    let settled = Leaves::Settled { visible: engine.visible() };
    let pop = |next: &mut ReadView| drop(next.frozen.pop());
    refuses(&table, &settled, "no generation", pop);
    refuses(&table, &Leaves::Nothing, "may not remove a memtable", pop);
    let generation = table.pinned().generations[0].clone();
    refuses(&table, &Leaves::Flushed(&generation), "may not remove a memtable", pop);
    // Into a generation that is not in the read view.
    let stale = |next: &mut ReadView| {
        let popped = next.frozen.pop().expect("there are two");
        drop(GlobalIndex::from_frozen(popped));
    };
    refuses(&table, &settled, "no generation", stale);
    // One that is like it is not it.
    let like = |next: &mut ReadView| {
        let last = next.frozen.last_mut().expect("there are two");
        *last = Memtable::new(last.first_seq());
    };
    refuses(&table, &settled, "no generation", like);
    engine.close().expect("closes");
}

#[test]
fn a_memtable_does_not_leave_before_its_numbers_are_visible() {
    let (engine, table) = filled();
    let promote = |next: &mut ReadView| {
        let popped = next.frozen.pop().expect("there are two");
        next.generations.insert(0, Arc::new(GlobalIndex::from_frozen(popped)));
    };
    let first = table.pinned().frozen[1].first_seq();
    let early = Leaves::Settled { visible: SeqNo(first.0 - 1) };
    refuses(&table, &early, "may still index records", promote);
    let settled = Leaves::Settled { visible: engine.visible() };
    refuses(&table, &settled, "may still index records", |next| next.active = Memtable::new(SeqNo(100)));
    refuses(&table, &Leaves::Nothing, "may not remove a memtable", |next| {
        next.active = Memtable::new(SeqNo(100))
    });
    engine.close().expect("closes");
}

#[test]
fn a_generation_does_not_leave_before_its_edit() {
    let (engine, table) = filled();
    let forget = |next: &mut ReadView| next.generations.clear();
    refuses(&table, &Leaves::Nothing, "no manifest edit says", forget);
    refuses(&table, &Leaves::Settled { visible: engine.visible() }, "no manifest edit says", forget);
    let other = GlobalIndex::from_frozen(table.pinned().frozen[0].clone());
    refuses(&table, &Leaves::Flushed(&other), "no manifest edit says", forget);
    engine.close().expect("closes");
}

#[test]
fn the_flushed_number_lies_below_all_that_stays() {
    let (engine, table) = filled();
    let view = table.pinned();
    let (generation, frozen) = (&view.generations[0], view.frozen[1].first_seq());
    let edit = table.edit();
    edit.ledger().check_flushed(generation, SeqNo(frozen.0 - 1)).expect("all stays above");
    let error = edit.ledger().check_flushed(generation, frozen).expect_err("it is in memory only");
    assert_eq!(error.kind(), Kind::Poisoned);
    drop(edit);
    engine.close().expect("closes");
}

#[test]
fn a_memtable_without_records_may_be_dropped() {
    let (engine, table) = open();
    // Numbers of another table, or none: the memtable has no record.
    let other = engine.create_table("other", &[]).expect("is made");
    engine.put(other.id, b"k", b"v", false).expect("commits");
    freeze(&engine, &table);
    assert!(engine.promote(&table).expect("it has no debt"));
    assert!(table.pinned().memory_is_empty());
    // A table that is dropped has no debt, and the next step on it does nothing.
    engine.put(other.id, b"k", b"v", false).expect("commits");
    freeze(&engine, &other);
    engine.drop_table("other").expect("is dropped");
    assert!(other.pinned().memory_is_empty());
    assert!(!engine.freeze(&other).expect("there is nothing to freeze"));
    assert!(!engine.promote(&other).expect("there is nothing to promote"));
    engine.close().expect("closes");
}
