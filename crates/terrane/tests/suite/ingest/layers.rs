//! Ingested files with range deletes: their own operands lie above them, and many files share few levels.

use super::ranges::{all, apply_ranged, model_of, sink, write_ranged};
use super::*;

#[test]
fn operands_of_a_file_are_over_its_range_deletes() {
    for depth in 0..4 {
        let place = Fixture::new();
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
            (0..KEYS).for_each(|at| table.merge(key(at), counter::encode(number)).unwrap());
        };
        add(100);
        sink(db, &table, depth);
        let path = place.path.join("file");
        let mut file = ExtentFileWriter::create(&path, &options("two-layer")).unwrap();
        file.set_merge_operator("counter").unwrap();
        file.delete_range(key(0), key(200)).unwrap();
        (50..KEYS).for_each(|at| file.merge(key(at), counter::encode(5)).unwrap());
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
        // No snapshot lies between the file and the later operand: both may become one operand.
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

#[test]
fn neighbouring_range_deletes_are_ingested_into_few_runs() {
    const FILES: u16 = 30;
    for depth in 0..4 {
        let place = Fixture::new();
        let (db, table) = (&place.db, place.db.default_table());
        for number in 0..KEYS {
            table.put(key(number), value(b'o', number)).unwrap();
        }
        // Else jobs take the runs away meanwhile. A run that is flushed would be merged at once; of all
        // flushes only this one is done in a pause.
        if depth == 1 {
            db.pause_background();
        }
        sink(db, table, depth);
        if depth != 1 {
            db.wait_until_quiescent().unwrap();
            db.pause_background();
        }
        let runs = || db.shape().tables.iter().map(|table| table.runs.len()).sum::<usize>();
        let runs_before = runs();
        let mut expected = model_of(0..KEYS, b'o');
        let width = KEYS / FILES;
        let paths: Vec<PathBuf> = (0..FILES)
            .map(|part| {
                let (from, path) = (part * width, place.path.join(format!("{part}")));
                let (rows, ranges) = (all(from..from + 3, b'n'), [(from, from + width)]);
                write_ranged(&path, &options("two-layer"), &rows, &ranges);
                apply_ranged(&mut expected, &rows, &ranges);
                path
            })
            .collect();
        let files: Vec<_> = paths.iter().map(|path| (table, path)).collect();
        db.ingest(&files, IngestOptions::default()).unwrap();
        let added = runs() - runs_before;
        assert!(added <= 3 + usize::from(depth == 0), "{added} runs of {FILES} files: {}", db.shape());
        check(table, None, &expected);
        db.resume_background();
        db.compact_range(table, ..).unwrap();
        check(table, None, &expected);
        assert_eq!(db.check(&mut |_, _| ()).unwrap().findings.len(), 0);
    }
}
