//! Copies extents whose levels are not known: of each key the version with the greatest number counts,
//! whichever extent has it.
//!
//! All extents of a table lie in rows, within which none overlaps another (`found.rs`). One pass goes over
//! all rows in the order of the keys:
//! 1. it takes all versions of the least key, newest first, each number once (`versions.rs`);
//! 2. leaves out those that a range delete of any extent hides;
//! 3. writes the newest one, or the operands down to the first version that is not an operand.
//!
//! A block that cannot be read is a loss, and what other rows have of its keys is uncertain: the block may
//! have had newer versions. So is what comes from an extent that the manifest does not list.

use std::collections::VecDeque;
use std::sync::Arc;

use terrane_base::{Collation, Entry, Error, RecordKind, Result, SeqNo, TableId};
use terrane_format::block::{Block, BlockCursor};
use terrane_format::range_deletes::Fragments;
use terrane_levels::directory::DATA;
use terrane_levels::manifest::Remains;
use terrane_storage::{LocalStore, Store, StoreSettings};
use terrane_table::{Extent, ExtentScanner};

use crate::repair::found::Found;
use crate::repair::mended_store::MendedStore;
use crate::repair::origins::{Family, Footers};
use crate::repair::reached::Reached;
use crate::repair::rows::{Member, Rows};
use crate::repair::versions::{Version, Whose, newest_once};
use crate::repair::{Loss, Repair};

/// Reads each block by itself: its neighbours may be damaged.
const ONE_BLOCK: u32 = 1;
/// Holes of a row that are kept as separate ranges.
const HOLES_MAX: usize = 1000;

/// Which versions are copied.
pub(super) struct Wanted<'k> {
    /// Keys from here on.
    pub(super) start: &'k [u8],
    /// Keys before this one; `None`: to the end.
    pub(super) end: Option<&'k [u8]>,
    /// Only of keys whose newest version has a greater number.
    pub(super) above: SeqNo,
    /// True if losses are reported and copied rows are counted: not if the same is copied once more.
    pub(super) is_first: bool,
}

impl Wanted<'_> {
    pub(super) const ALL: Wanted<'static> = Wanted { start: b"", end: None, above: SeqNo(0), is_first: true };

    fn is_behind(&self, key: &[u8], collation: &Collation) -> bool {
        self.end.is_some_and(|end| collation.le(end, key))
    }
}

/// A position in a row of extents.
struct RowCursor<'r> {
    members: &'r [Member],
    /// The next member to open.
    next: usize,
    open: Option<Open>,
    /// Keys of blocks that could not be read and that the pass is not behind yet, in order.
    holes: VecDeque<(Vec<u8>, Vec<u8>)>,
    /// The member whose range deletes are loaded, and they.
    ranges: Option<(usize, Fragments)>,
}

/// An extent that is read.
struct Open {
    scanner: ExtentScanner,
    /// The row of the index whose block is open.
    at: usize,
    block: Block,
    cursor: BlockCursor,
    of: Whose,
}

