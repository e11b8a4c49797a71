//! Files go when nothing of them is needed, and what is needed stays.

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
fn a_time_of_creation_stays_and_no_later_one_is_before_it() {
    let disk = on(MemDisk::new());
    let times = |log: &LogBucket| -> Vec<_> {
        log.list("db/journal", None).expect("lists").into_iter().map(|object| object.modified).collect()
    };
    let log = open(&disk).expect("opens");
    (0..10).for_each(|number| _ = create(&log, number).expect("created"));
    let before = times(&log);
    assert!(before.is_sorted());
    drop(log);
    // A machine whose clock went back.
    let env = crate::support::env().0;
    let again = LogBucket::open(Arc::clone(&disk), dir(), SMALL, env).expect("opens");
    assert_eq!(times(&again), before);
    create(&again, 10).expect("created");
    assert!(times(&again).is_sorted(), "{:?}", times(&again));
}

#[test]
fn reads_go_on_while_files_go() {
    let disk = on(MemDisk::new());
    let log = open(&disk).expect("opens");
    create(&log, 7000).expect("created");
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| (0..2000).for_each(|_| check(&log, [7000])));
        for round in 0..30u64 {
            let numbers = round * 20..round * 20 + 20;
            numbers.clone().for_each(|number| _ = create(&log, number).expect("created"));
            delete(&log, numbers).expect("deleted");
        }
        reader.join().expect("no read failed");
    });
}

#[test]
fn a_log_takes_no_more_objects_than_it_lists() {
    let settings = LogSettings { objects_max: 3, ..SMALL };
    let log = LogBucket::open(on(MemDisk::new()), dir(), settings, Env::real()).expect("opens");
    (0..3).for_each(|number| _ = create(&log, number).expect("created"));
    let message = crate::support::refused(create(&log, 9), terrane_base::Kind::Full);
    assert!(message.contains('3') && message.contains("garbage_age_s"), "{message}");
    // A fence, without which no writer could trim.
    log.create("db/journal/fence", &[7; 128]).expect("it is short");
    delete(&log, 0..2).expect("deleted");
    create(&log, 9).expect("there is room again");
}
