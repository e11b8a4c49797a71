//! Shrinks a failing run: leaves out operations and options, and simplifies operations, as long as the run
//! still fails.
//!
//! Pieces of halving length first (Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing Input",
//! 2002), then one by one. A different failure counts as well, since its run is shorter.

use crate::op::{Op, Value};
use crate::run::{Failure, run};
use crate::script::Script;
use crate::tickets::Use;

/// The shortest script found that fails, and how; `runs_max` bounds the work. `None` if `script` does not
/// fail.
#[must_use]
pub fn shrink(script: &Script, runs_max: u64) -> Option<(Script, Failure)> {
    let failure = run(script).err()?;
    let mut search = Search { best: script.clone(), failure, runs_left: runs_max };
    search.best.ops.truncate(search.failure.at + 1);
    if !search.try_script(search.best.clone()) {
        search.best = script.clone();
    }
    while search.runs_left > 0 && (search.drop_ops() | search.drop_options() | search.simplify_ops()) {}
    Some((search.best, search.failure))
}

struct Search {
    best: Script,
    failure: Failure,
    runs_left: u64,
}

impl Search {
    /// Keeps a script if it fails.
    fn try_script(&mut self, script: Script) -> bool {
        if self.runs_left == 0 {
            return false;
        }
        self.runs_left -= 1;
        match run(&script) {
            Ok(_) => false,
            Err(failure) => {
                (self.best, self.failure) = (script, failure);
                true
            }
        }
    }

    fn drop_ops(&mut self) -> bool {
        let mut is_better = false;
        let mut len = self.best.ops.len().div_ceil(2);
        while len > 0 {
            let mut end = self.best.ops.len();
            while end > 0 {
                let start = end.saturating_sub(len);
                let mut shorter = self.best.clone();
                shorter.ops.drain(start..end.min(shorter.ops.len()));
                is_better |= self.try_script(shorter);
                end = start;
            }
            len /= 2;
        }
        is_better
    }

    fn drop_options(&mut self) -> bool {
        let mut is_better = false;
        for index in (0..self.best.options.len()).rev() {
            let mut shorter = self.best.clone();
            if shorter.options[index].0 == crate::operand_ops::operator().0 {
                // Without it merges fail, and that is another failure.
                continue;
            }
            shorter.options.remove(index);
            // Some need each other: not every subset is a configuration.
            is_better |= crate::run::accepts(&shorter) && self.try_script(shorter);
        }
        is_better
    }

    fn simplify_ops(&mut self) -> bool {
        let mut is_better = false;
        for index in 0..self.best.ops.len() {
            for simpler in simpler(&self.best.ops[index]) {
                let mut script = self.best.clone();
                script.ops[index] = simpler;
                is_better |= self.try_script(script);
            }
        }
        is_better
    }
}

/// Simpler operations that may do as well.
fn simpler(op: &Op) -> Vec<Op> {
    let short = |value: &Value| Value { len: value.len / 2, stamp: value.stamp };
    match op {
        Op::Put { table, key, value, sync } if value.len > 8 => {
            vec![Op::Put { table: table.clone(), key: *key, value: short(value), sync: *sync }]
        }
        Op::Batch { edits, sync } if edits.len() > 1 => {
            let without = |index| {
                let mut edits = edits.clone();
                edits.remove(index);
                Op::Batch { edits, sync: *sync }
            };
            (0..edits.len()).map(without).collect()
        }
        Op::WriteAsync { edits, .. } if edits.len() > 1 => {
            edits.iter().map(|edit| Op::WriteAsync { edits: vec![edit.clone()], ticket: Use::Keep }).collect()
        }
        Op::Steps { count } if *count > 1 => {
            vec![Op::Steps { count: count / 2 }, Op::Steps { count: count - 1 }]
        }
        Op::Reopen { options } if *options != 0 => vec![Op::Reopen { options: 0 }],
        Op::Crash { crash, after, again } => {
            let mut simpler = Vec::new();
            if again.is_some() {
                simpler.push(Op::Crash { crash: *crash, after: *after, again: None });
            }
            if *after > 0 {
                simpler.push(Op::Crash { crash: *crash, after: 0, again: *again });
            }
            simpler
        }
        Op::During { op, .. } | Op::Plain(op) | Op::Through(op) => vec![(**op).clone()],
        Op::Create { table, options } if *options != 0 => {
            vec![Op::Create { table: table.clone(), options: 0 }]
        }
        Op::Wait { millis } if *millis > 1 => vec![Op::Wait { millis: millis / 2 }],
        _ => Vec::new(),
    }
}
