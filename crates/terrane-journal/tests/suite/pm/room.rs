//! Persistent memory that is full.

use std::path::Path;
use std::sync::Arc;

use terrane_base::Kind;
use terrane_base::env::Env;
use terrane_device::pm::Volatile;
use terrane_device::{Call, Disk, Failure, Fault, FaultyDisk, MemDisk};
use terrane_journal::pm::ZoneDisk;
use terrane_journal::{Journal, file_name, file_number};

use crate::common::{DIR, Manifest, put};
use crate::pm::support::{CHUNK_BYTES, disk_on, disk_over, open, settings, stepped};

fn fill(journal: &dyn Journal) -> (u64, Kind) {
    for count in 0..1000u64 {
        if let Err(error) = journal.commit(&put(&count.to_le_bytes(), &[7; 900]), true, &mut |_| {}) {
            assert!(error.to_string().contains("persistent memory"), "{error}");
            return (count, error.kind());
        }
    }
    panic!("there is always room")
}

/// The numbers of the segments that are ordinary files, in order.
fn files_of(base: &dyn Disk) -> Vec<u32> {
    let mut files: Vec<u32> =
        base.list(Path::new(DIR)).unwrap().iter().filter_map(|name| file_number(name)).collect();
    files.sort_unstable();
    files
}

/// The content of the region, as after the death of the process.
fn image(disk: &ZoneDisk<Volatile>) -> Volatile {
    use terrane_device::pm::PmRegion;
    let mut content = vec![0; disk.halloc().region().len() as usize];
    disk.halloc().region().read(0, &mut content).unwrap();
    Volatile::with_content(&content)
}

#[test]
fn a_full_region_refuses_a_group_and_loses_nothing() {
    let disk = disk_on(Volatile::new(16 * CHUNK_BYTES), true).unwrap();
    let manifest = Arc::new(Manifest::default());
    let (journal, _) = open(&disk, &manifest, &settings(), &Env::real()).unwrap();
    let (count, kind) = fill(&journal);
    assert_eq!(kind, Kind::Full);
    assert_eq!(journal.visible().0, count, "what was refused has no number");
    let listed = copy(&manifest);
    let (_, rows) = open(&disk_on(image(&disk), false).unwrap(), &listed, &settings(), &Env::real()).unwrap();
    assert_eq!(rows.len() as u64, count, "what was acknowledged is there");
    // Room again, and the next commit succeeds.
    let upto = journal.complete_segments().last().unwrap().id;
    manifest.listed.lock().unwrap().retain(|listed| listed.spec.id > upto);
    journal.trim(upto).unwrap();
    assert_eq!(journal.commit(&put(b"after", b""), true, &mut |_| {}).unwrap().0, count + 1);
}

/// The zone of a trimmed segment stays as it is while a reader has it.
#[test]
fn a_mapped_zone_is_not_handed_out() {
    let disk = disk_on(Volatile::new(16 * CHUNK_BYTES), true).unwrap();
    let manifest = Arc::new(Manifest::default());
    // Without threads: one that prepares a segment late would take the zone that comes back.
    let (journal, _) = open(&disk, &manifest, &settings(), &stepped()).unwrap();
    let mut kept = None;
    journal
        .commit(&put(b"kept", &[9; 900]), true, &mut |placed| kept = Some(placed.segment.clone()))
        .unwrap();
    fill(&journal);
    let free = || disk.halloc().free_chunk_count();
    let (upto, before) = (journal.segments()[0].id, free());
    manifest.listed.lock().unwrap().retain(|listed| listed.spec.id > upto);
    journal.trim(upto).unwrap();
    assert_eq!(free(), before, "a reader maps it");
    drop(kept);
    assert_eq!(free(), before + 1);
}

/// A manifest with the same segments, for an opening beside the first. Taken before the image of a disk: a
/// thread that prepares a segment may list it between the two, and a listed segment must be in the image.
fn copy(manifest: &Manifest) -> Arc<Manifest> {
    let copy = Arc::new(Manifest::default());
    *copy.listed.lock().unwrap() = manifest.listed.lock().unwrap().clone();
    copy
}

