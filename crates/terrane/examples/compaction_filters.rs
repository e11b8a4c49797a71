//! A compaction filter: the next compaction removes sessions of users that are gone, but a snapshot keeps
//! seeing them.

use std::collections::BTreeSet;
use std::sync::Arc;

use terrane::{CompactionFilter, Db, FilterDecision, Result};

#[derive(Debug)]
struct OnlyKnown {
    users: BTreeSet<Vec<u8>>,
}

impl CompactionFilter for OnlyKnown {
    fn name(&self) -> &str {
        "example.only-known-users"
    }

    fn filter(&self, key: &[u8], _value: &[u8]) -> FilterDecision {
        let user = key.split(|byte| *byte == b'/').next().unwrap_or_default();
        if self.users.contains(user) { FilterDecision::Keep } else { FilterDecision::Remove }
    }

    /// Rows that a compaction would carry on unread are shown, too.
    fn sees_all(&self) -> bool {
        true
    }
}

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path().join("data"))?;
    let sessions = db.table_or_create("sessions")?;
    for key in ["ada/1", "ada/2", "bob/1", "eve/1"] {
        sessions.put(key.as_bytes(), "open")?;
    }
    let before = db.snapshot();
    let users = [b"ada".to_vec(), b"bob".to_vec()].into();
    sessions.set_compaction_filter(Some(Arc::new(OnlyKnown { users })));
    db.compact_range(&sessions, ..)?;
    // A snapshot sees it: it is not even shown.
    assert_eq!(sessions.iter().count(), 4);
    drop(before);
    db.compact_range(&sessions, ..)?;
    let left: Vec<_> = sessions.iter().map(|row| row.map(|(key, _)| key)).collect::<Result<_>>()?;
    println!("{} sessions are left", left.len());
    assert_eq!(left, [b"ada/1", b"ada/2", b"bob/1"]);
    db.close()
}
