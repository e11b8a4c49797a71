//! Files with range deletes and operands of merges: the operands lie over them.

use super::ranges::sink;
use super::*;

#[test]
fn operands_of_a_file_are_over_its_range_deletes() {
    for depth in 0..4 {
        let place = Place::new();
        let db = &place.db;
        let counting = TableOptions::new().set("merge_operator", "counter").unwrap();
        let table = db.create_table("counters", &counting).unwrap();
        let numbers = |number: i64, keys: std::ops::Range<u16>| -> Model {
            keys.map(|at| (key(at), counter::encode(number).to_vec())).collect()
        };
        fn joined<const PARTS: usize>(parts: [Model; PARTS]) -> Model {
            parts.into_iter().flatten().collect()
        }
        let add = |number: i64| {
            (0..KEYS).for_each(|at| table.merge(&key(at), &counter::encode(number)).unwrap());
        };
        add(100);
        sink(db, &table, depth);
        let path = place.path.join("file");
        let mut file = ExtentFileWriter::create(&path, &options("two-layer")).unwrap();
        file.set_merge_operator("counter").unwrap();
        file.delete_range(&key(0), &key(200)).unwrap();
        (50..KEYS).for_each(|at| file.merge(&key(at), &counter::encode(5)).unwrap());
        file.finish().unwrap();
        // Keeps the range delete from going away with what it hides.
        let before = db.snapshot();
        db.ingest(&[(&table, &path)], IngestOptions::default()).unwrap();
        let ingested = joined([numbers(5, 50..200), numbers(105, 200..KEYS)]);
        let counted = joined([numbers(1, 0..50), numbers(6, 50..200), numbers(106, 200..KEYS)]);
        check(&table, None, &ingested);
        let after = db.snapshot();
        add(1);
        let look = || {
            check(&table, Some(&before), &numbers(100, 0..KEYS));
            check(&table, Some(&after), &ingested);
            check(&table, None, &counted);
        };
        look();
        db.flush_to_run(&table).unwrap();
        look();
        db.compact_range(&table, ..).unwrap();
        look();
        drop(after);
        // Nobody looks between the file and what came later: both may become one operand.
        add(0);
        db.compact_range(&table, ..).unwrap();
        check(&table, Some(&before), &numbers(100, 0..KEYS));
        check(&table, None, &counted);
        drop(before);
        add(0);
        db.compact_range(&table, ..).unwrap();
        check(&table, None, &counted);
    }
}
