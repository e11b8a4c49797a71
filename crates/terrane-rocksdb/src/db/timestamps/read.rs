//! Versions by key.

use std::ops::Bound;
use std::sync::Arc;

use terrane::{Cursor, Table};

use crate::db::Family;
use crate::db::timestamps::History;
use crate::ffi::failure::Result;
use crate::options::read_write::ReadOptions;

/// Reads the versions of keys at one timestamp, as of one moment.
pub(crate) struct Reader<'a> {
    cursor: Cursor,
    history: &'a Arc<History>,
    timestamp: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Pins the moment of the options, or the present one, of the table as it is seen; none where there are
    /// no timestamps.
    ///
    /// # Errors
    /// As [`Family::read_by`], and `Invalid argument` for a timestamp whose versions may be gone.
    #[inline]
    pub(crate) fn of(
        family: &'a Family,
        table: &Table,
        options: Option<&'a ReadOptions>,
    ) -> Result<Option<Reader<'a>>> {
        match family.read_by(options)? {
            None => Ok(None),
            Some((history, timestamp)) => Reader::pinned(table, options, history, timestamp).map(Some),
        }
    }

    fn pinned(
        table: &Table,
        options: Option<&ReadOptions>,
        history: &'a Arc<History>,
        timestamp: &'a [u8],
    ) -> Result<Reader<'a>> {
        let all: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);
        let cursor = match options.and_then(|options| options.snapshot.as_ref()) {
            Some(snapshot) => snapshot.range_cursor(table, all)?,
            None => table.range_cursor(all)?,
        };
        // Now that it is pinned.
        history.refuse_below_low(timestamp)?;
        Ok(Reader { cursor, history, timestamp })
    }

    /// The value of a key and its timestamp; none if it is deleted, or has no version so old.
    pub(crate) fn get(&mut self, key: &[u8]) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.cursor.seek(self.history.kept(key, self.timestamp))?;
        let Some((kept, stored)) = self.cursor.row() else { return Ok(None) };
        let found = self.history.version(kept, stored)?;
        let is_it = !found.is_deleted() && self.history.compare_keys(found.key, key).is_eq();
        Ok(is_it.then(|| (found.value.to_vec(), found.timestamp.to_vec())))
    }
}
