//! Opening a pool: what it refuses, each by its name.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use terrane_base::env::Env;
use terrane_base::record::Record;
use terrane_base::{Error, Kind, SeqNo};
use terrane_device::pm::{PlainMode, PmRegion};
use terrane_device::{Disk, MemDisk, OpenMode, SegmentMemory};
use terrane_journal::pm::{Pool, PoolSettings, SalvagedPool, ZoneDisk, begin_epoch};
use terrane_journal::{Journal, JournalSettings, ListedSegment, ReplaySettings, file_name, replay};

use crate::common::{DIR, Manifest, Row, put, replay_rows};
use crate::pm::support::open;

const BYTES: u64 = 1 << 20;

fn at(path: PathBuf) -> PoolSettings {
    let mode = PlainMode::Buffered;
    PoolSettings { path, bytes: BYTES, mode, salt: 5, epoch: 1, region_id: 77, may_create: true }
}

fn refused(settings: &PoolSettings, kind: Kind, words: &str) {
    let error: Error = Pool::open(settings).expect_err(words);
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(words), "{words:?} is not in: {error}");
    assert!(error.to_string().contains(settings.path.to_str().unwrap()), "no path in: {error}");
}

#[test]
fn a_pool_is_made_and_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let settings = at(dir.path().join("pool"));
    let pool = Pool::open(&settings).unwrap();
    assert_eq!((pool.halloc.region().len(), pool.zones.len()), (BYTES, 0));
    refused(&settings, Kind::Busy, "open already");
    drop(pool);
    Pool::open(&PoolSettings { bytes: 0, may_create: false, ..settings }).unwrap();
}

#[test]
fn a_file_that_cannot_be_the_pool_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let settings = at(dir.path().join("pool"));
    let missing = PoolSettings { may_create: false, ..settings.clone() };
    refused(&missing, Kind::NotFound, "there is no pool");
    refused(&PoolSettings { bytes: 4096, ..settings.clone() }, Kind::Invalid, "4096 bytes");
    refused(&PoolSettings { bytes: 0, ..settings.clone() }, Kind::Invalid, "needs a length");
    assert!(!settings.path.exists(), "a refused opening makes nothing");
    begin_epoch(&Pool::open(&settings).unwrap().halloc, 3).unwrap();
    let own = PoolSettings { epoch: 3, ..settings.clone() };
    Pool::open(&own).unwrap();
    refused(&settings, Kind::Corrupt, "the manifest is an older copy");
    refused(&PoolSettings { salt: 6, ..own.clone() }, Kind::Invalid, "belongs to another database");
    refused(&PoolSettings { bytes: 2 * BYTES, ..own.clone() }, Kind::Invalid, "name its true length");

    let whole = std::fs::read(&own.path).unwrap();
    let any = PoolSettings { bytes: 0, ..own };
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        std::fs::write(&any.path, bytes).unwrap();
    };
    with(&|bytes| bytes.truncate(BYTES as usize / 2));
    refused(&any, Kind::Corrupt, "was made with");
    refused(&any, Kind::Corrupt, "copy it whole, or repair");
    with(&|bytes| bytes.truncate(0));
    refused(&any, Kind::Invalid, "0 bytes");
    with(&|bytes| bytes[0] ^= 1);
    refused(&any, Kind::Corrupt, "superblock");
    with(&|bytes| bytes.fill(0));
    refused(&any, Kind::Invalid, "is not a pool");
    with(&|bytes| {
        // Another version, with the checksum that it needs.
        bytes[8] += 1;
        let mut header: [u8; 64] = bytes[..64].try_into().unwrap();
        header[12..16].fill(0);
        let sum = terrane_format::checksum::crc32c(
            terrane_format::checksum::crc32c(0x7e44_a131, &header[..12]),
            &header[16..],
        );
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    });
    refused(&any, Kind::Invalid, "format version 2");
    refused(&any, Kind::Invalid, "open it with the version that made it");
}

