//! Target: names in a directory, and the text of `CURRENT`. First line: `CURRENT`; the others: names, those
//! that end in `/` of directories.

use std::path::Path;

use terrane_base::Kind;
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_format::manifest::file::{Current, DatabaseId, file_name, parse_file_name};
use terrane_journal::{file_name as segment_name, file_number};
use terrane_levels::directory::{self, Contents, Others, inspect};

use crate::Seed;

const DIR: &str = "db";

/// See the head of the file.
pub fn run(bytes: &[u8]) {
    let end = bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |at| at + 1);
    let (current, names) = bytes.split_at(end);
    match Current::decode(current) {
        Ok(found) => assert_eq!(found.encode().as_bytes(), current, "one text for one meaning"),
        Err(error) => assert!(matches!(error.kind(), Kind::Corrupt | Kind::Invalid), "{error}"),
    }
    let disk = MemDisk::new();
    disk.create_dir(Path::new(DIR)).expect("a device without faults");
    let names = String::from_utf8_lossy(names);
    let mut has_current = false;
    for name in names.lines().take(40) {
        check_name(name.trim_end_matches('/'));
        has_current |= make(&disk, name);
    }
    let beside = inspect(&disk, Path::new(DIR), Others::Stay);
    match inspect(&disk, Path::new(DIR), Others::Refused) {
        Ok(contents) => {
            assert_eq!(contents == Contents::Database, has_current);
            assert_eq!(beside.expect("it is less strict"), contents);
        }
        Err(error) => {
            assert!(!has_current);
            assert!(
                matches!(error.kind(), Kind::Corrupt | Kind::Invalid | Kind::Io | Kind::NotFound),
                "{error}"
            );
            assert!(error.to_string().contains(DIR), "{error}");
        }
    }
}

/// A number is read from a name only if it gives exactly that name: never a path, never two names for one
/// file.
fn check_name(name: &str) {
    if let Some(number) = parse_file_name(name) {
        assert_eq!(file_name(number), name);
    }
    if let Some(number) = file_number(name) {
        assert_eq!(segment_name(number), name);
    }
    let is_ours = parse_file_name(name).is_some() || file_number(name).is_some();
    assert!(!is_ours || !name.contains(['/', '\0']) && !name.contains(".."), "{name}");
}

/// Makes an entry; whether it is `CURRENT`.
fn make(disk: &MemDisk, name: &str) -> bool {
    let plain = name.trim_end_matches('/');
    let is_possible = !plain.is_empty() && plain != "." && plain != ".." && !plain.contains(['/', '\0']);
    if !is_possible {
        return false;
    }
    let path = Path::new(DIR).join(plain);
    let made = match name.ends_with('/') {
        true => disk.create_dir(&path).and_then(|()| disk.open(&path.join("x"), OpenMode::Create, false)),
        false => disk.open(&path, OpenMode::Create, false),
    };
    // A name that comes twice is there already.
    let _ = made;
    plain == directory::CURRENT
}

/// Corpus of [`run`].
#[must_use]
pub fn seeds() -> Vec<Seed> {
    let current = Current { file: 12, database: DatabaseId(7) }.encode();
    let with = |names: &str| format!("{current}{names}").into_bytes();
    vec![
        ("database".into(), with("LOCK\nCURRENT\nMANIFEST-000012\njournal/\ndata/\n")),
        ("unfinished".into(), with("LOCK\nCURRENT.tmp\nMANIFEST-000001\n")),
        ("orphan".into(), with("MANIFEST-000007\njournal/\n")),
        ("foreign".into(), with("notes.txt\n000005.sst\nIDENTITY\n")),
        ("names".into(), with("000001.seg\n1.seg\n4294967295.seg\nMANIFEST-4294967296\n+00001.seg\n")),
        ("other-engine".into(), b"MANIFEST-000001\n".to_vec()),
    ]
}
