//! Histories as Elle reads them (Kingsbury and Alvaro, Elle, 2020): one operation a line in EDN, each
//! invocation and its end in the order in which they happened. With `TERRANE_TRANSACTIONS_EDN=DIR` each test
//! writes its history there; how to give it to Elle stands in `docs/reliability.md`.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::transactions::history::Seen;

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It committed.
    Ok,
    /// It was refused or rolled back: nothing of it may ever be seen.
    Fail,
}

/// A history while it happens.
#[derive(Default)]
pub struct Elle {
    clock: AtomicU64,
    /// When, and the line without its place.
    events: Mutex<Vec<(u64, String)>>,
}

impl Elle {
    /// A moment after all earlier ones.
    pub fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Notes a transaction of a thread that has just ended.
    pub fn note(&self, thread: u64, invoked: u64, end: End, seen: &Seen) {
        let ended = self.now();
        let event = |kind: &str, has_read: bool| {
            format!(":type {kind}, :process {thread}, :f :txn, :value {}", value(seen, has_read))
        };
        let kind = if end == End::Ok { ":ok" } else { ":fail" };
        let mut events = self.events.lock().unwrap();
        events.push((invoked, event(":invoke", false)));
        events.push((ended, event(kind, end == End::Ok)));
    }

    /// Writes the history to a file of this name, if a directory is named.
    pub fn write(&self, name: &str) {
        let Ok(directory) = std::env::var("TERRANE_TRANSACTIONS_EDN") else { return };
        std::fs::write(Path::new(&directory).join(format!("{name}.edn")), self.text()).unwrap();
    }

    fn text(&self) -> String {
        let mut events = self.events.lock().unwrap().clone();
        events.sort();
        let mut text = String::new();
        for (index, (moment, event)) in events.iter().enumerate() {
            writeln!(text, "{{:index {index}, :time {moment}, {event}}}").unwrap();
        }
        text
    }
}

/// Reads come before appends: no key is read after it was appended to.
fn value(seen: &Seen, has_read: bool) -> String {
    let reads = seen.reads.iter().map(|(key, list)| {
        let list: Vec<_> = list.iter().map(u32::to_string).collect();
        if has_read { format!("[:r {key} [{}]]", list.join(" ")) } else { format!("[:r {key} nil]") }
    });
    let appends = seen.appends.iter().map(|key| format!("[:append {key} {}]", seen.id));
    format!("[{}]", reads.chain(appends).collect::<Vec<_>>().join(" "))
}

#[test]
fn histories_are_written_as_elle_reads_them() {
    let elle = Elle::default();
    let (first, second) = (elle.now(), elle.now());
    let seen = |id, reads: &[(u8, &[u32])], appends: &[u8]| Seen {
        id,
        reads: reads.iter().map(|(key, list)| (*key, list.to_vec())).collect(),
        appends: appends.to_vec(),
    };
    elle.note(1, second, End::Ok, &seen(7, &[(0, &[3, 5]), (2, &[])], &[0]));
    elle.note(0, first, End::Fail, &seen(6, &[], &[1, 2]));
    let expected = "\
        {:index 0, :time 0, :type :invoke, :process 0, :f :txn, :value [[:append 1 6] [:append 2 6]]}\n\
        {:index 1, :time 1, :type :invoke, :process 1, :f :txn, :value [[:r 0 nil] [:r 2 nil] [:append 0 7]]}\n\
        {:index 2, :time 2, :type :ok, :process 1, :f :txn, :value [[:r 0 [3 5]] [:r 2 []] [:append 0 7]]}\n\
        {:index 3, :time 3, :type :fail, :process 0, :f :txn, :value [[:append 1 6] [:append 2 6]]}\n";
    assert_eq!(elle.text(), expected);
}
