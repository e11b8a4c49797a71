//! Checks that every [`Journal`] must pass. Each check makes its own journal and panics if a guarantee is
//! broken.
//!
//! ```
//! use terrane_journal::{JournalSettings, JournalStart, NullJournal, conformance};
//! let settings = JournalSettings { segment_bytes: 16 << 10, ..JournalSettings::default() };
//! conformance::run(&mut || Box::new(NullJournal::new(&settings, &JournalStart::default()).unwrap()));
//! ```
#![expect(unsafe_code, reason = "reads placed records")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use terrane_base::{Batch, Kind, SegmentId, SeqNo, TableId};
use terrane_device::SegmentMemory;

use crate::{Journal, Placed, SegmentState};

/// Makes an empty journal whose first number is 1, with segments of at most 64 KiB.
pub type Make<'a> = dyn FnMut() -> Box<dyn Journal> + 'a;

/// Runs every check.
pub fn run(make: &mut Make<'_>) {
    numbers_are_consecutive_and_bytes_unchanged(&*make());
    empty_batches_take_no_number(&*make());
    batches_of_any_size_fit(&*make());
    concurrent_commits_keep_the_order(&*make());
    visible_means_indexed(&*make());
    nothing_passes_a_batch_that_is_being_indexed(&*make());
    nothing_is_numbered_between_groups(&*make());
    trim_gives_up_sealed_segments_only(&*make());
    a_segment_is_sealed_without_a_commit(&*make());
    a_panic_poisons_and_blocks_no_commit(&*make());
    commits_are_refused_and_the_rest_goes_on(&*make());
    a_cause_from_outside_ends_commits(&*make());
    a_closed_journal_refuses(&*make());
}

/// A batch whose bytes depend on `number`.
fn batch_of(number: u64, record_count: usize, value_len: usize) -> Batch {
    let mut batch = Batch::new();
    for index in 0..record_count {
        let key = format!("key-{number}-{index}");
        let value = vec![(number as u8).wrapping_add(index as u8); value_len];
        batch.put(TableId::DEFAULT, key.as_bytes(), &value).expect("within the limits");
    }
    batch
}

fn placed_bytes(placed: &Placed<'_>) -> Vec<u8> {
    // SAFETY: the range is published to the caller and never written again.
    unsafe { placed.segment.region.slice(placed.offset, placed.len) }.to_vec()
}

fn commit(journal: &dyn Journal, batch: &Batch, sync: bool) -> SeqNo {
    journal.commit(batch, sync, &mut |_| {}).expect("commit")
}

fn numbers_are_consecutive_and_bytes_unchanged(journal: &dyn Journal) {
    let mut next = 1;
    let mut kept: Vec<(Batch, Arc<SegmentMemory>, usize)> = Vec::new();
    for number in 0..2000 {
        let batch = batch_of(number, 1 + number as usize % 3, number as usize % 200);
        let mut calls = 0;
        let last = journal.commit(&batch, number % 500 == 0, &mut |placed| {
            calls += 1;
            assert_eq!(placed.first_seq, SeqNo(next), "numbers are consecutive");
            assert_eq!(placed_bytes(placed), batch.bytes(), "bytes are those of the batch");
            kept.push((batch.clone(), Arc::clone(placed.segment), placed.offset));
        });
        next += u64::from(batch.record_count());
        assert_eq!((last.expect("commit"), calls), (SeqNo(next - 1), 1));
        assert_eq!(journal.visible(), SeqNo(next - 1));
    }
    for (batch, segment, offset) in &kept {
        // SAFETY: as in `placed_bytes`.
        let bytes = unsafe { segment.region.slice(*offset, batch.bytes().len()) };
        assert_eq!(bytes, batch.bytes(), "placed bytes never change");
    }
    let segments = journal.segments();
    assert!(segments.len() > 1, "the check must fill several segments");
    assert!(segments.windows(2).all(|pair| pair[0].id < pair[1].id && pair[0].last_seq < pair[1].last_seq));
    assert_eq!(segments.last().expect("not empty").last_seq, SeqNo(next - 1));
}

