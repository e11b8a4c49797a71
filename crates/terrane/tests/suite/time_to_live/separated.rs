//! Time to live of values that lie apart from their keys.

use super::*;

#[test]
fn separated_values_expire_for_every_read() {
    let world = World::new();
    let db = world.open();
    let table = db.default_table();
    table.set_option("value_separation_bytes", "32").unwrap();
    table.put(b"a", [1; 100]).unwrap();
    table.put_with_ttl(b"b", [2; 100], Duration::from_secs(1)).unwrap();
    table.put_with_ttl(b"c", [3; 100], Duration::from_secs(2)).unwrap();
    table.put_with_ttl(b"d", [4; 10], Duration::from_secs(2)).unwrap();
    db.flush().unwrap();
    db.pause_background();
    let values = |db: &Db| db.shape().tables.iter().map(|shape| shape.values.entries).sum::<u64>();
    assert_eq!(values(&db), 3, "all but the short one are separated");
    for (expected, step) in [
        ([true, true, true, true], 1000),
        ([true, false, true, true], 1000),
        ([true, false, false, false], 0),
    ] {
        assert_eq!(seen(table, &KEYS), expected);
        world.hand.move_on(step);
    }
    db.resume_background();
    db.compact_range(table, ..).unwrap();
    assert_eq!(table.get(b"a").unwrap().as_deref(), Some(&[1; 100][..]));
    assert_eq!(
        table.approximate_count(..).unwrap().value,
        1,
        "the expired rows are gone, with their pointers"
    );
}

#[test]
fn an_expired_value_stays_where_it_is_below_an_operand() {
    let world = World::new();
    let db = world.open();
    let mut options = TableOptions::new();
    for (name, value) in [("merge_operator", "append"), ("value_separation_bytes", "32")] {
        options = options.set(name, value).unwrap();
    }
    let table = db.create_table("merged", &options).unwrap();
    table.put_with_ttl(b"a", [1; 100], Duration::from_secs(1)).unwrap();
    table.put_with_ttl(b"b", [2; 100], Duration::from_secs(1)).unwrap();
    db.flush().unwrap();
    db.pause_background();
    table.merge(b"a", b"m").unwrap();
    let seen = || {
        let before = terrane::read_counters();
        let rows: Vec<_> = table.iter().map(|row| row.unwrap().1.len()).collect();
        let backward: Vec<_> = table.iter().rev().map(|row| row.unwrap().1.len()).collect();
        let got = [b"a", b"b"].map(|key| table.get(key).unwrap().map(|value| value.len()));
        (rows, backward, got, (terrane::read_counters() - before).values_followed)
    };
    let (rows, backward, got, followed) = seen();
    assert_eq!((rows[1], backward[0], got[1]), (100, 100, Some(100)));
    assert!(rows[0] > 100 && backward[1] == rows[0] && got[0] == Some(rows[0]), "folded onto the value");
    assert_eq!(followed, 6);
    world.hand.move_on(1000);
    assert_eq!(seen(), (vec![1], vec![1], [Some(1), None], 0), "the operand alone");
}