/// Damage that the device reports: here, a file that became shorter. An error of the replay, not the end of
/// the process.
#[test]
fn a_segment_that_cannot_be_read_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let settings = at(dir.path().join("pool"));
    let base: Arc<dyn Disk> = Arc::new(MemDisk::new());
    base.create_dir(Path::new(DIR)).unwrap();
    let pool = Pool::open(&settings).unwrap();
    let manifest = Arc::new(Manifest::default());
    let disk = ZoneDisk::new(base.clone(), Path::new(DIR), pool.halloc, pool.zones, false).unwrap();
    let of_segments = JournalSettings { segment_bytes: 64 << 10, ..JournalSettings::default() };
    let (journal, _) = open(&Arc::new(disk), &manifest, &of_segments, &Env::real()).unwrap();
    journal.commit(&put(b"key", b"value"), true, &mut |_| {}).unwrap();
    drop(journal);
    let listed = manifest.listed.lock().unwrap().clone();
    let pool = Pool::open(&settings).unwrap();
    let disk = ZoneDisk::new(base, Path::new(DIR), pool.halloc, pool.zones, false).unwrap();
    assert_eq!(replay_rows(&disk, &listed, 0).unwrap().1.len(), 1);
    std::fs::File::options().write(true).open(&settings.path).unwrap().set_len(80 << 10).unwrap();
    let error = replay_rows(&disk, &listed, 0).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    assert!(error.to_string().contains("pool"), "{error}");
}

/// The rows of a journal that is only read.
fn read_only_rows(disk: &dyn Disk, listed: &[ListedSegment]) -> Vec<Row> {
    let (rows, floor) = (Mutex::new(Vec::new()), SeqNo(0));
    let (make_durable, salt) = (false, 0);
    let settings = ReplaySettings { threads: 1, durable_floor: floor, flushed: floor, make_durable, salt };
    let sink = |_: &Arc<SegmentMemory>, _: usize, record: &Record<'_>, seq: SeqNo| {
        rows.lock().unwrap().push((seq.0, record.key.to_vec(), record.value.to_vec()));
        Ok(())
    };
    replay(disk, Path::new(DIR), listed, &settings, &*Env::real().spawn, &sink).unwrap();
    let mut rows = rows.into_inner().unwrap();
    rows.sort_unstable();
    rows
}

/// A pool with a few segments of one database; returns what the manifest lists and the rows.
fn filled(settings: &PoolSettings, base: &Arc<dyn Disk>) -> (Vec<ListedSegment>, Vec<Row>) {
    base.create_dir(Path::new(DIR)).unwrap();
    let pool = Pool::open(settings).unwrap();
    let disk = ZoneDisk::new(base.clone(), Path::new(DIR), pool.halloc, pool.zones, false).unwrap();
    let manifest = Arc::new(Manifest::default());
    let of_segments = JournalSettings { segment_bytes: 64 << 10, ..JournalSettings::default() };
    let disk = Arc::new(disk);
    let (journal, _) = open(&disk, &manifest, &of_segments, &Env::real()).unwrap();
    for number in 0..300u32 {
        journal.commit(&put(&number.to_le_bytes(), &[7; 900]), true, &mut |_| {}).unwrap();
    }
    assert!(journal.segments().len() > 3, "{} segments", journal.segments().len());
    drop(journal);
    let mut listed = manifest.listed.lock().unwrap().clone();
    let (replayed, rows) = replay_rows(&*disk, &listed, 0).unwrap();
    // One that is ready and was never used has no front.
    listed.retain(|listed| replayed.segments.iter().any(|used| used.spec == listed.spec));
    (listed, rows)
}

