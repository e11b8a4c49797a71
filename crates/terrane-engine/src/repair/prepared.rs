//! Prepared transactions: their records name tables by the ids of the damaged database.

use terrane_base::record::Record;
use terrane_base::{Batch, Result};
use terrane_format::prepared::Prepared;

use super::Repair;

impl Repair<'_> {
    /// A record of the hidden table, as the new database has it.
    pub(super) fn renumber(&mut self, record: &[u8]) -> Result<Vec<u8>> {
        let mut stored = Prepared::decode(record)?;
        for claim in &mut stored.claims {
            claim.table = self.table(claim.table)?;
        }
        for scan in &mut stored.scans {
            scan.table = self.table(scan.table)?;
        }
        let (mut batch, mut rest) = (Batch::new(), stored.batch);
        while !rest.is_empty() {
            let (record, len) = Record::decode(rest)?;
            batch.push(Record { table: self.table(record.table)?, ..record })?;
            rest = &rest[len..];
        }
        stored.batch = batch.bytes();
        Ok(stored.encode())
    }
}
