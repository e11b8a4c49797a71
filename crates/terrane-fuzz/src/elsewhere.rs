//! Targets: files that a database reads from a bucket: the objects of its manifest, and the file of its
//! deployment. Those of the storage service and of data objects are in `terrane_remote::fuzzing`.

use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Kind, Result};
use terrane_format::manifest::file::FORMAT_VERSION;
use terrane_format::manifest::{DatabaseId, ManifestObject, ObjectTag};
use terrane_format::object::{object_hash, object_name};
use terrane_levels::State;
use terrane_remote::bucket::{MemoryBucket, names};
use terrane_remote::{Bucket, Deployment, ManifestFolder};

use crate::input::Input;
use crate::{Seed, manifest};

const PREFIX: &str = "db";
/// Most objects of one manifest.
const OBJECTS_MAX: usize = 16;
const TAGS: [ObjectTag; 4] =
    [ObjectTag::Snapshot, ObjectTag::Edits, ObjectTag::TakeOver, ObjectTag::TakeOverWithoutJournal];

/// Objects, each behind a byte for its type and its length in two bytes: as they are, and as payloads in a
/// chain whose headers, checksums and hashes are right.
///
/// # Panics
/// If a state that was read is not sound, or an error does not report damage or names no object.
pub fn objects(bytes: &[u8]) {
    judge(read(pieces(bytes).iter().map(|(_, bytes)| bytes.to_vec()).collect()));
    judge(read_chained(bytes));
}

/// The state in a manifest of objects in a chain whose headers, checksums and hashes are right, with the
/// payloads that the input has; nothing where no object has one.
///
/// # Errors
/// Of the manifest.
pub fn read_chained(bytes: &[u8]) -> Result<Option<State>> {
    read(chained(&pieces(bytes)))
}

fn pieces(bytes: &[u8]) -> Vec<(ObjectTag, &[u8])> {
    let (mut input, mut pieces) = (Input(bytes), Vec::new());
    while !input.is_over() && pieces.len() < OBJECTS_MAX {
        let (tag, len) = (TAGS[usize::from(input.u8()) % TAGS.len()], input.u16());
        pieces.push((tag, input.take(len.into())));
    }
    pieces
}

/// A chain of objects as one writer, or several, would have left it.
fn chained(pieces: &[(ObjectTag, &[u8])]) -> Vec<Vec<u8>> {
    let mut objects: Vec<Vec<u8>> = Vec::new();
    let mut last = ManifestObject {
        tag: ObjectTag::TakeOver,
        number: 0,
        parent: 0,
        base: 0,
        epoch: 0,
        begun: 0,
        nonce: 7,
        database: DatabaseId(1),
        journal: 9,
        len: 0,
    };
    let first = [(ObjectTag::TakeOver, &[][..])];
    for (tag, payload) in first.iter().chain(pieces) {
        let payload: &[u8] = if tag.is_take_over() { &[] } else { payload };
        if payload.is_empty() && !tag.is_take_over() {
            continue;
        }
        let (number, is_new) = (last.number + 1, tag.is_take_over());
        last = ManifestObject {
            tag: *tag,
            number,
            parent: objects.last().map_or(0, |before| object_hash(before)),
            base: if *tag == ObjectTag::Snapshot { number } else { last.base },
            epoch: last.epoch + u64::from(is_new),
            begun: if is_new { number } else { last.begun },
            len: payload.len() as u64,
            ..last
        };
        objects.push(last.encode(payload));
    }
    objects
}

fn judge(read: Result<Option<State>>) {
    match read {
        Ok(None) => {}
        Ok(Some(state)) => {
            state.check().expect("a state that was accepted is sound");
            let image = state.to_image().expect("a sound state");
            assert!(
                State::from_image(&image).expect("what was encoded") == state,
                "it is read as it was written"
            );
        }
        Err(error) => {
            assert!(matches!(error.kind(), Kind::Corrupt | Kind::Invalid), "{error}");
            assert!(error.to_string().contains("db/manifest"), "names no object: {error}");
        }
    }
}

