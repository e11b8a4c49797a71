//! Does the requests of one window together in the calling thread. The cores are measured against this.
//!
//! Reads gather by table into one multi-get each, writes into one batch. A read of a key that was written
//! before it comes behind these writes.

use terrane::{Batch, Db, Table, Values};

use super::{failed, sync_of};
use crate::engine::{Ask, Request, Visit};
use crate::error::Result;

/// Buffers, used again.
#[derive(Default)]
pub(super) struct Together {
    /// Requests that read, by table and number.
    reads: Vec<(u32, usize)>,
    values: Values,
    batch: Batch,
}

impl Together {
    pub(super) fn perform(
        &mut self,
        (db, readers): (&Db, &[Table]),
        requests: &[Request<'_>],
        sync: bool,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let mut rest = requests;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(independent(rest));
            self.read(readers, now, visit)?;
            self.write(db, readers, now, sync)?;
            rest = later;
        }
        Ok(())
    }

    fn read(&mut self, readers: &[Table], requests: &[Request<'_>], visit: &mut Visit<'_>) -> Result<()> {
        self.reads.clear();
        let reads = requests.iter().enumerate().filter(|(_, request)| request.ask == Ask::Get);
        self.reads.extend(reads.map(|(number, request)| (request.table, number)));
        self.reads.sort_unstable();
        let mut keys = Vec::with_capacity(self.reads.len());
        for group in self.reads.chunk_by(|left, right| left.0 == right.0) {
            keys.clear();
            keys.extend(group.iter().map(|(_, number)| requests[*number].key));
            let table = &readers[group[0].0 as usize];
            table.multi_get_into(&keys, &mut self.values).map_err(failed("multi-get"))?;
            for (key, value) in keys.iter().zip(self.values.iter()) {
                if let Some(value) = value {
                    visit(key, value);
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, db: &Db, tables: &[Table], requests: &[Request<'_>], sync: bool) -> Result<()> {
        self.batch.clear();
        for Request { table, key, ask } in requests {
            let table = &tables[*table as usize];
            match ask {
                Ask::Get => Ok(()),
                Ask::Put(value) => self.batch.put(table, key, value),
                Ask::Delete => self.batch.delete(table, key),
            }
            .map_err(failed("batch"))?;
        }
        if self.batch.is_empty() {
            return Ok(());
        }
        db.write(&self.batch, sync_of(sync)).map(drop).map_err(failed("write"))
    }
}

/// How many requests from the front can be done reads first.
fn independent(requests: &[Request<'_>]) -> usize {
    let overtakes = |&number: &usize| {
        let Request { table, key, ask } = requests[number];
        ask == Ask::Get
            && requests[..number]
                .iter()
                .any(|other| other.ask != Ask::Get && (other.table, other.key) == (table, key))
    };
    (1..requests.len()).find(overtakes).unwrap_or(requests.len())
}
