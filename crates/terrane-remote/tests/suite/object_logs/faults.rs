//! Calls of the device that fail, and a device that is full.

use terrane_base::Kind;
use terrane_device::{Call, Failure, Fault, FaultyDisk};

use super::*;

const CALLS: [Call; 10] = [
    Call::Open,
    Call::Exists,
    Call::Create,
    Call::Rename,
    Call::Remove,
    Call::SyncDir,
    Call::Write,
    Call::Sync,
    Call::SetLen,
    Call::Allocate,
];

/// Outcomes that callers of a failing log got.
#[derive(Default)]
struct Outcomes {
    there: Vec<u64>,
    /// The device was full, so there is nothing of them.
    absent: Vec<u64>,
}

impl Outcomes {
    fn take(&mut self, number: u64, outcome: Result<Create>) {
        match outcome {
            Ok(created) => {
                assert_eq!(created, Create::Created);
                self.there.push(number);
            }
            Err(error) if error.kind() == Kind::Full => self.absent.push(number),
            Err(error) => assert_eq!(error.kind(), Kind::Io, "{error}"),
        }
    }
}

/// Groups of several creations, each with one of a name that is taken, and a deletion beside one of them.
fn groups_that_may_fail(log: &LogBucket) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for group in 0..10 {
        let numbers = group * 4..group * 4 + 4;
        let begin = |number| (number, log.begin_create(&name(number), vec![bytes(number).into()]));
        let begun: Vec<_> = numbers.map(begin).collect();
        let taken =
            outcomes.there.last().map(|number| log.begin_create(&name(*number), vec![bytes(0).into()]));
        std::thread::scope(|scope| {
            if group == 5 {
                // After an error any part of them may be deleted.
                scope.spawn(|| drop(delete(log, 0..10)));
            }
            for (number, pending) in begun {
                outcomes.take(number, pending.wait());
            }
        });
        match taken.map(terrane_remote::bucket::Pending::wait) {
            Some(Ok(created)) => assert_eq!(created, Create::AlreadyExists),
            Some(Err(error)) => assert!([Kind::Io, Kind::Full].contains(&error.kind()), "{error}"),
            None => {}
        }
        if group == 5 {
            outcomes.there.retain(|number| *number >= 10);
        }
    }
    outcomes
}

#[test]
fn a_failed_call_neither_loses_nor_adds_objects() {
    let mut failed = 0;
    for (call, failure) in CALLS.iter().flat_map(|call| [(*call, Failure::Broken), (*call, Failure::Full)]) {
        for nth in 0.. {
            let disk = MemDisk::new();
            let faulty = FaultyDisk::new(on(disk.clone()));
            let log = open(&(Arc::new(faulty.clone()) as Arc<dyn Disk>)).expect("opens");
            let before = faulty.count(call);
            faulty.fail(Fault::new(call, failure).after(nth));
            let Outcomes { there, absent } = groups_that_may_fail(&log);
            let was_last = faulty.count(call) - before <= nth;
            faulty.heal();
            check(&log, there.iter().copied());
            failed += absent.len();
            for seed in 0..2 {
                let again = open(&on(disk.crash(seed))).expect("opens");
                check(&again, there.iter().copied());
                let found = found(&again);
                absent
                    .iter()
                    .for_each(|number| assert!(!found.contains_key(&name(*number)), "{call:?} {nth}"));
            }
            if was_last {
                break;
            }
        }
    }
    assert!(failed > 0, "a full device was reported");
}

#[test]
fn a_log_goes_on_when_a_full_device_has_room_again() {
    let disk = MemDisk::new();
    let log = open(&on(disk.clone())).expect("opens");
    (0..10).for_each(|number| _ = create(&log, number).expect("created"));
    disk.set_capacity(disk.used_bytes());
    let mut number = 10;
    let error = loop {
        match create(&log, number) {
            Ok(_) => number += 1,
            Err(error) => break error,
        }
        assert!(number < 100, "the device is full");
    };
    assert!(error.kind() == Kind::Full && error.to_string().contains("/log"), "{error}");
    check(&log, 0..number);
    // Deletions have room that creations leave.
    delete(&log, 0..5).expect("deleted");
    disk.set_capacity(u64::MAX);
    for later in number..number + 20 {
        assert_eq!(create(&log, later).expect("there is room"), Create::Created);
    }
    drop(log);
    check(&open(&on(disk)).expect("opens"), 5..number + 20);
}

