//! Extents without a manifest: finds them by their footers.
//!
//! 1. The end of each page of 4 KiB of each data file is looked at: a footer that holds there says how long
//!    its extent is, so where it begins. Of several that begin at one slot the shortest counts: behind its
//!    end may lie what is left of an older one.
//! 2. Index and range deletes of each give its keys and numbers.
//! 3. What is left of the manifest is asked: an extent that it removed is out of date and left out; one that
//!    it added is as good as ever, and has its number from there if it is numbered as a whole. Of all others
//!    it is not known whether the database still had them: they are *unlisted*.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::{Collation, Error, ExtentId, Kind, Result, TableId};
use terrane_device::{Disk, File, OpenMode};
use terrane_format::extent::check::{inspect_parts, is_as_said};
use terrane_format::extent::{ALIGN_BYTES, ANY_TABLE, ExtentMeta, FOOTER_BYTES_MAX, Footer, Handle};
use terrane_levels::State;
use terrane_levels::directory::DATA;
use terrane_levels::manifest::{LastKnown, Remains};
use terrane_storage::{EXTENT_SLOTS_MAX, SLOT_BYTES, data_files};

use crate::repair::Repair;

/// What every magic number of a footer begins with; the last byte tells its form.
const MAGIC_FRONT: &[u8] = b"TERRANE";

/// An extent that was found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) meta: ExtentMeta,
    /// True if the remains of the manifest have it.
    pub(super) is_listed: bool,
}

impl Repair<'_> {
    /// All extents of the damaged database, by table.
    pub(super) fn find_extents(&mut self, remains: &Remains) -> Result<BTreeMap<TableId, Vec<Found>>> {
        let dir = self.source.join(DATA);
        let files = match data_files(&**self.disk, &dir) {
            Err(error) if error.kind() == Kind::NotFound => {
                let error = Error::corrupt("the directory of data files is missing");
                self.report.lose(None, error.at(dir.display().to_string(), 0));
                Vec::new()
            }
            files => files?,
        };
        let mut tables: BTreeMap<TableId, Vec<Found>> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for (number, path) in files {
            for (slot, footer) in self.footers(&path)? {
                let id = ExtentId { file: number, slot };
                if let Some((table, found)) = self.inspect(&path, id, &footer, remains) {
                    seen.insert(id);
                    tables.entry(table).or_default().push(found);
                }
            }
        }
        self.add_without_footer(remains, &seen, &mut tables);
        Ok(tables)
    }

    /// The footers in a data file, by the slot at which their extents begin.
    fn footers(&mut self, path: &Path) -> Result<BTreeMap<u32, Footer>> {
        let file = self.disk.open(path, OpenMode::Read, false)?;
        let len = file.len()?;
        let mut footers = BTreeMap::new();
        let mut bytes = vec![0; SLOT_BYTES];
        for slot in 0..len.div_ceil(SLOT_BYTES as u64).min(EXTENT_SLOTS_MAX.into()) {
            let start = slot * SLOT_BYTES as u64;
            bytes.resize((len - start).min(SLOT_BYTES as u64) as usize, 0);
            if let Err(error) = file.read_at(start, &mut bytes) {
                self.report.lose(None, error.context("a slot cannot be read"));
                continue;
            }
            for end in (ALIGN_BYTES..=bytes.len()).step_by(ALIGN_BYTES) {
                if !bytes[end - 8..].starts_with(MAGIC_FRONT) {
                    continue;
                }
                let Ok(footer) = Footer::decode(&bytes[end - FOOTER_BYTES_MAX..end]) else { continue };
                let first = (start + end as u64).checked_sub(footer.bytes.into());
                if let Some(first) = first.filter(|first| first % SLOT_BYTES as u64 == 0) {
                    footers.entry((first / SLOT_BYTES as u64) as u32).or_insert(footer);
                }
            }
        }
        Ok(footers)
    }

    /// The extent at `id`, and its table; `None` if it is out of date, of a table that is left out, or if its
    /// index is not sound.
    fn inspect(
        &mut self,
        path: &Path,
        id: ExtentId,
        footer: &Footer,
        remains: &Remains,
    ) -> Option<(TableId, Found)> {
        let known = remains.extents.get(&id);
        let table = match known {
            Some(LastKnown::Added(table, _)) if footer.table == ANY_TABLE || footer.table == *table => *table,
            _ => footer.table,
        };
        let offset = u64::from(id.slot) * SLOT_BYTES as u64;
        let placed =
            |error: Error| error.context(format!("extent {id}")).at(path.display().to_string(), offset);
        if table == ANY_TABLE {
            // One that never came in, or whose edit is lost.
            self.report
                .doubt(placed(Error::corrupt("a file from outside: its table is not known, it is left out")));
            return None;
        }
        if self.is_gone(table) {
            return None;
        }
        let collation = collation_of(&remains.state, table);
        let slots = u64::from(footer.bytes).div_ceil(SLOT_BYTES as u64) as u32;
        let file = self.disk.open(path, OpenMode::Read, false);
        let inspected = file.and_then(|file| {
            inspect_parts(footer, id, slots, &collation, &mut |part| read_part(&*file, offset, part))
        });
        let meta = match inspected {
            Ok(meta) => meta,
            Err(error) => {
                // What was written over in part is out of date; of what is damaged the same cannot be said.
                let is_listed =
                    matches!(known, Some(LastKnown::Added(_, meta)) if meta.index == footer.index);
                if is_listed {
                    self.report.lose(None, placed(error));
                } else {
                    self.report.doubt(placed(error));
                }
                return None;
            }
        };
        match known {
            Some(LastKnown::Removed(removed)) if is_as_said(meta.clone(), removed) => None,
            Some(LastKnown::Added(_, added)) if is_as_said(meta.clone(), added) => {
                // The manifest says what number an extent has that is numbered as a whole.
                let meta = ExtentMeta { collation, ..ExtentMeta::clone(added) };
                Some((table, Found { meta, is_listed: true }))
            }
            _ => Some((table, Found { meta, is_listed: false })),
        }
    }

    /// Adds what the manifest lists and has no footer that holds: its index may.
    fn add_without_footer(
        &self,
        remains: &Remains,
        seen: &BTreeSet<ExtentId>,
        tables: &mut BTreeMap<TableId, Vec<Found>>,
    ) {
        for (id, known) in &remains.extents {
            let LastKnown::Added(table, meta) = known else { continue };
            if !seen.contains(id) && !self.is_gone(*table) {
                let collation = collation_of(&remains.state, *table);
                let meta = ExtentMeta { collation, ..ExtentMeta::clone(meta) };
                tables.entry(*table).or_default().push(Found { meta, is_listed: true });
            }
        }
    }
}

