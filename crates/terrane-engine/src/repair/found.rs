//! Extents without a manifest: what the footers that were found lead to.
//!
//! 1. An extent that another database wrote is left out (`origins.rs`).
//! 2. Index and range deletes of each give its keys and numbers.
//! 3. The rest of the manifest is asked: an extent that it removed is out of date and left out; one that it
//!    added is as good as ever, and has its number from there if it is numbered as a whole. Of all others it
//!    is not known whether the database still had them: they are *unlisted*.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::{Collation, Error, ExtentId, Kind, Result, TableId};
use terrane_device::{Disk, File, OpenMode};
use terrane_format::extent::check::{inspect_parts, is_as_said};
use terrane_format::extent::{ANY_TABLE, ExtentMeta, Handle, Origin};
use terrane_levels::State;
use terrane_levels::directory::DATA;
use terrane_levels::manifest::{LastKnown, Remains};
use terrane_storage::{SLOT_BYTES, data_files};

use crate::repair::Repair;
use crate::repair::journal::proves_more_edits;
use crate::repair::mended_store::MendedStore;
use crate::repair::origins::{Family, Footers, FoundFooter};

/// An extent that was found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) meta: ExtentMeta,
    /// True if the remains of the manifest have it.
    pub(super) is_listed: bool,
    /// The origin that it carries.
    pub(super) origin: Option<Box<Origin>>,
}

impl Repair<'_> {
    /// All extents of the damaged database, by table.
    pub(super) fn find_extents(
        &mut self,
        remains: &Remains,
        (footers, family): (Footers, &Family),
        store: Option<&MendedStore>,
    ) -> BTreeMap<TableId, Vec<Found>> {
        footers.errors.into_iter().for_each(|error| self.report.lose(None, error));
        footers.doubts.into_iter().for_each(|doubt| self.report.doubt(doubt));
        let mut tables: BTreeMap<TableId, Vec<Found>> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for (id, found) in footers.found {
            let path = &footers.paths[&id.file];
            if let Some(error) = foreign(id, &found, remains, family) {
                let offset = u64::from(id.slot) * SLOT_BYTES as u64;
                self.report.foreign_extents += 1;
                self.report.doubt(error.at(path.display().to_string(), offset));
                continue;
            }
            if let Some((table, found)) = self.inspect(path, id, found, (remains, store)) {
                seen.insert(id);
                tables.entry(table).or_default().push(found);
            }
        }
        self.add_without_footer(remains, &seen, &mut tables);
        tables
    }

    /// The extent at `id`, and its table; `None` if it is out of date, of a table that is left out, or if its
    /// index is not sound.
    fn inspect(
        &mut self,
        path: &Path,
        id: ExtentId,
        FoundFooter { footer, origin }: FoundFooter,
        (remains, store): (&Remains, Option<&MendedStore>),
    ) -> Option<(TableId, Found)> {
        let (footer, origin) = (&footer, origin.map(Box::new));
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
            let mut read = |part| read_part(&*file, offset, part);
            let as_read = inspect_parts(footer, id, slots, &collation, &mut read);
            as_read.or_else(|error| {
                let mended = store
                    .and_then(|store| self.inspect_mended((footer, id, slots), &collation, &mut read, store));
                mended.ok_or(error)
            })
        });
        let meta = match inspected {
            Ok(meta) => meta,
            Err(error) => {
                // An extent that was written over in part is out of date; a damaged one may still be listed.
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
                Some((table, Found { meta, is_listed: true, origin }))
            }
            _ => Some((table, Found { meta, is_listed: false, origin })),
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
                tables.entry(*table).or_default().push(Found { meta, is_listed: true, origin: None });
            }
        }
    }
}

/// Why an extent is left out as one of another database, if it is.
fn foreign(id: ExtentId, found: &FoundFooter, remains: &Remains, family: &Family) -> Option<Error> {
    let writer = found.origin.as_ref().map(|origin| origin.database)?;
    let is_listed = matches!(remains.extents.get(&id),
        Some(LastKnown::Added(_, meta)) if meta.index == found.footer.index);
    (!is_listed && !family.has(writer))
        .then(|| Error::corrupt(format!("extent {id} was written by database {writer}: it is left out")))
}

/// Returns true if edits of a manifest that is not proven to be whole are lost: always if it is damaged, and
/// if something proves it where it only lacks its end mark.
pub(super) fn may_lack_edits(
    disk: &Arc<dyn Disk>,
    source: &Path,
    state: Option<&State>,
    doubt: Option<&Error>,
    edit_number: u64,
) -> Result<bool> {
    match state {
        Some(state) if doubt.is_some() => Ok(proves_more_edits(disk, source, state, edit_number)?
            || names_missing_extent(&**disk, source, state)?),
        _ => Ok(true),
    }
}

/// Returns true if the state names an extent that is missing: an edit that removed it is lost, or it is
/// damaged.
fn names_missing_extent(disk: &dyn Disk, source: &Path, state: &State) -> Result<bool> {
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
pub(super) fn collation_of(state: &State, table: TableId) -> Collation {
    state.tables.get(&table).map_or(Collation::BYTES, |table| table.collation.clone())
}

pub(super) fn read_part(file: &dyn File, start: u64, part: Handle) -> Result<Vec<u8>> {
    let mut bytes = vec![0; part.len as usize];
    file.read_at(start + u64::from(part.offset), &mut bytes)?;
    Ok(bytes)
}
