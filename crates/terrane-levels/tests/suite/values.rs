//! Value tables of a metasnapshot: they come by name, and leave with the last reference.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::sync::Arc;

use common::numbered;
use terrane_base::{Kind, ValueTableId};
use terrane_format::extent::{ExtentMeta, Reference, ReferenceSection, ValueSection};
use terrane_format::manifest::Place;
use terrane_levels::{Change, Metasnapshot};

type Extents = Arc<ExtentMeta>;

const LEVEL: Place = Place::Level(1);

/// A value table with 1000 entries.
fn values(number: u64) -> Extents {
    let mut meta = ExtentMeta::clone(&numbered(100 + number as u32, 0, 999));
    meta.entries = 1000;
    meta.value_table = Some(ValueSection { number: ValueTableId(number), level: 1 });
    Arc::new(meta)
}

/// An extent whose entries point into value tables: number and entries of each; each value has 50 bytes.
fn pointing(slot: u32, references: &[(u64, u64)]) -> Extents {
    let mut meta = ExtentMeta::clone(&numbered(slot, u64::from(slot) * 10, u64::from(slot) * 10 + 9));
    let reference = |(table, entries): &(u64, u64)| Reference {
        table: ValueTableId(*table),
        entries: *entries,
        bytes: entries * 50,
    };
    let list = references.iter().map(reference).collect();
    meta.references = Some(Box::new(ReferenceSection { part: meta.filter, list }));
    Arc::new(meta)
}

fn add(place: Place, extent: &Extents) -> Change<Extents> {
    Change::Add { place, extent: extent.clone() }
}

/// Numbers and live entries of all value tables.
fn live(snapshot: &Metasnapshot<Extents>) -> Vec<(u64, u64)> {
    snapshot.check().unwrap();
    snapshot.values.iter().map(|table| (table.number().0, table.live_entries)).collect()
}

#[test]
fn a_value_table_leaves_with_the_last_entry_that_points_into_it() {
    let (a, b) = (pointing(0, &[(7, 2)]), pointing(1, &[(7, 1), (9, 400)]));
    let first =
        vec![add(Place::Values, &values(7)), add(Place::Values, &values(9)), add(LEVEL, &a), add(LEVEL, &b)];
    let both = Metasnapshot::<Extents>::new().apply(first).unwrap();
    assert_eq!(live(&both), [(7, 3), (9, 400)]);
    assert_eq!((both.values.live_entries(), both.values.live_bytes()), (403, 403 * 50));
    // One goes as under a range delete: nothing takes its place. One entry still points into value table 7.
    let (one, emptied) = both.apply_listing(vec![Change::remove(LEVEL, &a)]).unwrap();
    assert!(emptied.is_empty());
    assert_eq!(live(&one), [(7, 1), (9, 400)]);
    // The other is rewritten, with half of the pointers into value table 9.
    let c = pointing(2, &[(9, 200)]);
    let (half, emptied) = one.apply_listing(vec![Change::remove(LEVEL, &b), add(LEVEL, &c)]).unwrap();
    assert_eq!(emptied, [values(7)]);
    assert_eq!(live(&half), [(9, 200)]);
    let table = half.values.get(ValueTableId(9)).unwrap();
    assert_eq!(table.live_stored_bytes(), u64::from(values(9).bytes) / 5);
    assert_eq!(half.values.stored_bytes_of(100 * 50), u64::from(values(9).bytes) / 10);
    let (none, emptied) = half.apply_listing(vec![Change::remove(LEVEL, &c)]).unwrap();
    assert_eq!(emptied, [values(9)]);
    assert!(none.is_empty() && live(&none).is_empty());
    // A hidden extent takes its value tables along, and leaves the metasnapshot as it is.
    assert_eq!(live(&both.without(|_, _| vec![0])), [(7, 1), (9, 400)]);
    assert_eq!(live(&both.without(|_, _| vec![0, 1])), []);
    assert_eq!(live(&both), [(7, 3), (9, 400)]);
}

#[test]
fn a_pointer_to_nothing_is_refused() {
    let snapshot = Metasnapshot::<Extents>::new();
    let tried = [
        vec![add(LEVEL, &pointing(0, &[(7, 1)]))],
        vec![add(Place::Values, &values(8)), add(LEVEL, &pointing(0, &[(7, 1), (8, 1)]))],
        vec![add(Place::Values, &values(7)), add(Place::Values, &values(7))],
        vec![add(LEVEL, &values(7))],
        vec![add(Place::Values, &pointing(0, &[(7, 1)]))],
    ];
    for changes in tried {
        assert_eq!(snapshot.apply(changes.clone()).unwrap_err().kind(), Kind::Invalid, "{changes:?}");
    }
    let one = vec![add(Place::Values, &values(7)), add(LEVEL, &pointing(0, &[(7, 1)]))];
    let one = snapshot.apply(one).unwrap();
    let removed = one.apply(vec![Change::remove(Place::Values, &values(7))]);
    assert_eq!(removed.unwrap_err().kind(), Kind::Invalid, "it leaves with the last pointer only");
}