fn empty_batches_take_no_number(journal: &dyn Journal) {
    for sync in [false, true] {
        let last = journal.commit(&Batch::new(), sync, &mut |_| panic!("nothing to index"));
        assert_eq!(last.expect("an empty batch is fine"), SeqNo(0));
    }
    assert_eq!(commit(journal, &batch_of(1, 1, 1), false), SeqNo(1));
}

fn batches_of_any_size_fit(journal: &dyn Journal) {
    let lens = [0, 1, 7, 8, 4095, 4096, 16 << 10, 65_536 - 200, 65_536, 200_000, 10, 1 << 20, 3];
    for (number, &len) in lens.iter().enumerate() {
        let batch = batch_of(number as u64, 1, len);
        let last = journal.commit(&batch, true, &mut |placed| {
            assert_eq!(placed_bytes(placed), batch.bytes());
            assert!(placed.offset + placed.len <= placed.segment.region.len());
        });
        assert_eq!(last.expect("commit"), SeqNo(number as u64 + 1));
    }
}

fn concurrent_commits_keep_the_order(journal: &dyn Journal) {
    const THREADS: u64 = 4;
    const COMMITS: u64 = 300;
    let placed: Mutex<Vec<(SegmentId, usize, u64, u32)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let placed = &placed;
            scope.spawn(move || {
                let mut own_last = SeqNo(0);
                for number in 0..COMMITS {
                    // Some batches are larger than a segment.
                    let len = if number % 50 == 0 { 70_000 } else { number as usize % 90 };
                    let batch = batch_of(thread * COMMITS + number, 1 + number as usize % 2, len);
                    let last = journal.commit(&batch, number % 40 == thread, &mut |at| {
                        assert_eq!(placed_bytes(at), batch.bytes());
                        let row = (at.segment.id, at.offset, at.first_seq.0, batch.record_count());
                        placed.lock().unwrap_or_else(PoisonError::into_inner).push(row);
                    });
                    let last = last.expect("commit");
                    assert!(
                        last > own_last && journal.visible() >= last,
                        "own commits are ordered and visible"
                    );
                    own_last = last;
                }
            });
        }
    });
    let mut placed = placed.into_inner().expect("no thread panicked");
    placed.sort_unstable();
    let mut next = 1;
    for (_, _, first, count) in placed {
        assert_eq!(first, next, "numbers follow the order of places");
        next += u64::from(count);
    }
    assert_eq!(journal.visible(), SeqNo(next - 1));
}

fn visible_means_indexed(journal: &dyn Journal) {
    let indexed: Vec<AtomicBool> = (0..=800).map(|_| AtomicBool::new(false)).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut before = 0;
            while !done.load(Ordering::Acquire) {
                let visible = journal.visible().0;
                assert!(visible >= before, "visible never goes back");
                assert!((1..=visible as usize).all(|seq| indexed[seq].load(Ordering::Relaxed)));
                before = visible;
            }
        });
        let writers: Vec<_> = (0..4)
            .map(|thread| {
                let indexed = &indexed;
                scope.spawn(move || {
                    for number in 0..200 {
                        let committed =
                            journal.commit(&batch_of(thread, 1, 20), number == 7, &mut |placed| {
                                indexed[placed.first_seq.0 as usize].store(true, Ordering::Relaxed);
                            });
                        committed.expect("commit");
                    }
                })
            })
            .collect();
        let ended: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Release);
        assert!(ended.iter().all(Result::is_ok), "a writer panicked");
    });
}

