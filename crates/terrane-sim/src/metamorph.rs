//! The same operations under many configurations, with more work in the background, give the same answers.
//!
//! This check needs no model, so it also finds faults that model and engine share; the model checks the
//! answers as well.

use crate::campaign::Job;
use crate::generate::{Climate, generate_in};
use crate::op::Op;
use crate::options::random_options;
use crate::order::Order;
use crate::script::Script;
use crate::{Outcome, run};
use terrane_base::Rng;

/// The operations of seeds, each under many configurations.
#[derive(Clone, Debug)]
pub struct Metamorph {
    /// Operations of each run.
    pub operations: u64,
    /// Configurations of each.
    pub variants: u64,
}

impl Job for Metamorph {
    type Sum = Outcome;

    fn work(&self, seed: u64, sum: &mut Outcome) -> Option<String> {
        let script = plain(generate_in(seed, self.operations, Climate::Fair));
        let mut first = None;
        for number in 0..self.variants.max(2) {
            let variant = variant(&script, number);
            let outcome = match run(&variant) {
                Ok(outcome) => outcome,
                Err(failure) => return Some(format!("# seed {seed}: {}\n{variant}", failure.message)),
            };
            sum.add(&outcome);
            let answers = *first.get_or_insert(outcome.answers);
            if answers != outcome.answers {
                return Some(format!(
                    "# seed {seed}: variant {number} answers otherwise than variant 0\n{variant}"
                ));
            }
        }
        None
    }

    fn add(sum: &mut Outcome, other: &Outcome) {
        sum.add(other);
    }
}

/// Without what depends on how far the background is, and without changes of options on the way.
fn plain(mut script: Script) -> Script {
    // Without a journal there is no backup to go back to.
    script.ops.retain(|op| !matches!(op, Op::During { .. } | Op::Rest | Op::GoBack { .. }));
    for op in &mut script.ops {
        if let Op::Reopen { options } = op {
            *options = 0;
        }
    }
    script
}

/// The operations of a script under other options, with background work in between that changes no answer.
fn variant(script: &Script, number: u64) -> Script {
    let mut numbers = Rng::part(script.seed, 100 + number);
    let mut options = random_options(&mut numbers);
    options.push(crate::operand_ops::operator());
    options.extend(Order::of(&script.options).map(crate::order::option));
    if number % 5 == 4 {
        crate::options::without_journal(&mut options);
    }
    let mut ops = Vec::new();
    for op in &script.ops {
        if numbers.one_in(30) {
            ops.push(match numbers.below(9) {
                0 => Op::Flush,
                6 => Op::Scrub,
                7 => Op::Run { table: "default".to_owned() },
                8 => Op::Level { table: "default".to_owned(), level: numbers.below(3) },
                1 => Op::Sync,
                2 => Op::Quiesce,
                3 => Op::Resume,
                _ => Op::Steps { count: 1 + numbers.below(8) },
            });
        }
        ops.push(op.clone());
    }
    Script { seed: numbers.next_u64(), options, ops }
}
