//! The ingest mark: the record of the journal that announces ingested extents. It belongs to no table
//! ([`TableId::NONE`]) and is a batch by itself. It changes nothing and gives the extents their number; its
//! value says to readers of changes which tables got extents.
//!
//! The mark is written before the edit that adds the extents, and that edit may fail. So a mark alone decides
//! nothing:
//! 1. It is *decided* once the state of the manifest mentions its number or a higher one: the edit does, and
//!    nothing else can before the mark is visible, which is after the edit.
//! 2. The state lists the void marks, those without extents: the next edit adds the mark of an edit that
//!    failed ([`Marks`], `Shared::append_edit`); recovery adds the mark of an edit that a crash prevented.
//! 3. A reader in another process than the writer stops at the first mark that is not decided.
//! 4. After a failed sync of the manifest the mark is not decided: the next opening decides it.

use std::collections::BTreeSet;
use std::sync::Arc;

use terrane_base::record::Record;
use terrane_base::sync::Mutex;
use terrane_base::{Error, Kind, RecordKind, Result, SeqNo, TableId};
use terrane_levels::State;

const KEY: &[u8] = b"ingest";
const ID_BYTES: usize = size_of::<u32>();

/// The value of the mark: the ids of the tables, 32 bits each, least byte first.
pub(crate) fn value(tables: impl Iterator<Item = TableId>) -> Vec<u8> {
    tables.flat_map(|table| table.0.to_le_bytes()).collect()
}

/// The mark with this value.
pub(crate) fn record(value: &[u8]) -> Record<'_> {
    Record { kind: RecordKind::Put, table: TableId::NONE, key: KEY, value }
}

/// The outcome of the ingest that a mark announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// They came in.
    CameIn,
    /// They did not.
    Void,
    /// Not decided.
    Open,
}

/// The outcome of the mark `seq`, by a state of the manifest.
pub(crate) fn fate_in(state: &State, seq: SeqNo) -> Fate {
    if is_void(state, seq) {
        Fate::Void
    } else if seq <= state.last_seq() {
        Fate::CameIn
    } else {
        Fate::Open
    }
}

fn is_void(state: &State, seq: SeqNo) -> bool {
    state.void_marks.contains(&seq) && !terrane_base::planted!(BelieveMark)
}

/// The ingest marks of an open database whose edits failed.
#[derive(Debug, Default)]
pub(crate) struct Marks(Mutex<Failed>);

#[derive(Debug, Default)]
struct Failed {
    /// Their extents did not come in, and the manifest does not say so yet.
    void: BTreeSet<SeqNo>,
    /// The edit may be durable or not.
    unknown: BTreeSet<SeqNo>,
}

impl Marks {
    /// Those that a recovery found and that no edit will record: the database is open for reading.
    pub(crate) fn new(void: Vec<SeqNo>) -> Marks {
        Marks(Mutex::new(Failed { void: void.into_iter().collect(), unknown: BTreeSet::new() }))
    }

    /// Notes that the edit of the mark `seq` failed. To be called before the number is visible.
    pub(crate) fn note_failure(&self, seq: SeqNo, error: &Error) {
        let mut failed = self.0.lock();
        let is_unknown = error.kind() == Kind::Poisoned;
        let marks = if is_unknown { &mut failed.unknown } else { &mut failed.void };
        let is_new = marks.insert(seq);
        debug_assert!(is_new, "mark {seq} fails once");
    }

    /// Those that the next edit records.
    pub(crate) fn void(&self) -> Vec<SeqNo> {
        self.0.lock().void.iter().copied().collect()
    }

    /// Forgets marks whose outcome an edit has recorded.
    pub(crate) fn forget(&self, recorded: &[SeqNo]) {
        if !recorded.is_empty() {
            let mut failed = self.0.lock();
            let is_known = recorded.iter().all(|seq| !failed.unknown.contains(seq));
            debug_assert!(is_known, "no edit records a mark whose outcome is not known");
            failed.void.retain(|seq| !recorded.contains(seq));
        }
    }

    /// Returns the state to copy, with the failed ingests noted in it, so that the copy takes them for void.
    /// `state` is taken under the lock: no edit can record an outcome and forget its mark meanwhile, which
    /// would be in neither.
    pub(crate) fn noted_in(&self, state: impl FnOnce() -> Arc<State>) -> Arc<State> {
        let failed = self.0.lock();
        debug_assert!(failed.unknown.is_disjoint(&failed.void), "a mark has one outcome");
        let state = state();
        if failed.void.is_empty() && failed.unknown.is_empty() {
            return state;
        }
        let mut state = State::clone(&state);
        Arc::make_mut(&mut state.void_marks).extend(failed.void.iter().chain(&failed.unknown));
        Arc::new(state)
    }

    /// The outcome of the visible mark `seq`. The state is taken as in [`Marks::noted_in`].
    ///
    /// # Errors
    /// `Poisoned` if only the next opening shows.
    pub(crate) fn fate(&self, seq: SeqNo, state: impl FnOnce() -> Arc<State>) -> Result<Fate> {
        let failed = self.0.lock();
        debug_assert!(failed.unknown.is_disjoint(&failed.void), "a mark has one outcome");
        if failed.unknown.contains(&seq) {
            let message = format!(
                "the manifest could not be written when extents came in with {seq}: whether they did shows when the database \
                 is opened again"
            );
            return Err(Error::new(Kind::Poisoned, message));
        }
        let has_failed = failed.void.contains(&seq) && !terrane_base::planted!(BelieveMark);
        Ok(if has_failed || is_void(&state(), seq) { Fate::Void } else { Fate::CameIn })
    }
}

/// The tables that a record says extents came into; none for any other record.
pub(crate) fn tables_of<'r>(record: &Record<'r>) -> impl Iterator<Item = TableId> + use<'r> {
    let is_mark = record.table == TableId::NONE && record.key == KEY;
    let ids = if is_mark { record.value } else { &[] };
    ids.as_chunks::<ID_BYTES>().0.iter().map(|id| TableId(u32::from_le_bytes(*id)))
}

/// Returns true if a batch of these records announces ingested extents: it has no other record.
#[must_use]
pub fn is_mark(records: &[u8]) -> bool {
    Record::decode(records).is_ok_and(|(record, _)| tables_of(&record).next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_tables_and_nothing_else_does() {
        let ids = [TableId(1), TableId(70_000)];
        let value = value(ids.into_iter());
        assert!(tables_of(&record(&value)).eq(ids));
        assert!(tables_of(&record(&value[..5])).eq([TableId(1)]));
        let put = Record { table: TableId(1), ..record(&value) };
        assert_eq!(tables_of(&put).count(), 0);
    }
}
