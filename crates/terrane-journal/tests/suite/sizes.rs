//! How many bytes segments have, how many files there are, and what a close leaves.
#![cfg(not(feature = "shuttle"))]
#![allow(clippy::unwrap_used, reason = "a failed test may say so by a panic")]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{DIR, Manifest, open, put, settings};
use terrane_base::env::Env;
use terrane_base::{Error, Kind, Result, SeqNo};
use terrane_device::{Call, Disk, FaultyDisk, MemDisk, OpenMode, PosixDisk};
use terrane_journal::{
    FileJournal, Journal, JournalSettings, JournalStart, SegmentRegistrar, SegmentSpec, SegmentState,
};

const KIB: u64 = 1 << 10;

/// Bytes of all segment files.
fn file_bytes(disk: &dyn Disk) -> Vec<u64> {
    let len = |name: &String| disk.open(&Path::new(DIR).join(name), OpenMode::Read, false)?.len();
    disk.list(Path::new(DIR)).unwrap().iter().map(|name| len(name).unwrap()).collect()
}

fn commit(journal: &dyn Journal, key: &[u8], value: &[u8]) {
    journal.commit(&put(key, value), false, &mut |_| {}).unwrap();
}

/// Waits for the preparer.
fn until_true(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::yield_now();
    }
}

/// A journal of segments up to 1 MiB on a device in memory.
fn opened(disk: &Arc<dyn Disk>, manifest: &Arc<Manifest>) -> FileJournal {
    open(disk, manifest, &settings(1024 * KIB)).unwrap().0
}

#[test]
fn the_opening_makes_one_short_segment() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let journal = opened(&disk, &Arc::default());
    assert_eq!(file_bytes(&*disk), [64 * KIB]);
    // Up to a quarter of it no other one is made.
    commit(&journal, b"key", &[7; 8000]);
    assert_eq!(file_bytes(&*disk), [64 * KIB]);
    assert_eq!(journal.memory_bytes(), 64 * KIB);
}

/// A manifest that registers no segment while `held` is locked.
#[derive(Default)]
struct Held {
    manifest: Manifest,
    asked: AtomicU64,
    held: Mutex<()>,
}

impl SegmentRegistrar for Held {
    fn register(&self, segment: &SegmentSpec) -> Result<()> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let _held = self.held.lock().unwrap();
        self.manifest.register(segment)
    }
}

/// Commits `count` values, and trims all but the last two segments behind each, as flushes do.
fn commit_and_trim(journal: &dyn Journal, count: usize, value_len: usize) {
    for _ in 0..count {
        commit(journal, b"key", &vec![7; value_len]);
        let complete = journal.complete_segments();
        if let [.., last, _] = &complete[..] {
            journal.trim(last.id).unwrap();
        }
    }
}

/// Two short files and five long ones.
const LONG_FILES_MAX: u64 = 7;

/// Batches that fit no ordinary segment have the prepared ones, and the files of those before.
#[test]
fn long_batches_find_their_segment_prepared_in_a_file_that_was_used() {
    let counted = FaultyDisk::new(Arc::new(MemDisk::new()));
    let (disk, manifest): (Arc<dyn Disk>, Arc<Manifest>) = (Arc::new(counted.clone()), Arc::default());
    let settings = JournalSettings { long_segment_bytes: 2048 * KIB, ..settings(1024 * KIB) };
    let journal = open(&disk, &manifest, &settings).unwrap().0;
    // Of lengths that differ a little.
    (0..10).for_each(|round| commit_and_trim(&journal, 1, 1_600_000 + round * 7));
    let listed = manifest.listed.lock().unwrap().len();
    (0..30).for_each(|round| commit_and_trim(&journal, 1, 1_600_000 + round * 7));
    // The first two segments were short. Of long ones there are, when the preparer looks for a file: the
    // active one, two that are complete, and one that was trimmed and is still read.
    let files = counted.count(Call::Create);
    assert!(files <= LONG_FILES_MAX, "{files} files were made for 40 batches");
    // The segment that is prepared behind the last batch may be listed at the first look and not at the last
    // one, or the reverse.
    until_true(|| manifest.listed.lock().unwrap().len() + 1 >= listed + 30);
    let added = manifest.listed.lock().unwrap().len() - listed;
    assert!(added <= 31, "{added} segments for 30 batches");
    let unused = |segment: &terrane_journal::SegmentInfo| segment.state == SegmentState::Unused;
    assert!(!journal.segments().iter().any(unused), "no segment is left unused");
    assert!(journal.segments().iter().all(|segment| segment.bytes < 1_800_000));
    // Ordinary batches have ordinary segments again, in new files.
    commit_and_trim(&journal, 3000, 8000);
    assert!(counted.count(Call::Create) <= files + 8);
    commit_and_trim(&journal, 3000, 8000);
    assert!(journal.segments().iter().all(|segment| segment.bytes <= 1024 * KIB));
    journal.close().unwrap();
    journal.remove_spares().unwrap();
    assert!(file_bytes(&*disk).iter().all(|bytes| *bytes <= 1024 * KIB), "{:?}", file_bytes(&*disk));
}