/// Returns true if the state names an extent that is not there: an edit that removed it is lost, or it is
/// damaged.
pub(super) fn names_what_is_gone(disk: &dyn Disk, source: &Path, state: &State) -> Result<bool> {
    let mut open: Option<(u32, Option<Arc<dyn File>>)> = None;
    let files: BTreeMap<u32, PathBuf> = match data_files(disk, &source.join(DATA)) {
        Err(error) if error.kind() == Kind::NotFound => return Ok(true),
        files => files?.into_iter().collect(),
    };
    let mut metas: Vec<_> = state.metas().collect();
    metas.sort_unstable_by_key(|meta| meta.id);
    for meta in metas {
        if open.as_ref().is_none_or(|(number, _)| *number != meta.id.file) {
            let file =
                files.get(&meta.id.file).map(|path| disk.open(path, OpenMode::Read, false)).transpose()?;
            open = Some((meta.id.file, file));
        }
        let Some((_, Some(file))) = &open else { return Ok(true) };
        let index = read_part(&**file, u64::from(meta.id.slot) * SLOT_BYTES as u64, meta.index);
        if !index.is_ok_and(|bytes| meta.index.check(&bytes).is_ok()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The order of a table's keys; by bytes if nothing is known of the table.
fn collation_of(state: &State, table: TableId) -> Collation {
    state.tables.get(&table).map_or(Collation::BYTES, |table| table.collation.clone())
}

fn read_part(file: &dyn File, start: u64, part: Handle) -> Result<Vec<u8>> {
    let mut bytes = vec![0; part.len as usize];
    file.read_at(start + u64::from(part.offset), &mut bytes)?;
    Ok(bytes)
}

/// Extents in as few rows as may be, within which none overlaps another: each row is in order.
pub(super) fn rows_of(mut found: Vec<Found>) -> Vec<Vec<Found>> {
    let Some(collation) = found.first().map(|found| found.meta.collation.clone()) else { return Vec::new() };
    found.sort_by(|a, b| collation.cmp(&a.meta.smallest, &b.meta.smallest));
    let mut rows: Vec<Vec<Found>> = Vec::new();
    for one in found {
        let ends_before = |row: &&mut Vec<Found>| {
            row.last().is_some_and(|last| collation.lt(&last.meta.largest, &one.meta.smallest))
        };
        match rows.iter_mut().find(ends_before) {
            Some(row) => row.push(one),
            None => rows.push(vec![one]),
        }
    }
    rows
}
