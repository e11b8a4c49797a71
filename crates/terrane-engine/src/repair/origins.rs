//! Where the extents of a damaged database come from: what their footers lead to.
//!
//! 1. [`Footers::scan`] looks at the end of each page of 4 KiB of each data file: a footer that holds there
//!    says how long its extent is, so where it begins. Of several that begin at one slot the shortest counts:
//!    behind its end may lie the rest of an older one.
//! 2. [`Footers::restore_tables`] gives the tables that no readable part of the manifest names their names
//!    and options.
//! 3. [`Family`] distinguishes extents of this database, and of those that it is a copy of, from extents of
//!    others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use terrane_base::{Error, ExtentId, Kind, Result, TableId};
use terrane_device::{Disk, OpenMode};
use terrane_format::extent::{ALIGN_BYTES, ANY_TABLE, FOOTER_BYTES_MAX, Footer, Origin};
use terrane_format::manifest::DatabaseId;
use terrane_levels::directory::{DATA, read_origins};
use terrane_levels::manifest::{LastKnown, Remains};
use terrane_storage::{EXTENT_SLOTS_MAX, SLOT_BYTES, data_files};

use crate::repair::found::read_part;
use crate::repair::journal::most_common_salt;

/// The first bytes of every magic number of a footer.
const MAGIC_FRONT: &[u8] = b"TERRAN";

/// A footer, and what the extent says of where it comes from.
#[derive(Clone, Debug)]
pub(super) struct FoundFooter {
    pub(super) footer: Footer,
    /// `None` if it does not say, or cannot be read.
    pub(super) origin: Option<Origin>,
}

/// All footers of the data files.
#[derive(Default)]
pub(super) struct Footers {
    /// By file and slot.
    pub(super) found: BTreeMap<ExtentId, FoundFooter>,
    pub(super) paths: BTreeMap<u32, PathBuf>,
    /// Parts that could not be read.
    pub(super) errors: Vec<Error>,
    /// Doubtful parts.
    pub(super) doubts: Vec<Error>,
}

/// Looks for all footers, and has them say what the remains of the manifest do not: the id of the database,
/// and its tables.
///
/// # Errors
/// `Io` of the directories.
pub(super) fn look(disk: &dyn Disk, source: &Path, remains: &mut Remains) -> Result<(Footers, Family)> {
    let mut footers = Footers::scan(disk, source)?;
    if !remains.has_id {
        let salt = most_common_salt(disk, source)?;
        let mut writers = footers.writers().into_iter();
        if let Some(id) = writers.find(|id| Some(id.segment_salt()) == salt) {
            (remains.state.database, remains.has_id) = (id, true);
        }
    }
    let family = Family::of(disk, source, remains, &mut footers);
    footers.restore_tables(remains, &family);
    Ok((footers, family))
}

impl Footers {
    /// The databases that extents say they were written by.
    fn writers(&self) -> BTreeSet<DatabaseId> {
        self.found.values().filter_map(|found| Some(found.origin.as_ref()?.database)).collect()
    }

    /// Adds in front of `before` what the extents of a copy say of the databases that it is a copy of.
    fn add_ancestors(&self, own: DatabaseId, before: &mut Vec<DatabaseId>) {
        let origins: Vec<&Origin> = self.found.values().filter_map(|found| found.origin.as_ref()).collect();
        loop {
            let is_known = |id: DatabaseId| id == own || before.contains(&id);
            let ancestor = origins.iter().find(|origin| {
                is_known(origin.database) && origin.before != DatabaseId(0) && !is_known(origin.before)
            });
            let Some(ancestor) = ancestor else { break };
            before.insert(0, ancestor.before);
        }
        debug_assert!(!before.contains(&own), "a database is not a copy of itself");
    }

    /// Looks for footers in all data files.
    ///
    /// # Errors
    /// `Io` of the directory.
    pub(super) fn scan(disk: &dyn Disk, source: &Path) -> Result<Footers> {
        let dir = source.join(DATA);
        let mut footers = Footers::default();
        let files = match data_files(disk, &dir) {
            Err(error) if error.kind() == Kind::NotFound => {
                let error = Error::corrupt("the directory of data files is missing");
                footers.errors.push(error.at(dir.display().to_string(), 0));
                Vec::new()
            }
            files => files?,
        };
        for (number, path) in files {
            footers.scan_file(disk, number, &path)?;
            footers.paths.insert(number, path);
        }
        Ok(footers)
    }

    fn scan_file(&mut self, disk: &dyn Disk, number: u32, path: &Path) -> Result<()> {
        let file = disk.open(path, OpenMode::Read, false)?;
        let len = file.len()?;
        let mut bytes = vec![0; SLOT_BYTES];
        for slot in 0..len.div_ceil(SLOT_BYTES as u64).min(EXTENT_SLOTS_MAX.into()) {
            let start = slot * SLOT_BYTES as u64;
            bytes.resize((len - start).min(SLOT_BYTES as u64) as usize, 0);
            if let Err(error) = file.read_at(start, &mut bytes) {
                self.errors.push(error.context("a slot cannot be read"));
                continue;
            }
            for end in (ALIGN_BYTES..=bytes.len()).step_by(ALIGN_BYTES) {
                if !bytes[end - 8..].starts_with(MAGIC_FRONT) {
                    continue;
                }
                let Ok(footer) = Footer::decode(&bytes[end - FOOTER_BYTES_MAX..end]) else { continue };
                let first = (start + end as u64).checked_sub(footer.bytes.into());
                let Some(first) = first.filter(|first| first % SLOT_BYTES as u64 == 0) else { continue };
                let id = ExtentId { file: number, slot: (first / SLOT_BYTES as u64) as u32 };
                if !self.found.contains_key(&id) {
                    let origin = self.read_origin(&*file, (path, id), &footer);
                    self.found.insert(id, FoundFooter { footer, origin });
                }
            }
        }
        Ok(())
    }

