//! Records that an opening set aside: sound ones behind a break of the journal, which the database went on
//! without.
//!
//! Their numbers were given to other commits since. So what has a number above the last commit that the
//! opening kept is newer than all of them, and what has one up to it is older. Segments with records up to it
//! are copied before, later ones after. Extents are copied before, so they are asked about each key. What
//! was merged away since, a deleted key for example, cannot be asked about: it may be back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use terrane_base::record::Record;
use terrane_base::{Error, Kind, RecordKind, Result, SegmentId, SeqNo, TableId};
use terrane_format::segment::{Batches, Groups, SegmentHeader, lost_salt};
use terrane_journal::{SegmentBytes, aside_numbers, segment_in_file};
use terrane_levels::State;
use terrane_levels::directory::JOURNAL;
use terrane_memtable::RangeDeletes;

use crate::repair::Repair;
use crate::repair::found::collation_of;
use crate::repair::journal::Source;

/// The files that one opening made.
pub(super) struct Opening {
    /// How many of the segments are copied before.
    pub(super) place: usize,
    /// The last commit that it kept.
    kept: SeqNo,
    /// By segment.
    files: Vec<Aside>,
}

/// A file with records of one segment.
struct Aside {
    id: SegmentId,
    path: PathBuf,
    /// The database has the records up to here: the damage was gone when it was opened for good.
    held: SeqNo,
}

/// The records of a file while they are copied.
pub(super) struct AsideFile<'a> {
    /// The last commit that its opening kept.
    kept: SeqNo,
    /// Range deletes of the same opening that are left out: what they hide must not come back.
    left_out: &'a BTreeMap<TableId, RangeDeletes>,
    taken: u64,
    /// Records of which the database has something newer.
    older: u64,
    /// Records of which it cannot be read whether there is something newer, and why the first one of them.
    unsure: Option<(u64, Error)>,
}

