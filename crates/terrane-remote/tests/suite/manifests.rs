//! The manifest as objects: what every medium passes, fencing, lost answers, hostile bytes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use terrane_base::env::Env;
use terrane_base::{Kind, Result, SegmentId, SeqNo};
use terrane_engine::PartsRequest;
use terrane_format::manifest::{Edit, EditOp, JournalMark, SegmentSpec};
use terrane_levels::manifest::conformance;
use terrane_levels::{Manifest, ManifestSettings, State};
use terrane_remote::ManifestFolder;
use terrane_remote::bucket::faulty::{Fault, FaultyBucket};
use terrane_remote::bucket::{Bucket, MemoryBucket};
use terrane_remote::manifest::{OpenedManifest, TakeOver};

use crate::support::{env, every_kind, memory, refused};

pub(crate) const JOURNAL: u128 = 77;

/// These openings have no directory of a journal to bring up to date.
fn no_segments() -> (&'static dyn terrane_device::Disk, &'static std::path::Path) {
    static DISK: std::sync::LazyLock<terrane_device::PosixDisk> =
        std::sync::LazyLock::new(terrane_device::PosixDisk::new);
    (&*DISK, std::path::Path::new("none"))
}

/// A take-over by a writer with this journal; `change` changes what it asks.
fn take_over_with(
    bucket: &Arc<dyn Bucket>,
    journal: u128,
    change: impl FnOnce(&mut TakeOver<'_>),
) -> Result<OpenedManifest> {
    let (env, mark) = (Env::real(), JournalMark { journal, before: 0, address: String::new() });
    let request = PartsRequest {
        env: &env,
        journal: &mark,
        segments: no_segments(),
        new: Some(Vec::new()),
        must_be_new: false,
    };
    let mut asked = TakeOver::new(&request);
    change(&mut asked);
    ManifestFolder::new(bucket.clone(), "db")?.take_over(&asked)
}

pub(crate) fn take_over(bucket: &Arc<dyn Bucket>) -> Result<OpenedManifest> {
    take_over_with(bucket, JOURNAL, |_| ())
}

pub(crate) fn read(bucket: &Arc<dyn Bucket>) -> Result<Option<State>> {
    let found = ManifestFolder::new(bucket.clone(), "db")?.read()?;
    Ok(found.and_then(|found| found.state))
}

/// An edit of which it shows how often it took effect: an epoch only rises.
pub(crate) fn edit(number: u64) -> Edit {
    Edit { ops: vec![EditOp::Epoch { epoch: number }] }
}

pub(crate) fn name(number: u64) -> String {
    format!("db/manifest/{number:020}")
}

#[test]
fn objects_are_a_medium_of_the_manifest() {
    for (kind, bucket, keep) in every_kind() {
        // What a client of object stores does is tested with its bucket; here it is only slower.
        if kind == "client" {
            continue;
        }
        let buckets = std::cell::Cell::new(0);
        conformance::run(|| {
            buckets.set(buckets.get() + 1);
            let (bucket, prefix) = (bucket.clone(), format!("db{}", buckets.get()));
            move |settings: ManifestSettings| {
                let (env, mark) =
                    (Env::real(), JournalMark { journal: 1, before: 0, address: String::new() });
                let request = PartsRequest {
                    env: &env,
                    journal: &mark,
                    segments: no_segments(),
                    new: Some(Vec::new()),
                    must_be_new: false,
                };
                let asked = TakeOver { settings, ..TakeOver::new(&request) };
                let opened = ManifestFolder::new(bucket.clone(), &prefix)?.take_over(&asked)?;
                Ok((opened.manifest, opened.state))
            }
        });
        drop(keep);
    }
}

/// The edits of a writer that goes on for long behind another one, until all that the other could have
/// written is replaced and deleted.
fn go_on(manifest: &Manifest, from: u64) {
    for number in from..from + 8 {
        manifest.append(&edit(number)).expect("it is the writer");
        manifest.roll().expect("it is the writer");
    }
}

#[test]
fn a_writer_that_wakes_acknowledges_nothing_and_damages_nothing() {
    let (_, clock) = env();
    let memory = memory(&clock);
    let bucket: Arc<dyn Bucket> = memory.clone();
    let at_once = |asked: &mut TakeOver<'_>| asked.replaced_age = Duration::ZERO;
    let old = take_over_with(&bucket, JOURNAL, at_once).expect("the first").manifest;
    old.append(&edit(1)).expect("it is the writer");
    let (state, number) = (old.state(), old.edit_number());
    let new = take_over_with(&bucket, JOURNAL, at_once).expect("the second");
    assert_eq!((&new.state, new.epoch), (&*state, 2), "what was acknowledged is there");
    go_on(&new.manifest, 2);
    let replaced = memory.get(&name(number), 1 << 20).expect_err("its last edit was replaced");
    assert_eq!(replaced.kind(), Kind::NotFound);
    let before = new.manifest.state();
    // Each call is refused with an error, and nothing changes.
    for turn in 0..2 {
        let error = old.append(&edit(100 + turn)).expect_err("it was replaced");
        assert_eq!(error.kind(), Kind::Poisoned, "{error}");
        assert!(error.message().contains("epoch 2"), "it names the writer that took over: {error}");
        assert_eq!(old.roll().expect_err("it was replaced").kind(), Kind::Poisoned);
        assert_eq!(old.close().expect_err("it was replaced").kind(), Kind::Poisoned);
        assert_eq!(*old.state(), *state, "an edit that was refused is not published");
    }
    assert_eq!(read(&bucket).expect("whole").expect("a state"), *before);
    new.manifest.check_writer().expect("it is the writer still");
    new.manifest.append(&edit(200)).expect("it is the writer still");
}

#[test]
fn a_replaced_writer_finds_out_without_an_edit() {
    let (_, clock) = env();
    let bucket: Arc<dyn Bucket> = memory(&clock);
    let old = take_over(&bucket).expect("the first").manifest;
    old.check_writer().expect("it is the writer");
    let new = take_over(&bucket).expect("the second").manifest;
    for _ in 0..2 {
        assert_eq!(old.check_writer().expect_err("it was replaced").kind(), Kind::Poisoned);
    }
    assert_eq!(old.append(&edit(1)).expect_err("it knows").kind(), Kind::Poisoned);
    new.check_writer().expect("it is the writer");
}

#[test]
fn of_writers_that_race_each_has_an_epoch_and_the_last_one_the_manifest() {
    let (_, clock) = env();
    let bucket: Arc<dyn Bucket> = memory(&clock);
    let opened: Vec<OpenedManifest> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(|| take_over(&bucket))).collect();
        let outcomes = threads.into_iter().map(|thread| thread.join().expect("no panic"));
        // One that was replaced before its first snapshot has no database.
        outcomes
            .filter_map(|outcome| outcome.map_err(|error| assert_eq!(error.kind(), Kind::Poisoned)).ok())
            .collect()
    });
    let mut epochs: Vec<u64> = opened.iter().map(|opened| opened.epoch).collect();
    epochs.sort_unstable();
    let last = *epochs.last().expect("one of them came to its end");
    epochs.dedup();
    assert_eq!(epochs.len(), opened.len(), "no epoch is taken twice");
    for OpenedManifest { manifest, epoch, .. } in &opened {
        let appended = manifest.append(&edit(*epoch));
        assert_eq!(appended.is_ok(), *epoch == last, "epoch {epoch} of {last}: {appended:?}");
    }
}

