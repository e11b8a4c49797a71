//! The levels of a damaged database: blocks whose checksums hold.
//!
//! The range deletes of a place are written before its rows, so that they hide rows of deeper places and no
//! others.
//!
//! There are two passes: the first finds the unreadable ranges, the second copies. So rows of deeper levels
//! below such a range are known to be uncertain.

use std::sync::Arc;

use terrane_base::{Entry, Error, Kind, RecordKind, Result, SeqKind, SeqNo, TableId, key};
use terrane_format::block::BlockCursor;
use terrane_format::extent::ExtentMeta;
use terrane_levels::State;
use terrane_levels::directory::DATA;
use terrane_storage::{LocalStore, Store, StoreSettings};
use terrane_table::{Extent, ExtentScanner};

use crate::repair::mended_store::MendedStore;
use crate::repair::reached::Reached;
use crate::repair::{Loss, Repair};
use crate::table::settings::MERGE_OPERATOR;

/// Reads each block by itself: its neighbours may lie beyond the end of a file that was cut.
const ONE_BLOCK: u32 = 1;

/// Most holes of a table that are kept apart; each copied row is compared with the holes near it.
const HOLES_MAX: usize = 1000;
/// Most bytes of their keys.
const HOLE_BYTES_MAX: usize = 8 << 20;

/// A key range of one place that cannot be read.
struct Hole {
    /// 0 is the newest place of the table.
    place: usize,
    first: Vec<u8>,
    last: Vec<u8>,
}

/// The unreadable ranges (holes) of a table, by place.
#[derive(Default)]
struct Holes {
    list: Vec<Hole>,
    bytes: usize,
}

impl Holes {
    /// Adds a hole. Beyond [`HOLES_MAX`] or [`HOLE_BYTES_MAX`] the last one of the place grows over the keys
    /// between instead: more rows than need be are uncertain then.
    fn add(&mut self, place: usize, first: &[u8], last: &[u8]) {
        debug_assert!(
            self.list.last().is_none_or(|hole| hole.place <= place),
            "holes are looked for from the newest place on"
        );
        let is_full = self.list.len() >= HOLES_MAX || self.bytes >= HOLE_BYTES_MAX;
        if let Some(hole) = self.list.last_mut().filter(|hole| is_full && hole.place == place) {
            if *first < *hole.first {
                first.clone_into(&mut hole.first);
            }
            if *last > *hole.last {
                last.clone_into(&mut hole.last);
            }
            return;
        }
        self.bytes += first.len() + last.len();
        self.list.push(Hole { place, first: first.to_vec(), last: last.to_vec() });
    }
}

