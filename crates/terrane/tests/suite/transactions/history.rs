//! Histories of lists that transactions append to, and a checker that knows nothing of the engine: from the
//! lists that were read it infers the order of transactions, and looks for cycles (Kingsbury and Alvaro,
//! Elle, 2020).

use std::collections::{BTreeMap, BTreeSet};

use terrane::Isolation;

pub type Id = u32;
pub type Key = u8;

/// The reads and appends of a committed transaction. Its own appends are not part of its reads.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub id: Id,
    pub reads: Vec<(Key, Vec<Id>)>,
    pub appends: Vec<Key>,
}

/// How one transaction must come before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    /// The second one wrote over, or read, what the first one wrote.
    Depends,
    /// The second one wrote over what the first one read.
    AntiDepends,
}

type Graph = BTreeMap<Id, BTreeSet<(Id, Edge)>>;

/// Checks a history against the lists at its end.
///
/// # Errors
/// Says which anomaly there is.
pub fn check(history: &[Seen], last: &BTreeMap<Key, Vec<Id>>, level: Isolation) -> Result<(), String> {
    let graph = infer(history, last)?;
    let all = |_: Edge| true;
    let depends = |edge: Edge| edge == Edge::Depends;
    for seen in history {
        if reaches(&graph, seen.id, seen.id, depends) {
            return Err(format!("G1c: {} depends on itself", seen.id));
        }
        if level == Isolation::Serializable && reaches(&graph, seen.id, seen.id, all) {
            return Err(format!("G2: {} comes before itself", seen.id));
        }
    }
    if level >= Isolation::Snapshot {
        for (&from, edges) in &graph {
            for &(to, _) in edges.iter().filter(|(_, edge)| *edge == Edge::AntiDepends) {
                if reaches(&graph, to, from, depends) {
                    return Err(format!("G-single: {from} did not see {to}, on which it depends"));
                }
            }
        }
    }
    Ok(())
}

fn infer(history: &[Seen], last: &BTreeMap<Key, Vec<Id>>) -> Result<Graph, String> {
    let mut graph = Graph::new();
    let known: BTreeSet<Id> = history.iter().map(|seen| seen.id).collect();
    let mut add = |from: Id, to: Id, edge: Edge| {
        if from != to {
            graph.entry(from).or_default().insert((to, edge));
        }
    };
    for (key, list) in last {
        if let Some(stranger) = list.iter().find(|id| !known.contains(id)) {
            return Err(format!("G1a: {stranger} is in list {key}, and did not commit"));
        }
        list.windows(2).for_each(|pair| add(pair[0], pair[1], Edge::Depends));
    }
    for seen in history {
        for key in &seen.appends {
            if !last[key].contains(&seen.id) {
                return Err(format!("P4: the append of {} to list {key} is lost", seen.id));
            }
        }
        for (key, list) in &seen.reads {
            if !last[key].starts_with(list) {
                return Err(format!(
                    "{} saw list {key} as {list:?}, which it never was: {:?}",
                    seen.id, last[key]
                ));
            }
            list.last().into_iter().for_each(|&from| add(from, seen.id, Edge::Depends));
            last[key].get(list.len()).into_iter().for_each(|&to| add(seen.id, to, Edge::AntiDepends));
        }
    }
    Ok(graph)
}

/// Returns true if a way of at least one edge of a kind leads from one to the other.
fn reaches(graph: &Graph, from: Id, to: Id, takes: impl Fn(Edge) -> bool) -> bool {
    let (mut open, mut seen) = (vec![from], BTreeSet::new());
    while let Some(at) = open.pop() {
        for &(next, _) in graph.get(&at).into_iter().flatten().filter(|(_, edge)| takes(*edge)) {
            if next == to {
                return true;
            }
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    false
}

fn seen(id: Id, reads: &[(Key, &[Id])], appends: &[Key]) -> Seen {
    let reads = reads.iter().map(|(key, list)| (*key, list.to_vec())).collect();
    Seen { id, reads, appends: appends.to_vec() }
}

#[test]
fn the_checker_knows_anomalies() {
    use Isolation::{ReadCommitted, Serializable, Snapshot};
    let last = |lists: &[(Key, &[Id])]| lists.iter().map(|(key, list)| (*key, list.to_vec())).collect();
    let skew = [seen(1, &[(0, &[]), (1, &[])], &[0]), seen(2, &[(0, &[]), (1, &[])], &[1])];
    let lists: BTreeMap<_, _> = last(&[(0, &[1]), (1, &[2])]);
    assert!(check(&skew, &lists, Serializable).unwrap_err().starts_with("G2"));
    assert_eq!(check(&skew, &lists, Snapshot), Ok(()));
    let single = [seen(1, &[], &[0, 1]), seen(2, &[(0, &[]), (1, &[1])], &[])];
    let lists = last(&[(0, &[1]), (1, &[1])]);
    assert!(check(&single, &lists, Snapshot).unwrap_err().starts_with("G-single"));
    assert_eq!(check(&single, &lists, ReadCommitted), Ok(()));
    let cycle = [seen(1, &[(1, &[2])], &[0]), seen(2, &[(0, &[1])], &[1])];
    let lists = last(&[(0, &[1]), (1, &[2])]);
    assert!(check(&cycle, &lists, ReadCommitted).unwrap_err().starts_with("G1c"));
    let lost = [seen(1, &[], &[0]), seen(2, &[], &[0])];
    assert!(check(&lost, &last(&[(0, &[2])]), ReadCommitted).unwrap_err().starts_with("P4"));
    assert!(check(&lost[..1], &last(&[(0, &[1, 2])]), ReadCommitted).unwrap_err().starts_with("G1a"));
}