    /// The origin that an extent carries. Damage there costs no row.
    fn read_origin(
        &mut self,
        file: &dyn terrane_device::File,
        (path, id): (&Path, ExtentId),
        footer: &Footer,
    ) -> Option<Origin> {
        if footer.origin.is_empty() {
            return None;
        }
        let start = u64::from(id.slot) * SLOT_BYTES as u64;
        let bytes = read_part(file, start, footer.origin);
        let origin =
            bytes.and_then(|bytes| footer.origin.check(&bytes).and_then(|()| Origin::decode(&bytes)));
        let offset = start + u64::from(footer.origin.offset);
        let doubt = |error: Error| {
            error
                .context(format!("extent {id}: where it comes from cannot be read"))
                .at(path.display().to_string(), offset)
        };
        origin.map_err(|error| self.doubts.push(doubt(error))).ok()
    }

    /// Names the tables that extents of the database are of and no readable part of the manifest creates. Of
    /// two with one name the one that was written to last has it.
    pub(super) fn restore_tables(&mut self, remains: &mut Remains, family: &Family) {
        let mut newest: BTreeMap<TableId, &Origin> = BTreeMap::new();
        for found in self.found.values() {
            let Some(origin) = found.origin.as_ref().filter(|origin| family.has(origin.database)) else {
                continue;
            };
            let table = found.footer.table;
            if newest.get(&table).is_none_or(|known| family.age(origin) > family.age(known)) {
                newest.insert(table, origin);
            }
        }
        let mut lost: Vec<(TableId, &Origin)> = newest.into_iter().collect();
        lost.retain(|(id, origin)| {
            // The default table is there in any case; options that were too long to be written are not known.
            let is_known = *id != TableId::DEFAULT || !origin.options.is_empty();
            let is_lost = remains.state.tables.get(id).is_none() && !remains.dropped.contains(id);
            is_known && is_lost && *id != ANY_TABLE
        });
        lost.sort_by_key(|(_, origin)| std::cmp::Reverse(family.age(origin)));
        for (id, origin) in lost {
            let added = remains.add_table(id, origin.table.clone(), origin.options.clone());
            let what = match added {
                Ok(()) => format!(
                    "table {:?} is known by its extents alone: if its options were set since they were written, they are older ones",
                    origin.table
                ),
                Err(error) => format!("the name {:?} of table {id} is not restored: {error}", origin.table),
            };
            self.doubts.push(Error::corrupt(what));
        }
    }
}

/// When an extent was written, compared with others of the database: the database that wrote it (the oldest
/// of a line of copies is the least), edit, job.
pub(super) type Age = (usize, u64, u64);

/// The databases whose extents are those of the damaged one.
#[derive(Clone, Debug, Default)]
pub(super) struct Family {
    /// `None`: no file says which database it is, so all are taken for its own.
    own: Option<DatabaseId>,
    /// The others, the oldest first.
    before: Vec<DatabaseId>,
}

impl Family {
    /// The family of the database in `source`: its own id, those in `ORIGINS`, those of extents that the rest
    /// of the manifest lists, and those that extents of all these name as the databases that they are copies
    /// of. If no extent is the database's own, it is a copy that has lost `ORIGINS`, and all are taken for
    /// its own.
    pub(super) fn of(disk: &dyn Disk, source: &Path, remains: &Remains, footers: &mut Footers) -> Family {
        if !remains.has_id {
            return Family::default();
        }
        let own = remains.state.database;
        let named = read_origins(disk, source);
        let is_unsaid = !matches!(named, Ok(Some(_)));
        let mut before = match named {
            Ok(named) => named.unwrap_or_default(),
            Err(error) => {
                footers.doubts.push(error);
                return Family::default();
            }
        };
        if is_unsaid && !footers.writers().contains(&own) {
            return Family::default();
        }
        for (id, found) in &footers.found {
            let is_listed = matches!(remains.extents.get(id),
                Some(LastKnown::Added(_, meta)) if meta.index == found.footer.index);
            let writer = found.origin.as_ref().map(|origin| origin.database);
            if let Some(writer) = writer.filter(|writer| is_listed && !before.contains(writer)) {
                before.push(writer);
            }
        }
        before.retain(|id| *id != own);
        footers.add_ancestors(own, &mut before);
        Family { own: Some(own), before }
    }

    /// Returns true if a database is of the family.
    pub(super) fn has(&self, id: DatabaseId) -> bool {
        self.own.is_none_or(|own| own == id || self.before.contains(&id))
    }

    /// When an extent was written.
    pub(super) fn age(&self, origin: &Origin) -> Age {
        let before = self.before.iter().position(|id| *id == origin.database);
        (before.unwrap_or(self.before.len()), origin.edit, origin.job)
    }
}
