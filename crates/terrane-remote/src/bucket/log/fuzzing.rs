//! Body of the fuzz target for the files of a log.

use std::path::Path;
use std::sync::Arc;

use terrane_base::Kind;
use terrane_base::env::Env;
use terrane_device::{Disk, MemDisk, OpenMode};

use super::record::{self, ALIGN, FILE_HEADER_BYTES, FileHeader, HEADER_BYTES, Header, Tag, padded};
use super::{LogBucket, LogSettings};
use crate::bucket::{Bucket, Create};

const SETTINGS: LogSettings = LogSettings { file_bytes: 4096, objects_max: 100 };

/// Bytes as the one file of a log: as they are, and with checksums, numbers and hashes set right.
///
/// # Panics
/// If an opening fails otherwise than by damage, a listed object cannot be read, or an acknowledged one is
/// missing after a further opening.
pub fn object_log(bytes: &[u8]) {
    judge(bytes);
    judge(&repaired(bytes));
}

fn judge(bytes: &[u8]) {
    let (disk, dir) = (MemDisk::new(), Path::new("/log"));
    let disk: Arc<dyn Disk> = Arc::new(disk);
    disk.create_dir(dir).expect("a device without faults");
    let file = disk.open(&dir.join(record::file_name(1)), OpenMode::Create, false).expect("new");
    file.write_at(0, bytes).expect("a device without faults");
    let open = || LogBucket::open(Arc::clone(&disk), dir, SETTINGS, Env::real());
    let log = match open() {
        Ok(log) => log,
        Err(error) => return assert!([Kind::Corrupt, Kind::Invalid].contains(&error.kind()), "{error}"),
    };
    let listed = log.list("db", None).expect("a list");
    for object in &listed {
        let read = log.get(&object.name, 1 << 20);
        if log.0.object(&object.name).expect("it is listed").is_damaged {
            assert_eq!(read.expect_err("a copy says that it is damaged").kind(), Kind::Corrupt);
            continue;
        }
        // The bytes of the last file were checked.
        assert_eq!(read.expect("it is there").len() as u64, object.bytes);
    }
    if log.create("db/fuzz", b"own").expect("there is room") == Create::Created {
        drop(log);
        let again = open().expect("what was read is read again");
        assert_eq!(again.get("db/fuzz", 3).expect("it was acknowledged"), "own");
        assert_eq!(again.list("db", None).expect("a list").len(), listed.len() + 1);
    }
}

/// The bytes with the fields that only a writer sets right.
fn repaired(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.len() < FILE_HEADER_BYTES {
        return bytes;
    }
    let header = FileHeader { log: 7, number: 1, first: 1, parent: 0 };
    bytes[..FILE_HEADER_BYTES].copy_from_slice(&header.encode());
    let (mut at, mut number, mut parent) = (FILE_HEADER_BYTES, 1u64, 0u64);
    while let Some(front) = bytes.get(at..at + HEADER_BYTES) {
        let front: [u8; HEADER_BYTES] = front.try_into().expect("so many bytes");
        let payload_at = at + HEADER_BYTES + record::name_bytes(&front);
        let len = record::u64_at(&front, 40) as usize;
        let Some(end) = payload_at.checked_add(len).filter(|end| *end <= bytes.len()) else { break };
        let checksum = crc32c::crc32c(&bytes[payload_at..end]);
        bytes[at + 4..at + 8].copy_from_slice(&checksum.to_le_bytes());
        // A mark that is possible stays: records of one group have the same.
        let mark = record::u64_at(&front, 24).min(number - 1);
        for (field, value) in [(8, 7), (16, number), (24, mark), (32, parent)] {
            bytes[at + field..at + field + 8].copy_from_slice(&u64::to_le_bytes(value));
        }
        let checksum = crc32c::crc32c(&bytes[at + 4..payload_at]);
        bytes[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
        parent = record::hash(&bytes[at..payload_at]);
        number += 1;
        at = padded(end as u64) as usize;
    }
    debug_assert_eq!(at as u64 % ALIGN, 0, "records are aligned");
    bytes
}

/// Corpus of [`object_log`].
#[must_use]
pub fn object_log_seeds() -> Vec<(String, Vec<u8>)> {
    let record = |tag: Tag, name: &str, payload: &[u8]| {
        let checksum = crc32c::crc32c(payload);
        let len = payload.len() as u64;
        let header = Header { tag, log: 7, number: 1, durable: 0, parent: 0, len, modified: 5, checksum };
        let mut bytes = header.encode(name);
        bytes.extend_from_slice(payload);
        bytes.resize(bytes.len().next_multiple_of(ALIGN as usize), 0);
        bytes
    };
    let file_of_a_group = |records: &[Vec<u8>]| {
        let header = FileHeader { log: 7, number: 1, first: 1, parent: 0 }.encode();
        repaired(&[&header[..], &records.concat()].concat())
    };
    // Each record in a group of its own: its mark is the number before, as far as one can be.
    let file = |records: &[Vec<u8>]| {
        let marked = |record: &Vec<u8>| [&record[..24], &u64::MAX.to_le_bytes(), &record[32..]].concat();
        file_of_a_group(&records.iter().map(marked).collect::<Vec<_>>())
    };
    let create = |name: &str| record(Tag::Create, name, b"an object");
    let names = record::encode_names(&["db/a".to_owned(), "db/none".to_owned()]);
    let whole = file(&[create("db/a"), create("db/b"), record(Tag::Delete, "", &names), create("db/c")]);
    let mut damaged = whole.clone();
    damaged[FILE_HEADER_BYTES + 70] ^= 1;
    // A hole in front of a whole record whose mark says that what was there was durable, and one whose mark
    // does not, as the last group leaves it.
    let first_bytes = create("db/a").len();
    let mut hole = whole.clone();
    hole[FILE_HEADER_BYTES..FILE_HEADER_BYTES + first_bytes].fill(0);
    let group = file_of_a_group(&[create("db/a"), create("db/b"), create("db/c")]);
    let mut torn_group = group.clone();
    torn_group[FILE_HEADER_BYTES..FILE_HEADER_BYTES + first_bytes].fill(0);
    let seeds = [
        ("empty", file(&[])),
        ("whole", whole.clone()),
        ("copied", file(&[create("db/a"), record(Tag::Copy, "db/a", b"an object"), create("db/a")])),
        ("torn", whole[..whole.len() - 20].to_vec()),
        ("damaged", damaged),
        ("hole", hole),
        ("group", group),
        ("torn-group", torn_group),
        ("mark", file(&[create("db/a"), create("db/b"), record(Tag::Delete, "", b"")])),
        ("copied-damaged", file(&[create("db/a"), record(Tag::CopyDamaged, "db/a", b"an objecx")])),
        ("no-names", file(&[create("db/a"), record(Tag::Delete, "", b"\x09\x00db")])),
    ];
    seeds.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}