impl Repair<'_> {
    /// Copies every table's levels.
    pub(super) fn copy_levels(&mut self, state: &State) -> Result<()> {
        let dir = self.source.join(DATA);
        let settings = StoreSettings { read_only: true, ..StoreSettings::default() };
        let mended = match LocalStore::open(self.disk.clone(), &dir, settings) {
            Ok(store) => MendedStore::new(Arc::new(store)),
            Err(error) => {
                self.report.lose(None, error.context("no extent can be read"));
                return Ok(());
            }
        };
        let store: Arc<dyn Store> = mended.clone();
        let (unordered, has_aside) = (self.unordered.clone(), self.has_aside()?);
        let known = state.tables.values().filter(|table| !table.dropped);
        for table in known.filter(|table| !unordered.contains(&table.id)) {
            let places: Vec<Vec<Arc<ExtentMeta>>> = table
                .extents
                .places()
                .map(|(_, level)| level.iter().map(|meta| self.mend(meta, &mended)).collect())
                .collect();
            let mut holes = Holes::default();
            for (place, extents) in places.iter().enumerate() {
                for meta in extents {
                    self.find_holes(&table.name, place, meta, &store, &mut holes);
                }
            }
            if folds(table) || has_aside {
                let open = |meta: &Arc<ExtentMeta>| Reached::opened(meta, &store);
                let opened = places.iter().map(|extents| extents.iter().map(open).collect());
                self.reached.add(table.id, opened.collect());
            }
            let known = table.extents.values.iter();
            for values in known.filter(|_| !terrane_base::planted!(RepairForgetsValues)) {
                let meta = self.mend(&values.extent, &mended);
                self.values.add(Extent::new(meta.as_ref().clone(), store.clone()));
            }
            let target = self.table(table.id)?;
            // Deepest first: the same key in a newer place is written over it.
            for (place, extents) in places.iter().enumerate().rev() {
                for meta in extents.iter().filter(|meta| meta.range_deletes.is_some()) {
                    self.copy_range_deletes(target, meta, &store)?;
                }
                let newer: Vec<&Hole> = holes.list.iter().filter(|hole| hole.place <= place).collect();
                let mut last_key = None;
                for meta in extents {
                    let copied = Copying { old: table.id, target, place, folds: folds(table), newer: &newer };
                    self.copy_extent(&copied, meta, &store, &mut last_key)?;
                }
            }
        }
        Ok(())
    }

    fn find_holes(
        &mut self,
        table: &str,
        place: usize,
        meta: &ExtentMeta,
        store: &Arc<dyn Store>,
        holes: &mut Holes,
    ) {
        let mut lose = |repair: &mut Self, first: &[u8], last: &[u8], entries, error: Error| {
            let keys = Some((first.to_vec(), last.to_vec()));
            repair.report.lose_keys(Loss { table: Some(table.to_owned()), keys, entries, error });
            holes.add(place, first, last);
        };
        let mut scanner = match scanner(meta, store) {
            Ok(scanner) => scanner,
            Err(error) => {
                let error = error.context(format!("extent {}: its index cannot be read", meta.id));
                return lose(self, &meta.smallest, &meta.largest, Some(meta.entries), error);
            }
        };
        if let Err(error) = scanner.extent().read_range_deletes() {
            let error = error.context(format!("extent {}: its range deletes cannot be read", meta.id));
            let span = meta.range_deletes.as_ref().map(|section| (&section.start, &section.end));
            let (first, last) = span.unwrap_or((&meta.smallest, &meta.largest));
            lose(self, first, last, Some(0), error);
        }
        for at in 0..scanner.rows().len() {
            if let Err(error) = scanner.block(at) {
                let row = scanner.rows().row(at);
                let of_gap = self.loss_of_gap(meta, at, &row, &**store);
                let (entries, error) = of_gap.unwrap_or((Some(u64::from(row.entries)), error));
                lose(self, row.first_key, row.last_key, entries, error);
            }
        }
    }

    /// Copies the range deletes of an extent as far as they hide rows from present reads.
    fn copy_range_deletes(
        &mut self,
        table: TableId,
        meta: &ExtentMeta,
        store: &Arc<dyn Store>,
    ) -> Result<()> {
        let extent = Extent::new(meta.clone(), store.clone());
        // What cannot be read is a loss already.
        let Ok(Some(fragments)) = extent.read_range_deletes() else { return Ok(()) };
        for fragment in fragments.all() {
            let collation = &meta.collation;
            let named = |key: &Vec<u8>| match collation.is_bytes() {
                true => key::at_or_after(key),
                false => Some(key.clone()),
            };
            let (start, end) = (named(&fragment.start), named(&fragment.end));
            match (start, end) {
                (Some(start), Some(end)) if collation.lt(&start, &end) => {
                    self.delete_range(table, &start, &end)?
                }
                // No key of a user lies in it.
                (Some(_), Some(_)) | (None, _) => {}
                (Some(start), None) => {
                    let error =
                        Error::corrupt("a range delete reaches beyond the last key that there can be");
                    self.report.lose(None, error.context(format!("from {}", start.escape_ascii())));
                }
            }
        }
        Ok(())
    }

    /// Copies the newest version of each key of an extent, or what makes its value. `last_key`: the versions
    /// of a key may lie on both sides of the border between two blocks or extents.
    fn copy_extent(
        &mut self,
        copying: &Copying<'_>,
        meta: &ExtentMeta,
        store: &Arc<dyn Store>,
        last_key: &mut Option<Vec<u8>>,
    ) -> Result<()> {
        debug_assert!(
            copying.newer.iter().all(|hole| hole.place <= copying.place),
            "a hole of a deeper place makes no row uncertain"
        );
        // What cannot be read is a loss already.
        let Ok(mut scanner) = scanner(meta, store) else { return Ok(()) };
        let collation = &meta.collation;
        let near = |hole: &&&Hole| {
            collation.le(&hole.first, &meta.largest) && collation.le(&meta.smallest, &hole.last)
        };
        let newer: Vec<&Hole> = copying.newer.iter().filter(near).copied().collect();
        let range_deletes = scanner.extent().read_range_deletes().ok().flatten().unwrap_or_default();
        let mut versions = Versions::default();
        self.report.extents += 1;
        for at in 0..scanner.rows().len() {
            let Ok(block) = scanner.block(at) else { continue };
            let mut cursor = BlockCursor::new();
            cursor.seek_first(&block);
            while let Some(entry) = cursor.entry(&block) {
                let hidden = range_deletes.covering(entry.key).and_then(|over| over.newest(SeqNo::MAX));
                // Entries of one ingest have one number, and its range deletes hide none of them.
                let is_shown = hidden.is_none_or(|by| by <= entry.seq_kind.seq());
                if copying.folds && is_shown {
                    if versions.key != entry.key {
                        self.write_versions(copying, &mut versions)?;
                    }
                    versions.take(entry);
                }
                if last_key.as_deref() != Some(entry.key) {
                    *last_key = Some(entry.key.to_vec());
                    if !copying.folds && is_shown {
                        self.write_or_lose(copying.target, entry.key, entry.seq_kind, entry.value)?;
                    }
                    self.report.entries += 1;
                    let is_uncertain = newer.iter().any(|hole| {
                        // In the same place a first key has its newest version in front of the hole.
                        let is_behind = hole.place < copying.place || hole.first != entry.key;
                        let is_within =
                            collation.le(&hole.first, entry.key) && collation.le(entry.key, &hole.last);
                        is_within && (is_behind || hole.first == hole.last)
                    });
                    self.report.uncertain += u64::from(is_uncertain);
                }
                cursor.next(&block);
            }
        }
        self.write_versions(copying, &mut versions)
    }

    /// Writes the versions of a key that make its value, oldest first, without those that were written from a
    /// deeper place.
    fn write_versions(&mut self, copying: &Copying<'_>, versions: &mut Versions) -> Result<()> {
        if versions.list.is_empty() {
            return Ok(());
        }
        let key = std::mem::take(&mut versions.key);
        let newer = versions.list.split_last().map_or(&[][..], |(_, newer)| newer);
        debug_assert!(
            newer.iter().all(|(seq_kind, _)| seq_kind.is_merge()),
            "only the oldest is not an operand"
        );
        let reached = self.reached.of(copying.old, &key, copying.place + 1);
        for (seq_kind, value) in
            versions.list.drain(..).rev().filter(|(seq_kind, _)| seq_kind.seq() > reached)
        {
            if !seq_kind.is_pointer() {
                self.write_or_lose(copying.target, &key, seq_kind, &value)?;
            } else if let Some((seq_kind, value)) = self.inlined(copying.target, (&key, seq_kind), &[&value])
            {
                self.write_or_lose(copying.target, &key, seq_kind, &value)?;
            } else {
                // Newer operands would be folded onto nothing, or onto an older version.
                self.write(copying.target, &key, RecordKind::Delete, &[])?;
                break;
            }
        }
        Ok(())
    }

    /// Writes a version, or reports that it is damaged although its block is not.
    pub(super) fn write_or_lose(
        &mut self,
        table: TableId,
        key: &[u8],
        seq_kind: SeqKind,
        bytes: &[u8],
    ) -> Result<()> {
        if seq_kind.is_pointer() {
            return match self.inlined(table, (key, seq_kind), &[bytes]) {
                Some((seq_kind, bytes)) => self.write_or_lose(table, key, seq_kind, &bytes),
                // What deeper places have of the key is older, and was written before.
                None => self.write(table, key, RecordKind::Delete, &[]),
            };
        }
        let kind = seq_kind.kind().expect("a block with other kinds is refused");
        match self.write(table, key, kind, bytes) {
            Err(error) if error.kind() == Kind::Corrupt => {
                self.report.lose(None, error);
                Ok(())
            }
            written => written,
        }
    }
}

