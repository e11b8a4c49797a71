//! The trait of every sorted source: memtables, blocks, extents, levels, and merges of them.
//!
//! Entries are in *internal order*: by key ascending, then by sequence number descending (newest first).

use crate::{Result, SeqKind, SeqNo};

/// One version of one key, borrowed from where it lies until the cursor moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// User key.
    pub key: &'a [u8],
    /// Sequence number and kind.
    pub seq_kind: SeqKind,
    /// User value; empty for a delete.
    pub value: &'a [u8],
}

/// A position in a sorted source. A new cursor has no position: [`Cursor::entry`] is `None` until it is
/// placed.
///
/// After an error the cursor has no position; placing it again is allowed.
pub trait Cursor {
    /// The entry at the position, or `None` before the first or after the last entry.
    fn entry(&self) -> Option<Entry<'_>>;

    /// Goes to the first entry at or after (`key`, `seq`) in internal order: the newest version of `key` with
    /// a number up to `seq`, or else the next greater key's newest version.
    ///
    /// # Errors
    /// `Io` or `Corrupt` from the device.
    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()>;

    /// Prefetches memory that [`Cursor::begin_seek`] and [`Cursor::seek`] of the same key will read, so that
    /// several sources wait for it together. One of them must follow; before it only this call may be
    /// repeated.
    fn prepare_seek(&mut self, key: &[u8]) {
        let _ = key;
    }

    /// Begins [`Cursor::seek`] without waiting for a device, so that several sources wait together. True if
    /// that was all; false if bytes are under way now: `seek` with the same arguments must follow, and the
    /// cursor has no position until then.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    fn begin_seek(&mut self, key: &[u8], seq: SeqNo) -> Result<bool> {
        self.seek(key, seq).map(|()| true)
    }

    /// Goes to the last entry whose key is strictly less than `key` (its oldest version).
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    fn seek_before(&mut self, key: &[u8]) -> Result<()>;

    /// Goes to the first entry.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    fn seek_first(&mut self) -> Result<()>;

    /// Goes to the last entry.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    fn seek_last(&mut self) -> Result<()>;

    /// Goes to the next entry in internal order. Requires: [`Cursor::entry`] is `Some`.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    fn next(&mut self) -> Result<()>;

    /// As [`Cursor::next`], but may skip older versions of the key: for callers that have found their
    /// version.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    fn next_key(&mut self) -> Result<()> {
        self.next()
    }

    /// Goes to the previous entry in internal order. Requires: [`Cursor::entry`] is `Some`.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    fn prev(&mut self) -> Result<()>;
}

impl<C: Cursor + ?Sized> Cursor for Box<C> {
    fn entry(&self) -> Option<Entry<'_>> {
        (**self).entry()
    }

    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        (**self).seek(key, seq)
    }

    fn prepare_seek(&mut self, key: &[u8]) {
        (**self).prepare_seek(key);
    }

    fn begin_seek(&mut self, key: &[u8], seq: SeqNo) -> Result<bool> {
        (**self).begin_seek(key, seq)
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        (**self).seek_before(key)
    }

    fn seek_first(&mut self) -> Result<()> {
        (**self).seek_first()
    }

    fn seek_last(&mut self) -> Result<()> {
        (**self).seek_last()
    }

    fn next(&mut self) -> Result<()> {
        (**self).next()
    }

    fn next_key(&mut self) -> Result<()> {
        (**self).next_key()
    }

    fn prev(&mut self) -> Result<()> {
        (**self).prev()
    }
}
