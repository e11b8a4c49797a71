//! Which thread a strategy chooses.

use terrane_base::Rng;
use terrane_sim::threads::strategy::{Kind, Strategy};

#[test]
fn bounded_preempts_exactly_so_often() {
    let mut strategy = Strategy::new(Kind::Bounded { preemptions: 3 }, 1000, Rng::new(7));
    (0..3).for_each(|id| strategy.add_thread(id));
    let (mut passed, mut me, mut preemptions) = (0, 0, 0);
    loop {
        let gap = strategy.next_gap(passed);
        if gap > 2000 {
            break;
        }
        passed += gap;
        let next = strategy.choose(&[0, 1, 2], me, false, passed);
        preemptions += u64::from(next != me);
        me = next;
    }
    assert!((1..=3).contains(&preemptions), "{preemptions}");
    assert!(passed <= 1000);
}

#[test]
fn pct_runs_the_thread_of_highest_priority_and_lowers_a_thread_that_yields() {
    let mut strategy = Strategy::new(Kind::Pct { depth: 1 }, 1000, Rng::new(9));
    (0..3).for_each(|id| strategy.add_thread(id));
    let first = strategy.choose(&[0, 1, 2], 0, false, 0);
    assert_eq!(strategy.choose(&[0, 1, 2], first, false, 10), first, "it goes on");
    let second = strategy.choose(&[0, 1, 2], first, true, 20);
    assert_ne!(second, first);
    assert_eq!(strategy.choose(&[0, 1, 2], second, false, 30), second);
}