/// The source and the target of the extents that are copied.
struct Copying<'h> {
    /// The table in the damaged database.
    old: TableId,
    /// The table in the new one.
    target: TableId,
    /// 0 is the newest place of the table.
    place: usize,
    /// True if more than the newest version may count.
    folds: bool,
    /// Holes of newer places, and of this one.
    newer: &'h [&'h Hole],
}

/// Versions of one key, newest first, up to one that is not an operand.
#[derive(Default)]
struct Versions {
    key: Vec<u8>,
    list: Vec<(SeqKind, Vec<u8>)>,
}

impl Versions {
    fn take(&mut self, entry: Entry<'_>) {
        if self.list.is_empty() {
            self.key = entry.key.to_vec();
        }
        debug_assert_eq!(self.key, entry.key, "versions of two keys would be folded");
        if self.list.last().is_none_or(|(seq_kind, _)| seq_kind.is_merge()) {
            self.list.push((entry.seq_kind, entry.value.to_vec()));
        }
    }
}

fn folds(table: &terrane_levels::Table) -> bool {
    table.options.iter().any(|(name, value)| name == MERGE_OPERATOR && value != "none")
}

fn scanner(meta: &ExtentMeta, store: &Arc<dyn Store>) -> Result<ExtentScanner> {
    ExtentScanner::new(Extent::new(meta.clone(), store.clone()), ONE_BLOCK)
}
