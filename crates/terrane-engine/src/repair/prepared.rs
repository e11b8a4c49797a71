//! Prepared transactions: their records name tables by the ids of the damaged database. What they hold of a
//! table that was dropped would change nothing: it stays behind.

use terrane_base::record::Record;
use terrane_base::{Batch, RecordKind, Result};
use terrane_format::prepared::Prepared;

use crate::repair::Repair;
use crate::table::catalog::HIDDEN_NAME;

impl Repair<'_> {
    /// Adds a record of the new database; one of a prepared transaction with the numbers of the new tables.
    pub(super) fn push(&mut self, record: Record<'_>) -> Result<()> {
        if record.kind != RecordKind::Put || self.prepared != Some(record.table) {
            return self.batch.push(record);
        }
        match self.renumber(record.value) {
            Ok(value) => self.batch.push(Record { value: &value, ..record }),
            Err(error) => {
                self.report.lose(Some(HIDDEN_NAME), error.context("a prepared transaction is left out"));
                Ok(())
            }
        }
    }

    /// A record of the hidden table, as the new database has it.
    fn renumber(&mut self, record: &[u8]) -> Result<Vec<u8>> {
        let mut stored = Prepared::decode(record)?;
        stored.claims.retain(|claim| !self.is_gone(claim.table));
        stored.scans.retain(|scan| !self.is_gone(scan.table));
        for claim in &mut stored.claims {
            claim.table = self.table(claim.table)?;
        }
        for scan in &mut stored.scans {
            scan.table = self.table(scan.table)?;
        }
        let (mut batch, mut rest) = (Batch::new(), stored.batch);
        while !rest.is_empty() {
            let (record, len) = Record::decode(rest)?;
            rest = &rest[len..];
            if record.log_data().is_some() {
                batch.push(record)?;
            } else if !self.is_gone(record.table) {
                batch.push(Record { table: self.table(record.table)?, ..record })?;
            }
        }
        stored.batch = batch.bytes();
        Ok(stored.encode())
    }
}
