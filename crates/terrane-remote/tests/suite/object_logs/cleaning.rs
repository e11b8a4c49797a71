//! A file goes when no object of it is needed, and needed objects stay.

use std::time::Duration;

use terrane_base::env::Clock;
use terrane_base::sync::atomic::{AtomicBool, Ordering};

use super::*;

#[test]
fn files_go_when_their_objects_are_gone() {
    let disk = on(MemDisk::new());
    let log = open(&disk).expect("opens");
    // Needed for ever, as fences and the identity are.
    create(&log, 7000).expect("created");
    create(&log, 7001).expect("created");
    let mut most = 0;
    for round in 0..30u64 {
        let numbers = round * 20..round * 20 + 20;
        numbers.clone().for_each(|number| _ = create(&log, number).expect("created"));
        most = most.max(log.files().1);
        delete(&log, numbers).expect("deleted");
        check(&log, [7000, 7001]);
    }
    let (count, bytes) = log.files();
    assert!(count <= 6 && bytes <= 6 * SMALL.file_bytes, "{count} files of {bytes} bytes stay of {most}");
    let names = disk.list(dir()).expect("lists");
    assert!(!names.contains(&"00000000000000000001.log".to_owned()), "{names:?}");
    drop(log);
    let again = open(&disk).expect("opens");
    check(&again, [7000, 7001]);
    assert_eq!(found(&again).len(), 2);
    assert_eq!(create(&again, 7000).expect("an answer"), Create::AlreadyExists);
}

#[test]
fn times_of_creation_stand_still_for_a_small_step_back_of_the_clock_only() {
    let disk = on(MemDisk::new());
    let open_at = |seconds: u64| {
        let (env, clock) = crate::support::env();
        clock.sleep(Duration::from_secs(seconds));
        LogBucket::open(Arc::clone(&disk), dir(), SMALL, env).expect("opens")
    };
    let times = |log: &LogBucket| -> Vec<u64> {
        let listed = log.list("db/journal", None).expect("lists");
        listed.into_iter().map(|object| object.modified.as_secs()).collect()
    };
    let create_at = |seconds: u64, number: u64| {
        let log = open_at(seconds);
        create(&log, number).expect("created");
        times(&log)
    };
    assert_eq!(create_at(1000, 0), [1000]);
    assert_eq!(create_at(990, 1), [1000, 1000], "none is before the one before");
    assert_eq!(create_at(1010, 2), [1000, 1000, 1010]);
    // The times of deleted objects count, too.
    let log = open_at(1040);
    create(&log, 3).expect("created");
    delete(&log, 3..4).expect("deleted");
    drop(log);
    assert_eq!(create_at(1000, 4), [1000, 1000, 1010, 1040]);
    // A clock that was far ahead for a moment does not stop the time until then.
    assert_eq!(create_at(9_000_000, 5), [1000, 1000, 1010, 1040, 9_000_000]);
    assert_eq!(create_at(1050, 6), [1000, 1000, 1010, 1040, 9_000_000, 1050]);
}

#[test]
fn reads_go_on_while_files_go() {
    let disk = on(MemDisk::new());
    let log = open(&disk).expect("opens");
    create(&log, 7000).expect("created");
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !has_ended.load(Ordering::Acquire) {
                check(&log, [7000]);
            }
        });
        for round in 0..30u64 {
            let numbers = round * 20..round * 20 + 20;
            numbers.clone().for_each(|number| _ = create(&log, number).expect("created"));
            delete(&log, numbers).expect("deleted");
        }
        has_ended.store(true, Ordering::Release);
        reader.join().expect("no read failed");
    });
    let names = disk.list(dir()).expect("lists");
    let first: u64 =
        names.iter().filter_map(|name| name.strip_suffix(".log")?.parse().ok()).min().expect("a file");
    assert!(first > 10, "the object moved several times: {names:?}");
}

#[test]
fn a_log_takes_at_most_the_objects_that_it_can_list() {
    let settings = LogSettings { objects_max: 4, ..SMALL };
    let log = LogBucket::open(on(MemDisk::new()), dir(), settings, Env::real()).expect("opens");
    (0..4).for_each(|number| _ = create(&log, number).expect("created"));
    let message = crate::support::refused(create(&log, 9), terrane_base::Kind::Full);
    assert!(message.contains('4') && message.contains("garbage_age_s"), "{message}");
    // A fence, without which no writer could trim.
    log.create("db/journal/fence", &[7; 128]).expect("it is short");
    // But not any number of those, and none with a byte more.
    crate::support::refused(log.create("db/journal/longer", &[7; 129]), terrane_base::Kind::Full);
    let more = (0..100).take_while(|at| log.create(&format!("db/more/{at}"), &[7; 128]).is_ok()).count();
    assert_eq!(more, 15, "16 beyond the limit");
    let names: Vec<String> = (0..more).map(|at| format!("db/more/{at}")).collect();
    log.delete(&names).expect("deleted");
    assert!(log.is_crowded(), "more than half of what it takes");
    delete(&log, 0..4).expect("deleted");
    assert!(!log.is_crowded(), "one fence of four objects");
    create(&log, 9).expect("there is room again");
}

#[test]
fn a_long_list_is_whole_and_in_order() {
    let settings = LogSettings { objects_max: 20_000, ..LogSettings::default() };
    let log = LogBucket::open(on(MemDisk::new()), dir(), settings, Env::real()).expect("opens");
    let one = |name: &str| log.begin_create(name, vec![Bytes::from_static(b"x")]);
    let names: Vec<String> = (0..9000).map(name).collect();
    let begun: Vec<_> =
        names.iter().map(|name| one(name)).chain(["db/journaL/1", "db/journalist"].map(one)).collect();
    begun.into_iter().for_each(|pending| _ = pending.wait().expect("created"));
    let listed = |after: Option<&str>| -> Vec<String> {
        let listed = log.list("db/journal", after).expect("lists");
        listed.into_iter().map(|object| object.name).collect()
    };
    assert!(listed(None) == names, "all of the folder, and nothing beside it");
    assert!(listed(Some(&names[4095])) == names[4096..], "behind a name");
    assert!(listed(Some(&names[8999])).is_empty());
}
