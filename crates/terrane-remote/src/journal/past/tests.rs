//! Objects before a given one, and the states of the manifest that a cut journal has completely.

use std::sync::Arc;

use terrane_base::Functions;
use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_device::MemDisk;
use terrane_format::journal_object::JournalTag;
use terrane_format::manifest::{DatabaseId, Edit, EditOp, SegmentSpec};

use super::*;
use crate::bucket::MemoryBucket;
use crate::{Bucket, BucketJournal, Deployment, ManifestFolder, ObjectJournalSettings};

fn before(objects: &[(u64, bool)], number: u64) -> Option<u64> {
    let sizes = objects.iter().map(|(number, is_fence)| (*number, if *is_fence { 128 } else { 500 }));
    object_before(&sizes.collect(), number).map(|(number, _)| number)
}

#[test]
fn void_objects_are_before_none() {
    let objects = [(1, true), (2, false), (17, false), (18, false), (19, true), (20, false), (35, false)];
    assert_eq!(before(&objects, 35), Some(19), "20 is void");
    assert_eq!(before(&objects, 19), Some(18));
    assert_eq!(before(&objects, 18), Some(17));
    assert_eq!(before(&objects, 17), Some(1), "2 is void");
    assert_eq!(before(&objects, 1), None);
    assert_eq!(before(&[(1, true), (40, false)], 40), None, "39 was deleted");
    assert_eq!(before(&[(1, true), (18, true)], 18), None, "17 was deleted");
    assert_eq!(before(&[(1, true), (17, true)], 17), Some(1));
}

/// A manifest that lists these segments.
fn listing(ids: std::ops::RangeInclusive<u64>) -> State {
    let state = State::new(DatabaseId(7), Default::default()).expect("a new database");
    let spec = |id: u64| SegmentSpec { id: SegmentId(id), file: id as u32, bytes: 1 << 16 };
    let ops = ids.map(|id| EditOp::AddSegment(spec(id))).collect();
    state.apply(&Edit { ops }).expect("they are new")
}

/// A journal without its front, of which the segment `id` is there, behind the commit `last_seq`.
fn cut_at(id: u64, last_seq: u64) -> PastJournal {
    let last = JournalObject {
        tag: JournalTag::Bytes,
        number: 9,
        parent: 1,
        first: 9,
        confirmed: 0,
        epoch: 1,
        nonce: 1,
        database: DatabaseId(7),
        is_whole: true,
        len: 0,
    };
    let previous = ChainLink { id: SegmentId(id - 1), last_seq: SeqNo(last_seq), checksum: 1 };
    let (file, bytes) = (id as u32, 1 << 16);
    let header = SegmentHeader { id: SegmentId(id), file, bytes, previous, edit: 0, salt: Some(1) };
    let segment = PastSegment { bytes: header.encode().to_vec(), held: Vec::new() };
    let segments = BTreeMap::from([(SegmentId(id), segment)]);
    PastJournal { last, is_from_start: false, times: Vec::new(), segments }
}

#[test]
fn a_state_needs_each_segment_that_it_lists() {
    let flushed = |state: &State, seq: u64| {
        let closed = EditOp::CleanClose { last_seq: SeqNo(seq) };
        state.apply(&Edit { ops: vec![closed] }).expect("it is closed")
    };
    let has_all =
        |journal: &PastJournal, ids, seq| journal.has_all_of(&flushed(&listing(ids), seq), SeqNo(seq));
    let journal = cut_at(5, 100);
    assert!(has_all(&journal, 5..=6, 100), "nothing is missing before the commit behind 100");
    assert!(!has_all(&journal, 5..=6, 99), "commit 100 is");
    // All of it is flushed, and it was deleted: a replay would miss it all the same.
    assert!(!has_all(&journal, 4..=6, 100));
    assert!(has_all(&journal, 6..=6, 0), "the segment before is there, so all behind it is");
}

/// The last commit that the journal has for a state, and the announcement before which it ends.
fn end_of(journal: &PastJournal, state: &State) -> (u64, Option<u64>) {
    let (disk, dir) = (MemDisk::new(), Path::new("/journal"));
    disk.create_dir(dir).expect("new");
    journal.write_segments(state, &disk, dir).expect("writes");
    let last = journal.last_commit(state, (&disk, dir), Until::END).expect("reads");
    (last.0, journal.open_mark(state, (&disk, dir)).expect("reads").map(|mark| mark.0))
}

#[test]
fn commits_end_before_extents_that_a_manifest_does_not_decide() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let bucket: Arc<dyn Bucket> = Arc::new(MemoryBucket::new(Env::real().clock));
    let journal = BucketJournal { url: None, settings: ObjectJournalSettings::default() };
    let mut deployment = Deployment::new(root.path().join("journal"), "memory:".to_owned());
    (deployment.bucket_journal, deployment.settings.probe) = (Some(journal), false);
    let opened = deployment.open_in(bucket.clone(), &Options::default(), Functions::default(), Env::real());
    let writer = opened.expect("opens");
    let put = |key: u8| writer.put([key], "value").expect("puts");
    (0..9).for_each(put);
    let loaded = writer.bulk_load(writer.default_table(), [("loaded", "value")]).expect("loads");
    assert_eq!(loaded.seq.0, 10);
    (0..5).for_each(put);
    writer.sync().expect("syncs");
    let prefix = &deployment.prefix;
    let folder = JournalFolder::new(bucket.clone(), prefix).expect("a prefix");
    let journal = folder.past().expect("reads").expect("there is a journal");
    let manifest = ManifestFolder::new(bucket, prefix).and_then(|folder| folder.past());
    let mut ends = Vec::new();
    let walked = manifest.expect("reads").expect("there is a manifest").walk(&mut |found, _| {
        let state = found.state.as_ref().filter(|state| !state.segments.is_empty());
        ends.extend(state.map(|state| end_of(&journal, state)));
        if let Some(state) = state.filter(|state| state.last_seq() < loaded.seq) {
            let void = Edit { ops: vec![EditOp::VoidMark { seq: loaded.seq }] };
            assert_eq!(end_of(&journal, &state.apply(&void)?), (15, None), "it says that they never came");
        }
        Ok(true)
    });
    walked.expect("reads");
    ends.dedup();
    assert_eq!(ends, [(9, Some(10)), (15, None)], "before the load, and with it");
}
