//! Damage of files: what was durable is missed with its place, and nothing is invented.

use terrane_base::Kind;
use terrane_device::OpenMode;

use super::*;
use crate::support::refused;

const FIRST: &str = "/log/00000000000000000001.log";

/// A device with a log of so many objects, and where each record begins: records are found by their size.
fn filled(count: u64) -> (MemDisk, Vec<u64>) {
    let disk = MemDisk::new();
    let log = open(&on(disk.clone())).expect("opens");
    let mut places = vec![64];
    for number in 0..count {
        create(&log, number).expect("created");
        let record = 64 + name(number).len() + bytes(number).len();
        places.push(places.last().expect("one") + record.next_multiple_of(8) as u64);
    }
    (disk.kill(), places)
}

/// The device with one bit of a file inverted.
fn flipped(disk: &MemDisk, path: &str, at: u64) -> Arc<dyn Disk> {
    let disk = on(disk.kill());
    let file = disk.open(Path::new(path), OpenMode::Write, false).expect("there");
    let mut byte = [0];
    file.read_at(at, &mut byte).expect("reads");
    file.write_at(at, &[byte[0] ^ 1]).expect("writes");
    disk
}

#[test]
fn the_mark_tells_damage_from_a_torn_tail() {
    let (disk, places) = filled(6);
    for record in 0..6 {
        let (from, to) = (places[record], places[record + 1]);
        // The last bytes may be padding, which says nothing.
        for at in [from, from + 5, from + 20, from + 70, from + 100, to - 12] {
            let damaged = flipped(&disk, FIRST, at);
            if record < 5 {
                let message = refused(open(&damaged), Kind::Corrupt);
                assert!(message.contains(FIRST), "byte {at}: {message}");
            } else {
                // The last one: no record behind it says that it was durable.
                let log = open(&damaged).expect("a torn tail");
                check(&log, 0..5);
                assert_eq!(found(&log).len(), 5);
                assert_eq!(create(&log, 5).expect("it is not there"), Create::Created);
            }
        }
    }
}

#[test]
fn each_damaged_byte_of_several_files_is_reported_or_harmless() {
    let (disk, _) = filled(40);
    let disks = on(disk.kill());
    let names = disks.list(dir()).expect("lists");
    let files: Vec<&String> = names.iter().filter(|name| name.ends_with(".log")).collect();
    assert!(files.len() > 2, "several files: {names:?}");
    for (index, file) in files.iter().enumerate() {
        let path = format!("/log/{file}");
        let len =
            disks.open(Path::new(&path), OpenMode::Read, false).and_then(|file| file.len()).expect("a file");
        for at in (0..len).step_by(61) {
            let damaged = flipped(&disk, &path, at);
            let log = match open(&damaged) {
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Corrupt, "{file}, byte {at}: {error}");
                    continue;
                }
                Ok(log) => log,
            };
            let wrong = (0..40).filter(|number| match log.get(&name(*number), 1 << 20) {
                Ok(read) => {
                    assert!(read == bytes(*number), "{file}, byte {at}: wrong bytes without an error");
                    false
                }
                Err(error) => {
                    assert!([Kind::Corrupt, Kind::NotFound].contains(&error.kind()), "{error}");
                    true
                }
            });
            let wrong: Vec<u64> = wrong.collect();
            assert!(wrong.len() <= 1, "{file}, byte {at}: {wrong:?}");
            assert!(index + 1 == files.len() || wrong.iter().all(|number| *number < 39), "{wrong:?}");
        }
    }
}

#[test]
fn missing_and_foreign_files_are_named() {
    let (disk, _) = filled(40);
    let without = |name: &str| {
        let disk = on(disk.kill());
        disk.remove(&dir().join(name)).expect("there");
        disk
    };
    let message = refused(open(&without("00000000000000000002.log")), Kind::Corrupt);
    assert!(message.contains("00000000000000000002.log"), "{message}");
    // A file of another log under the right name.
    let (other, _) = filled(40);
    let mixed = on(disk.kill());
    let copied =
        on(other).open(&dir().join("00000000000000000002.log"), OpenMode::Read, false).expect("there");
    let mut bytes = vec![0; copied.len().expect("a length") as usize];
    copied.read_at(0, &mut bytes).expect("reads");
    let target = mixed.open(&dir().join("00000000000000000002.log"), OpenMode::Write, false).expect("there");
    target.write_at(0, &bytes).expect("writes");
    refused(open(&mixed), Kind::Corrupt);
    let foreign = on(disk.kill());
    foreign.open(&dir().join("notes.txt"), OpenMode::Create, false).expect("new");
    assert!(refused(open(&foreign), Kind::Invalid).contains("notes.txt"));
    let one = on(disk.kill());
    let first = open(&one).expect("opens");
    refused(open(&one), Kind::Busy);
    drop(first);
    open(&one).expect("the lock is free again");
}

