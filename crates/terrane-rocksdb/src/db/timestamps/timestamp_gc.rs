//! Collection of old timestamps: removes versions that a newer one hides from every timestamp that can still
//! be read.
//!
//! Of the versions of a key at or below the lowest timestamp only the newest counts. Older ones are removed
//! in two ways:
//!
//! * A compaction removes a version if it has met a newer one of the key, at or below the lowest timestamp,
//!   before it ([`Collapsing`]). Compaction never removes a newest delete, because versions that it hides may
//!   be in memory or in another level.
//! * `compact_range` first deletes, by deletes of the engine, all such versions in its range, newest deletes
//!   included ([`sweep`]). They have their place in the order of commits, so that snapshots see what they
//!   saw. A newest delete is removed in a transaction that fails if a version of its key was written beside
//!   it; then it stays until the next time.
//!
//! Readers pin a snapshot before they check the lowest timestamp; a compaction reads the lowest timestamp
//! before it lists the pinned snapshots. So it keeps every version that an admitted reader can see.

use std::sync::{Arc, Mutex, PoisonError};

use terrane::{
    Batch, CompactionContext, CompactionFilter, Durability, FilterDecision, Isolation, Table, Transaction,
    TransactionOptions,
};

use crate::db::timestamps::{DELETE, History, Note};
use crate::db::{Database, Family};
use crate::ffi::failure::{Failure, Result};

/// Deletes of one commit.
const BATCH_COUNT: u64 = 1000;

/// The filter of a column family with timestamps; the user's one behind it is asked about values of versions
/// that stay.
#[derive(Debug)]
pub(crate) struct Collapsing {
    history: Arc<History>,
    filter: Option<Arc<dyn CompactionFilter>>,
    /// In a compaction.
    hiding: Option<Hiding>,
}

/// The versions that hide others, as far as a compaction has met them.
#[derive(Debug)]
struct Hiding {
    /// The lowest timestamp when it began.
    low: Vec<u8>,
    /// The key, with its timestamp, of the last version at or below it.
    last: Mutex<Option<Vec<u8>>>,
}

impl Collapsing {
    pub(crate) fn new(history: &Arc<History>, filter: Option<Arc<dyn CompactionFilter>>) -> Collapsing {
        Collapsing { history: history.clone(), filter, hiding: None }
    }

    /// Returns true if a newer version hides this one; if not it may hide others.
    fn is_hidden(&self, kept: &[u8], key: &[u8], timestamp: &[u8]) -> bool {
        let Some(Hiding { low, last }) = &self.hiding else { return false };
        if low.is_empty() || self.history.compare(timestamp, low).is_gt() {
            return false;
        }
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((last_key, newer)) =
            last.as_ref().and_then(|last| last.split_at_checked(last.len() - self.history.size()))
            && self.history.compare_keys(last_key, key).is_eq()
            && self.history.compare(newer, timestamp).is_gt()
        {
            return true;
        }
        *last = Some(kept.to_vec());
        false
    }
}

impl CompactionFilter for Collapsing {
    fn name(&self) -> &str {
        self.filter.as_ref().map_or("full_history_ts_low", |filter| filter.name())
    }

    /// A row that is not a version stays: reads of it report the damage.
    fn filter(&self, kept: &[u8], stored: &[u8]) -> FilterDecision {
        let Ok(version) = self.history.version(kept, stored) else { return FilterDecision::Keep };
        if self.is_hidden(kept, version.key, version.timestamp) {
            return FilterDecision::Remove;
        }
        let Some(filter) = self.filter.as_ref().filter(|_| !version.is_deleted()) else {
            return FilterDecision::Keep;
        };
        match filter.filter(kept, version.value) {
            FilterDecision::Keep => FilterDecision::Keep,
            FilterDecision::Change(mut value) => {
                value.push(crate::db::timestamps::VALUE);
                FilterDecision::Change(value)
            }
            // No older version comes to light.
            _ => FilterDecision::Change(vec![DELETE]),
        }
    }

    fn sees_all(&self) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.sees_all())
    }

    fn for_compaction(&self, compaction: CompactionContext) -> Option<Arc<dyn CompactionFilter>> {
        let filter = self.filter.as_ref();
        let filter = filter.map(|filter| filter.for_compaction(compaction).unwrap_or_else(|| filter.clone()));
        let hiding = Some(Hiding { low: self.history.low(), last: Mutex::default() });
        Some(Arc::new(Collapsing { history: self.history.clone(), filter, hiding }))
    }
}

/// Deletes rows of a table, some thousand with one commit.
struct Deletes<'a> {
    database: &'a Database,
    table: &'a Table,
    batch: Batch,
    count: u64,
}

impl Deletes<'_> {
    fn new<'a>(database: &'a Database, table: &'a Table) -> Deletes<'a> {
        Deletes { database, table, batch: Batch::new(), count: 0 }
    }

    fn add(&mut self, kept: &[u8]) -> Result<()> {
        self.batch.delete(self.table, kept)?;
        self.count += 1;
        if self.count >= BATCH_COUNT { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        if self.count > 0 {
            self.database.db.write(&self.batch, Durability::Buffered)?;
            self.batch.clear();
            self.count = 0;
        }
        Ok(())
    }
}

/// Versions that go.
struct Going<'a> {
    /// Those that a newer one hides. Whatever is written in their place meanwhile is hidden as well.
    hidden: Deletes<'a>,
    history: &'a History,
    /// Deletes that are the newest of their keys, whose hidden versions are among `hidden` or gone.
    markers: Vec<Vec<u8>>,
}

