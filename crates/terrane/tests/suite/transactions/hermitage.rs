//! The cases of Hermitage (Kleppmann, 2014), at each level and in both modes: what the level forbids does not
//! happen, and what it allows does, where nothing else is in the way. A transaction that the engine refuses
//! prevents its case.

use terrane::{Concurrency, Db, Isolation};

use crate::transactions::support::{Attempt, LEVELS, MODES, open, text, without_wait};

/// Runs a case at each level in both modes, over keys 1 = 10 and 2 = 20.
fn each(case: impl Fn(&Db, Concurrency, Isolation, &dyn Fn() -> terrane::TransactionOptions)) {
    for mode in MODES {
        for level in LEVELS {
            let (_dir, db) = open();
            db.put(b"1", b"10").unwrap();
            db.put(b"2", b"20").unwrap();
            case(&db, mode, level, &|| without_wait(mode, level));
        }
    }
}

fn value(db: &Db, key: &str) -> String {
    text(&db.get(key.as_bytes()).unwrap().unwrap_or_default())
}

#[test]
fn g0_write_cycles() {
    each(|db, mode, level, options| {
        let (mut one, mut two) = (Attempt::begin(db, &options()), Attempt::begin(db, &options()));
        one.put("1", "11");
        two.put("1", "12");
        one.put("2", "21");
        let first = one.commit();
        two.put("2", "22");
        let second = two.commit();
        assert!(first || second, "{mode:?} {level:?}: neither commits");
        let found = (value(db, "1"), value(db, "2"));
        let allowed = [("11".into(), "21".into()), ("12".into(), "22".into())];
        assert!(allowed.contains(&found), "{mode:?} {level:?}: {found:?}");
    });
}

#[test]
fn g1a_aborted_reads() {
    each(|db, mode, level, options| {
        let (mut one, mut two) = (Attempt::begin(db, &options()), Attempt::begin(db, &options()));
        one.put("1", "101");
        let before = two.get("1");
        one.rollback();
        let after = two.get("1");
        for seen in [before, after].into_iter().flatten() {
            assert_eq!(seen, "10", "{mode:?} {level:?}");
        }
        two.commit();
        assert_eq!(value(db, "1"), "10");
    });
}

#[test]
fn g1b_intermediate_reads() {
    each(|db, mode, level, options| {
        let (mut one, mut two) = (Attempt::begin(db, &options()), Attempt::begin(db, &options()));
        one.put("1", "101");
        let before = two.get("1");
        one.put("1", "11");
        assert!(one.commit(), "{mode:?} {level:?}");
        let after = two.get("1");
        assert_ne!(before.as_deref(), Some("101"), "{mode:?} {level:?}");
        let expected = if level == Isolation::ReadCommitted { "11" } else { "10" };
        assert!(after.as_deref().is_none_or(|seen| seen == expected), "{mode:?} {level:?}: {after:?}");
    });
}

#[test]
fn g1c_circular_information_flow() {
    each(|db, mode, level, options| {
        let (mut one, mut two) = (Attempt::begin(db, &options()), Attempt::begin(db, &options()));
        one.put("1", "11");
        two.put("2", "22");
        let (one_saw, two_saw) = (one.get("2"), two.get("1"));
        let (first, second) = (one.commit(), two.commit());
        assert!(one_saw.is_none_or(|seen| seen == "20"), "{mode:?} {level:?}");
        assert!(two_saw.is_none_or(|seen| seen == "10"), "{mode:?} {level:?}");
        // Each read what the other one changed.
        let both = first && second;
        assert!(!both || level != Isolation::Serializable, "{mode:?}");
        assert!(both || level == Isolation::Serializable, "{mode:?} {level:?}: refused without need");
    });
}

