//! Methods of the engine's contexts, the structs that lie one inside the other. A method there is found by
//! every part above, whatever it needs; on a job or a face of its part it is found where it is used.
//! `xtask/contexts.txt` says how many each context may have; the counts only fall.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Finding, list_entries, parts};
use crate::tree::Tree;

/// The contexts, the engine outermost.
pub const CONTEXTS: [&str; 4] = ["Engine", "WritePath", "Maintenance", "Shared"];
const RATCHET: &str = "xtask/contexts.txt";
const HEAD: &str = "\
# Methods that each context of the engine may have: `STRUCT COUNT`. A count may only fall; `cargo xtask tidy --write`
# lowers it. A new method belongs to a job or a face of its part, which holds the context.
";

/// Checks the count of each context against the ratchet.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    if tree.get(RATCHET).is_none() {
        return Vec::new();
    }
    let (allowed, mut findings) = ratchet(tree);
    for (context, count) in parts::method_counts(tree, &CONTEXTS) {
        let most = allowed.get(context).copied().unwrap_or(0);
        if count > most {
            let why = format!(
                "`{context}` has {count} methods, {most} are allowed: give a new one to a job or a face of its part"
            );
            findings.push(Finding::new(RATCHET, 0, why));
        }
    }
    findings
}

/// The ratchet: context to the count allowed, and findings about entries that do not parse.
fn ratchet(tree: &Tree) -> (BTreeMap<&str, u64>, Vec<Finding>) {
    let (mut allowed, mut findings) = (BTreeMap::new(), Vec::new());
    for (line, entry) in list_entries(tree, RATCHET) {
        match entry.split_once(' ').and_then(|(context, count)| Some((context, count.parse().ok()?))) {
            Some((context, count)) if CONTEXTS.contains(&context) => drop(allowed.insert(context, count)),
            _ => findings.push(Finding::new(RATCHET, line, "expected `STRUCT COUNT` of a context")),
        }
    }
    (allowed, findings)
}

/// The ratchet with every count lowered to what is true now, if that changes it.
#[must_use]
pub fn renewed(tree: &Tree) -> Option<(&'static str, String)> {
    let (allowed, counts) = (ratchet(tree).0, parts::method_counts(tree, &CONTEXTS));
    let mut text = HEAD.to_owned();
    for context in CONTEXTS {
        if let Some(most) = allowed.get(context) {
            let count = counts.get(context).copied().unwrap_or(0).min(*most);
            let _ = writeln!(text, "{context} {count}");
        }
    }
    let is_new = tree.get(RATCHET).is_some_and(|old| old != text);
    is_new.then_some((RATCHET, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "//! Shared.\nimpl Shared {\n    fn one(&self) {}\n    fn two(&self) {}\n}\n";

    #[test]
    fn methods_of_contexts_only_become_fewer() {
        let mut tree = Tree::of([("crates/terrane-engine/src/shared.rs", TWO)]);
        assert_eq!(check(&tree), [], "no ratchet is in the tree");
        tree.insert(RATCHET, "Shared 1\n");
        let found = check(&tree);
        assert!(found.len() == 1 && found[0].message.contains("`Shared` has 2 methods, 1"), "{found:?}");
        assert!(renewed(&tree).is_some_and(|(_, text)| text.ends_with("\nShared 1\n")), "it never rises");
        tree.insert(RATCHET, "Shared 3\n");
        assert_eq!(check(&tree), []);
        assert!(renewed(&tree).is_some_and(|(_, text)| text.ends_with("\nShared 2\n")));
        tree.insert(RATCHET, "Shares 3\n");
        assert_eq!(check(&tree).len(), 2, "a name of no context, and a context without an entry");
    }
}
