//! The probe refuses each kind of liar by the check that it fails.

use terrane_base::Kind;
use terrane_base::env::Env;
use terrane_remote::Bucket;
use terrane_remote::bucket::faulty::{Fault, FaultyBucket, Lie};
use terrane_remote::bucket::probe::{self, Check};

use crate::support::{env, memory, refused};

fn failed_checks(lie: Lie) -> Vec<Check> {
    let (_, clock) = env();
    let bucket = FaultyBucket::new(memory(&clock));
    bucket.lie(lie);
    let random = Env::real().random;
    let outcomes = probe::outcomes(&bucket, "db", &*random).expect("ends");
    let failed: Vec<Check> =
        outcomes.into_iter().filter(|(_, passed)| !passed).map(|(check, _)| check).collect();
    let message = refused(probe::run(&bucket, "db", &*random), Kind::Invalid);
    assert!(message.contains(failed[0].name()), "{message}");
    failed
}

#[test]
fn liars_are_refused_by_the_check_that_they_fail() {
    let expected: [(Lie, &[Check]); 8] = [
        (Lie::EveryoneCreates, &[Check::OneWinner, Check::NeverReplaced]),
        (Lie::Replaces, &[Check::OneWinner, Check::NeverReplaced]),
        (
            Lie::Forgets,
            &[
                Check::OneWinner,
                Check::NeverReplaced,
                Check::ReadAfterCreate,
                Check::Ranges,
                Check::ListAfterCreate,
            ],
        ),
        (Lie::ReadsLate, &[Check::NeverReplaced, Check::ReadAfterCreate, Check::Ranges]),
        (Lie::ListsLate, &[Check::ListAfterCreate]),
        (Lie::ListsAll, &[Check::ListBehindName]),
        (Lie::ShiftsRanges, &[Check::Ranges]),
        (Lie::KeepsDeleted, &[Check::Delete]),
    ];
    for (lie, checks) in expected {
        assert_eq!(failed_checks(lie), checks, "{lie:?}");
    }
    for check in Check::ALL {
        assert!(expected.iter().any(|(_, checks)| checks.contains(&check)), "no liar fails {check:?}");
    }
}

#[test]
fn a_race_without_one_winner_is_the_answer_whatever_else_fails() {
    let bucket = FaultyBucket::new(memory(&env().1));
    bucket.lie(Lie::EveryoneCreates);
    // The list and the creations are calls 0 to 16; nothing but the removal may follow.
    bucket.fail(18, Fault::Before);
    let message = refused(probe::run(&bucket, "db", &*Env::real().random), Kind::Invalid);
    assert!(message.contains(Check::OneWinner.name()), "{message}");
    assert_eq!(bucket.calls(), 18);
}

#[test]
fn a_probe_that_fails_leaves_nothing() {
    let (_, clock) = env();
    let inner = memory(&clock);
    let count = FaultyBucket::new(inner.clone());
    probe::run(&count, "db", &*Env::real().random).expect("passes");
    for call in 0..count.calls() {
        let bucket = FaultyBucket::new(inner.clone());
        bucket.fail(call, Fault::Before);
        refused(probe::run(&bucket, "db", &*Env::real().random), Kind::Io);
        let removal = call + 1 == count.calls();
        let left = inner.list("db", None).expect("lists");
        assert_eq!(left.is_empty(), !removal, "call {call}: {left:?}");
    }
}
