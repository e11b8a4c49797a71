//! Counters of reads for each thread, counters of the device for each stream, and reads without filters.

#![allow(clippy::unwrap_used, reason = "a test")]

use terrane::{Db, Options, ReadCounters, Stats, read_counters};

const KEYS: u64 = 20_000;

fn open(dir: &tempfile::TempDir, settings: &[(&str, &str)]) -> Db {
    let mut options = Options::default();
    for (name, value) in [("memory_bytes", "64MiB")].iter().chain(settings) {
        options.set(name, value).unwrap();
    }
    Db::open_with(dir.path().join("db"), &options).unwrap()
}

/// Even numbers are there, odd ones lie between them.
fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// One level, `runs` overflow runs over it and an empty memtable; the background is paused. All of them have
/// the same least and greatest key, and each key is in one of them.
fn load(db: &Db, runs: u64) {
    let sources = runs + 1;
    for source in 0..sources {
        for number in 0..KEYS {
            if number % sources == source || number == 0 || number == KEYS - 1 {
                db.put(key(number * 2), [source as u8; 100]).unwrap();
            }
        }
        if source == 0 {
            db.compact_range(db.default_table(), ..).unwrap();
            db.wait_until_quiescent().unwrap();
            db.pause_background();
        } else {
            db.flush_to_run(db.default_table()).unwrap();
        }
    }
}

/// The counts of `read`.
fn counted(read: impl FnOnce()) -> ReadCounters {
    let before = read_counters();
    read();
    read_counters() - before
}

#[test]
fn a_point_read_counts_each_run_filter_and_block_once() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, &[]);
    load(&db, 3);
    let absent = || {
        counted(|| {
            for number in 1..KEYS - 1 {
                assert!(db.get(key(number * 2 + 1)).unwrap().is_none());
            }
        })
    };
    let reads = KEYS - 2;
    let cold = absent();
    let warm = absent();
    // The memtable, three runs and a level.
    assert_eq!((cold.reads, cold.runs_searched), (reads, reads * 5));
    assert_eq!(cold.filter_probes, reads * 4);
    assert_eq!(cold.filter_negatives + cold.filter_positives_false, cold.filter_probes);
    assert!(cold.filter_positives_false < reads / 5, "one in a hundred, four times: {cold:?}");
    assert_eq!(cold.index_blocks_searched, cold.filter_positives_false);
    assert!(cold.blocks_missed > 0 && cold.device_reads == cold.blocks_missed && cold.device_bytes_read > 0);
    // The same searches, and nothing fetched.
    assert_eq!(
        (warm.blocks_missed, warm.device_reads, warm.device_bytes_read, warm.blocks_decoded),
        (0, 0, 0, 0)
    );
    let fetched = cold - warm;
    assert_eq!(fetched.filter_probes, 0);
    assert_eq!((fetched.runs_searched, fetched.data_blocks_searched), (0, 0));
}

#[test]
fn reads_without_filters_give_the_same_answers() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, &[]);
    load(&db, 2);
    let plain = db.default_table().without_filters();
    let snapshot = db.snapshot();
    let numbers: Vec<u64> = (0..KEYS * 2).step_by(7).collect();
    let mut answers = Vec::new();
    let with = counted(|| answers.extend(numbers.iter().map(|number| db.get(key(*number)).unwrap())));
    let mut others = Vec::new();
    let without = counted(|| others.extend(numbers.iter().map(|number| plain.get(key(*number)).unwrap())));
    assert_eq!(answers, others);
    assert!(answers.iter().any(Option::is_some) && answers.iter().any(Option::is_none));
    assert!(with.filter_probes > 0);
    assert_eq!((without.filter_probes, without.filter_negatives, without.filter_positives_false), (0, 0, 0));
    assert_eq!(with.runs_searched, without.runs_searched);
    assert!(without.data_blocks_searched > with.data_blocks_searched, "{without:?}");
    // Every extent that a read comes to has its index block searched.
    assert_eq!(without.index_blocks_searched, without.runs_searched - without.reads);

    let keys: Vec<[u8; 8]> = numbers.iter().map(|number| key(*number)).collect();
    let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
    let many = counted(|| {
        assert_eq!(plain.multi_get(&keys).unwrap(), answers);
        assert_eq!(snapshot.multi_get(&plain, &keys).unwrap(), answers);
        assert_eq!(snapshot.get(&plain, keys[0]).unwrap(), answers[0]);
    });
    assert_eq!((many.filter_probes, many.reads), (0, 2 * keys.len() as u64 + 1));
    let twice = counted(|| drop(plain.multi_get(&[keys[0], keys[1], keys[0]]).unwrap()));
    assert_eq!(twice.reads, 2, "equal keys are looked up once");
}