impl Repair<'_> {
    /// Copies all that the remains of a manifest and the footers of extents lead to.
    pub(super) fn copy_found(
        &mut self,
        remains: &Remains,
        (footers, family): (Footers, Family),
    ) -> Result<()> {
        let dir = self.source.join(DATA);
        let settings = StoreSettings { read_only: true, ..StoreSettings::default() };
        let opened = LocalStore::open(self.disk.clone(), &dir, settings);
        let mended = opened.map(|store| MendedStore::new(Arc::new(store)));
        let tables = self.find_extents(remains, (footers, &family), mended.as_deref().ok());
        let store: Arc<dyn Store> = match mended {
            Ok(store) => store,
            Err(error) => {
                self.report.lose(None, error.context("no extent can be read"));
                return Ok(());
            }
        };
        let is_keyed = |found: &Found| found.meta.value_table.is_none();
        let unlisted = tables.values().flatten().filter(|found| !found.is_listed && is_keyed(found));
        let unlisted = unlisted.count() as u64;
        self.report.unlisted_extents += unlisted;
        if unlisted > 0 {
            let what = format!(
                "{unlisted} extents that no readable part of the manifest names are taken in: what was deleted or dropped may be \
                 there again"
            );
            self.report.doubt(Error::corrupt(what).at(dir.display().to_string(), 0));
        }
        for (old, found) in tables {
            self.report.extents += found.len() as u64;
            let target = self.table(old)?;
            let (found, values): (Vec<Found>, Vec<Found>) = found.into_iter().partition(is_keyed);
            values.into_iter().for_each(|found| self.values.add(Extent::new(found.meta, store.clone())));
            let rows = Arc::new(Rows::of(found, &family, &store));
            let opened = |member: &Member| Reached::opened(&member.extent.meta, &store);
            let extents = rows.rows.iter().map(|row| row.iter().map(opened).collect());
            self.reached.add(old, extents.collect());
            self.found.insert(old, rows.clone());
            self.copy_by_number(target, &rows, &Wanted::ALL)?;
        }
        Ok(())
    }

    /// Behind a range delete of the journal: writes what extents have that is newer, for which all of them
    /// were written before the journal.
    pub(super) fn restore_newer(&mut self, old: TableId, range: (&[u8], &[u8]), above: SeqNo) -> Result<()> {
        let Some(rows) = self.found.get(&old).cloned() else { return Ok(()) };
        let target = self.table(old)?;
        let wanted = Wanted { start: range.0, end: Some(range.1), above, is_first: false };
        self.copy_by_number(target, &rows, &wanted)
    }

    /// Copies the `wanted` entries of the table `old` into the table `target` of the new database.
    pub(super) fn copy_by_number(
        &mut self,
        target: TableId,
        Rows { rows, lineage }: &Rows,
        wanted: &Wanted<'_>,
    ) -> Result<()> {
        let Some(first) = rows.iter().flatten().next() else { return Ok(()) };
        let collation = first.extent.meta.collation.clone();
        let name = self.name_of(target);
        let mut cursors: Vec<RowCursor<'_>> = rows.iter().map(|row| RowCursor::new(row)).collect();
        for cursor in &mut cursors {
            cursor.seek(wanted.start, &collation, &mut |loss| self.lose_of(name.as_deref(), loss, wanted));
        }
        while let Some(key) = least(&cursors, &collation).map(<[u8]>::to_vec) {
            if wanted.is_behind(&key, &collation) {
                break;
            }
            let mut versions = Vec::new();
            for cursor in &mut cursors {
                cursor.take(&key, &mut versions, &mut |loss| self.lose_of(name.as_deref(), loss, wanted));
            }
            let mut hidden = None;
            for cursor in &mut cursors {
                hidden = hidden.max(cursor.hidden(&key, &collation));
            }
            let mut is_near_hole = false;
            for cursor in &mut cursors {
                is_near_hole |= cursor.misses(&key, &collation);
            }
            if !is_near_hole {
                let left_out = lineage.leave_out(&key, &collation, &mut versions);
                self.report.replaced += if wanted.is_first { left_out } else { 0 };
            }
            self.copy_versions(target, &key, versions, (hidden, is_near_hole), wanted)?;
        }
        Ok(())
    }

    fn copy_versions(
        &mut self,
        target: TableId,
        key: &[u8],
        mut versions: Vec<Version>,
        (hidden, is_near_hole): (Option<SeqNo>, bool),
        wanted: &Wanted<'_>,
    ) -> Result<()> {
        let counts_twice = newest_once(&mut versions);
        if terrane_base::planted!(OldVersionWins) {
            versions.reverse();
        }
        // What came in together has one number, and hides none of it.
        versions.retain(|version| hidden.is_none_or(|by| by <= version.seq_kind.seq()));
        let Some(newest) = versions.first().filter(|newest| newest.seq_kind.seq() > wanted.above) else {
            return Ok(());
        };
        let is_deleted = newest.seq_kind.kind().is_some_and(RecordKind::is_delete);
        let operands = versions.iter().take_while(|version| version.is_operand()).count();
        versions.truncate(operands + 1);
        if wanted.is_first {
            self.report.entries += 1;
            let is_unlisted = versions.iter().any(|version| !version.of.is_listed);
            let is_uncertain = is_near_hole || is_unlisted || counts_twice;
            self.report.uncertain += u64::from(is_uncertain);
        }
        // There is nothing in the new database that it would delete.
        if is_deleted {
            return Ok(());
        }
        for version in versions.iter().rev() {
            let Version { seq_kind, value, others, .. } = version;
            if !seq_kind.is_pointer() {
                self.write_or_lose(target, key, *seq_kind, value)?;
                continue;
            }
            let pointers: Vec<&[u8]> = [value].into_iter().chain(others).map(Vec::as_slice).collect();
            match self.inlined(target, (key, *seq_kind), &pointers) {
                Some((seq_kind, value)) => self.write_or_lose(target, key, seq_kind, &value)?,
                // What operands would be folded onto is lost.
                None => return Ok(()),
            }
        }
        Ok(())
    }

    fn lose_of(&mut self, name: Option<&str>, mut loss: Loss, wanted: &Wanted<'_>) {
        if wanted.is_first {
            loss.table = name.map(str::to_owned);
            self.report.lose_keys(loss);
        }
    }
}