#[test]
fn otv_observed_transaction_vanishes() {
    each(|db, mode, level, options| {
        let mut attempts: Vec<_> = (0..3).map(|_| Attempt::begin(db, &options())).collect();
        let [one, two, three] = attempts.as_mut_slice() else { unreachable!() };
        one.put("1", "11");
        one.put("2", "19");
        two.put("1", "12");
        one.commit();
        let mut seen = vec![three.get("1")];
        two.put("2", "18");
        seen.push(three.get("2"));
        two.commit();
        seen.push(three.get("2"));
        seen.push(three.get("1"));
        let age = |seen: &String| {
            ["10", "20", "11", "19", "12", "18"].iter().position(|known| known == seen).unwrap() / 2
        };
        let ages: Vec<_> = seen.iter().flatten().map(age).collect();
        assert!(ages.is_sorted(), "{mode:?} {level:?}: {seen:?}");
    });
}

#[test]
fn pmp_predicate_many_preceders() {
    each(|db, mode, level, options| {
        let (mut one, mut two) = (Attempt::begin(db, &options()), Attempt::begin(db, &options()));
        assert_eq!(one.keys_with("30"), Some(vec![]), "{mode:?} {level:?}");
        two.put("3", "30");
        assert!(two.commit(), "{mode:?} {level:?}");
        let expected: &[&str] = if level == Isolation::ReadCommitted { &["3"] } else { &[] };
        assert_eq!(one.keys_with("30").unwrap(), expected, "{mode:?} {level:?}");
        assert!(one.commit(), "{mode:?} {level:?}: it read one moment");
    });
}

#[test]
fn p4_lost_update() {
    each(|db, mode, level, options| {
        let (mut one, mut two) = (Attempt::begin(db, &options()), Attempt::begin(db, &options()));
        let _ = (one.get("1"), two.get("1"));
        one.put("1", "11");
        two.put("1", "12");
        let both = one.commit() & two.commit();
        assert!(!both || level == Isolation::ReadCommitted, "{mode:?} {level:?}");
        if mode == Concurrency::Optimistic && level == Isolation::ReadCommitted {
            assert!(both, "refused without need");
        }
    });
}

#[test]
fn p4_lost_update_is_prevented_by_reads_for_update() {
    each(|db, mode, level, options| {
        let (mut one, mut two) = (Attempt::begin(db, &options()), Attempt::begin(db, &options()));
        let _ = (one.get_for_update("1"), two.get_for_update("1"));
        one.put("1", "11");
        two.put("1", "12");
        let (first, second) = (one.commit(), two.commit());
        assert!(first != second, "{mode:?} {level:?}: {first} {second}");
    });
}

#[test]
fn g_single_read_skew() {
    each(|db, mode, level, options| {
        let (mut one, mut two) = (Attempt::begin(db, &options()), Attempt::begin(db, &options()));
        assert_eq!(one.get("1").as_deref(), Some("10"), "{mode:?} {level:?}");
        let _ = (two.get("1"), two.get("2"));
        two.put("1", "12");
        two.put("2", "18");
        let committed = two.commit();
        let seen = one.get("2");
        if level == Isolation::ReadCommitted {
            assert!(committed && seen.as_deref() == Some("18"), "{mode:?}: {seen:?}");
        } else {
            assert!(seen.is_none_or(|seen| seen == "20"), "{mode:?} {level:?}");
        }
    });
}

#[test]
fn g2_item_write_skew() {
    each(|db, mode, level, options| {
        let (mut one, mut two) = (Attempt::begin(db, &options()), Attempt::begin(db, &options()));
        let _ = (one.get("1"), one.get("2"), two.get("1"), two.get("2"));
        one.put("1", "11");
        two.put("2", "21");
        let both = one.commit() & two.commit();
        assert_eq!(both, level != Isolation::Serializable, "{mode:?} {level:?}");
    });
}

#[test]
fn g2_phantoms() {
    each(|db, mode, level, options| {
        let (mut one, mut two) = (Attempt::begin(db, &options()), Attempt::begin(db, &options()));
        assert_eq!((one.keys_with("30"), two.keys_with("30")), (Some(vec![]), Some(vec![])));
        one.put("3", "30");
        two.put("4", "42");
        let both = one.commit() & two.commit();
        assert_eq!(both, level != Isolation::Serializable, "{mode:?} {level:?}");
    });
}