#[test]
fn scans_count_seeks_steps_and_what_they_pass_over() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, &[]);
    load(&db, 1);
    let mut cursor = db.default_table().cursor();
    let steps = counted(|| {
        cursor.seek(key(100)).unwrap();
        for number in 51..=60 {
            cursor.next().unwrap();
            assert_eq!(cursor.row().unwrap().0, key(number * 2));
        }
        for number in (50..60).rev() {
            cursor.prev().unwrap();
            assert_eq!(cursor.row().unwrap().0, key(number * 2));
        }
    });
    assert_eq!((steps.seeks, steps.rows_stepped, steps.reads), (1, 20, 0));
    assert!(steps.runs_sought >= 3, "memtable, run and level: {steps:?}");
    assert!(steps.index_blocks_searched >= 2 && steps.data_blocks_searched >= 2, "{steps:?}");
    assert_eq!((steps.versions_skipped, steps.deletes_skipped), (0, 0));
    for number in 10..15 {
        db.delete(key(number * 2)).unwrap();
    }
    let mut cursor = db.default_table().cursor();
    let gap = counted(|| {
        cursor.seek(key(20)).unwrap();
        assert_eq!(cursor.row().unwrap().0, key(30));
    });
    assert_eq!(gap.versions_skipped, 10, "five deletes and what they hide");
    assert_eq!(gap.deletes_skipped, 5);
    let mut cursor = db.default_table().cursor();
    let back = counted(|| {
        cursor.seek_back(key(28)).unwrap();
        assert_eq!(cursor.row().unwrap().0, key(18));
    });
    assert_eq!((back.versions_skipped, back.deletes_skipped), (10, 5), "backward as forward");
    let all = counted(|| assert_eq!(db.default_table().iter().count() as u64, KEYS - 5));
    assert_eq!((all.seeks, all.rows_stepped), (1, KEYS - 5));
}

/// Reads of a counter that only grows.
fn grown(before: &Stats, after: &Stats, name: &str) -> u64 {
    let value = |stats: &Stats| stats.rows().into_iter().find(|(known, ..)| *known == name).unwrap().2;
    value(after) - value(before)
}

#[test]
fn each_stream_of_the_device_is_counted_apart() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, &[("compression", "none"), ("compression_last", "none")]);
    let start = db.stats();
    for number in 0..KEYS {
        db.put(key(number), [7; 100]).unwrap();
    }
    let written = db.stats();
    let user = KEYS * 108;
    let journal = grown(&start, &written, "device_journal_bytes_written");
    assert!((user..user * 2).contains(&journal), "{journal} for {user}");
    assert!(grown(&start, &written, "device_journal_writes") >= 1);
    db.sync().unwrap();
    assert!(grown(&written, &db.stats(), "device_journal_syncs") >= 1);

    let before = db.stats();
    db.flush().unwrap();
    let flushed = db.stats();
    let bytes = grown(&before, &flushed, "device_flush_bytes_written");
    assert_eq!(bytes, grown(&before, &flushed, "flush_bytes_written"), "what the jobs say they wrote");
    assert!(bytes > user && grown(&before, &flushed, "device_flush_writes") >= 1);
    assert!(grown(&before, &flushed, "device_flush_syncs") >= 1);
    assert!(grown(&before, &flushed, "device_manifest_bytes_written") > 0);
    assert!(grown(&before, &flushed, "device_manifest_syncs") > 0);
    assert_eq!(grown(&before, &flushed, "device_compaction_bytes_written"), 0);
    assert_eq!(grown(&before, &flushed, "device_user_reads"), 0);

    db.compact_range(db.default_table(), ..).unwrap();
    db.wait_until_quiescent().unwrap();
    let compacted = db.stats();
    assert!(grown(&flushed, &compacted, "device_compaction_bytes_read") > user);
    assert!(grown(&flushed, &compacted, "device_compaction_bytes_written") > user);
    assert_eq!(grown(&flushed, &compacted, "device_flush_bytes_written"), 0);
    assert_eq!(grown(&flushed, &compacted, "device_user_bytes_read"), 0);

    let read = counted(|| {
        for number in (0..KEYS).step_by(11) {
            assert!(db.get(key(number)).unwrap().is_some());
        }
    });
    let after = db.stats();
    assert_eq!(grown(&compacted, &after, "device_user_bytes_read"), read.device_bytes_read);
    assert_eq!(grown(&compacted, &after, "device_user_reads"), read.device_reads);
    assert!(read.device_bytes_read > 0);
    let streams = ["journal", "manifest", "flush", "compaction"];
    let sum =
        streams.map(|stream| grown(&Stats::default(), &after, &format!("device_{stream}_bytes_written")));
    assert_eq!(after.device_bytes_written(), sum.iter().sum::<u64>());
    assert!(after.device_bytes_written() > 3 * user, "journal, flush and compaction");
}

#[test]
fn without_a_journal_no_segment_reaches_a_device() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, &[("journal", "off")]);
    db.put(b"k", b"v").unwrap();
    let stats = db.stats();
    assert_eq!((stats.device_journal_bytes_written, stats.device_journal_writes), (0, 0));
}