/// The system lost a rename that it had confirmed: a silent end of the log in front of it would lose commits.
#[test]
fn a_file_with_records_that_lost_its_name_is_reported() {
    let (disk, _) = filled(40);
    let (killed, begun) = (on(disk.kill()), dir().join("begun.new"));
    let names = killed.list(dir()).expect("lists");
    let last = names.iter().filter(|name| name.ends_with(".log")).max().expect("several files");
    killed.rename(&dir().join(last), &begun).expect("there");
    let message = refused(open(&killed), Kind::Corrupt);
    assert!(message.contains("begun.new") && message.contains(last.as_str()), "{message}");
    killed.rename(&begun, &dir().join(last)).expect("there");
    check(&open(&killed).expect("opens"), 0..40);
    // One that was begun, and got no record.
    for bytes in [&b""[..], &[7; 100]] {
        let file = killed.open(&begun, OpenMode::Create, false).expect("new");
        file.write_at(0, bytes).expect("writes");
        check(&open(&killed).expect("opens"), 0..40);
        killed.remove(&begun).expect("there");
    }
}

#[test]
fn a_directory_has_a_log_or_a_bucket_of_files() {
    use terrane_remote::bucket::DirectoryBucket;
    let root = tempfile::tempdir().expect("a temporary directory");
    let (log, files) = (root.path().join("log"), root.path().join("files"));
    let opened = LogBucket::on_disk(&log, SMALL, Env::real()).expect("opens");
    create(&opened, 0).expect("created");
    drop(opened);
    let message = refused(DirectoryBucket::open(&log, Env::real()), Kind::Invalid);
    assert!(message.contains("journal service"), "{message}");
    check(&LogBucket::on_disk(&log, SMALL, Env::real()).expect("it is left as it was"), [0]);
    DirectoryBucket::open(&files, Env::real()).expect("opens").create("db/a", b"x").expect("created");
    let message = refused(LogBucket::on_disk(&files, SMALL, Env::real()), Kind::Invalid);
    assert!(message.contains("directory of its own"), "{message}");
}

#[test]
fn an_object_whose_bytes_rot_is_an_error_of_its_reading() {
    let (disk, places) = filled(40);
    // In a file that is not the last one payloads are checked by reads.
    let log = open(&flipped(&disk, FIRST, places[1] - 12)).expect("the header is sound");
    let message = refused(log.get(&name(0), 1 << 20), Kind::Corrupt);
    assert!(message.contains(FIRST), "{message}");
    check(&log, 1..40);
}

#[test]
fn an_object_that_is_damaged_keeps_no_file_from_going() {
    let (disk, places) = filled(60);
    let damaged = flipped(&disk, FIRST, places[1] - 12);
    let log = open(&damaged).expect("the header is sound");
    for round in 0..30 {
        delete(&log, 1 + round * 100..60 + round * 100).expect("deleted");
        (101 + round * 100..160 + round * 100).for_each(|number| _ = create(&log, number).expect("created"));
    }
    let names = damaged.list(dir()).expect("lists");
    assert!(!names.contains(&"00000000000000000001.log".to_owned()), "its file went: {names:?}");
    let trouble = log.take_trouble().expect("an operator has to know").to_string();
    assert!(
        trouble.contains(&name(0)) && trouble.contains("damaged") && log.take_trouble().is_none(),
        "{trouble}"
    );
    drop(log);
    let again = open(&damaged).expect("opens");
    let listed = again.list("db/journal", None).expect("lists");
    assert_eq!((listed[0].name.as_str(), listed[0].bytes), (name(0).as_str(), bytes(0).len() as u64));
    let message = refused(again.get(&name(0), 1 << 20), Kind::Corrupt);
    assert!(message.contains(".log") && message.contains("restore"), "{message}");
    refused(again.get_range(&name(0), 0..1), Kind::Corrupt);
    check(&again, 3001..3060);
    delete(&again, 0..1).expect("it can be deleted");
    refused(again.get(&name(0), 1 << 20), Kind::NotFound);
}

/// Objects that are synced together: no mark of the last group covers its records.
#[test]
fn a_mark_behind_the_last_group_tells_its_damage() {
    for is_marked in [false, true] {
        let (disk, places) = filled(2);
        let log = open(&on(disk.clone())).expect("opens");
        let begun: Vec<_> =
            (2..5).map(|number| log.begin_create(&name(number), vec![bytes(number).into()])).collect();
        begun.into_iter().for_each(|pending| _ = pending.wait().expect("created"));
        if is_marked {
            log.mark_if_idle().expect("something was written since the look before");
            let before = log.files();
            log.mark_if_idle().expect("there is room");
            assert!(log.files().1 > before.1, "a record more");
            let marked = log.files();
            log.mark_if_idle().expect("the last record is a mark");
            log.mark().expect("as before");
            assert_eq!(log.files(), marked, "one mark is enough");
        }
        let at = places[2] + 70;
        let outcome = open(&flipped(&disk, FIRST, at));
        if is_marked {
            let message = refused(outcome, Kind::Corrupt);
            assert!(message.contains(FIRST), "{message}");
            let log = open(&on(disk.kill())).expect("opens");
            check(&log, 0..5);
            let before = log.files();
            log.mark().expect("the last record is a mark");
            assert_eq!(log.files(), before);
            create(&log, 5).expect("it goes on");
        } else {
            assert_eq!(found(&outcome.expect("a torn tail")).len(), 2);
        }
    }
}
