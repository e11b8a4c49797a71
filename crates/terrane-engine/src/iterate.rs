//! Ranges: a scan over a merge of everything a picture holds, and the double-ended iterator on top of it.

use std::sync::Arc;

use terrane_base::{Cursor, Entry, Result, SeqNo};
use terrane_memtable::MemtableCursor;
use terrane_table::{CursorOptions, LevelCursor, MergeCursor};

use crate::engine::Engine;
use crate::scan::{Bounds, Scan};
use crate::table::{Picture, Table};

/// One sorted source of a picture.
pub enum Source {
    /// A memtable or a generation of the global index.
    Memory(MemtableCursor),
    /// An overflow run or a level.
    Level(LevelCursor),
}

macro_rules! forward {
    ($self:ident, $cursor:ident => $call:expr) => {
        match $self {
            Source::Memory($cursor) => $call,
            Source::Level($cursor) => $call,
        }
    };
}

impl Cursor for Source {
    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        forward!(self, cursor => cursor.entry())
    }

    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        forward!(self, cursor => cursor.seek(key, seq))
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        forward!(self, cursor => cursor.seek_before(key))
    }

    fn seek_first(&mut self) -> Result<()> {
        forward!(self, cursor => cursor.seek_first())
    }

    fn seek_last(&mut self) -> Result<()> {
        forward!(self, cursor => cursor.seek_last())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        forward!(self, cursor => cursor.next())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        forward!(self, cursor => cursor.prev())
    }
}

/// A position among the visible keys of a table: seek, next, prev, without copies where possible.
pub type TableScan = Scan<MergeCursor<Source>>;

impl Engine {
    /// A scan of `table` within `bounds` at number `seq`. Needs no lock and keeps what it reads alive.
    #[must_use]
    pub fn scan(&self, table: &Table, bounds: Bounds, seq: SeqNo) -> TableScan {
        Scan::new(MergeCursor::new(self.sources(&table.pinned())), seq, bounds)
    }

    /// The rows of `table` within `bounds` at number `seq`, from both ends.
    #[must_use]
    pub fn range(self: &Arc<Self>, table: &Table, bounds: Bounds, seq: SeqNo) -> RangeIter {
        let engine = self.clone();
        // Both ends read the same picture; the second end is opened only if it is used.
        let picture = table.pinned();
        let open = move || Scan::new(MergeCursor::new(engine.sources(&picture)), seq, bounds.clone());
        RangeIter { front: open(), back: None, open_back: Box::new(open), ends: Ends::default() }
    }

    fn sources(&self, picture: &Picture) -> Vec<Source> {
        let memtables =
            std::iter::once(&picture.active).chain(&picture.frozen).map(|memtable| memtable.cursor());
        let generations = picture.generations.iter().map(|generation| generation.cursor());
        let levels = picture.tree.places().filter(|(_, level)| !level.is_empty());
        let levels = levels
            .map(|(_, level)| LevelCursor::new(level.clone(), self.cache.clone(), CursorOptions::default()));
        memtables.chain(generations).map(Source::Memory).chain(levels.map(Source::Level)).collect()
    }
}

/// Keys and values of a range in key order, from both ends. Owns what it needs.
///
/// After an error the iterator ends.
pub struct RangeIter {
    front: TableScan,
    back: Option<TableScan>,
    open_back: Box<dyn Fn() -> TableScan + Send>,
    ends: Ends,
}

/// How far the two ends have come.
#[derive(Default)]
struct Ends {
    front_placed: bool,
    front_key: Option<Vec<u8>>,
    back_key: Option<Vec<u8>>,
    finished: bool,
}

/// A key and its value.
pub type Row = (Vec<u8>, Vec<u8>);

impl RangeIter {
    fn advance(&mut self) -> Result<Option<Row>> {
        if self.ends.front_placed {
            self.front.next()?;
        } else {
            self.front.seek_first()?;
            self.ends.front_placed = true;
        }
        let Some((key, value)) = self.front.entry() else { return Ok(None) };
        if self.ends.back_key.as_deref().is_some_and(|back| key >= back) {
            return Ok(None);
        }
        let row = (key.to_vec(), value.to_vec());
        if self.back.is_some() {
            self.ends.front_key = Some(row.0.clone());
        }
        Ok(Some(row))
    }

    fn advance_back(&mut self) -> Result<Option<Row>> {
        let back = match &mut self.back {
            Some(back) => {
                back.prev()?;
                back
            }
            None => {
                self.ends.front_key = self.front.entry().map(|(key, _)| key.to_vec());
                let back = self.back.insert((self.open_back)());
                back.seek_last()?;
                back
            }
        };
        let Some((key, value)) = back.entry() else { return Ok(None) };
        if self.ends.front_key.as_deref().is_some_and(|front| key <= front) {
            return Ok(None);
        }
        let row = (key.to_vec(), value.to_vec());
        self.ends.back_key = Some(row.0.clone());
        Ok(Some(row))
    }

    fn finish(&mut self, step: Result<Option<Row>>) -> Option<Result<Row>> {
        let row = step.transpose();
        self.ends.finished = !matches!(row, Some(Ok(_)));
        row
    }
}

impl Iterator for RangeIter {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ends.finished {
            return None;
        }
        let step = self.advance();
        self.finish(step)
    }
}

impl DoubleEndedIterator for RangeIter {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.ends.finished {
            return None;
        }
        let step = self.advance_back();
        self.finish(step)
    }
}
