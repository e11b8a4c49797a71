//! Records that openings set aside, where something comes between: a loss of power, a device without space,
//! limits, a replay filter, another break.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use terrane_base::{Batch, Moment, TableId};
use terrane_device::{Call, Disk, Failure, Fault, FaultyDisk, MemDisk, OpenMode};
use terrane_engine::{Engine, RepairReport, ReplayDecision, ReplayFilter, ReplayedBatch};
use terrane_journal::ASIDE_FILES_MAX;
use terrane_levels::Manifest;

use crate::behind::{aside, damage, died_with, journal, keys};
use crate::repair::{manifest_of, repaired};
use crate::support::gate::GateDisk;
use crate::support::{DIR, open, request, small_options};

const ID: TableId = TableId::DEFAULT;

fn bytes_of(disk: &MemDisk, path: &Path) -> Vec<u8> {
    let file = disk.open(path, OpenMode::Read, false).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

/// The device as an opening leaves it that died when it had set records aside, before its edit.
fn died_before_its_edit(disk: &MemDisk) -> MemDisk {
    let (opened, before) = (disk.kill(), disk.kill());
    open(opened.clone(), &small_options()).unwrap().close().unwrap();
    for path in aside(&opened).iter().map(|name| journal().join(name)) {
        let bytes = bytes_of(&opened, &path);
        before.open(&path, OpenMode::Create, false).unwrap().write_at(0, &bytes).unwrap();
    }
    assert!(!aside(&before).is_empty());
    before
}

fn keys_of(found: &std::collections::BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<&str> {
    found.keys().map(|key| std::str::from_utf8(key).unwrap()).collect()
}

fn losses(report: &RepairReport) -> Vec<String> {
    report.losses.iter().map(|loss| loss.error.to_string()).collect()
}

/// Numbers of the operands in `=1==2=`.
fn operands(value: &[u8]) -> Vec<&str> {
    std::str::from_utf8(value).unwrap().split('=').filter(|part| !part.is_empty()).collect()
}

#[test]
fn an_opening_that_died_before_its_edit_gives_no_operand_twice() {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    let log = engine.create_table("log", &[("merge_operator".into(), "append".into())]).unwrap();
    engine.set_background_paused(true);
    for number in 1..=6 {
        let mut batch = Batch::new();
        batch.merge(log.id, b"all", format!("={number}=").as_bytes(), Moment::NEVER).unwrap();
        engine.write(&batch, false).unwrap();
    }
    let dead = disk.kill();
    engine.close().unwrap();
    damage(&dead, b"=2=");
    let (report, found) = repaired(&died_before_its_edit(&dead), "died before its edit");
    assert_eq!(operands(&found["log"][&b"all"[..]]), ["1", "3", "4", "5", "6"], "{report:#?}");
    assert_eq!(report.losses.len(), 1, "{:?}", losses(&report));
    // One that went on.
    open(dead.clone(), &small_options()).unwrap().close().unwrap();
    let (_, found) = repaired(&dead, "went on");
    assert_eq!(operands(&found["log"][&b"all"[..]]), ["1", "3", "4", "5", "6"]);
}

/// Damage may grow between an opening that died and the next one.
#[test]
fn a_file_of_an_opening_that_died_is_not_exchanged_for_one_with_less() {
    let disk = died_with(6, b"value");
    damage(&disk, b"j002");
    let disk = died_before_its_edit(&disk);
    damage(&disk, b"j004");
    let engine = open(disk.clone(), &small_options()).unwrap();
    assert_eq!((keys(&engine), aside(&disk)), (vec!["j001".to_owned()], vec!["000001-1.cut".to_owned()]));
    engine.close().unwrap();
    let (report, found) = repaired(&disk, "more damage");
    assert_eq!(keys_of(&found["default"]), ["j001", "j003", "j004", "j005", "j006"]);
    assert_eq!(report.set_aside, 4);

    // The prefix may become shorter, too: then the file gets its number.
    let disk = died_with(6, b"value");
    damage(&disk, b"j004");
    let disk = died_before_its_edit(&disk);
    assert_eq!(aside(&disk), ["000001-3.cut"]);
    damage(&disk, b"j002");
    open(disk.clone(), &small_options()).unwrap().close().unwrap();
    assert_eq!(aside(&disk), ["000001-1.cut"]);
    let (report, found) = repaired(&disk, "damage in front");
    assert_eq!(keys_of(&found["default"]), ["j001", "j003", "j005", "j006"], "{report:#?}");
}

/// From the edit that ends the journal on, no loss of power takes a file.
#[test]
fn files_survive_a_loss_of_power() {
    let disk = died_with(6, b"value");
    damage(&disk, b"j002");
    let epoch = |disk: &MemDisk| {
        let disk: Arc<dyn Disk> = Arc::new(disk.clone());
        Manifest::open_read_only(disk, Path::new(DIR)).map(|(manifest, _)| manifest.state().epoch)
    };
    let before = epoch(&disk).unwrap();
    let gate = GateDisk::new(disk.kill());
    let images = Arc::new(Mutex::new(Vec::new()));
    let taken = images.clone();
    let look = move |disk: &MemDisk| {
        let outcomes = disk.outcomes();
        assert!(outcomes <= 1 << 14, "{outcomes} outcomes are too many to try each");
        let of_call = (0..outcomes).map(|number| disk.crash_as(number));
        taken.lock().extend(of_call.filter(|disk| epoch(disk).unwrap() > before));
        1
    };
    gate.look_after(1, Box::new(look));
    let engine = open(gate.clone(), &small_options()).unwrap();
    gate.look_away();
    drop(engine);
    let images = std::mem::take(&mut *images.lock());
    assert!(images.len() > 5, "{} images from the edit on", images.len());
    for (at, image) in images.into_iter().enumerate() {
        assert_eq!(aside(&image), ["000001-1.cut"], "image {at}");
        let (report, found) = repaired(&image, &format!("image {at}"));
        assert_eq!(report.set_aside, 4, "image {at}: {report:#?}");
        assert_eq!(keys_of(&found["default"]), ["j001", "j003", "j004", "j005", "j006"], "image {at}");
    }
}

/// An opening goes on where there is no space for a file.
#[test]
fn a_device_without_space_does_not_keep_an_opening_from_going_on() {
    let disk = died_with(200, &[7; 1500]);
    damage(&disk, b"j010");
    for spare in [140 << 10, 260 << 10] {
        let disk = disk.kill();
        disk.set_capacity(disk.used_bytes() + spare);
        let engine = open(disk.clone(), &small_options()).unwrap();
        engine.put(ID, b"new", b"value", true).unwrap();
        let stats = engine.stats();
        assert_eq!(stats.records_behind_break, 190);
        let (kept, lost) = (aside(&disk).len(), stats.records_behind_break_lost);
        match spare < 200 << 10 {
            true => assert_eq!((kept, lost), (0, 190)),
            false => assert!(kept > 0 && (1..190).contains(&lost), "{kept} files, {lost} lost"),
        }
        engine.close().unwrap();
    }
}

/// The device may be full although it said that it has space.
#[test]
fn a_file_that_does_not_fit_leaves_no_part_of_it() {
    let disk = died_with(6, b"value");
    damage(&disk, b"j002");
    let full = [Call::Create, Call::Write, Call::Rename].map(|call| (call, Failure::Full, true));
    for (call, failure, is_opened) in full.into_iter().chain([(Call::Write, Failure::Broken, false)]) {
        let disk = disk.kill();
        let faulty = FaultyDisk::new(Arc::new(disk.clone()));
        faulty.fail(Fault::new(call, failure).on(".cut"));
        let opened = open(faulty, &small_options());
        assert_eq!(opened.is_ok(), is_opened, "{call:?}");
        let Ok(engine) = opened else {
            // The next opening removes the part and makes the file.
            open(disk.clone(), &small_options()).unwrap().close().unwrap();
            assert_eq!(aside(&disk), ["000001-1.cut"]);
            continue;
        };
        let stats = engine.stats();
        assert_eq!((stats.records_behind_break, stats.records_behind_break_lost), (4, 4));
        let names = disk.list(&journal()).unwrap();
        assert!(names.iter().all(|name| !name.contains("cut")), "{names:?}");
        engine.close().unwrap();
    }
}

/// The segments between those before the break and those behind it are given up: that is not a gap.
#[test]
fn without_a_manifest_the_records_before_and_behind_the_break_are_found() {
    let disk = died_with(200, &[7; 1500]);
    damage(&disk, b"j010");
    let engine = open(disk.clone(), &small_options()).unwrap();
    engine.put(ID, b"late", b"value", true).unwrap();
    let dead = disk.kill();
    engine.close().unwrap();
    assert!(aside(&dead).len() > 3);
    dead.remove(&manifest_of(&dead)).unwrap();
    dead.remove(&Path::new(DIR).join("CURRENT")).unwrap();
    let (report, found) = repaired(&dead, "without a manifest");
    let found = keys_of(&found["default"]);
    let expected = (1..=200).filter(|number| *number != 10).map(|number| format!("j{number:03}"));
    assert_eq!(found, expected.chain(["late".to_owned()]).collect::<Vec<_>>(), "{report:#?}");
}

#[test]
fn an_opening_leaves_no_part_of_a_file_of_one_that_died() {
    let disk = died_with(6, b"value");
    let part = journal().join("000007.cut.new");
    disk.open(&part, OpenMode::Create, false).unwrap().write_at(0, &[1; 5000]).unwrap();
    open(disk.clone(), &small_options()).unwrap().close().unwrap();
    assert!(!disk.exists(&part).unwrap());
}

/// Within the limits, the records nearest to those that count are set aside.
#[test]
fn records_beyond_the_limits_are_lost_and_counted() {
    let dead = died_with(200, &[7; 1500]);
    damage(&dead, b"j010");
    let whole = dead.kill();
    open(whole.clone(), &small_options()).unwrap().close().unwrap();
    let whole = aside(&whole);
    assert!(whole.len() > 3, "{whole:?}");
    let of_files = dead.kill();
    for number in 0..ASIDE_FILES_MAX - 2 {
        let name = format!("{:06}-5.cut", 100 + number);
        of_files.open(&journal().join(name), OpenMode::Create, false).unwrap();
    }
    let of_bytes = dead.kill();
    let long = of_bytes.open(&journal().join("000100-5.cut"), OpenMode::Create, false).unwrap();
    long.set_len(small_options().write_memory_bytes - (100 << 10)).unwrap();
    for (disk, kept) in [(of_files, 2), (of_bytes, 1)] {
        let engine = open(disk.clone(), &small_options()).unwrap();
        let mut found = aside(&disk);
        found.retain(|name| name.ends_with("-9.cut"));
        assert_eq!(found, whole[..kept]);
        let stats = engine.stats();
        assert_eq!(stats.records_behind_break, 190);
        assert!((1..190).contains(&stats.records_behind_break_lost), "{}", stats.records_behind_break_lost);
        engine.close().unwrap();
    }
}

/// Changes the batches with this key.
struct Filter(&'static [u8], ReplayDecision);

impl ReplayFilter for Filter {
    fn name(&self) -> &str {
        "filter"
    }

    fn batch(&self, batch: &ReplayedBatch<'_>) -> ReplayDecision {
        let is_it = format!("{:?}", batch.changes()).contains(&format!("{:?}", self.0));
        if is_it { self.1.clone() } else { ReplayDecision::Keep }
    }
}

fn filtered(disk: &MemDisk, filter: &Filter) -> Arc<Engine> {
    Engine::open_filtered_on(request(Arc::new(disk.clone()), &small_options()), filter).unwrap()
}

/// The segments of a journal that a replay filter wrote again go with what lies behind its end.
#[test]
fn an_opening_with_a_replay_filter_sets_aside_too() {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    engine.set_background_paused(true);
    for (key, value) in [(b"j000", b"1"), (b"j001", b"1"), (b"j002", b"1"), (b"j001", b"2"), (b"j003", b"2")]
    {
        engine.put(ID, key, value, false).unwrap();
    }
    let dead = disk.kill();
    engine.close().unwrap();
    damage(&dead, b"j002");
    let left_out = dead.kill();
    let engine = filtered(&left_out, &Filter(b"j000", ReplayDecision::Ignore));
    let stats = engine.stats();
    assert_eq!((keys(&engine), stats.records_behind_break), (vec!["j001".to_owned()], 2));
    assert_eq!(stats.records_behind_break_lost, 0);
    engine.close().unwrap();
    assert_eq!(aside(&left_out), ["000001-2.cut"]);
    let (report, found) = repaired(&left_out, "filter");
    assert_eq!(keys_of(&found["default"]), ["j001", "j003"], "{report:#?}");
    assert_eq!(found["default"][&b"j001"[..]], b"2", "the records behind the break are newer");

    let ended = dead.kill();
    let engine = filtered(&ended, &Filter(b"j001", ReplayDecision::Stop));
    let stats = engine.stats();
    assert_eq!((keys(&engine), stats.records_behind_break), (vec!["j000".to_owned()], 2));
    assert_eq!(stats.records_behind_break_lost, 2);
    engine.close().unwrap();
    assert_eq!(aside(&ended), [""; 0]);
}

#[test]
fn a_file_of_another_database_is_left_out() {
    let [disk, other] = [b"ours_", b"other"].map(|value| {
        let disk = died_with(6, value);
        damage(&disk, b"j002");
        open(disk.clone(), &small_options()).unwrap().close().unwrap();
        disk
    });
    let path = journal().join("000001-1.cut");
    disk.remove(&path).unwrap();
    disk.open(&path, OpenMode::Create, false).unwrap().write_at(0, &bytes_of(&other, &path)).unwrap();
    let (report, found) = repaired(&disk, "foreign");
    assert_eq!((keys_of(&found["default"]), report.set_aside), (vec!["j001"], 0));
    let is_named = report.doubts.iter().any(|doubt| doubt.to_string().contains("is of another database"));
    assert!(is_named, "{report:#?}");
}

/// Two breaks behind the same commit are two: the record at the second one is a loss as well.
#[test]
fn each_break_is_reported_with_its_records() {
    let disk = died_with(6, b"value");
    damage(&disk, b"j002");
    let engine = open(disk.clone(), &small_options()).unwrap();
    engine.set_background_paused(true);
    for key in [b"k101", b"k102", b"k103"] {
        engine.put(ID, key, b"value", false).unwrap();
    }
    let dead = disk.kill();
    engine.close().unwrap();
    damage(&dead, b"k101");
    open(dead.clone(), &small_options()).unwrap().close().unwrap();
    let files = aside(&dead);
    assert!(files.len() == 2 && files.iter().all(|name| name.ends_with("-1.cut")), "{files:?}");
    let (report, found) = repaired(&dead, "two breaks");
    assert_eq!(keys_of(&found["default"]), ["j001", "j003", "j004", "j005", "j006", "k102", "k103"]);
    let lost: Vec<String> =
        losses(&report).into_iter().filter(|loss| loss.contains("records 2 to 2 are lost")).collect();
    assert_eq!(lost.len(), 2, "{:?}", losses(&report));
}

/// A range delete that cannot be taken in hides the rows that it hid of the same break.
#[test]
fn a_range_delete_that_is_left_out_brings_nothing_back() {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    engine.set_background_paused(true);
    engine.put(ID, b"j001", b"kept", false).unwrap();
    engine.put(ID, b"j002", b"damaged", false).unwrap();
    engine.put(ID, b"k1", b"deleted", false).unwrap();
    engine.delete_range(ID, b"k0", b"k9", false).unwrap();
    engine.put(ID, b"k2", b"set aside", false).unwrap();
    let dead = disk.kill();
    engine.close().unwrap();
    damage(&dead, b"j002");
    let engine = open(dead.clone(), &small_options()).unwrap();
    engine.put(ID, b"k5", b"newer", false).unwrap();
    engine.flush().unwrap();
    engine.close().unwrap();
    let (report, found) = repaired(&dead, "range delete");
    assert_eq!(keys_of(&found["default"]), ["j001", "k2", "k5"], "{report:#?}");
}

/// Where the levels cannot be read, an opening cannot know whether they have something newer.
#[test]
fn records_that_may_be_older_than_unreadable_rows_are_left_out_and_named() {
    let disk = died_with(12, b"set aside");
    damage(&disk, b"j002");
    let engine = open(disk.clone(), &small_options()).unwrap();
    for key in [b"j003", b"j005"] {
        engine.put(ID, key, b"flushed", false).unwrap();
    }
    engine.flush().unwrap();
    engine.close().unwrap();
    let data = Path::new(DIR).join("data");
    for name in disk.list(&data).unwrap() {
        let file = disk.open(&data.join(name), OpenMode::Write, false).unwrap();
        let bytes = vec![0xa5; file.len().unwrap() as usize];
        file.write_at(0, &bytes).unwrap();
    }
    let (report, found) = repaired(&disk, "unreadable levels");
    // Beyond the extent's keys nothing can be newer.
    let expected = ["j006", "j007", "j008", "j009", "j010", "j011", "j012"];
    assert!(keys_of(&found["default"]).ends_with(&expected), "{:?}", found["default"]);
    assert!(!found["default"].contains_key(&b"j003"[..]) && !found["default"].contains_key(&b"j004"[..]));
    let is_named =
        losses(&report).iter().any(|loss| loss.contains("3 records") && loss.contains("are left out"));
    assert!(is_named, "{:?}", losses(&report));
}
