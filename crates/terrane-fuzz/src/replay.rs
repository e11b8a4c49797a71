//! Target: the replay of several segments, listed as a manifest would list them.

use std::path::Path;
use std::sync::Mutex;

use terrane_base::env::Env;
use terrane_base::{Kind, Result, SegmentId, SeqNo};
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_format::segment::{ChainLink, Groups, SegmentHeader};
use terrane_journal::{ListedSegment, ReplaySettings, Replayed, SegmentSeal, SegmentSpec, file_name, replay};

use crate::input::Input;
use crate::{Seed, repair, segment};

const DIR: &str = "journal";
/// Longest segment file that is made.
const SEGMENT_BYTES_MAX: usize = 16 << 10;

/// First byte: the number of segments, and which checksums are set right; second and third: the durable floor
/// and the flushed number. The rest is cut into that many segments.
pub fn run(bytes: &[u8]) {
    let mut input = Input(bytes);
    let shape = input.u8();
    let settings = ReplaySettings {
        threads: 1,
        durable_floor: SeqNo(input.u8().into()),
        flushed: SeqNo(input.u8().into()),
        make_durable: shape & 4 == 0,
        salt: 0,
    };
    let count = usize::from(shape & 3) + 1;
    let mut files = cut(input.rest(), count);
    if shape & 8 == 0 {
        chain(&mut files, shape & 16 == 0);
    }
    let disk = MemDisk::new();
    let mut listed = Vec::new();
    for (number, bytes) in (1..).zip(&files) {
        let spec = SegmentSpec { id: SegmentId(number.into()), file: number, bytes: bytes.len() as u64 };
        store(&disk, &spec, bytes).expect("a device without faults");
        listed.push(ListedSegment { spec, seal: None });
    }
    if let Some((replayed, rows)) = replayed(&disk, &listed, &settings) {
        again(&disk, &replayed, &rows, &settings);
    }
}

fn cut(bytes: &[u8], count: usize) -> Vec<Vec<u8>> {
    let len = bytes.len().div_ceil(count).clamp(1, SEGMENT_BYTES_MAX);
    let mut pieces = bytes.chunks(len);
    (0..count).map(|_| pieces.next().map_or_else(|| vec![0; 64], <[u8]>::to_vec)).collect()
}

/// Makes the files segments 1, 2, ... with right checksums, and, if asked, each the successor of the one
/// before.
fn chain(files: &mut [Vec<u8>], is_linked: bool) {
    let mut link = None;
    for (number, bytes) in (1u64..).zip(files) {
        repair::segment(bytes);
        let Ok((header, _)) = SegmentHeader::decode(bytes) else { continue };
        let previous = link.filter(|_| is_linked).unwrap_or(header.previous);
        let header = SegmentHeader {
            id: SegmentId(number),
            file: number as u32,
            bytes: bytes.len() as u64,
            previous,
            edit: 0,
            salt: Some(0),
        };
        bytes[..64].copy_from_slice(&header.encode());
        repair::segment(bytes);
        let Ok((_, mut groups)) = Groups::new(bytes) else { continue };
        groups.by_ref().for_each(drop);
        let end = groups.walk();
        link = Some(ChainLink { id: SegmentId(number), last_seq: end.last_seq, checksum: end.checksum });
    }
}

fn store(disk: &MemDisk, spec: &SegmentSpec, bytes: &[u8]) -> Result<()> {
    disk.create_dir(Path::new(DIR))?;
    let path = Path::new(DIR).join(file_name(spec.file));
    disk.open(&path, OpenMode::Create, false)?.write_at(0, bytes)
}

type Rows = Vec<(u64, Vec<u8>, Vec<u8>)>;

fn replayed(disk: &MemDisk, listed: &[ListedSegment], settings: &ReplaySettings) -> Option<(Replayed, Rows)> {
    let rows = Mutex::new(Rows::new());
    let found = replay(disk, Path::new(DIR), listed, settings, &*Env::real().spawn, &|_, _, record, seq| {
        let row = (seq.0, record.key.to_vec(), record.value.to_vec());
        rows.lock().expect("no code panics under this lock").push(row);
        Ok(())
    });
    let replayed = match found {
        Ok(replayed) => replayed,
        Err(error) => {
            assert_eq!(error.kind(), Kind::Corrupt, "{error}");
            assert!(error.place().is_some(), "{error}");
            return None;
        }
    };
    let mut rows = rows.into_inner().expect("no code panics under this lock");
    rows.sort_unstable();
    let numbers = rows.iter().map(|row| row.0);
    assert!(numbers.clone().zip(numbers.skip(1)).all(|(one, next)| next == one + 1), "no hole");
    assert!(rows.last().is_none_or(|last| last.0 == replayed.last_seq.0));
    assert!(replayed.last_seq >= settings.durable_floor, "what was durable is there");
    Some((replayed, rows))
}

/// With the ends recorded, as the engine does, a second replay finds the same.
fn again(disk: &MemDisk, first: &Replayed, rows: &Rows, settings: &ReplaySettings) {
    let sealed = |segment: &terrane_journal::SealedSegment| ListedSegment {
        spec: segment.spec,
        seal: Some(SegmentSeal { end: segment.end, last_seq: segment.last_seq }),
    };
    let listed: Vec<_> = first.segments.iter().map(sealed).collect();
    if listed.is_empty() {
        return;
    }
    let (second, found) = replayed(disk, &listed, settings).expect("what was recorded is replayed");
    assert!(found == *rows, "the second replay finds the same records");
    assert_eq!((second.last_seq, second.cut), (first.last_seq, None));
}

/// Corpus of [`run`].
#[must_use]
pub fn seeds() -> Vec<Seed> {
    let (first, link) = segment::made(1, 1024, 6, ChainLink::default());
    let (second, link) = segment::made(2, 1024, 4, link);
    let (third, _) = segment::made(3, 1024, 7, link);
    let with = |shape: u8, segments: &[&[u8]]| [&[shape, 0, 0][..], &segments.concat()].concat();
    vec![
        ("one".into(), with(0, &[&first])),
        ("three".into(), with(2, &[&first, &second, &third])),
        ("as-they-are".into(), with(2 + 8, &[&first, &second, &third])),
        ("hole".into(), with(2 + 8, &[&first, &third, &second])),
        ("unused".into(), with(3, &[&first, &second, &third, &[0; 1024]])),
    ]
}
