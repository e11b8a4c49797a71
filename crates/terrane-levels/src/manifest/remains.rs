//! Reads every record of a damaged manifest whose checksums hold: for repair, never for opening.
//!
//! 1. The file header gives the seed of all checksums; if the header is damaged, the checksum that it ends
//!    with may still be right, and is the seed.
//! 2. From record to record; where a record is damaged, the search goes on at the next valid record header.
//! 3. Each operation is applied by itself. One that contradicts the known state is passed over: the operation
//!    that it builds on was in a record that is lost.
//!
//! Extents are noted and not applied: after a lost record the levels are not known. Repair finds them by
//! their footers, and asks here for the last operation of each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use terrane_base::{Error, ExtentId, Result, TableId, ValueTableId};
use terrane_device::{Disk, OpenMode};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::edit::decode_edits;
use terrane_format::manifest::file::{FILE_HEADER_BYTES, FORMAT_VERSION, FileHeader, file_name};
use terrane_format::manifest::record::{RECORD_HEADER_BYTES, RecordHeader, RecordTag};
use terrane_format::manifest::{DatabaseId, Edit, EditOp, TableOptions};

use super::read::{SCAN_BYTES, find_header};
use super::window::Window;
use crate::state::State;

/// All that the sound records of a damaged manifest say.
#[derive(Clone, Debug)]
pub struct Remains {
    /// Tables and segments. Without extents. Not a state that the database ever had: what lost records said
    /// is missing.
    pub state: State,
    /// True if the id of the database could be read, in the manifest or in `CURRENT`: `state` has it then.
    pub has_id: bool,
    /// Tables that were dropped.
    pub dropped: BTreeSet<TableId>,
    /// The last thing that is known of each place in the data files that an operation names.
    pub extents: BTreeMap<ExtentId, LastKnown>,
}

/// The last operation that names a place.
#[derive(Clone, Debug)]
pub enum LastKnown {
    /// It added this extent to the table.
    Added(TableId, Arc<ExtentMeta>),
    /// It removed the extent that an operation before it had added: the bytes there are out of date.
    Removed(Arc<ExtentMeta>),
}

/// The remains of the first of these manifest files that has a sound record. `named`: the id of the database,
/// as `CURRENT` says.
pub(super) fn read(disk: &dyn Disk, dir: &Path, numbers: &[u32], named: Option<DatabaseId>) -> Remains {
    let mut remains = Remains::none();
    for number in numbers {
        remains = Remains::none();
        // The reading that ends at the damage reports what cannot be read.
        if remains.read(disk, dir, *number).is_ok_and(|records| records > 0) {
            break;
        }
    }
    if let Some(named) = named.filter(|_| !remains.has_id) {
        remains.state.database = named;
        remains.has_id = true;
    }
    debug_assert!(remains.has_id || remains.state.database == DatabaseId(0), "an id that was read is known");
    remains
}

impl Remains {
    fn none() -> Remains {
        Remains {
            // Of a file whose header is damaged the version is not known: all operations are read.
            state: State::empty(DatabaseId(0), FORMAT_VERSION),
            has_id: false,
            dropped: BTreeSet::new(),
            extents: BTreeMap::new(),
        }
    }