#[test]
fn a_sync_that_failed_is_not_forgotten() {
    let disk = MemDisk::new();
    let faulty = FaultyDisk::new(on(disk.clone()));
    let log = open(&(Arc::new(faulty.clone()) as Arc<dyn Disk>)).expect("opens");
    create(&log, 0).expect("created");
    faulty.fail(Fault::new(Call::Sync, Failure::Broken));
    for number in 1..4 {
        let message = crate::support::refused(create(&log, number), Kind::Io);
        assert!(message.contains("start it again"), "{message}");
    }
    assert_eq!(create(&log, 0).expect_err("the end of the log is unknown").kind(), Kind::Io);
    check(&log, [0]);
    drop(log);
    let again = open(&on(disk.crash(1))).expect("opens");
    check(&again, [0]);
    create(&again, 9).expect("it goes on");
}

/// The system counts what a sync could not write as written: the next process reads it, and no sync of it
/// writes it.
#[test]
fn objects_found_behind_a_failed_sync_are_durable() {
    let disk = MemDisk::new();
    let faulty = FaultyDisk::new(on(disk.clone()));
    let settings = LogSettings { file_bytes: 1 << 16, ..SMALL };
    let open = |disk: Arc<dyn Disk>| LogBucket::open(disk, dir(), settings, Env::real());
    let log = open(Arc::new(faulty.clone())).expect("opens");
    // Of several pages: the opening itself changes the last one, by its cut of the file.
    let long = |number: u64| pattern(9000, number);
    let begin = |number: u64| log.begin_create(&name(number), vec![long(number).into()]);
    (0..3).for_each(|number| _ = begin(number).wait().expect("created"));
    faulty.fail(Fault::new(Call::Sync, Failure::Broken));
    let begun: Vec<_> = (3..6).map(begin).collect();
    for pending in begun {
        crate::support::refused(pending.wait(), Kind::Io);
    }
    disk.fail_sync(&dir().join("00000000000000000001.log"));
    drop(log);
    let killed = disk.kill();
    let again = open(on(killed.clone())).expect("the process starts again");
    let seen = found(&again);
    assert_eq!(seen.len(), 6, "it reads what the one before wrote");
    for seed in 0..8 {
        assert!(found(&open(on(killed.crash(seed))).expect("opens")) == seen, "and it is durable");
    }
}

#[test]
fn trims_free_the_space_of_a_full_device() {
    let disk = MemDisk::new();
    let settings = LogSettings { file_bytes: 1 << 20, objects_max: 4000 };
    let log = LogBucket::open(on(disk.clone()), dir(), settings, Env::real()).expect("opens");
    let create = |number: u64| log.create(&name(number), &pattern(8000, number));
    // An object that is needed for ever lies in the first file.
    log.create("db/fence", &[7; 128]).expect("created");
    (0..200).for_each(|number| _ = create(number).expect("created"));
    disk.set_capacity(disk.used_bytes());
    let full = (200..400).find_map(|number| create(number).err());
    assert_eq!(full.expect("the device is full").kind(), Kind::Full);
    let mut short = 0..;
    let mut fill = || log.create(&format!("db/filled/{}", short.next().expect("enough")), &[5; 200]);
    while fill().is_ok() {}
    log.create("db/fence2", &[8; 128]).expect("a fence has room, or no writer could trim");
    delete(&log, 0..150).expect("deleted");
    for number in 500..560 {
        create(number).expect("there is room, although the device has not grown");
    }
    assert_eq!(log.get("db/fence", 128).expect("it stays"), [7; 128][..]);
    assert_eq!(log.get(&name(180), 8000).expect("it stays"), pattern(8000, 180));
}