/// One that is too long even for long segments has one of its own, and the next ones are ordinary.
#[test]
fn a_very_long_batch_changes_no_other_segment() {
    let (disk, manifest): (Arc<dyn Disk>, Arc<Manifest>) = (Arc::new(MemDisk::new()), Arc::default());
    let settings = JournalSettings { long_segment_bytes: 2048 * KIB, ..settings(1024 * KIB) };
    let journal = open(&disk, &manifest, &settings).unwrap().0;
    for len in [5_000_000, 8000, 5_000_000, 8000] {
        commit(&journal, b"key", &vec![7; len]);
    }
    (0..300).for_each(|_| commit(&journal, b"key", &[7; 8000]));
    let mut sizes: Vec<u64> = journal.segments().iter().map(|segment| segment.bytes).collect();
    sizes.retain(|bytes| *bytes > 1024 * KIB);
    assert!(sizes.len() == 2 && sizes.iter().all(|bytes| *bytes < 5_001_000), "{sizes:?}");
}

/// Otherwise its memory would stay until the next commit, and a long one would wait for room for ever.
#[test]
fn the_segment_of_a_very_long_batch_can_be_trimmed_without_another_commit() {
    let (disk, manifest): (Arc<dyn Disk>, Arc<Manifest>) = (Arc::new(MemDisk::new()), Arc::default());
    let settings = JournalSettings { long_segment_bytes: 2048 * KIB, ..settings(1024 * KIB) };
    let journal = open(&disk, &manifest, &settings).unwrap().0;
    commit(&journal, b"short", &[7; 8000]);
    journal.seal_longer_than(2048 * KIB).unwrap();
    assert_eq!(journal.complete_segments().len(), 0, "an ordinary segment is filled");
    let mut reader = None;
    let long = put(b"long", &vec![7; 5_000_000]);
    journal.commit(&long, false, &mut |placed| reader = Some(placed.segment.clone())).unwrap();
    journal.seal_longer_than(2048 * KIB).unwrap();
    let sealed = journal.complete_segments().last().unwrap().clone();
    assert!(sealed.bytes > 5_000_000 && sealed.state == SegmentState::Sealed, "{sealed:?}");
    assert!(journal.memory_bytes() > 5_000_000);
    journal.trim(sealed.id).unwrap();
    assert!(journal.memory_bytes() <= 2048 * KIB, "{} bytes", journal.memory_bytes());
    assert_eq!(journal.held_bytes(), sealed.bytes, "a reader has it");
    drop(reader);
    assert_eq!(journal.held_bytes(), 0, "the journal itself keeps nothing of it");
    manifest.listed.lock().unwrap().retain(|segment| segment.spec.id > sealed.id);
    commit(&journal, b"behind", &[7; 8000]);
    journal.close().unwrap();
    drop(journal);
    let rows = open(&disk, &manifest, &settings).unwrap().1;
    assert_eq!(rows.iter().map(|row| &row.1[..]).collect::<Vec<_>>(), [b"behind"], "the chain goes on");
}