fn read(objects: Vec<Vec<u8>>) -> Result<Option<State>> {
    let bucket = Arc::new(MemoryBucket::new(Env::real().clock));
    for (number, object) in (1..).zip(objects).filter(|(_, object)| !object.is_empty()) {
        let name = format!("{PREFIX}/manifest/{}", object_name(number));
        bucket.create(&name, &object).expect("a bucket without faults");
    }
    let folder = ManifestFolder::new(bucket, PREFIX).expect("a name");
    Ok(folder.read()?.and_then(|found| found.state))
}

/// Corpus of [`objects`].
#[must_use]
pub fn object_seeds() -> Vec<Seed> {
    let image = |state: &State| state.to_image().expect("a sound state");
    let mut empty = State::new(DatabaseId(1), Vec::new()).expect("a new database");
    // The edits have operations of every version.
    empty.format_version = FORMAT_VERSION;
    let snapshot = (0, image(&empty));
    let edits: Vec<(u8, Vec<u8>)> = manifest::edit_seeds().into_iter().map(|(_, bytes)| (1, bytes)).collect();
    let take_over = (2, Vec::new());
    let written = |objects: &[(u8, Vec<u8>)]| -> Vec<u8> {
        let one = |(tag, bytes): &(u8, Vec<u8>)| {
            let len = u16::try_from(bytes.len()).expect("the objects of a corpus are short");
            [&[*tag][..], &len.to_le_bytes(), bytes].concat()
        };
        objects.iter().flat_map(one).collect()
    };
    let raw: Vec<(u8, Vec<u8>)> =
        chained(&[(ObjectTag::Snapshot, &snapshot.1)]).into_iter().map(|object| (0, object)).collect();
    let longest = edits.iter().max_by_key(|(_, bytes)| bytes.len()).cloned().expect("there are some");
    vec![
        ("raw".to_owned(), written(&raw)),
        ("snapshot".to_owned(), written(std::slice::from_ref(&snapshot))),
        ("edits".to_owned(), written(&[snapshot.clone(), longest.clone()])),
        (
            "taken".to_owned(),
            written(&[snapshot.clone(), longest.clone(), take_over.clone(), snapshot.clone()]),
        ),
        ("without-journal".to_owned(), written(&[snapshot, longest, (3, Vec::new()), take_over])),
    ]
}

/// The text of a deployment file.
///
/// # Panics
/// If an accepted deployment could not be opened, or an error is not that of a wrong file.
pub fn deployment(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let found = match Deployment::parse(&text, Path::new("/d")) {
        Ok(found) => found,
        Err(error) => return assert_eq!(error.kind(), Kind::Invalid, "{error}"),
    };
    names::check(&found.prefix).expect("a prefix is a name");
    assert!(found.writer_check_ms > 0 && found.settings.stage_bytes >= 2 * found.settings.object_bytes);
    let mut options = Options::default();
    for (name, value) in &found.options {
        options.set(name, value).expect("an option that was accepted");
    }
}

/// Corpus of [`deployment`].
#[must_use]
pub fn deployment_seeds() -> Vec<Seed> {
    let least = "[journal]\ndirectory = \"wal\"\n[storage]\nurl = \"memory:\"\n";
    let whole = "[journal]\ndirectory = \"/j\"\nabandon = \"0123456789abcdef0123456789abcdef\"\n[storage]\n\
                 url = \"s3://b\"\nprefix = \"p/q\"\nprobe = false\nobject_bytes = 67108864\nstage_bytes = \
                 268435456\ngarbage_age_s = 3\nwriter_check_ms = 2\n[options]\nmemory_bytes = \"64MiB\"\n\
                 close_flush = false\n";
    let wrong = "[jurnal]\n[storage]\nurl = 3\nobject_bytes = -1\n";
    [("least", least), ("whole", whole), ("wrong", wrong)]
        .map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()))
        .into()
}
