//! Timestamps of users: column families that keep a key in several versions, by timestamps that the user
//! gives.
//!
//! ```text
//! kept key     := key timestamp            ordered by the comparator: by key, and the newest timestamp first
//! kept value   := value kind:u8            kind 0: a value; 1: a delete; 2: a single delete (both empty)
//! ```
//!
//! So the engine knows versions as keys of their own, and a delete is one of them: its own deletes would end
//! one version only. A read seeks its key with its timestamp: what lies there is the newest version at or
//! below it ([`read`]). Iterators show one version of each key, or all of a range of timestamps
//! ([`versions`]). Versions that no reader may see any more are deleted ([`timestamp_gc`]).
//!
//! With the table it is noted (`terrane::Table::note`) that its rows are such, and from which timestamp on
//! they can be read: `timestamps=SIZE low=HEX`.

pub(crate) mod read;
pub(crate) mod timestamp_gc;
pub(crate) mod versions;

use std::cmp::Ordering;
use std::sync::{Mutex, PoisonError, RwLock};

use terrane::{Batch, Table};

use crate::batch::layout::Change;
use crate::callbacks::comparator::UserComparator;
use crate::db::Family;
use crate::ffi::failure::{Failure, Result};
use crate::options::read_write::ReadOptions;

/// The prefix of the note with a table.
const NOTE: &str = "timestamps=";
/// Kinds of versions, as they are kept.
const VALUE: u8 = 0;
const DELETE: u8 = 1;
const SINGLE_DELETE: u8 = 2;

/// A delete, as its row has it.
pub(crate) const STORED_DELETE: [u8; 1] = [DELETE];

/// A value, as the row of a version has it.
pub(crate) fn stored_value(value: &[u8]) -> Vec<u8> {
    joined(value, &[VALUE])
}

/// How the versions of a column family are ordered, and the timestamp from which on they are complete.
#[derive(Debug)]
pub(crate) struct History {
    comparator: UserComparator,
    /// Bytes of a timestamp.
    size: usize,
    family: String,
    /// Timestamps below are not read any more; empty while all are.
    low: RwLock<Vec<u8>>,
    /// Held by the thread that raises it.
    raising: Mutex<()>,
    /// Held by the thread that deletes old versions.
    sweeping: Mutex<()>,
}

/// A version of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version<'r> {
    pub(crate) key: &'r [u8],
    pub(crate) timestamp: &'r [u8],
    pub(crate) value: &'r [u8],
    kind: u8,
}

impl Version<'_> {
    /// Returns true if the key has no value in this version.
    pub(crate) fn is_deleted(&self) -> bool {
        self.kind != VALUE
    }

    /// The same as a change of a batch, whose key has the timestamp.
    fn as_change<'r>(&self, kept: &'r [u8], value: &'r [u8]) -> Change<'r> {
        match self.kind {
            VALUE => Change::Put(kept, value),
            DELETE => Change::Delete(kept),
            _ => Change::SingleDelete(kept),
        }
    }
}