/// Its pages are allocated before it is ready, and batches may be admitted meanwhile.
#[test]
fn a_segment_that_is_being_prepared_counts_as_memory() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    disk.create_dir(Path::new(DIR)).unwrap();
    let (env, start, registrar) = (Env::real(), JournalStart::default(), Arc::new(Held::default()));
    let shared = Arc::clone(&registrar) as Arc<dyn SegmentRegistrar>;
    let settings = settings(1024 * KIB);
    let journal = FileJournal::open(disk, Path::new(DIR), &settings, &env, shared, &start).unwrap();
    let held = registrar.held.lock().unwrap();
    commit(&journal, b"key", &[7; 8000]);
    assert_eq!(journal.memory_bytes(), 64 * KIB, "a quarter is not used yet");
    commit(&journal, b"key", &[7; 16_000]);
    assert_eq!(journal.memory_bytes(), (64 + 128) * KIB);
    // Segments begin short again, but this one has its length.
    while registrar.asked.load(Ordering::Relaxed) < 2 {
        std::thread::yield_now();
    }
    journal.remove_spares().unwrap();
    assert_eq!(journal.memory_bytes(), (64 + 128) * KIB);
    drop(held);
    while journal.segments().len() < 2 {
        commit(&journal, b"key", &[7; 4000]);
    }
    assert!(journal.memory_bytes() >= (64 + 128) * KIB);
    journal.close().unwrap();
    let segments: u64 = journal.segments().iter().map(|segment| segment.bytes).sum();
    assert_eq!(journal.memory_bytes(), segments, "a closed journal prepares none");
}

/// The first commits need no directory.
#[test]
fn a_journal_whose_directory_is_gone_takes_commits() {
    let dir = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(PosixDisk::new());
    let settings = settings(1024 * KIB);
    let (env, start) = (Env::real(), JournalStart::default());
    let registrar = Arc::new(Manifest::default());
    let journal = FileJournal::open(disk, dir.path(), &settings, &env, registrar, &start).unwrap();
    dir.close().unwrap();
    commit(&journal, b"key", b"value");
    assert_eq!(journal.visible().0, 1);
}

#[test]
fn each_segment_has_twice_the_bytes_of_the_one_before_up_to_the_setting() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let journal = opened(&disk, &Arc::default());
    let sizes = |journal: &FileJournal| {
        let used = journal.segments().into_iter().filter(|segment| segment.state != SegmentState::Unused);
        used.map(|segment| segment.bytes / KIB).collect::<Vec<_>>()
    };
    while journal.segments().len() < 7 {
        commit(&journal, b"key", &[7; 4000]);
    }
    assert_eq!(sizes(&journal), [64, 128, 256, 512, 1024, 1024, 1024]);
    // Behind a rest they are short again; one that is prepared already is used first.
    journal.remove_spares().unwrap();
    while journal.segments().len() < 10 {
        commit(&journal, b"key", &[7; 4000]);
    }
    assert!(sizes(&journal)[7..].iter().any(|kib| *kib <= 128), "{:?}", sizes(&journal));
}

/// A batch that is too long for short segments makes the next ones longer at once.
#[test]
fn a_long_batch_ends_the_short_segments() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let journal = opened(&disk, &Arc::default());
    commit(&journal, b"key", &[7; 300_000]);
    let active = journal.segments().pop().unwrap();
    assert_eq!((active.state, active.bytes), (SegmentState::Active, 1024 * KIB));
}

#[test]
fn a_replayed_segment_counts_the_memory_that_its_records_take() {
    let (disk, manifest): (Arc<dyn Disk>, Arc<Manifest>) = (Arc::new(MemDisk::new()), Arc::default());
    // As long as they were made before they grew.
    let settings = JournalSettings { first_segment_bytes: 1024 * KIB, ..settings(1024 * KIB) };
    for round in 0..10u8 {
        let (journal, rows) = open(&disk, &manifest, &settings).unwrap();
        assert_eq!(rows.len(), usize::from(round));
        assert!(journal.memory_bytes() <= 1024 * KIB + u64::from(round) * 4 * KIB);
        commit(&journal, &[round], b"value");
        journal.close().unwrap();
    }
}

