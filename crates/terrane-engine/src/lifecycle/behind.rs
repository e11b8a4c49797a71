//! Sound records behind a break of the journal: an opening reports them and keeps their bytes for repair.

use terrane_base::{Error, Result, SeqNo};
use terrane_journal::{AsideLimits, Behind, Outcome, set_aside};

use crate::lifecycle::recover::Recovery;
use crate::observe::stats::add;

/// Segments for which the device keeps space: the opening makes one, and its edit and the next segment
/// follow.
const SEGMENTS_LEFT_FREE: u64 = 2;

impl Recovery<'_> {
    /// Reports sound records behind a break of the journal, and sets them aside where this opening goes on
    /// to give their bytes away. `last_seq` is the last commit that counts.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn keep_behind(&self, behind: &[Behind], last_seq: SeqNo) -> Result<Vec<Error>> {
        let behind = self.uncounted(behind, last_seq);
        if self.options.read_only {
            return Ok(self.report_behind(&behind, last_seq, |_| self.remedy_of_reader()));
        }
        let limits = AsideLimits {
            bytes_max: self.options.write_memory_bytes,
            free_bytes_min: SEGMENTS_LEFT_FREE * self.options.segment_bytes,
        };
        let outcomes = set_aside(&**self.disk, self.dir, &behind, last_seq, limits)?;
        debug_assert!(outcomes.len() == behind.len(), "each place has an outcome");
        let lost = behind.iter().zip(&outcomes).filter(|(_, outcome)| **outcome != Outcome::SetAside);
        add(&self.counters.records_behind_break_lost, lost.map(|(behind, _)| behind.records).sum());
        self.report_behind(&behind, last_seq, |at| match outcomes[at] {
            Outcome::SetAside => self.place_of_aside(),
            Outcome::Lost(why) => format!("they are lost: {why}"),
        });
        // Records that were set aside are not damage of the database any more.
        Ok(Vec::new())
    }

    /// Reports sound records behind a break of the journal which a replay filter ended before: they go with
    /// the batches that it left out.
    pub(crate) fn leave_behind(&self, behind: &[Behind], last_seq: SeqNo) {
        let behind = self.uncounted(behind, last_seq);
        add(&self.counters.records_behind_break_lost, behind.iter().map(|behind| behind.records).sum());
        debug_assert!(!self.options.read_only, "a replay filter changes the journal");
        let remedy = "they are left out: the replay filter ended the journal before them";
        self.report_behind(&behind, last_seq, |_| remedy.to_owned());
    }

    /// Those with numbers that the database did not get to.
    fn uncounted(&self, behind: &[Behind], last_seq: SeqNo) -> Vec<Behind> {
        debug_assert!(behind.iter().all(|behind| behind.records > 0), "each place has a record");
        behind.iter().filter(|behind| behind.last_seq > last_seq).cloned().collect()
    }

    fn report_behind(
        &self,
        behind: &[Behind],
        last_seq: SeqNo,
        remedy: impl Fn(usize) -> String,
    ) -> Vec<Error> {
        debug_assert!(behind.is_sorted_by_key(|behind| behind.spec.id), "places come in their order");
        add(&self.counters.records_behind_break, behind.iter().map(|behind| behind.records).sum());
        let errors = behind.iter().enumerate().map(|(at, behind)| behind.error(last_seq, &remedy(at)));
        let errors: Vec<Error> = errors.collect();
        for error in &errors {
            tracing::warn!(target: "terrane::journal", %error, "records behind a break of the journal");
        }
        errors
    }

    fn remedy_of_reader(&self) -> String {
        let remedy = match self.is_in_bucket {
            true => "an opening for writing goes on without them and keeps their bytes",
            false => {
                "have `terrane repair` read them; an opening for writing goes on without them and sets them aside"
            }
        };
        remedy.to_owned()
    }

    /// Repair reads no journal of a database in a bucket.
    fn place_of_aside(&self) -> String {
        match self.is_in_bucket {
            true => format!(
                "their bytes are kept in files *.cut in {}; no command reads these",
                self.dir.display()
            ),
            false => "they are set aside for `terrane repair`".to_owned(),
        }
    }
}
