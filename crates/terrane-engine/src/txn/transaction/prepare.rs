//! The first phase of a two-phase commit (`txn/prepared.rs`): a transaction is made ready under a name.

use terrane_base::{Batch, Result};
use terrane_format::prepared::{Claim, Prepared as Stored, Scanned};

use super::Transaction;
use crate::locks::conflict_window::Footprint;
use crate::locks::lock_table::LockMode;
use crate::locks::prepared_names::{Entry, Waiting};
use crate::table::Table;
use crate::txn::prepared::TwoPhase;

impl Transaction {
    /// Makes the changes of `batch` ready to be committed under `name`, durably. The transaction ends; its
    /// locks stay until the name is committed or rolled back, and it must be dropped.
    ///
    /// # Errors
    /// As [`Transaction::commit`]; `Invalid` for a bad or used name, or with `journal=off`. The transaction
    /// is as it was then.
    pub fn prepare(&mut self, name: &str, batch: &Batch) -> Result<()> {
        let engine = self.engine().clone();
        let two_phase = TwoPhase::of(&engine);
        two_phase.check_prepared_name(name)?;
        let table = two_phase.hidden_table()?;
        two_phase.reserve_name(name)?;
        let prepared = self.prepare_reserved(name, batch, &table);
        let mut names = engine.txn.prepared.lock();
        match prepared {
            Ok(waiting) => {
                let reserved = names.insert(name.to_owned(), Entry::Ready(waiting));
                debug_assert!(matches!(reserved, Some(Entry::Busy)), "{name:?} was reserved for it");
            }
            Err(error) => {
                names.remove(name);
                return Err(error);
            }
        }
        Ok(())
    }

    fn prepare_reserved(&mut self, name: &str, batch: &Batch, table: &Table) -> Result<Waiting> {
        let engine = self.engine().clone();
        let (locks, flight, writes) = self.in_time(|| {
            let (held, range_lock, footprint) = self.lock_for_commit(batch, None)?;
            let lock_wait = engine.lock_wait(self.options().lock_timeout);
            let flight = engine.txn.enter_window(&engine, &footprint, true, &lock_wait)?;
            self.validate(&footprint)?;
            let record = self.stored(&footprint, batch)?;
            engine.put(table.id, name.as_bytes(), &record, true)?;
            if let Some(range_lock) = range_lock {
                range_lock.keep();
            }
            Ok((held.keep(), flight.keep(), footprint.writes))
        })?;
        let (owner, locks) = self.hand_over(locks);
        Ok(Waiting { owner, locks, writes, flight })
    }

    /// The record of the hidden table.
    fn stored(&self, footprint: &Footprint, batch: &Batch) -> Result<Vec<u8>> {
        debug_assert!(footprint.writes.is_sorted(), "written keys are looked up by halves");
        // Locks of written keys follow from the batch, which the record has.
        let claims = self.claims().filter(|(key, _)| footprint.writes.binary_search(key).is_err());
        let claims = claims.map(|(key, mode)| Claim {
            table: key.table,
            is_exclusive: mode == LockMode::Exclusive,
            key: &key.key,
        });
        let scans = footprint.ranges.iter().map(|range| Scanned {
            table: range.table,
            lower: as_slice(&range.bounds.lower),
            upper: as_slice(&range.bounds.upper),
        });
        let stored = Stored { claims: claims.collect(), scans: scans.collect(), batch: batch.bytes() };
        let record = stored.encode();
        terrane_base::key::check_value(&record)
            .map_err(|error| error.context("record of a prepared transaction"))?;
        Ok(record)
    }
}

fn as_slice(bound: &std::ops::Bound<Vec<u8>>) -> std::ops::Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}
