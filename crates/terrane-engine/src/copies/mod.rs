//! Whole copies of a database: `checkpoint/` beside it, `backup/` in a place of backups.

pub mod backup;
pub(crate) mod checkpoint;
pub(crate) mod sound_extent;

use terrane_base::{Error, Kind, Result};

/// Ends a copy that its caller has cancelled.
pub(crate) fn refuse_if(is_cancelled: &dyn Fn() -> bool) -> Result<()> {
    if is_cancelled() { Err(Error::new(Kind::Cancelled, "cancelled by the caller")) } else { Ok(()) }
}