/// With a fallback, commits go on in a file, and come back to persistent memory once there is room.
#[test]
fn a_full_region_falls_back_to_files() {
    let base: Arc<dyn Disk> = Arc::new(MemDisk::new());
    base.create_dir(Path::new(DIR)).unwrap();
    let disk = disk_over(base.clone(), Volatile::new(16 * CHUNK_BYTES), true, true).unwrap();
    let manifest = Arc::new(Manifest::default());
    let (journal, _) = open(&disk, &manifest, &settings(), &Env::real()).unwrap();
    let files = || files_of(&*base);
    let mut count = 0u64;
    let mut commit = |sync| {
        journal.commit(&put(&count.to_le_bytes(), &[7; 900]), sync, &mut |_| {}).unwrap();
        count += 1;
        assert!(count < 1000);
        // Each group in persistent memory is durable; in a file it is if it was asked.
        if sync {
            assert_eq!(journal.durable().0, count);
        }
    };
    while files().len() < 2 {
        commit(false);
    }
    commit(false);
    commit(true);
    let middle = journal.complete_segments()[3].id;
    manifest.listed.lock().unwrap().retain(|listed| listed.spec.id > middle);
    journal.trim(middle).unwrap();
    let newest = *files().last().unwrap();
    (0..30).for_each(|step| commit(step % 7 == 0));
    let segments: Vec<u32> = journal.segments().iter().map(|segment| segment.file).collect();
    let is_new_zone = |file: &u32| *file > newest && !files().contains(file);
    assert!(segments.iter().any(is_new_zone), "zones are used again after file {newest}: {segments:?}");
    let (first, last) = (journal.segments()[0].id, count);
    drop(journal);
    let again = disk_over(base.clone(), image(&disk), false, true).unwrap();
    let (_, rows) = open(&again, &manifest, &settings(), &Env::real()).unwrap();
    assert_eq!(rows.last().unwrap().0, last, "from segment {first} on all is there, in both places");
}

/// The device of the fallback is full, too: what it refused leaves no file on it.
#[test]
fn a_file_that_gets_no_space_does_not_stay() {
    let base = FaultyDisk::new(Arc::new(MemDisk::new()));
    base.create_dir(Path::new(DIR)).unwrap();
    let disk = disk_over(Arc::new(base.clone()), Volatile::new(16 * CHUNK_BYTES), true, true).unwrap();
    let manifest = Arc::new(Manifest::default());
    let (journal, _) = open(&disk, &manifest, &settings(), &stepped()).unwrap();
    base.fail(Fault::new(Call::Allocate, Failure::Full).lasting());
    let commit = |count: u64| journal.commit(&put(&count.to_le_bytes(), &[7; 900]), true, &mut |_| {});
    let count = (0..1000).find(|count| commit(*count).is_err()).unwrap();
    for _ in 0..3 {
        assert_eq!(commit(count).unwrap_err().kind(), Kind::Full);
    }
    assert!(base.count(Call::Allocate) > 0, "the fallback was asked");
    assert_eq!(files_of(&base), [0; 0]);
    base.heal();
    assert_eq!(commit(count).unwrap().0, count + 1);
    assert!(!files_of(&base).is_empty());
}

/// The power fails: a synced group in persistent memory has all that was committed before it, also what was
/// committed without `sync` into an ordinary file.
#[test]
fn a_synced_group_behind_a_file_is_whole() {
    let base = MemDisk::new();
    base.create_dir(Path::new(DIR)).unwrap();
    let disk = disk_over(Arc::new(base.clone()), Volatile::new(16 * CHUNK_BYTES), true, true).unwrap();
    let manifest = Arc::new(Manifest::default());
    // Without threads: one that prepared a segment meanwhile would list it between the copies below.
    let (journal, _) = open(&disk, &manifest, &settings(), &stepped()).unwrap();
    let is_in_file = || {
        let segments = journal.segments();
        let is_file = |file| base.exists(&Path::new(DIR).join(file_name(file))).unwrap();
        segments.last().is_some_and(|active| is_file(active.file))
    };
    let mut count = 0u64;
    let mut commit = |sync| {
        journal.commit(&put(&count.to_le_bytes(), &[7; 900]), sync, &mut |_| {}).unwrap();
        count += 1;
        assert!(count < 1000);
        count
    };
    while !is_in_file() {
        commit(true);
    }
    let before = commit(false);
    // The segments in persistent memory go: the next ones are there again.
    let active = journal.segments().last().unwrap().id;
    manifest.listed.lock().unwrap().retain(|listed| listed.spec.id >= active);
    journal.trim(terrane_base::SegmentId(active.0 - 1)).unwrap();
    while is_in_file() {
        commit(false);
    }
    let last = commit(true);
    assert!(last > before && journal.durable().0 == last, "the synced group is durable");
    for seed in 0..8 {
        let again = disk_over(Arc::new(base.crash(seed)), image(&disk), false, true).unwrap();
        let (_, rows) = open(&again, &copy(&manifest), &settings(), &stepped()).unwrap();
        assert_eq!(rows.last().map(|row| row.0), Some(last), "seed {seed}");
    }
}
