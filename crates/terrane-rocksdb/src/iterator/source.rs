//! Where the rows of an iterator come from.

use terrane::Cursor;

use crate::db::timestamps::versions::{Motion, Versions};
use crate::ffi::failure::{Failure, Result};
use crate::iterator::overlay::Overlay;

/// Where rows come from.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every iterator has a cursor, and lies in a box of its own"
)]
pub(crate) enum Source {
    /// There is nothing between the bounds.
    Nothing,
    Cursor(Cursor),
    /// A batch over another iterator.
    Overlay(Box<Overlay>),
    /// Versions of keys with timestamps.
    Versions(Box<Versions>),
}

/// Moves a cursor.
#[inline]
pub(crate) fn go(cursor: &mut Cursor, motion: Motion<'_>) -> terrane::Result<()> {
    match motion {
        Motion::First => cursor.seek_first(),
        Motion::Last => cursor.seek_last(),
        Motion::Seek(key) => cursor.seek(key),
        Motion::SeekBack(key) => cursor.seek_back(key),
        Motion::Next => cursor.next(),
        Motion::Prev => cursor.prev(),
    }
}

impl Source {
    #[inline]
    pub(crate) fn row(&self) -> Option<(&[u8], &[u8])> {
        match self {
            Source::Nothing => None,
            Source::Cursor(cursor) => cursor.row(),
            Source::Overlay(overlay) => overlay.row(),
            Source::Versions(versions) => versions.row(),
        }
    }

    #[inline]
    pub(crate) fn go(&mut self, motion: Motion<'_>) -> Result<()> {
        let cursor = match self {
            Source::Nothing => return Ok(()),
            Source::Cursor(cursor) => cursor,
            Source::Overlay(overlay) => return overlay.go(motion),
            Source::Versions(versions) => return versions.go(motion),
        };
        go(cursor, motion).map_err(Failure::from)
    }

    /// Moves to the first row behind `key`.
    pub(crate) fn go_behind(&mut self, key: &[u8]) -> Result<()> {
        self.go(Motion::Seek(key))?;
        match self.row() {
            Some((at, _)) if at == key => self.go(Motion::Next),
            _ => Ok(()),
        }
    }

    /// Returns true if a refresh would show nothing new. Over a batch it is not known.
    pub(crate) fn is_current(&self) -> bool {
        match self {
            Source::Nothing => true,
            Source::Cursor(cursor) => cursor.is_current(),
            Source::Overlay(_) => false,
            Source::Versions(versions) => versions.is_current(),
        }
    }

    pub(crate) fn refresh(&mut self) {
        match self {
            Source::Nothing => {}
            Source::Cursor(cursor) => cursor.refresh(),
            Source::Overlay(overlay) => overlay.refresh(),
            Source::Versions(versions) => versions.refresh(),
        }
    }
}
