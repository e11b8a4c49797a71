//! The cursors of the simulated user: one that shows rows, or one that shows keys and reads values when it is
//! asked for them.

use terrane::{Cursor, KeyCursor, Result};

/// A key, and its value if that was looked at.
pub(crate) type Shown = (Vec<u8>, Option<Vec<u8>>);

/// A cursor of either kind.
pub(crate) enum Walker {
    /// Shows rows.
    Rows(Cursor),
    /// Shows keys; reads the value at every second position.
    Keys { cursor: KeyCursor, steps: u64 },
}

macro_rules! forward {
    ($self:ident, $cursor:ident => $call:expr) => {
        match $self {
            Walker::Rows($cursor) => $call,
            Walker::Keys { cursor: $cursor, .. } => $call,
        }
    };
}

impl Walker {
    /// A cursor that shows keys alone, or rows.
    pub(crate) fn new(cursor: Cursor, shows_keys: bool) -> Self {
        if shows_keys { Walker::Keys { cursor: cursor.keys(), steps: 0 } } else { Walker::Rows(cursor) }
    }

    pub(crate) fn refresh(&mut self) {
        forward!(self, cursor => cursor.refresh());
    }

    pub(crate) fn next(&mut self) -> Result<()> {
        forward!(self, cursor => cursor.next())
    }

    pub(crate) fn prev(&mut self) -> Result<()> {
        forward!(self, cursor => cursor.prev())
    }

    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        forward!(self, cursor => cursor.seek(key))
    }

    pub(crate) fn seek_back(&mut self, key: &[u8]) -> Result<()> {
        forward!(self, cursor => cursor.seek_back(key))
    }

    pub(crate) fn seek_first(&mut self) -> Result<()> {
        forward!(self, cursor => cursor.seek_first())
    }

    pub(crate) fn seek_last(&mut self) -> Result<()> {
        forward!(self, cursor => cursor.seek_last())
    }

    /// The key at the position, and the value if it is looked at.
    pub(crate) fn shown(&mut self) -> Result<Option<Shown>> {
        match self {
            Walker::Rows(cursor) => Ok(cursor.row().map(|(key, value)| (key.to_vec(), Some(value.to_vec())))),
            Walker::Keys { cursor, steps } => {
                *steps += 1;
                let Some(key) = cursor.key().map(<[u8]>::to_vec) else { return Ok(None) };
                if steps.is_multiple_of(2) {
                    return Ok(Some((key, None)));
                }
                let value = cursor.value()?.map(<[u8]>::to_vec);
                assert!(value.is_some(), "a key that a cursor shows has a value");
                assert!(cursor.key() == Some(&*key), "a cursor that reads a value stays at its key");
                Ok(Some((key, value)))
            }
        }
    }
}