    /// Reads a file to its end; returns the number of its sound records.
    fn read(&mut self, disk: &dyn Disk, dir: &Path, number: u32) -> Result<u64> {
        let mut window = Window::new(disk.open(&dir.join(file_name(number)), OpenMode::Read, false)?)?;
        let header = window.get(0, FILE_HEADER_BYTES as u64)?;
        let seed = match FileHeader::decode(header) {
            Ok(header) => {
                self.state = State::empty(header.database, header.format_version);
                self.has_id = true;
                header.checksum()
            }
            Err(_) => header.last_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)),
        };
        let (mut at, mut records) = (FILE_HEADER_BYTES as u64, 0);
        while let Some((start, header)) = next_header(&mut window, at, seed)? {
            debug_assert!(start >= at, "records are read once: the one at {start} lies before {at}");
            let payload = window.get(start + RECORD_HEADER_BYTES as u64, header.len.into())?;
            if header.check_payload(seed, payload).is_err() {
                // A length that the end of the file contradicts is skipped like damage within.
                at = start + 1;
                continue;
            }
            at = start + header.record_len();
            if matches!(header.tag, RecordTag::Snapshot | RecordTag::Edit) {
                records += 1;
                for edit in decode_edits(payload).unwrap_or_default() {
                    self.apply(edit);
                }
            }
        }
        self.forget_value_tables_left();
        Ok(records)
    }

    /// Forgets the value tables that no known extent points into: most of them left with their last pointer,
    /// which no operation says. One whose pointers are in lost records is found by its footer all the same.
    fn forget_value_tables_left(&mut self) {
        let added = self.extents.values().filter_map(|known| match known {
            LastKnown::Added(_, meta) => Some(meta),
            LastKnown::Removed(_) => None,
        });
        let used: BTreeSet<ValueTableId> =
            added.flat_map(|meta| meta.references()).map(|reference| reference.table).collect();
        let before = self.extents.len();
        self.extents.retain(|_, known| match known {
            LastKnown::Added(_, meta) => meta.value_table.is_none_or(|values| used.contains(&values.number)),
            LastKnown::Removed(_) => true,
        });
        debug_assert!(self.extents.len() <= before, "nothing is learned by forgetting");
    }

    /// Adds a table that no sound record creates: its extents tell of it.
    ///
    /// # Errors
    /// `Invalid` if the number or the name is taken, or name or options cannot be those of a table.
    pub fn add_table(&mut self, id: TableId, name: String, options: TableOptions) -> Result<()> {
        if self.state.tables.get(&id).is_some() {
            return Err(Error::invalid(format!("table {id} is known")));
        }
        // Numbers are used once, in ascending order; this one was.
        let next = std::mem::replace(&mut self.state.next.table, id);
        let ops = vec![EditOp::CreateTable { id, name, options }];
        let added = self.state.apply_in_place(&Edit { ops });
        self.state.next.table = self.state.next.table.max(next);
        debug_assert!(self.state.next.table >= next, "a number would be given out again");
        added
    }

    fn apply(&mut self, edit: Edit) {
        // The removals of an edit speak of the state before it.
        let (removals, others): (Vec<_>, Vec<_>) =
            edit.ops.into_iter().partition(|op| matches!(op, EditOp::RemoveExtent { .. }));
        for op in removals.into_iter().chain(others) {
            match op {
                EditOp::RemoveExtent { id, .. } => {
                    // An extent without a known addition may have been added by a record that is lost, and
                    // again after it.
                    if let Some(LastKnown::Added(_, meta)) = self.extents.remove(&id) {
                        self.extents.insert(id, LastKnown::Removed(meta));
                    }
                }
                EditOp::AddExtent { table, meta, .. } => {
                    self.extents.insert(meta.id, LastKnown::Added(table, meta));
                }
                op => {
                    if let EditOp::DropTable { id } = op {
                        self.dropped.insert(id);
                    }
                    // An operation other than these two checks all that it says before it changes anything.
                    let _ = self.state.apply_in_place(&Edit { ops: vec![op] });
                }
            }
        }
    }
}

/// The first valid record header at `at` or behind it, and where it is.
fn next_header(window: &mut Window, mut at: u64, seed: u32) -> Result<Option<(u64, RecordHeader)>> {
    loop {
        let bytes = window.get(at, SCAN_BYTES)?;
        if let Some(found) = find_header(seed, bytes) {
            let header = RecordHeader::decode(seed, &bytes[found..])?;
            return Ok(Some((at + found as u64, header)));
        }
        if bytes.len() < RECORD_HEADER_BYTES {
            return Ok(None);
        }
        // The last bytes may begin a header that ends in the next ones.
        at += (bytes.len() - (RECORD_HEADER_BYTES - 1)) as u64;
    }
}