impl Repair<'_> {
    /// Returns true if an opening of the database in `source` set records aside.
    pub(super) fn has_aside(&self) -> Result<bool> {
        Ok(!self.aside_names(&self.source.join(JOURNAL))?.is_empty())
    }

    /// The last commit that counts with what was set aside of each segment, and the path. An opening that
    /// died may have left a file of the same segment: that with the lowest number is of the whole break.
    fn aside_names(&self, dir: &Path) -> Result<BTreeMap<SegmentId, (SeqNo, PathBuf)>> {
        if terrane_base::planted!(RepairForgetsAside) {
            return Ok(BTreeMap::new());
        }
        let names = match self.disk.list(dir) {
            // Reported with the segments.
            Err(error) if error.kind() == Kind::NotFound => Vec::new(),
            names => names?,
        };
        let mut found: BTreeMap<SegmentId, (SeqNo, PathBuf)> = BTreeMap::new();
        for (name, (id, kept)) in names.iter().filter_map(|name| Some((name, aside_numbers(name)?))) {
            let file = (kept, dir.join(name));
            let least = found.entry(id).or_insert_with(|| file.clone());
            if kept < least.0 {
                *least = file;
            }
        }
        Ok(found)
    }

    /// The records that openings set aside, in the order in which they are copied between the segments of
    /// `sources`. A segment without an end that an opening set something aside of is read up to there: that
    /// opening died before its edit, or the manifest is lost.
    pub(super) fn aside(&self, sources: &mut [Source]) -> Result<Vec<Opening>> {
        let mut found = Vec::new();
        for (id, (kept, path)) in self.aside_names(&self.source.join(JOURNAL))? {
            let mut held = kept;
            if let Some(segment) = sources.iter_mut().find(|source| source.id == id) {
                match segment.last {
                    Some(last) => held = held.max(last),
                    None => segment.kept = Some(kept),
                }
            }
            // Those that a replay filter wrote have what was kept, and later ids.
            let is_before = |source: &Source| source.id <= id || source.last.is_some_and(|last| last <= kept);
            let place = sources.iter().rposition(is_before).map_or(0, |at| at + 1);
            found.push((place, kept, Aside { id, path, held }));
        }
        found.sort_by_key(|(place, kept, file)| (*place, *kept, file.id));
        let mut openings: Vec<Opening> = Vec::new();
        for (place, kept, file) in found {
            // The segment in which a journal begins again follows what was kept.
            let header = segment_in_file(&**self.disk, &file.path).ok().flatten();
            let begins = header.is_some_and(|header| header.previous.last_seq <= kept);
            match openings.last_mut().filter(|last| last.kept == kept && !begins) {
                Some(last) => last.files.push(file),
                None => openings.push(Opening { place, kept, files: vec![file] }),
            }
        }
        // Of one opening, the place of the first file.
        openings.sort_by_key(|opening| opening.place);
        debug_assert!(
            openings.iter().all(|opening| opening.place <= sources.len()),
            "a place is beside a segment"
        );
        Ok(openings)
    }

    /// Copies the records that an opening set aside, but those of which there is something newer.
    pub(super) fn copy_aside(&mut self, opening: &Opening, state: &State) -> Result<()> {
        debug_assert!(!opening.files.is_empty(), "an opening that set nothing aside made no file");
        let left_out = self.left_out(opening, state)?;
        let mut next = opening.kept.0 + 1;
        for file in &opening.files {
            next = self.copy_aside_file(file, (opening.kept, next), &left_out, state)?;
        }
        Ok(())
    }

    /// The range deletes that are left out, by table.
    fn left_out(&self, opening: &Opening, state: &State) -> Result<BTreeMap<TableId, RangeDeletes>> {
        debug_assert!(opening.files.is_sorted_by_key(|file| file.id), "numbers ascend over the segments");
        let mut found: BTreeMap<TableId, RangeDeletes> = BTreeMap::new();
        for file in &opening.files {
            // Reported where it is copied.
            let Ok(mapped) = SegmentBytes::open(&**self.disk, &file.path, u64::MAX) else { continue };
            let bytes = mapped.bytes();
            let Ok(Some(mut groups)) = self.aside_groups(file, bytes) else { continue };
            loop {
                for batch in groups.by_ref().flat_map(|group| Batches::new(bytes, &group)) {
                    let _damaged = batch.records(bytes, |_, seq, record| {
                        let range = (record.key, record.value);
                        if record.kind == RecordKind::RangeDelete
                            && self.is_of_a_table(state, record.table)
                            && self.reached.is_newer_in(record.table, range, opening.kept)
                        {
                            let collation = collation_of(state, record.table);
                            let of_table = found.entry(record.table);
                            let deletes = of_table.or_insert_with(|| RangeDeletes::ordered(&collation));
                            deletes.insert(record.key, record.value, seq);
                        }
                        Ok(())
                    });
                }
                if groups.skip_damage().is_none() {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// The groups in the bytes of a file; none if it has none.
    ///
    /// # Errors
    /// `Corrupt` if the file is of another database.
    fn aside_groups<'b>(&self, file: &Aside, bytes: &'b [u8]) -> Result<Option<Groups<'b>>> {
        let salt = match SegmentHeader::decode(bytes) {
            Ok((header, _)) if header.id == file.id => header.salt,
            _ => self.salt.and_then(|salt| lost_salt(bytes, salt)),
        };
        if salt.is_some() && self.salt.is_some() && salt != self.salt {
            let what = format!(
                "the file that was set aside of segment {} is of another database: it is left out",
                file.id
            );
            return Err(Error::corrupt(what).at(file.path.display().to_string(), 0));
        }
        Ok(Groups::anywhere(bytes, file.id, salt))
    }

    /// Copies the records of a file. Returns the number behind the last one; `next` is the number of the
    /// first one if none is lost.
    fn copy_aside_file(
        &mut self,
        source: &Aside,
        (kept, mut next): (SeqNo, u64),
        left_out: &BTreeMap<TableId, RangeDeletes>,
        state: &State,
    ) -> Result<u64> {
        debug_assert!(source.held >= kept && next > kept.0, "the database has the records up to {kept}");
        let shown = source.path.display().to_string();
        let mapped = match SegmentBytes::open(&**self.disk, &source.path, u64::MAX) {
            Ok(mapped) => mapped,
            Err(error) => {
                self.report.lose(None, error.context("records that were set aside cannot be read"));
                return Ok(next);
            }
        };
        let bytes = mapped.bytes();
        let mut groups = match self.aside_groups(source, bytes) {
            Ok(Some(groups)) => groups,
            Ok(None) => {
                let what = format!("no record of segment {} that was set aside can be read", source.id);
                self.report.lose(None, Error::corrupt(what).at(shown, 0));
                return Ok(next);
            }
            Err(foreign) => {
                self.report.doubt(foreign);
                return Ok(next);
            }
        };
        let mut file = AsideFile { kept, left_out, taken: 0, older: 0, unsure: None };
        loop {
            let found = groups.walk();
            if found.last_seq.0 + 1 > next {
                let what = format!("records {next} to {} are lost: they lay at the break", found.last_seq.0);
                self.report.lose(None, Error::corrupt(what).at(&shown, found.offset as u64));
            }
            for group in groups.by_ref().filter(|group| group.header.last_seq() > source.held) {
                for batch in Batches::new(bytes, &group) {
                    self.copy_batch((bytes, &shown), &batch, state, Some(&mut file))?;
                }
            }
            next = next.max(groups.walk().last_seq.0 + 1);
            if groups.skip_damage().is_none() {
                break;
            }
        }
        self.report_aside(file, &shown);
        Ok(next)
    }

    fn report_aside(&mut self, file: AsideFile<'_>, shown: &str) {
        let AsideFile { kept, taken, older, unsure, .. } = file;
        self.report.set_aside += taken;
        if let Some((count, error)) = unsure {
            debug_assert!(count > 0, "an error is of a record");
            let what = format!(
                "{count} records in {shown} that an opening set aside are left out: whether there is something newer cannot be read"
            );
            self.report.lose(None, error.context(what));
        }
        let what = format!(
            "{taken} records that an opening set aside behind commit {kept} are taken in, {older} are left out since there is \
             something newer: what was deleted since may be there again"
        );
        self.report.doubt(Error::corrupt(what).at(shown, 0));
    }

    /// Returns true if there is nothing newer in the levels than a record that was set aside.
    pub(super) fn is_wanted_of_aside(
        &self,
        state: &State,
        (seq, record): (SeqNo, &Record<'_>),
        file: &mut AsideFile<'_>,
    ) -> bool {
        let (table, kept) = (record.table, file.kept);
        if !self.is_of_a_table(state, table) {
            return false;
        }
        let is_older = match record.kind {
            // It would delete newer rows as well.
            RecordKind::RangeDelete => Ok(self.reached.is_newer_in(table, (record.key, record.value), kept)),
            _ => {
                let left_out = file.left_out.get(&table);
                let over = left_out.and_then(|deletes| deletes.covering(record.key, SeqNo::MAX));
                match over.is_some_and(|over| over > seq) {
                    true => Ok(true),
                    false => self.reached.is_newer(table, record.key, kept),
                }
            }
        };
        match is_older {
            Ok(is_older) => {
                *(if is_older { &mut file.older } else { &mut file.taken }) += 1;
                !is_older
            }
            Err(error) => {
                file.unsure.get_or_insert((0, error)).0 += 1;
                false
            }
        }
    }
}