/// The last segment holds the mark that names the last edit of the manifest, and no record.
#[test]
fn a_closed_journal_can_be_trimmed_but_for_a_mark() {
    let (memory, manifest): (_, Arc<Manifest>) = (MemDisk::new(), Arc::default());
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let journal = opened(&disk, &manifest);
    while journal.segments().len() < 3 {
        commit(&journal, b"key", &[7; 4000]);
    }
    (0..20).for_each(|_| commit(&journal, b"key", &[7; 4000]));
    let last = journal.close().unwrap();
    let segments = journal.complete_segments();
    assert_eq!(segments.iter().map(|segment| segment.last_seq).max(), Some(last));
    let upto = segments.last().unwrap().id;
    assert_eq!(journal.trim(upto).unwrap().len(), segments.len());
    journal.remove_spares().unwrap();
    assert!(memory.used_bytes() <= 4 * KIB, "{} bytes, {:?}", memory.used_bytes(), file_bytes(&*disk));
}

/// Loads a journal until its segments have the full length and one is prepared, then some more.
fn load(journal: &FileJournal, manifest: &Manifest) {
    while journal.segments().last().is_none_or(|last| last.bytes < 1024 * KIB) {
        commit(journal, b"key", &[7; 4000]);
    }
    (0..20).for_each(|_| commit(journal, b"key", &[7; 4000]));
    until_true(|| manifest.listed.lock().unwrap().len() > journal.segments().len());
}

/// The active segment at the end, and how many segments were registered beside those that were used.
fn closed(journal: &FileJournal, manifest: &Manifest) -> (u64, usize) {
    journal.close().unwrap();
    let segments = journal.segments();
    let active = segments.iter().find(|segment| segment.state == SegmentState::Active).unwrap();
    let used = segments.iter().filter(|segment| segment.state != SegmentState::Unused).count();
    (active.bytes, manifest.listed.lock().unwrap().len() - used)
}

#[test]
fn a_close_after_a_load_ends_in_a_short_segment_and_prepares_no_other() {
    let (disk, manifest): (Arc<dyn Disk>, Arc<Manifest>) = (Arc::new(MemDisk::new()), Arc::default());
    let journal = opened(&disk, &manifest);
    load(&journal, &manifest);
    assert_eq!(
        closed(&journal, &manifest),
        (64 * KIB, 1),
        "the one that was prepared for the load is unused"
    );
    drop(journal);
    let (_, rows) = open(&disk, &manifest, &settings(1024 * KIB)).unwrap();
    assert!(rows.len() > 20);
}

/// A device that has no space left for a short segment has the prepared one.
#[test]
fn a_close_without_space_ends_in_the_prepared_segment() {
    let (memory, manifest): (_, Arc<Manifest>) = (MemDisk::new(), Arc::default());
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let journal = opened(&disk, &manifest);
    load(&journal, &manifest);
    memory.set_capacity(0);
    assert_eq!(closed(&journal, &manifest), (1024 * KIB, 0));
    drop(journal);
    memory.set_capacity(u64::MAX);
    let (_, rows) = open(&disk, &manifest, &settings(1024 * KIB)).unwrap();
    assert!(rows.len() > 20);
}

/// Commits until the device refuses; returns the refusal and the bytes that are free then.
fn filled(settings: &JournalSettings, segments: &[u64]) -> (FileJournal, Error, u64) {
    let memory = MemDisk::new();
    memory.set_capacity(1024 * KIB);
    let disk: Arc<dyn Disk> = Arc::new(memory);
    let (journal, _) = open(&disk, &Arc::default(), settings).unwrap();
    let refused =
        |number: u64| journal.commit(&put(&number.to_le_bytes(), &[7; 2000]), false, &mut |_| {}).err();
    let error = (0..1000).find_map(refused).expect("it takes more than the device has");
    assert_eq!(error.kind(), Kind::Full, "{error}");
    assert_eq!(file_bytes(&*disk), segments.iter().map(|kib| kib * KIB).collect::<Vec<_>>());
    (journal, error, disk.free_bytes(Path::new(DIR)).unwrap())
}

