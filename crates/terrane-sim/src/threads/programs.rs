//! Small programs of two threads under many schedules: which faults the explorer finds.

use std::sync::Arc;

use terrane_base::Rng;

use super::strategy::{Kind, Strategy};
use super::world::{World, explore};

/// Schedules of a program.
const SCHEDULES: u64 = 300;
/// About the weight of the points of such a program.
const LENGTH: u64 = 100;

/// Runs `one` and `other` beside each other, then `last`, on what `new` makes, under many schedules. Returns
/// the first failure. These are functions, which have nothing of their own: what the program makes stays
/// within it.
#[must_use]
pub fn first_failure<T: Send + Sync + 'static>(
    new: fn() -> T,
    one: fn(&T),
    other: fn(&T),
    last: fn(&T),
) -> Option<String> {
    let program = move |world: Arc<World>| {
        let shared = Arc::new(new());
        let joiners = [one, other].map(|body| {
            let shared = shared.clone();
            let joiner = world.env().spawn.spawn("part", Box::new(move || body(&shared)));
            joiner.expect("the system gives threads")
        });
        joiners.into_iter().for_each(|joiner| joiner.join());
        last(&shared);
    };
    (1..=SCHEDULES).find_map(|schedule| {
        let mut numbers = Rng::part(7, schedule);
        let kind = Kind::of_schedule(schedule, &mut numbers);
        let strategy = Strategy::new(kind, LENGTH, Rng::new(numbers.next_u64()));
        explore(numbers.next_u64(), strategy, program).outcome.err()
    })
}