impl Going<'_> {
    fn add_marker(&mut self, kept: Vec<u8>) -> Result<()> {
        self.markers.push(kept);
        if self.markers.len() as u64 >= BATCH_COUNT { self.write() } else { Ok(()) }
    }

    /// Hidden versions first: while a delete is there nothing older comes to light.
    fn write(&mut self) -> Result<()> {
        self.hidden.write()?;
        let markers = std::mem::take(&mut self.markers);
        if markers.is_empty() {
            return Ok(());
        }
        let options = TransactionOptions { isolation: Isolation::Serializable, ..Default::default() };
        let mut transaction = self.hidden.database.db.transaction(&options)?;
        for kept in &markers {
            if self.is_alone(&transaction, kept)? {
                transaction.delete(self.hidden.table, kept)?;
            }
        }
        match transaction.commit(Durability::Buffered) {
            // A writer added a version that one of them hides, or replaced one: they stay until the next run.
            Err(error) if error.kind().is_worth_another_run() => Ok(()),
            done => Ok(done.map(drop)?),
        }
    }

    /// Returns true if it is a delete still, and no version of its key is older. The transaction keeps what
    /// it read for its commit.
    fn is_alone(&self, transaction: &Transaction, marker: &[u8]) -> Result<bool> {
        let (key, timestamp) = marker.split_at(marker.len() - self.history.size());
        let least = vec![0; self.history.size()];
        if self.history.compare(timestamp, &least).is_lt() {
            // Its timestamps have another length than RocksDB's: the end of the key's versions is unknown.
            return Ok(false);
        }
        let last = self.history.kept(key, &least);
        let mut rows = transaction.range(self.hidden.table, marker..=last.as_slice())?;
        let Some((kept, stored)) = rows.next().transpose()? else { return Ok(false) };
        let is_there = kept == marker && self.history.version(&kept, &stored)?.is_deleted();
        Ok(is_there && rows.next().transpose()?.is_none())
    }
}

/// Deletes the versions that no reader may see any more, of the keys in a range with both ends included.
pub(crate) fn sweep(
    database: &Database,
    family: &Family,
    (first, last): (Option<&[u8]>, Option<&[u8]>),
) -> Result<()> {
    let Some(history) = &family.history else { return Ok(()) };
    // One at a time: no other thread removes a delete that hides older versions.
    let _sweeping = history.sweeping.lock().unwrap_or_else(PoisonError::into_inner);
    let low = history.low();
    if low.is_empty() || database.is_read_only {
        return Ok(());
    }
    let mut cursor = family.table.cursor();
    match first {
        // Newer versions of the first key stay anyway.
        Some(first) => cursor.seek(history.kept(first, &low))?,
        None => cursor.seek_first()?,
    }
    let hidden = Deletes::new(database, &family.table);
    let mut going = Going { hidden, history, markers: Vec::new() };
    // The newest version of a key at or below the lowest timestamp, and whether it is a delete. That goes
    // last.
    let mut newest: Option<(Vec<u8>, bool)> = None;
    while let Some((kept, stored)) = cursor.row() {
        let version = history.version(kept, stored)?;
        if last.is_some_and(|last| history.compare_keys(version.key, last).is_gt()) {
            break;
        }
        if history.compare(version.timestamp, &low).is_le() {
            let is_hidden = newest.as_ref().is_some_and(|(newest, _)| {
                let key = &newest[..newest.len() - history.size()];
                history.compare_keys(key, version.key).is_eq()
            });
            if is_hidden {
                going.hidden.add(kept)?;
            } else if let Some((done, true)) = newest.replace((kept.to_vec(), version.is_deleted())) {
                going.add_marker(done)?;
            }
        }
        cursor.next()?;
    }
    if let Some((done, true)) = newest {
        going.add_marker(done)?;
    }
    going.write()
}

/// Deletes all versions newer than a timestamp.
pub(crate) fn trim(database: &Database, family: &Family, timestamp: &[u8]) -> Result<()> {
    let history = family.history_for(timestamp)?;
    let mut cursor = family.table.cursor();
    cursor.seek_first()?;
    let mut deletes = Deletes::new(database, &family.table);
    while let Some((kept, stored)) = cursor.row() {
        let version = history.version(kept, stored)?;
        if history.compare(version.timestamp, timestamp).is_gt() {
            deletes.add(kept)?;
        }
        cursor.next()?;
    }
    deletes.write()?;
    Ok(database.db.sync()?)
}

impl Family {
    /// The history of timestamps, for calls about its lowest timestamp.
    pub(crate) fn collapsing_history(&self) -> Result<&Arc<History>> {
        let missing = || Failure::invalid("Timestamp is not enabled in this column family");
        self.history.as_ref().ok_or_else(missing)
    }

    /// Refuses reads below `low` from now on. Durable on return.
    ///
    /// # Errors
    /// `Invalid argument` where there are no timestamps, or for one of another size or below the one that
    /// holds.
    pub(crate) fn raise_low(&self, low: &[u8]) -> Result<()> {
        let history = self.collapsing_history()?;
        if low.len() != history.size {
            return Err(Failure::invalid("ts_low size mismatch"));
        }
        let _raising = history.raising.lock().unwrap_or_else(PoisonError::into_inner);
        let present = history.low();
        if !present.is_empty() && history.compare(low, &present).is_lt() {
            return Err(Failure::invalid(format_args!(
                "Current full_history_ts_low: {} is higher than provided ts: {}",
                crate::db::timestamps::hex(&present),
                crate::db::timestamps::hex(low)
            )));
        }
        self.table.set_note(&Note { size: history.size, low: low.to_vec() }.text())?;
        *history.low.write().unwrap_or_else(PoisonError::into_inner) = low.to_vec();
        Ok(())
    }
}