/// The names of many small objects take a good part of the space of these. Those of a journal are about so
/// short at least.
#[test]
fn trims_of_small_objects_free_the_space_of_a_full_device() {
    let disk = MemDisk::new();
    let settings = LogSettings { file_bytes: 1 << 20, ..LogSettings::default() };
    let log = LogBucket::open(on(disk.clone()), dir(), settings, Env::real()).expect("opens");
    let name = |number: u64| format!("terrane/journal/{number:020}");
    let create = |number: u64| log.create(&name(number), &pattern(200, number));
    log.create("terrane/journal/fence", &[7; 128]).expect("created");
    (0..3500).for_each(|number| _ = create(number).expect("created"));
    disk.set_capacity(disk.used_bytes());
    let full = (3500..9000).find(|number| create(*number).is_err()).expect("the device is full");
    let names: Vec<String> = (0..full - 100).map(name).collect();
    log.delete(&names).expect("deletions have room, and make some");
    for number in full..full + 2000 {
        create(number).expect("there is room, although the device has not grown");
    }
    assert_eq!(log.get("terrane/journal/fence", 128).expect("it stays"), [7; 128][..]);
    assert_eq!(log.get(&name(full - 50), 200).expect("it stays"), pattern(200, full - 50));
}

/// A file that has its name already is the next one, whatever else fails: no record goes into the one before.
#[test]
fn no_record_goes_into_a_file_behind_which_another_one_was_begun() {
    // With more short ones a further attempt to begin the file would succeed.
    for (nth, count) in (0..4).flat_map(|nth| (1..4).map(move |count| (nth, count))) {
        let disk = MemDisk::new();
        let faulty = FaultyDisk::new(on(disk.clone()));
        let log = open(&(Arc::new(faulty.clone()) as Arc<dyn Disk>)).expect("opens");
        faulty.fail(Fault::new(Call::Open, Failure::Broken).after(nth));
        let there: Vec<u64> = (0..60).take_while(|number| create(&log, *number).is_ok()).collect();
        assert!(there.len() < 60, "a call failed");
        // Short ones have room in the file before.
        let name = |at: u64| format!("db/short/{at}");
        let short: Vec<u64> = (0..count).filter(|at| log.create(&name(*at), &[1; 128]).is_ok()).collect();
        faulty.heal();
        for seed in 0..2 {
            let again = open(&on(disk.crash(seed))).expect("opens");
            check(&again, there.iter().copied());
            short.iter().for_each(|at| _ = again.get(&name(*at), 128).expect("it was acknowledged"));
        }
    }
}

/// A removed file may come back while it is unknown whether its removal is durable: no later one goes.
#[test]
fn no_file_goes_behind_one_whose_removal_may_not_be_durable() {
    let disk = MemDisk::new();
    let faulty = FaultyDisk::new(on(disk.clone()));
    let log = open(&(Arc::new(faulty.clone()) as Arc<dyn Disk>)).expect("opens");
    (0..60).for_each(|number| _ = create(&log, number).expect("created"));
    let files = || disk.list(dir()).expect("lists").iter().filter(|name| name.ends_with(".log")).count();
    let before = files();
    faulty.fail(Fault::new(Call::SyncDir, Failure::Broken));
    // Few names: the deletion needs no new file.
    for first in (0..40).step_by(8) {
        delete(&log, first..first + 8).expect("what the cleaning cannot do is not an error of the deletion");
    }
    let trouble = log.take_trouble().expect("an operator has to know").to_string();
    assert!(trouble.contains("until it is opened again"), "{trouble}");
    assert!(before - files() <= 1, "{before} files, then {}", files());
    check(&log, 40..60);
    for seed in 0..8 {
        check(&open(&on(disk.crash(seed))).expect("no file is missing between others"), 40..60);
    }
    drop(log);
    let again = open(&on(disk.kill())).expect("opens");
    delete(&again, 40..41).expect("deleted");
    assert!(again.files().0 < before - 1, "the next opening removes them");
}
