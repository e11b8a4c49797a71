//! Chains of manifest objects that no writer leaves.

use std::sync::Arc;

use bytes::Bytes;
use terrane_base::{Kind, Result};
use terrane_format::manifest::{DatabaseId, ManifestObject, ObjectTag};
use terrane_format::object::object_hash;
use terrane_levels::State;
use terrane_remote::bucket::{Bucket, Create, Listed, MemoryBucket, Pending};

use crate::manifests::{JOURNAL, edit, name, read, take_over};
use crate::support::{env, memory, refused};

/// The object `number` of a chain, made by hand; returns its bytes.
fn forged(
    bucket: &Arc<dyn Bucket>,
    (tag, number): (ObjectTag, u64),
    base: u64,
    before: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    let header = ManifestObject {
        tag,
        number,
        base,
        parent: if number == 1 { 0 } else { object_hash(before) },
        epoch: 1,
        begun: 1,
        nonce: 1,
        database: DatabaseId(7),
        journal: JOURNAL,
        len: payload.len() as u64,
    };
    let bytes = header.encode(payload);
    bucket.create(&name(number), &bytes).expect("absent");
    bytes
}

#[test]
fn a_snapshot_that_the_last_object_does_not_name_is_damage() {
    let (_, clock) = env();
    let bucket: Arc<dyn Bucket> = memory(&clock);
    let image = State::new(DatabaseId(7), Vec::new()).expect("a state").to_image().expect("an image");
    let first = forged(&bucket, (ObjectTag::TakeOver, 1), 0, &[], &[]);
    let second = forged(&bucket, (ObjectTag::Snapshot, 2), 2, &first, &image);
    let third = forged(&bucket, (ObjectTag::Snapshot, 3), 3, &second, &image);
    forged(&bucket, (ObjectTag::Edits, 4), 2, &third, b"never decoded");
    let text = refused(read(&bucket).map(drop), Kind::Corrupt);
    assert!(text.contains(&name(3)), "the object is named: {text}");
}

#[test]
fn a_manifest_of_more_bytes_than_any_writer_leaves_is_not_read() {
    let (_, clock) = env();
    let memory = memory(&clock);
    let bucket: Arc<dyn Bucket> = Arc::new(Swollen { inner: memory.clone(), bytes: 300 << 20 });
    let manifest = take_over(&(memory as Arc<dyn Bucket>)).expect("new").manifest;
    (1..=6).for_each(|number| manifest.append(&edit(number)).expect("the writer"));
    let text = refused(read(&bucket).map(drop), Kind::Corrupt);
    assert!(text.contains("more than any writer leaves"), "{text}");
}

/// A bucket that says of all objects but the newest that they are long.
#[derive(Debug)]
struct Swollen {
    inner: Arc<MemoryBucket>,
    bytes: u64,
}

impl Bucket for Swollen {
    fn url(&self) -> &str {
        self.inner.url()
    }

    fn begin_create(&self, name: &str, parts: Vec<Bytes>) -> Pending<Create> {
        self.inner.begin_create(name, parts)
    }

    fn begin_get_ranges(&self, name: &str, ranges: Vec<std::ops::Range<u64>>) -> Pending<Vec<Bytes>> {
        assert!(ranges.iter().all(|range| range.end < self.bytes), "memory is taken for a refused object");
        self.inner.begin_get_ranges(name, ranges)
    }

    fn get_tail(&self, name: &str, bytes_max: u64) -> Result<Bytes> {
        self.inner.get_tail(name, bytes_max)
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>> {
        let mut listed = self.inner.list(folder, after)?;
        let last = listed.len().saturating_sub(1);
        listed[..last].iter_mut().for_each(|object| object.bytes = self.bytes);
        Ok(listed)
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        self.inner.delete(names)
    }
}