/// The first batch blocks in its index call until the second one, which follows it, has been indexed, and
/// checks many times that the second one does not become visible.
fn nothing_passes_a_batch_that_is_being_indexed(journal: &dyn Journal) {
    const LOOKS: usize = 50_000;
    let (first_is_there, second_is_indexed) = (AtomicBool::new(false), AtomicBool::new(false));
    let wait_for = |flag: &AtomicBool| {
        while !flag.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_for(&first_is_there);
            let indexed = journal.commit(&batch_of(2, 1, 10), false, &mut |_| {
                second_is_indexed.store(true, Ordering::Release);
            });
            assert_eq!(indexed.expect("commit"), SeqNo(2));
        });
        let last = journal.commit(&batch_of(1, 1, 10), false, &mut |_| {
            first_is_there.store(true, Ordering::Release);
            wait_for(&second_is_indexed);
            for _ in 0..LOOKS {
                assert_eq!(journal.visible(), SeqNo(0), "nothing is visible before all below it is indexed");
                std::thread::yield_now();
            }
        });
        assert_eq!(last.expect("commit"), SeqNo(1));
    });
    assert_eq!(journal.visible(), SeqNo(2));
}

fn nothing_is_numbered_between_groups(journal: &dyn Journal) {
    // A boundary moves; every commit that begins later must lie after it, every number before it below.
    let boundary = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let boundary = &boundary;
            scope.spawn(move || {
                for _ in 0..200 {
                    let before = boundary.load(Ordering::SeqCst);
                    let last = commit(journal, &batch_of(thread, 1, 10), false);
                    assert!(last.0 >= before, "a later record has a greater number than the boundary");
                }
            });
        }
        for _ in 0..50 {
            journal.between_groups(&mut |next| {
                let before = boundary.swap(next.0, Ordering::SeqCst);
                assert!(next.0 >= before);
                assert!(journal.visible() < next, "no record at or above the boundary exists");
            });
            std::thread::yield_now();
        }
    });
}

fn a_segment_is_sealed_without_a_commit(journal: &dyn Journal) {
    commit(journal, &batch_of(0, 1, 100), false);
    journal.seal_longer_than(u64::MAX).expect("the journal works");
    assert!(journal.complete_segments().is_empty(), "the segment is not so long");
    journal.seal_longer_than(0).expect("it works");
    let complete = journal.complete_segments();
    let (last, upto) = (complete.last().map(|last| last.last_seq), complete.last().map(|last| last.id));
    assert_eq!(last, Some(SeqNo(1)), "its end is known");
    assert_eq!(commit(journal, &batch_of(1, 1, 100), false), SeqNo(2));
    let trimmed = journal.trim(upto.expect("it is complete")).expect("trim");
    assert_eq!(trimmed.last().copied(), upto);
}

fn trim_gives_up_sealed_segments_only(journal: &dyn Journal) {
    let mut kept = None;
    let first = batch_of(0, 1, 500);
    for number in 0..400 {
        journal
            .commit(
                &if number == 0 { first.clone() } else { batch_of(number, 1, 500) },
                false,
                &mut |placed| {
                    kept.get_or_insert_with(|| (Arc::clone(placed.segment), placed.offset));
                },
            )
            .expect("commit");
    }
    let before = journal.segments();
    assert!(before.len() > 2, "the check must fill several segments");
    let second = before[1].id;
    assert_eq!(journal.trim(second).expect("trim"), [before[0].id, second]);
    assert_eq!(journal.segments()[0].id, before[2].id);
    let all = journal.trim(SegmentId(u64::MAX)).expect("trim");
    assert_eq!(all.len(), before.len() - 3);
    let left = journal.segments();
    assert_eq!((left.len(), left[0].state), (1, SegmentState::Active));
    for number in 0..800 {
        commit(journal, &batch_of(number, 1, 500), number % 100 == 0);
    }
    let (segment, offset) = kept.expect("indexed");
    // SAFETY: as in `placed_bytes`; the segment is trimmed, but its memory is kept.
    let bytes = unsafe { segment.region.slice(offset, first.bytes().len()) };
    assert_eq!(bytes, first.bytes(), "memory stays valid while a pointer to it exists");
}

