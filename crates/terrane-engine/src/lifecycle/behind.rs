//! Sound records behind a break of the journal: an opening tells of them and keeps their bytes for repair.

use terrane_base::{Error, Result, SeqNo};
use terrane_journal::Behind;

use crate::lifecycle::recover::Recovery;
use crate::observe::stats::add;

impl Recovery<'_> {
    /// Tells of sound records behind a break of the journal, and sets them aside where this opening goes on to
    /// give their bytes away. `last_seq` is the last commit that counts.
    ///
    /// # Errors
    /// `Io`, `Full`.
    pub(super) fn keep_behind(&self, behind: &[Behind], last_seq: SeqNo) -> Result<Vec<Error>> {
        let behind: Vec<Behind> =
            behind.iter().filter(|behind| behind.last_seq > last_seq).cloned().collect();
        if behind.is_empty() {
            return Ok(Vec::new());
        }
        let records = behind.iter().map(|behind| behind.records).sum();
        add(&self.counters.records_behind_break, records);
        let remedy = if self.options.read_only {
            "have `terrane repair` read them; an opening for writing goes on without them and sets them aside"
        } else if Behind::set_aside(&**self.disk, self.dir, &behind, last_seq)? {
            "they are set aside for `terrane repair`"
        } else {
            "they are lost: there are as many files of records that were set aside as there may be, remove those that \
             you need no more"
        };
        let told: Vec<Error> = behind.iter().map(|behind| behind.error(last_seq, remedy)).collect();
        for error in &told {
            tracing::warn!(target: "terrane::journal", %error, "records behind a break of the journal");
        }
        // What was set aside is no damage of the database any more.
        Ok(if self.options.read_only { told } else { Vec::new() })
    }
}