#[test]
fn a_lost_answer_is_read_back() {
    let (_, clock) = env();
    let faulty = FaultyBucket::new(memory(&clock));
    let bucket: Arc<dyn Bucket> = Arc::new(faulty.clone());
    let manifest = take_over(&bucket).expect("no fault yet").manifest;
    for (number, fault) in (1..).zip([Fault::After, Fault::Before, Fault::After]) {
        faulty.fail(faulty.calls(), fault);
        manifest.append(&edit(number)).expect("the object is its own");
    }
    // The answer and its search are lost, too.
    for call in 0..2 {
        faulty.fail(faulty.calls() + call, Fault::After);
    }
    manifest.append(&edit(4)).expect("the object is its own");
    assert_eq!(read(&bucket).expect("whole").expect("a state"), *manifest.state());
    faulty.set_down(true);
    assert_eq!(manifest.append(&edit(5)).expect_err("down").kind(), Kind::Poisoned, "unknown for good");
    faulty.set_down(false);
    assert_eq!(manifest.append(&edit(5)).expect_err("still").kind(), Kind::Poisoned);
    assert_eq!(take_over(&bucket).expect("up again").state, *manifest.state());
}

/// Two writers, one behind the other; returns the epochs that were acknowledged last, and what was tried.
fn lives(bucket: &Arc<dyn Bucket>) -> (u64, u64) {
    let (mut acknowledged, mut tried) = (0, 0);
    for life in 0..2u64 {
        let often = |asked: &mut TakeOver<'_>| {
            asked.settings.roll_edits_max = 2;
            asked.replaced_age = Duration::ZERO;
        };
        let Ok(OpenedManifest { manifest, .. }) = take_over_with(bucket, JOURNAL, often) else { continue };
        for number in life * 4 + 1..life * 4 + 5 {
            tried = number;
            match manifest.append(&edit(number)) {
                Ok(()) => acknowledged = number,
                Err(_) => break,
            }
        }
    }
    (acknowledged, tried)
}