fn a_panic_poisons_and_blocks_no_commit(journal: &dyn Journal) {
    commit(journal, &batch_of(0, 1, 10), false);
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..3)
            .map(|thread| {
                scope.spawn(move || {
                    let batch = batch_of(thread, 1, 10);
                    while journal.commit(&batch, thread == 0, &mut |_| {}).is_ok() {}
                    journal
                        .commit(&batch, false, &mut |_| {})
                        .expect_err("a poisoned journal stays poisoned")
                        .kind()
                })
            })
            .collect();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            journal.commit(&batch_of(9, 1, 10), false, &mut |_| {
                std::panic::resume_unwind(Box::new("on purpose"))
            })
        }));
        assert!(panicked.is_err(), "the panic continues in the caller");
        let visible = journal.visible();
        for other in others {
            assert_eq!(other.join().expect("no panic"), Kind::Poisoned);
        }
        assert_eq!(journal.visible(), visible, "nothing after the lost batch becomes visible");
    });
    journal.between_groups(&mut |next| assert!(next > journal.visible()));
    assert_eq!(journal.sync().expect_err("poisoned").kind(), Kind::Poisoned);
    assert_eq!(journal.close().expect_err("poisoned").kind(), Kind::Poisoned);
}

fn a_cause_from_outside_ends_commits(journal: &dyn Journal) {
    let last = commit(journal, &batch_of(0, 2, 10), false);
    journal.poison(terrane_base::Error::new(Kind::Io, "the cause of the caller"));
    journal.poison(terrane_base::Error::new(Kind::Io, "a later cause"));
    for sync in [false, true] {
        let refused = journal.commit(&batch_of(1, 1, 1), sync, &mut |_| panic!("not placed"));
        let refused = refused.expect_err("refused");
        assert_eq!(refused.kind(), Kind::Poisoned, "{refused}");
        assert!(refused.message().contains("the cause of the caller"), "{refused}");
    }
    assert_eq!(journal.sync().expect_err("poisoned").kind(), Kind::Poisoned);
    assert_eq!(journal.visible(), last, "what was committed stays visible");
    assert!(journal.check().is_err(), "a caller can ask");
}

fn commits_are_refused_and_the_rest_goes_on(journal: &dyn Journal) {
    let last = commit(journal, &batch_of(0, 3, 10), false);
    journal.refuse_commits();
    journal.refuse_commits();
    let refused = journal.commit(&batch_of(1, 1, 1), false, &mut |_| panic!("not placed"));
    assert_eq!(refused.expect_err("refused").kind(), Kind::Cancelled);
    assert_eq!(journal.visible(), last, "no number was given");
    journal.between_groups(&mut |next| assert_eq!(next.0, last.0 + 1));
    journal.sync_through(last).expect("what has a number can be made durable");
    journal.sync().expect("a sync has no records");
    assert_eq!(journal.close().expect("close"), last);
}

fn a_closed_journal_refuses(journal: &dyn Journal) {
    let last = commit(journal, &batch_of(0, 3, 10), false);
    assert!(journal.unused_segments().is_empty(), "the prepared segment may still be used");
    assert_eq!(journal.close().expect("close"), last);
    let unused: Vec<_> = journal.unused_segments().iter().map(|segment| segment.id).collect();
    journal.remove_unused(&unused).expect("the files can be removed");
    assert!(journal.segments().iter().all(|segment| segment.state != SegmentState::Unused));
    assert_eq!(journal.close().expect("a second close does nothing"), last);
    let refused = journal.commit(&batch_of(1, 1, 1), false, &mut |_| panic!("not placed"));
    assert_eq!(refused.expect_err("closed").kind(), Kind::Cancelled);
    assert_eq!(journal.sync().expect_err("closed").kind(), Kind::Cancelled);
    assert_eq!(journal.visible(), last);
}
