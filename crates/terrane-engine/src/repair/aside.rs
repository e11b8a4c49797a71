//! Records that an opening set aside: sound ones behind a break of the journal, which the database went on
//! without.
//!
//! Their numbers were given to other commits since. So what has a number above the last commit that the opening
//! kept is newer than all of them, and what has one up to it is older. Segments say it by their order: later
//! ones are copied later. Extents are copied before, so they are asked about each key. What was merged away
//! since, a deleted key for example, cannot be asked about: it may be back.

use std::path::Path;

use terrane_base::record::Record;
use terrane_base::{Error, Kind, RecordKind, Result, SeqNo};
use terrane_format::segment::{Batches, Groups, SegmentHeader, lost_salt};
use terrane_journal::{SegmentBytes, aside_numbers};
use terrane_levels::State;
use terrane_levels::directory::JOURNAL;

use crate::repair::Repair;
use crate::repair::journal::Source;

/// How far the files were read.
#[derive(Default)]
pub(super) struct Aside {
    /// The last commit that the opening of the last file kept, and the last number that its files had.
    reached: Option<(SeqNo, SeqNo)>,
}

/// A file that is read.
pub(super) struct AsideFile {
    /// The last commit that its opening kept.
    kept: SeqNo,
    taken: u64,
    /// Records of which the database has something newer.
    older: u64,
}

impl Aside {
    /// The number behind those that were read of the opening that kept `kept`.
    fn next(&self, kept: SeqNo) -> u64 {
        self.reached.filter(|(of, _)| *of == kept).map_or(kept, |(_, last)| last).0 + 1
    }
}

impl Repair<'_> {
    /// Returns true if an opening of the database in `source` set records aside.
    pub(super) fn has_aside(&self) -> Result<bool> {
        Ok(!self.aside(&self.source.join(JOURNAL))?.is_empty())
    }

    /// The files of what openings set aside.
    pub(super) fn aside(&self, dir: &Path) -> Result<Vec<Source>> {
        if terrane_base::planted!(RepairForgetsAside) {
            return Ok(Vec::new());
        }
        let names = match self.disk.list(dir) {
            // Reported with the segments.
            Err(error) if error.kind() == Kind::NotFound => Vec::new(),
            names => names?,
        };
        let aside = names.iter().filter_map(|name| {
            let (id, kept) = aside_numbers(name)?;
            Some(Source { id, path: dir.join(name), end: None, bytes: 0, kept: Some(kept) })
        });
        Ok(aside.collect())
    }

    /// Copies what an opening that kept all commits up to `kept` set aside, but that of which there is something
    /// newer.
    pub(super) fn copy_aside(
        &mut self,
        source: &Source,
        kept: SeqNo,
        aside: &mut Aside,
        state: &State,
    ) -> Result<()> {
        let shown = source.path.display().to_string();
        let mapped = match SegmentBytes::open(&**self.disk, &source.path, u64::MAX) {
            Ok(mapped) => mapped,
            Err(error) => {
                self.report.lose(None, error.context("records that were set aside cannot be read"));
                return Ok(());
            }
        };
        let bytes = mapped.bytes();
        let salt = match SegmentHeader::decode(bytes) {
            Ok((header, _)) if header.id == source.id => header.salt,
            _ => self.salt.and_then(|salt| lost_salt(bytes, salt)),
        };
        let Some(mut groups) = Groups::anywhere(bytes, source.id, salt) else {
            let what = format!("no record of segment {} that was set aside can be read", source.id);
            self.report.lose(None, Error::corrupt(what).at(shown, 0));
            return Ok(());
        };
        let mut file = AsideFile { kept, taken: 0, older: 0 };
        loop {
            let (next, found) = (aside.next(kept), groups.walk());
            if found.last_seq.0 + 1 > next {
                let what = format!("records {next} to {} are lost: they lay at the break", found.last_seq.0);
                self.report.lose(None, Error::corrupt(what).at(&shown, found.offset as u64));
            }
            for group in groups.by_ref() {
                for batch in Batches::new(bytes, &group) {
                    self.copy_batch((bytes, &shown), &batch, state, Some(&mut file))?;
                }
            }
            aside.reached = Some((kept, groups.walk().last_seq.max(SeqNo(next - 1))));
            if groups.skip_damage().is_none() {
                break;
            }
        }
        self.report.set_aside += file.taken;
        let what = format!(
            "{} records that an opening set aside behind commit {kept} are taken in, {} are left out since there is something newer: \
             what was deleted since may be there again",
            file.taken, file.older
        );
        self.report.doubt(Error::corrupt(what).at(shown, 0));
        Ok(())
    }

    /// Returns true if there is nothing newer in the levels than a record that was set aside.
    pub(super) fn is_wanted_of_aside(
        &self,
        state: &State,
        record: &Record<'_>,
        file: &mut AsideFile,
    ) -> bool {
        if !self.is_of_a_table(state, record.table) {
            return false;
        }
        let is_older = match record.kind {
            // It would delete what is newer as well.
            RecordKind::RangeDelete => {
                self.reached.is_newer_in(record.table, (record.key, record.value), file.kept)
            }
            _ => self.reached.is_newer(record.table, record.key, file.kept),
        };
        *(if is_older { &mut file.older } else { &mut file.taken }) += 1;
        !is_older
    }
}