fn joined(left: &[u8], right: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(left.len() + right.len() + 1);
    joined.extend_from_slice(left);
    joined.extend_from_slice(right);
    joined
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.chars().map(|c| Some(c.to_digit(16)? as u8)).collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// The note with a table.
#[derive(Debug, PartialEq, Eq)]
struct Note {
    size: usize,
    low: Vec<u8>,
}

impl Note {
    fn text(&self) -> String {
        format!("{NOTE}{} low={}", self.size, hex(&self.low))
    }

    /// None for every other note.
    fn parse(text: &str) -> Option<Note> {
        let (size, low) = text.strip_prefix(NOTE)?.split_once(" low=")?;
        let (size, low) = (size.parse().ok()?, from_hex(low)?);
        (low.is_empty() || low.len() == size).then_some(Note { size, low })
    }
}

impl History {
    /// That of a table which is opened with this comparator; none where it has no timestamps. A table that
    /// has no row yet becomes one with timestamps if `writes`.
    ///
    /// # Errors
    /// `Invalid argument` if the rows of the table are of another kind.
    pub(crate) fn of(
        table: &Table,
        comparator: Option<&UserComparator>,
        writes: bool,
    ) -> Result<Option<History>> {
        let size = comparator.map_or(0, UserComparator::timestamp_bytes);
        let noted = match table.note() {
            None => None,
            // That of a program which uses the library itself.
            Some(note) if size == 0 && !note.starts_with(NOTE) => None,
            Some(note) => Some(Note::parse(&note).ok_or_else(|| {
                Failure::invalid(format_args!(
                    "column family {} has a note that is not one of timestamps: {note:?}",
                    table.name()
                ))
            })?),
        };
        let found = noted.as_ref().map_or(0, |note| note.size);
        if size != found && (noted.is_some() || !is_empty(table)?) {
            return Err(Failure::invalid(format_args!(
                "Timestamp sizes mismatch: column family {} was made with {found} bytes, {size} given",
                table.name()
            )));
        }
        let Some(comparator) = comparator.filter(|_| size > 0) else { return Ok(None) };
        let note = noted.unwrap_or(Note { size, low: Vec::new() });
        if found == 0 && writes {
            table.set_note(&note.text())?;
        }
        Ok(Some(History {
            comparator: comparator.to_ask(),
            size,
            family: table.name().to_owned(),
            low: RwLock::new(note.low),
            raising: Mutex::new(()),
            sweeping: Mutex::new(()),
        }))
    }

    /// Bytes of a timestamp.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// A key with a timestamp, as it is kept.
    pub(crate) fn kept(&self, key: &[u8], timestamp: &[u8]) -> Vec<u8> {
        joined(key, timestamp)
    }

    /// Keys without timestamps that a range is about, as a range of kept ones; with what the greatest and the
    /// least timestamp are in RocksDB.
    pub(crate) fn kept_ends(&self, first: Option<&[u8]>, last: Option<&[u8]>) -> [Option<Vec<u8>>; 2] {
        let with = |key: Option<&[u8]>, byte| key.map(|key| joined(key, &vec![byte; self.size]));
        [with(first, 0xff), with(last, 0)]
    }

    /// The version in a row.
    pub(crate) fn version<'r>(&self, kept: &'r [u8], stored: &'r [u8]) -> Result<Version<'r>> {
        let key_len = kept.len().checked_sub(self.size);
        let kind = stored.split_last().filter(|(kind, _)| **kind <= SINGLE_DELETE);
        match key_len.zip(kind) {
            Some((key_len, (kind, value))) => {
                let (key, timestamp) = kept.split_at(key_len);
                Ok(Version { key, timestamp, value, kind: *kind })
            }
            None => Err(Failure::corrupt(format_args!(
                "a row of column family {} is not a version of a key: was it written with the comparator's timestamps?",
                self.family
            ))),
        }
    }

    /// How two timestamps relate.
    pub(crate) fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        self.comparator.compare_timestamps(left, right)
    }

    /// How two keys without timestamps relate.
    pub(crate) fn compare_keys(&self, left: &[u8], right: &[u8]) -> Ordering {
        self.comparator.compare_without(left, right)
    }

    /// Timestamps below this one are not read any more; empty while all are.
    pub(crate) fn low(&self) -> Vec<u8> {
        self.low.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sees what was noted with the table since.
    pub(crate) fn look_again(&self, table: &Table) {
        if let Some(note) =
            table.note().as_deref().and_then(Note::parse).filter(|note| note.size == self.size)
        {
            *self.low.write().unwrap_or_else(PoisonError::into_inner) = note.low;
        }
    }

    /// Refuses a timestamp whose versions may be gone. Requires: a snapshot is pinned, so that the versions
    /// of an admitted read stay.
    fn refuse_below_low(&self, timestamp: &[u8]) -> Result<()> {
        // A copy: the user's function is called with no lock held.
        let low = self.low();
        if low.is_empty() || self.compare(timestamp, &low).is_ge() {
            return Ok(());
        }
        Err(Failure::invalid(format_args!(
            "Read timestamp: {} is smaller than full_history_ts_low: {}",
            hex(timestamp),
            hex(&low)
        )))
    }

    /// Adds a change, whose key has its timestamp, to a batch of the engine.
    pub(crate) fn add_to(&self, batch: &mut Batch, table: &Table, change: Change<'_>) -> Result<()> {
        let (key, stored) = match change {
            Change::Put(key, value) => (key, stored_value(value)),
            Change::Delete(key) => (key, vec![DELETE]),
            Change::SingleDelete(key) => (key, vec![SINGLE_DELETE]),
            Change::LogData(_) => return Ok(()),
            Change::Merge(..) | Change::RangeDelete(..) => {
                return Err(Failure::not_implemented(format_args!(
                    "merges and range deletes in column family {}, which has timestamps",
                    self.family
                )));
            }
        };
        if key.len() < self.size {
            return Err(Failure::invalid(format_args!(
                "a key of {} bytes has no timestamp of {}",
                key.len(),
                self.size
            )));
        }
        Ok(batch.put(table, key, &stored)?)
    }

    /// The change of a batch that a row was written by.
    pub(crate) fn with_change<R>(
        &self,
        kept: &[u8],
        stored: &[u8],
        take: impl FnOnce(Change<'_>) -> R,
    ) -> Result<R> {
        let version = self.version(kept, stored)?;
        Ok(take(version.as_change(kept, version.value)))
    }
}

/// Returns true if it is noted with a table that its rows are versions.
pub(crate) fn is_stamped(table: &Table) -> bool {
    table.note().is_some_and(|note| Note::parse(&note).is_some())
}

/// Returns true if no row is in a table.
fn is_empty(table: &Table) -> Result<bool> {
    Ok(table.iter().next().transpose()?.is_none())
}

impl Family {
    /// Refuses what has no timestamp where keys have some.
    #[inline]
    pub(crate) fn refuse_without_timestamp(&self) -> Result<()> {
        match &self.history {
            None => Ok(()),
            Some(history) => Err(Failure::invalid(format_args!(
                "cannot call this method on column family {} that enables timestamp",
                history.family
            ))),
        }
    }

    /// The history for a timestamp of its size.
    pub(crate) fn history_for(&self, timestamp: &[u8]) -> Result<&std::sync::Arc<History>> {
        let history = self.history.as_ref().ok_or_else(|| {
            Failure::invalid(format_args!(
                "cannot call this method on column family {} that does not enable timestamp",
                self.table.name()
            ))
        })?;
        if timestamp.len() != history.size {
            return Err(Failure::invalid(format_args!(
                "Timestamp sizes mismatch: expect {}, {} given",
                history.size,
                timestamp.len()
            )));
        }
        Ok(history)
    }

    /// The timestamp by which versions are read; `None` for a column family without timestamps.
    ///
    /// # Errors
    /// `Invalid argument` if the options name a timestamp and the column family has none, or the other way
    /// round; `Not implemented` in strict mode for options of reads that have no effect.
    #[inline]
    pub(crate) fn read_by<'a>(
        &'a self,
        options: Option<&'a ReadOptions>,
    ) -> Result<Option<(&'a std::sync::Arc<History>, &'a [u8])>> {
        self.note_read(options)?;
        match options.and_then(|options| options.timestamp.as_deref()) {
            Some(timestamp) => Ok(Some((self.history_for(timestamp)?, timestamp))),
            None => self.refuse_without_timestamp().map(|()| None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        for low in [vec![], vec![0, 0x10, 0xff, 7]] {
            let note = Note { size: 4, low };
            assert_eq!(Note::parse(&note.text()), Some(note));
        }
        let bad = [
            "",
            "timestamps=4",
            "timestamps=4 low=0",
            "timestamps=4 low=00",
            "timestamps=x low=",
            "timestamps=1 low=zz",
        ];
        for text in bad {
            assert_eq!(Note::parse(text), None, "{text:?}");
        }
    }
}