/// Where owner words or the superblock are damaged, the fronts of segments say which files they are.
#[test]
fn damaged_words_hide_no_segment() {
    let dir = tempfile::tempdir().unwrap();
    let settings = at(dir.path().join("pool"));
    let base: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let (listed, rows) = filled(&settings, &base);
    let whole = std::fs::read(&settings.path).unwrap();
    let words: Vec<usize> =
        (4096..4096 + 16 * 8).step_by(8).filter(|at| whole[*at..*at + 8] != [0; 8]).collect();
    assert!(words.len() >= listed.len(), "{} words for {} segments", words.len(), listed.len());
    let salvaged = |bytes: &[u8]| {
        std::fs::write(&settings.path, bytes).unwrap();
        let pool = SalvagedPool::open(&settings.path, base.clone(), Path::new(DIR)).unwrap();
        let rows = read_only_rows(&*pool.disk, &listed);
        let file =
            pool.disk.open(&Path::new(DIR).join(file_name(listed[0].spec.file)), OpenMode::Write, false);
        assert_eq!(file.unwrap().write_at(0, b"x").unwrap_err().kind(), Kind::Invalid, "it is only read");
        drop(pool.disk);
        assert_eq!(std::fs::read(&settings.path).unwrap(), bytes, "nothing is stored");
        (rows, pool.damage.len())
    };
    assert_eq!(salvaged(&whole), (rows.clone(), 0));
    for at in words.iter().copied().chain([0, 20]) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x20;
        assert_eq!(salvaged(&damaged), (rows.clone(), 1), "byte {at}");
    }
    // All words at once, and the superblock with them.
    let mut damaged = whole;
    damaged[20] ^= 0x20;
    words.iter().for_each(|at| damaged[*at + 2] ^= 0x20);
    assert_eq!(salvaged(&damaged).0, rows);
}

/// Pools that a repair refuses, and its text about a pool that is cut.
#[test]
fn a_pool_that_a_repair_cannot_read_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let settings = at(dir.path().join("pool"));
    let base: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let refused = |kind: Kind, words: &str| {
        let salvaged = SalvagedPool::open(&settings.path, base.clone(), Path::new(DIR));
        let error = salvaged.expect_err(words);
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(words), "{words:?} is not in: {error}");
        assert!(error.to_string().contains(settings.path.to_str().unwrap()), "no path in: {error}");
    };
    refused(Kind::NotFound, "there is no pool");
    let pool = Pool::open(&settings).unwrap();
    refused(Kind::Busy, "close the other opener");
    drop(pool);
    std::fs::File::options().write(true).open(&settings.path).unwrap().set_len(512 << 10).unwrap();
    let cut = SalvagedPool::open(&settings.path, base.clone(), Path::new(DIR)).unwrap();
    assert!(cut.damage.iter().any(|error| error.to_string().contains("it is cut")), "{:?}", cut.damage);
    let writer = Pool::open(&settings).expect_err("a repair reads it");
    assert_eq!(writer.kind(), Kind::Busy, "{writer}");
    drop(cut);
    std::fs::write(&settings.path, b"").unwrap();
    refused(Kind::Invalid, "nothing of it is left");
    std::fs::write(&settings.path, vec![0; 4096]).unwrap();
    refused(Kind::Invalid, "chunks");
}

/// No room in the middle of a group: the error names the pool and what to do, and nothing is lost.
#[test]
fn a_full_pool_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let settings = at(dir.path().join("pool"));
    let base: Arc<dyn Disk> = Arc::new(MemDisk::new());
    base.create_dir(Path::new(DIR)).unwrap();
    let pool = Pool::open(&settings).unwrap();
    let disk = Arc::new(ZoneDisk::new(base, Path::new(DIR), pool.halloc, pool.zones, false).unwrap());
    let manifest = Arc::new(Manifest::default());
    let of_segments = JournalSettings { segment_bytes: 64 << 10, ..JournalSettings::default() };
    let (journal, _) = open(&disk, &manifest, &of_segments, &Env::real()).unwrap();
    let batch = put(b"key", &[7; 9000]);
    let refused = (0..1000).find_map(|_| journal.commit(&batch, true, &mut |_| {}).err());
    let error = refused.expect("the pool has room for 1 MiB");
    assert_eq!(error.kind(), Kind::Full, "{error}");
    for words in [settings.path.to_str().unwrap(), "is full", "pmem_full_to_file"] {
        assert!(error.to_string().contains(words), "{words:?} is not in: {error}");
    }
    let listed = manifest.listed.lock().unwrap().clone();
    assert_eq!(replay_rows(&*disk, &listed, 0).unwrap().1.len() as u64, journal.visible().0);
}