#[test]
fn a_fault_in_any_call_loses_nothing_that_was_acknowledged() {
    let (_, clock) = env();
    let rehearsal = FaultyBucket::new(memory(&clock));
    let bucket: Arc<dyn Bucket> = Arc::new(rehearsal.clone());
    assert_eq!(lives(&bucket), (8, 8), "without a fault");
    for call in 0..rehearsal.calls() {
        for fault in [Fault::Before, Fault::After, Fault::Refused] {
            let faulty = FaultyBucket::new(memory(&clock));
            faulty.fail(call, fault);
            let bucket: Arc<dyn Bucket> = Arc::new(faulty);
            let (acknowledged, tried) = lives(&bucket);
            let state = read(&bucket).unwrap_or_else(|error| panic!("{fault:?} in call {call}: {error}"));
            let found = state.map_or(0, |state| state.epoch);
            let range = acknowledged..=tried.max(acknowledged);
            assert!(range.contains(&found), "{fault:?} in call {call}: {found} is not in {range:?}");
            take_over(&bucket).unwrap_or_else(|error| panic!("{fault:?} in call {call}: {error}"));
        }
    }
}

#[test]
fn another_journal_than_the_last_writers_is_refused_unless_that_is_abandoned() {
    let (_, clock) = env();
    let bucket: Arc<dyn Bucket> = memory(&clock);
    drop(take_over(&bucket).expect("the first"));
    // Nothing is in its journal yet.
    let first = take_over_with(&bucket, 79, |_| ()).expect("there is nothing to lose").manifest;
    let spec = SegmentSpec { id: SegmentId(1), file: 1, bytes: 64 << 10 };
    first.append(&Edit { ops: vec![EditOp::AddSegment(spec)] }).expect("the writer");
    let text = refused(take_over_with(&bucket, 81, |_| ()), Kind::Invalid);
    assert!(text.contains(&format!("{:032x}", 79)), "the error names the journal: {text}");
    first.check_writer().expect("a refused opening replaces no writer");
    refused(take_over_with(&bucket, 81, |asked| asked.abandoned = Some(77)), Kind::Invalid);
    let third = take_over_with(&bucket, 81, |asked| asked.abandoned = Some(79)).expect("abandoned by name");
    assert!(third.state.segments.is_empty(), "what only the journal had is given up");
    drop(third);
    take_over_with(&bucket, 81, |_| ()).expect("its own journal now");
}

#[test]
fn a_journal_in_objects_is_not_replaced_by_one_in_a_directory() {
    let (_, clock) = env();
    let bucket: Arc<dyn Bucket> = memory(&clock);
    // An even id is that of a journal in objects.
    drop(take_over_with(&bucket, 80, |_| ()).expect("the first"));
    refused(take_over_with(&bucket, 81, |_| ()), Kind::Invalid);
    refused(take_over_with(&bucket, 81, |asked| asked.abandoned = Some(80)), Kind::Invalid);
    take_over_with(&bucket, 82, |_| ()).expect("from one in objects to another");
}

#[test]
fn a_directory_that_was_used_with_another_database_is_refused_even_where_no_journal_is_needed() {
    let (_, clock) = env();
    let bucket: Arc<dyn Bucket> = memory(&clock);
    let first = take_over(&bucket).expect("it lists no segment").manifest;
    let take = |before: u128, abandoned: Option<u128>| {
        let (env, mark) = (Env::real(), JournalMark { journal: 91, before, address: String::new() });
        let request = PartsRequest {
            env: &env,
            journal: &mark,
            segments: no_segments(),
            new: Some(Vec::new()),
            must_be_new: false,
        };
        let folder = ManifestFolder::new(bucket.clone(), "db")?;
        folder.take_over(&TakeOver { abandoned, ..TakeOver::new(&request) }).map(drop)
    };
    let text = refused(take(90, None), Kind::Invalid);
    assert!(text.contains("another database"), "{text}");
    let spec = SegmentSpec { id: SegmentId(1), file: 1, bytes: 64 << 10 };
    first
        .append(&Edit { ops: vec![EditOp::AddSegment(spec)] })
        .expect("a refused opening replaces no writer");
    // Commits in the used directory would be lost even if the caller abandons the other journal.
    let text = refused(take(90, Some(JOURNAL)), Kind::Invalid);
    assert!(text.contains("another database"), "{text}");
    take(0, Some(JOURNAL)).expect("a new directory will do");
}

