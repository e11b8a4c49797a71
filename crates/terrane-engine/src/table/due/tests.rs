//! Tests of the sets of tables in which work may be due.

use super::*;

const TABLE: TableId = TableId(3);

fn found(due: &DueTables, depth: Depth) -> Vec<(TableId, Option<Stamp>)> {
    due.levels(depth)
}

#[test]
fn a_table_that_changed_during_a_look_is_found_again() {
    let due = DueTables::default();
    due.note_levels(TABLE);
    let first = found(&due, Depth::Some);
    assert_eq!(first.len(), 1);
    due.note_levels(TABLE);
    due.note_no_job(TABLE, first[0].1, NoJob::UntilChanged);
    let second = found(&due, Depth::Some);
    assert_eq!(second.len(), 1, "the look was at an older state");
    due.note_no_job(TABLE, second[0].1, NoJob::UntilChanged);
    assert_eq!(found(&due, Depth::All), []);
    due.note_levels(TABLE);
    assert_eq!(found(&due, Depth::Some).len(), 1);
}

#[test]
fn tables_in_turn_are_all_found() {
    let due = DueTables::default();
    let count = 5 * TABLES_PER_LOOK / 2;
    (0..count as u32).for_each(|id| due.note_levels(TableId(id)));
    for (id, stamp) in found(&due, Depth::Some) {
        due.note_no_job(id, stamp, NoJob::ForNow);
    }
    assert_eq!(found(&due, Depth::All).len(), count);
    let mut seen: Vec<_> = (0..3).flat_map(|_| found(&due, Depth::Some)).map(|(id, _)| id).collect();
    assert_eq!(seen.len(), 3 * TABLES_PER_LOOK);
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), count, "each within three looks");
    due.note_no_job(seen[0], None, NoJob::UntilChanged);
    assert_eq!(found(&due, Depth::All).len(), count - 1);
}

#[test]
fn a_table_that_was_dropped_comes_back_into_no_set() {
    let due = DueTables::default();
    due.note_levels(TABLE);
    due.note_asked(TABLE, true);
    due.note_scanned(TABLE);
    let looked = found(&due, Depth::Asked);
    assert_eq!(looked.len(), 1);
    due.forget(TABLE);
    due.note_no_job(TABLE, looked[0].1, NoJob::ForNow);
    due.note_no_job(TABLE, None, NoJob::ForNow);
    assert_eq!(found(&due, Depth::All), []);
    assert_eq!(found(&due, Depth::Asked), []);
}

#[test]
fn the_oldest_segment_is_that_of_the_tables_that_are_noted() {
    let due = DueTables::default();
    let at = |segment: u64| InMemory { oldest_segment: Some(SegmentId(segment)), ..InMemory::default() };
    let nothing = InMemory::default();
    assert_eq!(due.oldest_segment(), None);
    due.turn(TableId(1), &nothing, &at(7));
    due.turn(TableId(2), &nothing, &at(5));
    assert_eq!(due.oldest_segment(), Some(SegmentId(5)));
    due.turn(TableId(2), &at(5), &at(9));
    assert_eq!(due.oldest_segment(), Some(SegmentId(7)));
    due.turn(TableId(1), &at(7), &nothing);
    due.turn(TableId(2), &at(9), &nothing);
    assert_eq!(due.oldest_segment(), None);
}

#[test]
fn a_table_is_behind_others_by_its_own_numbers_only() {
    let due = DueTables::default();
    let from = |seq: u64| InMemory { filled_from: Some(SeqNo(seq)), ..InMemory::default() };
    let nothing = InMemory::default();
    let [one, other] = [TableId(1), TableId(2)];
    due.turn(one, &nothing, &from(5));
    assert!(!due.others_are_behind(one, SeqNo(9)), "only the table itself has records");
    due.turn(other, &nothing, &from(8));
    assert!(due.others_are_behind(one, SeqNo(8)) && !due.others_are_behind(one, SeqNo(7)));
    assert!(due.others_are_behind(other, SeqNo(5)));
    due.turn(one, &from(5), &from(9));
    assert!(!due.others_are_behind(other, SeqNo(8)));
    due.turn(other, &from(8), &nothing);
    assert!(!due.others_are_behind(one, SeqNo(9)));
}

#[test]
fn a_table_is_unflushed_until_its_ledger_has_no_records() {
    let due = DueTables::default();
    let unflushed = || due.0.lock().unflushed.len();
    due.turn(
        TABLE,
        &InMemory::default(),
        &InMemory { oldest_segment: Some(SegmentId(1)), ..Default::default() },
    );
    assert_eq!(unflushed(), 1);
    due.note_unflushed(TABLE, || true);
    assert_eq!(unflushed(), 1);
    due.note_unflushed(TABLE, || false);
    assert_eq!(unflushed(), 0);
    due.note_unflushed(TABLE, || true);
    due.forget(TABLE);
    assert_eq!(unflushed(), 0);
}