#[test]
fn shorter_segments_are_made_where_long_ones_do_not_fit() {
    let (_, error, free) = filled(&settings(1024 * KIB), &[64, 128, 256, 512, 64]);
    assert!(free == 0 && error.message().contains("journal segment of 65536 bytes"), "{free} {error}");
}

#[test]
fn a_journal_leaves_room_for_the_flush_of_what_it_holds() {
    let rule = JournalSettings { leaves_room: true, ..settings(1024 * KIB) };
    let (journal, error, free) = filled(&rule, &[64, 128, 256, 64]);
    assert!(free >= (64 + 128 + 256 + 64) * KIB, "{free} bytes are free");
    let (_, said) = error.message().split_once("must stay free for the flush of").unwrap();
    let lacking = said.rsplit_once(": ").and_then(|(_, rest)| rest.strip_suffix(" bytes are enough"));
    // The shortest segment, and what the flush of all then takes.
    let needed = 64 * KIB + (64 + 128 + 256 + 64 + 64) * KIB;
    assert_eq!(lacking.unwrap().parse(), Ok(needed - free), "{error}");
    // A batch that removes rows may take of it, once.
    let full = || (0..1000).find(|_| journal.commit(&put(b"k", &[7; 2000]), false, &mut |_| {}).is_err());
    journal.use_kept_room(Some(SeqNo(1)));
    assert!(full() > Some(20) && full() == Some(0), "one more short segment");
    journal.use_kept_room(None);
    journal.use_kept_room(Some(SeqNo(1)));
    assert!(full() == Some(0), "nothing was flushed since");
    journal.use_kept_room(Some(SeqNo(2)));
    assert!(full() > Some(20) && full() == Some(0), "behind a flush there is one again");
}

/// Also where an older segment is still needed, so that none is trimmed.
#[test]
fn a_prepared_segment_of_a_closed_journal_can_be_removed() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let (manifest, prepared) = (Arc::<Manifest>::default(), || disk.list(Path::new(DIR)).unwrap().len() == 2);
    let journal = opened(&disk, &manifest);
    (0..5).for_each(|_| commit(&journal, b"key", &[7; 8000]));
    until_true(prepared);
    assert!(journal.unused_segments().is_empty(), "it may still be used");
    journal.close().unwrap();
    let unused: Vec<_> = journal.unused_segments().iter().map(|segment| segment.id).collect();
    assert_eq!(unused.len(), 1);
    assert!(journal.complete_segments().is_empty());
    manifest.listed.lock().unwrap().retain(|segment| !unused.contains(&segment.spec.id));
    journal.remove_unused(&unused).unwrap();
    assert_eq!(file_bytes(&*disk), [64 * KIB]);
    assert!(journal.unused_segments().is_empty());
    drop(journal);
    let (_, rows) = open(&disk, &manifest, &settings(1024 * KIB)).unwrap();
    assert_eq!(rows.len(), 5);
}

/// A closed journal that must be kept takes the space of its records.
#[test]
fn unused_ends_of_a_closed_journal_take_no_space() {
    let (memory, manifest): (_, Arc<Manifest>) = (MemDisk::new(), Arc::default());
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let journal = opened(&disk, &manifest);
    (0..5).for_each(|_| commit(&journal, b"key", &[7; 1000]));
    journal.close().unwrap();
    let before = memory.used_bytes();
    journal.remove_spares().unwrap();
    let bytes: u64 = file_bytes(&*disk).iter().sum();
    assert!(memory.used_bytes() + bytes / 2 <= before, "{} of {before}", memory.used_bytes());
    drop(journal);
    let (_, rows) = open(&disk, &manifest, &settings(1024 * KIB)).unwrap();
    assert_eq!(rows.len(), 5);
}
