//! One directory: its current entries, its durable entries, and the changes between them.

use std::collections::BTreeMap;

use crate::memory::outcome::Choices;
use crate::memory::tree::NodeId;

pub(super) type Entries = BTreeMap<String, NodeId>;

#[derive(Clone, Debug)]
pub(super) enum Change {
    Set(String, NodeId),
    Unset(String),
    /// A rename within the directory: both names change at once.
    Move(String, String),
}

impl Change {
    pub(super) fn apply(&self, entries: &mut Entries) {
        match self {
            Change::Set(name, node) => {
                entries.insert(name.clone(), *node);
            }
            Change::Unset(name) => {
                entries.remove(name);
            }
            Change::Move(from, to) => {
                if let Some(node) = entries.remove(from) {
                    entries.insert(to.clone(), node);
                }
            }
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Dir {
    pub(super) entries: Entries,
    pub(super) durable: Entries,
    /// The changes from `durable` to `entries`.
    pub(super) changes: Vec<Change>,
}

impl Dir {
    pub(super) fn change(&mut self, change: Change) {
        change.apply(&mut self.entries);
        self.changes.push(change);
    }

    pub(super) fn sync(&mut self) {
        self.durable.clone_from(&self.entries);
        self.changes.clear();
    }

    /// The entries after a power cut: a prefix of the changes is applied or, on a strict device, any subset.
    pub(super) fn crashed(&self, choices: &Choices) -> Entries {
        let mut entries = self.durable.clone();
        let is_strict = !choices.is_counted() && choices.below(4) == 0;
        if is_strict {
            let kept = self.changes.iter().filter(|_| choices.below(2) == 0);
            kept.for_each(|change| change.apply(&mut entries));
        } else {
            let kept = choices.below(self.changes.len() as u64 + 1) as usize;
            self.changes[..kept].iter().for_each(|change| change.apply(&mut entries));
        }
        entries
    }
}
