//! Opening a pool: what it refuses, each by its name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::{Error, Kind};
use terrane_device::pm::{PlainMode, PmRegion};
use terrane_device::{Disk, MemDisk};
use terrane_journal::pm::{Pool, PoolSettings, ZoneDisk, begin_epoch};
use terrane_journal::{Journal, JournalSettings};

use crate::common::{DIR, Manifest, put, replay_rows};
use crate::support::open;

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
fn what_cannot_be_the_pool_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let settings = at(dir.path().join("pool"));
    let missing = PoolSettings { may_create: false, ..settings.clone() };
    refused(&missing, Kind::NotFound, "there is no pool");
    refused(&PoolSettings { bytes: 4096, ..settings.clone() }, Kind::Invalid, "4096 bytes");
    refused(&PoolSettings { bytes: 0, ..settings.clone() }, Kind::Invalid, "needs a length");
    assert!(!settings.path.exists(), "nothing is made for what is refused");
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
    with(&|bytes| bytes.truncate(0));
    refused(&any, Kind::Invalid, "0 bytes");
    with(&|bytes| bytes[0] ^= 1);
    refused(&any, Kind::Corrupt, "superblock");
    with(&|bytes| bytes.fill(0));
    refused(&any, Kind::Invalid, "is no pool");
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
