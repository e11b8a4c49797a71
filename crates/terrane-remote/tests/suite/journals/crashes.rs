//! A bucket that fails for ever, and one that is damaged.

use std::sync::Arc;

use terrane::Kind;
use terrane_remote::bucket::faulty::FaultyBucket;
use terrane_remote::{Bucket, Deployment, JournalFolder, JournalRead};

use super::{Place, check, deployment, key, put, put_all};
use crate::support::{env, memory, names};

/// The bucket fails for ever from one call on: whatever was acknowledged before is there.
#[test]
fn a_bucket_that_fails_from_any_call_on_has_what_was_acknowledged() {
    let run = |down_from: Option<u64>| -> u64 {
        let (_, clock) = env();
        let faulty = FaultyBucket::new(memory(&clock));
        let place = Place::new(Arc::new(faulty.clone()));
        if let Some(call) = down_from {
            faulty.fail_from(call);
        }
        let mut acknowledged = 0;
        if let Ok(db) = place.open_as(&place.deployment("a")) {
            acknowledged = (0..4).take_while(|number| put(&db, *number, 1).is_ok()).count() as u32;
            drop(db);
        }
        let calls = faulty.calls();
        faulty.fail_from(u64::MAX);
        let db = place.open("b");
        check(&db, 0..acknowledged, 1);
        assert!(down_from.is_some() || acknowledged == 4, "nothing failed");
        calls
    };
    let calls = run(None);
    (0..calls).for_each(|call| _ = run(Some(call)));
}

/// The bucket fails for ever from one call on while a journal moves into it: it is not opened without the
/// directory before all of it is there.
#[test]
fn a_move_that_fails_at_any_call_loses_nothing() {
    for call in 0.. {
        let (_, clock) = env();
        let faulty = FaultyBucket::new(memory(&clock));
        let place = Place::new(Arc::new(faulty.clone()));
        let local = Deployment { bucket_journal: None, ..place.deployment("a") };
        put_all(&place.open_as(&local).expect("opens"), 0..4, 1);
        faulty.fail_from(faulty.calls() + call);
        let moved = place.open_as(&place.deployment("a")).map(drop);
        faulty.fail_from(u64::MAX);
        let reading = place.read("c").expect("reads");
        match reading.journal {
            JournalRead::Elsewhere => assert_eq!(reading.db.get(key(0)).expect("reads"), None, "not flushed"),
            shown => {
                assert_eq!(shown, JournalRead::Bucket);
                check(&reading.db, 0..4, 1);
            }
        }
        match place.open_as(&place.deployment("b")) {
            Ok(elsewhere) => check(&elsewhere, 0..4, 1),
            Err(error) => {
                assert!(matches!(error.kind(), Kind::Invalid | Kind::Corrupt), "{error}");
                check(&place.open("a"), 0..4, 1);
            }
        }
        if moved.is_ok() {
            break;
        }
    }
}

#[test]
fn damage_of_each_object_is_reported_with_its_name() {
    let clock = env().1;
    let bucket = memory(&clock);
    let place = Place::new(bucket.clone());
    let db = place.open("a");
    put_all(&db, 0..6, 1);
    drop(db);
    let names = names(&*bucket, "db/journal");
    let wholes: Vec<_> = names.iter().map(|name| bucket.get(name, 1 << 20).expect("reads")).collect();
    let replace = |name: &String, bytes: &[u8]| {
        bucket.delete(std::slice::from_ref(name)).expect("deletes");
        bucket.create(name, bytes).expect("creates");
    };
    let folder = JournalFolder::new(bucket.clone(), "db").expect("a prefix");
    let whole = folder.chain().expect("whole");
    assert_eq!(whole.len(), names.len() - 1, "all are needed but for the fence in front of them");
    for (index, (name, bytes)) in names.iter().zip(&wholes).enumerate().skip(1) {
        let mut damages: Vec<Option<Vec<u8>>> = vec![None, Some(bytes[..bytes.len() - 1].to_vec())];
        for at in [8, 20, 60, bytes.len() - 1] {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 1;
            damages.push(Some(damaged));
        }
        damages.push(Some(wholes[(index + 1) % wholes.len()].to_vec()));
        for damaged in damages {
            // The newest object gone: what it had may be missed by nothing.
            if damaged.is_none() && index + 1 == names.len() {
                continue;
            }
            match &damaged {
                Some(damaged) => replace(name, damaged),
                None => bucket.delete(std::slice::from_ref(name)).expect("deletes"),
            }
            let directory = tempfile::tempdir().expect("a temporary directory");
            let error = place.open_as(&deployment(&directory.path().join("x"))).expect_err("it is damaged");
            assert_eq!(error.kind(), Kind::Corrupt, "{name}: {error}");
            assert!(error.to_string().contains("db/journal/"), "{name}: {error}");
            // The refused opening may have taken over.
            for stray in self::names(&*bucket, "db/journal").iter().filter(|stray| !names.contains(stray)) {
                bucket.delete(std::slice::from_ref(stray)).expect("deletes");
            }
            if damaged.is_some() {
                replace(name, bytes);
            } else {
                bucket.create(name, bytes).expect("creates");
            }
        }
    }
}

/// The newest object has none behind it that would miss it, but a close says what was durable.
#[test]
fn objects_of_a_closed_database_are_missed_when_the_newest_ones_go() {
    let place = Place::memory();
    let db = place.open("a");
    put_all(&db, 0..6, 1);
    db.close().expect("closes");
    for newest in names(&*place.bucket, "db/journal").into_iter().rev() {
        place.bucket.delete(&[newest]).expect("deletes");
        match place.read("b") {
            // It had the end of a segment, and no commit.
            Ok(reading) => check(&reading.db, 0..6, 1),
            Err(error) => {
                assert_eq!(error.kind(), Kind::Corrupt, "{error}");
                return;
            }
        }
    }
    panic!("no object is left, and none was missed");
}