/// A manifest of a snapshot with edits behind it: bucket and number of the last object.
fn some_objects() -> (Arc<MemoryBucket>, u64) {
    let (_, clock) = env();
    let memory = memory(&clock);
    let bucket: Arc<dyn Bucket> = memory.clone();
    let manifest = take_over(&bucket).expect("new").manifest;
    (1..=3).for_each(|number| manifest.append(&edit(number)).expect("the writer"));
    let last = manifest.edit_number();
    (memory, last)
}

#[test]
fn damage_is_reported_with_its_object_and_is_never_the_end() {
    let (memory, last) = some_objects();
    let bucket: Arc<dyn Bucket> = memory.clone();
    let whole = read(&bucket).expect("whole").expect("a state");
    assert_eq!(whole.epoch, 3);
    for number in 2..=last {
        let bytes = memory.get(&name(number), 1 << 20).expect("there");
        let step = (bytes.len() / 64).max(1);
        for at in (0..bytes.len()).step_by(step) {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 0x10;
            for damaged in [damaged, bytes[..at].to_vec()] {
                memory.damage(&name(number), Bytes::from(damaged)).expect("there");
                let text = refused(read(&bucket).map(drop), Kind::Corrupt);
                assert!(text.contains(&name(number)) || at < 160, "the error names the object: {text}");
                take_over(&bucket).expect_err("a writer must not build on it");
            }
        }
        memory.damage(&name(number), bytes).expect("there");
    }
    assert_eq!(read(&bucket).expect("whole again").expect("a state"), whole);
}

#[test]
fn a_missing_exchanged_or_foreign_edit_is_reported() {
    let (memory, last) = some_objects();
    let bucket: Arc<dyn Bucket> = memory.clone();
    let bytes = memory.get(&name(last - 1), 1 << 20).expect("there");
    memory.delete(&[name(last - 1)]).expect("there");
    refused(read(&bucket).map(drop), Kind::Corrupt);
    // An object of another database under the right name.
    let (other, _) = some_objects();
    let foreign = other.get(&name(last - 1), 1 << 20).expect("there");
    memory.create(&name(last - 1), &foreign).expect("absent");
    refused(read(&bucket).map(drop), Kind::Corrupt);
    memory.damage(&name(last - 1), bytes).expect("there");
    read(&bucket).expect("whole again");
    memory.create("db/manifest/readme.txt", b"of another program").expect("absent");
    let text = refused(read(&bucket).map(drop), Kind::Corrupt);
    assert!(text.contains("readme.txt"), "{text}");
}

#[test]
fn no_database_is_made_or_replaced_unasked() {
    let (_, clock) = env();
    let bucket: Arc<dyn Bucket> = memory(&clock);
    let (env, mark) = (Env::real(), JournalMark { journal: 1, before: 0, address: String::new() });
    let folder = ManifestFolder::new(bucket, "db").expect("a prefix");
    let take = |new: bool, must_be_new: bool| {
        let request = PartsRequest {
            env: &env,
            journal: &mark,
            segments: no_segments(),
            new: new.then(Vec::new),
            must_be_new,
        };
        folder.take_over(&TakeOver::new(&request)).map(drop)
    };
    refused(take(false, false), Kind::NotFound);
    take(true, true).expect("it is new");
    refused(take(true, true), Kind::Invalid);
    take(false, false).expect("it is there");
    assert_eq!(folder.read().expect("whole").expect("there").state.expect("a state").durable, SeqNo(0));
}

#[test]
fn a_journal_is_given_up_in_the_object_that_takes_over() {
    let (_, clock) = env();
    let faulty = FaultyBucket::new(memory(&clock));
    let bucket: Arc<dyn Bucket> = Arc::new(faulty.clone());
    let first = take_over(&bucket).expect("the first").manifest;
    let spec = SegmentSpec { id: SegmentId(1), file: 1, bytes: 64 << 10 };
    first.append(&Edit { ops: vec![EditOp::AddSegment(spec)] }).expect("the writer");
    let (number, calls) = (first.edit_number(), faulty.calls());
    let abandon = |asked: &mut TakeOver<'_>| asked.abandoned = Some(JOURNAL);
    drop(take_over_with(&bucket, 79, abandon).expect("given up by its name"));
    // It is the one object: a crash behind it finds the segments forgotten, and needs no further setting.
    let listed = crate::support::names(&*bucket, "db/manifest");
    assert_eq!(listed.last(), Some(&name(number + 1)), "{} calls", faulty.calls() - calls);
    let second = take_over_with(&bucket, 79, |_| ()).expect("its own journal");
    assert!(second.state.segments.is_empty(), "they are forgotten");
    second.manifest.append(&edit(9)).expect("the writer");
    second.manifest.roll().expect("the writer");
    assert!(read(&bucket).expect("whole").expect("a state").segments.is_empty());
}