/// The least key that a cursor is at.
fn least<'c>(cursors: &'c [RowCursor<'_>], collation: &Collation) -> Option<&'c [u8]> {
    let mut least: Option<&[u8]> = None;
    for key in cursors.iter().filter_map(|cursor| cursor.entry().map(|entry| entry.key)) {
        if least.is_none_or(|least| collation.lt(key, least)) {
            least = Some(key);
        }
    }
    least
}

impl<'r> RowCursor<'r> {
    fn new(members: &'r [Member]) -> Self {
        RowCursor { members, next: 0, open: None, holes: VecDeque::new(), ranges: None }
    }

    fn entry(&self) -> Option<Entry<'_>> {
        self.open.as_ref().and_then(|open| open.cursor.entry(&open.block))
    }

    /// Goes to the first entry at or behind `start`.
    fn seek(&mut self, start: &[u8], collation: &Collation, lose: &mut dyn FnMut(Loss)) {
        debug_assert!(self.open.is_none() && self.holes.is_empty(), "a cursor is placed once");
        self.next = self.members.partition_point(|one| collation.lt(&one.extent.meta.largest, start));
        self.open_next(lose);
        while self.entry().is_some_and(|entry| collation.lt(entry.key, start)) {
            self.step(lose);
        }
    }

    /// Appends all versions of `key`, if the cursor is at it, and goes behind them.
    fn take(&mut self, key: &[u8], versions: &mut Vec<Version>, lose: &mut dyn FnMut(Loss)) {
        while let Some(open) = &self.open
            && let Some(entry) = open.cursor.entry(&open.block)
            && entry.key == key
        {
            let (seq_kind, value, of) = (entry.seq_kind, entry.value.to_vec(), open.of);
            versions.push(Version { seq_kind, value, of, others: Vec::new() });
            self.step(lose);
        }
    }

    /// The newest range delete over `key` in the row. Keys come in ascending order.
    fn hidden(&mut self, key: &[u8], collation: &Collation) -> Option<SeqNo> {
        let from = self.ranges.as_ref().map_or(0, |(at, _)| *at);
        let behind = self.members[from..].partition_point(|one| collation.lt(&one.extent.meta.largest, key));
        let at = from + behind;
        let member = self.members.get(at).filter(|one| collation.le(&one.extent.meta.smallest, key))?;
        if self.ranges.as_ref().is_none_or(|(loaded, _)| *loaded != at) {
            // What cannot be read is a loss already.
            self.ranges = Some((at, member.extent.read_range_deletes().ok().flatten().unwrap_or_default()));
        }
        debug_assert!(
            self.ranges.as_ref().is_some_and(|(loaded, _)| *loaded == at),
            "the range deletes of another extent hide the key"
        );
        let (_, fragments) = self.ranges.as_ref().expect("was loaded");
        fragments.covering(key).and_then(|over| over.newest(SeqNo::MAX))
    }

    /// Returns true if a block that may have had `key` could not be read. Keys come in ascending order.
    fn misses(&mut self, key: &[u8], collation: &Collation) -> bool {
        while self.holes.front().is_some_and(|(_, last)| collation.lt(last, key)) {
            self.holes.pop_front();
        }
        self.holes.iter().any(|(first, last)| collation.le(first, key) && collation.le(key, last))
    }

    fn step(&mut self, lose: &mut dyn FnMut(Loss)) {
        let Some(open) = &mut self.open else { return };
        debug_assert!(open.cursor.entry(&open.block).is_some(), "a block that is open has an entry to pass");
        open.cursor.next(&open.block);
        if open.cursor.entry(&open.block).is_none() {
            let next = open.at + 1;
            self.open_block(next, lose);
        }
    }

    /// Opens the next extent of which a block can be read.
    fn open_next(&mut self, lose: &mut dyn FnMut(Loss)) {
        debug_assert!(self.next <= self.members.len(), "extents are opened in turn");
        self.open = None;
        while self.open.is_none() && self.next < self.members.len() {
            let Member { extent, of } = self.members[self.next].clone();
            self.next += 1;
            let meta = extent.meta.clone();
            let whole = |entries, error| Loss {
                table: None,
                keys: Some((meta.smallest.clone(), meta.largest.clone())),
                entries: Some(entries),
                error,
            };
            if let Err(error) = extent.read_range_deletes() {
                let error = error.context(format!("extent {}: its range deletes cannot be read", meta.id));
                lose(whole(0, error));
                self.miss(&meta.smallest, &meta.largest);
            }
            match ExtentScanner::new(extent, ONE_BLOCK) {
                Ok(scanner) => self.open_block_of(scanner, 0, of, lose),
                Err(error) => {
                    let error = error.context(format!("extent {}: its index cannot be read", meta.id));
                    lose(whole(meta.entries, error));
                    self.miss(&meta.smallest, &meta.largest);
                }
            }
        }
    }

    /// Goes to block `at` of the open extent, or on to the next one.
    fn open_block(&mut self, at: usize, lose: &mut dyn FnMut(Loss)) {
        if let Some(open) = self.open.take() {
            self.open_block_of(open.scanner, at, open.of, lose);
        }
        if self.open.is_none() {
            self.open_next(lose);
        }
    }

    /// Opens the first block from `at` on that can be read; `None` if no block can.
    fn open_block_of(
        &mut self,
        mut scanner: ExtentScanner,
        from: usize,
        of: Whose,
        lose: &mut dyn FnMut(Loss),
    ) {
        debug_assert!(self.open.is_none(), "a row has one block open");
        for at in from..scanner.rows().len() {
            match scanner.block(at) {
                Ok(block) => {
                    let mut cursor = BlockCursor::new();
                    cursor.seek_first(&block);
                    if cursor.entry(&block).is_some() {
                        self.open = Some(Open { scanner, at, block, cursor, of });
                        return;
                    }
                }
                Err(error) => {
                    let row = scanner.rows().row(at);
                    let keys = (row.first_key.to_vec(), row.last_key.to_vec());
                    self.miss(&keys.0, &keys.1);
                    let entries = Some(u64::from(row.entries));
                    lose(Loss { table: None, keys: Some(keys), entries, error });
                }
            }
        }
    }

    /// Notes that these keys cannot be read here. Beyond [`HOLES_MAX`] the last hole grows over the keys
    /// between instead: more rows than need be are uncertain then.
    fn miss(&mut self, first: &[u8], last: &[u8]) {
        let is_full = self.holes.len() >= HOLES_MAX;
        match self.holes.back_mut().filter(|_| is_full) {
            Some((_, end)) => last.clone_into(end),
            None => self.holes.push_back((first.to_vec(), last.to_vec())),
        }
        debug_assert!(self.holes.len() <= HOLES_MAX, "{} holes of a row are kept", self.holes.len());
    }
}
