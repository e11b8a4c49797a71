//! Whole copies of a database: `checkpoint/` beside it, `backup/` in a place of backups.

pub mod backup;
pub(crate) mod checkpoint;
pub(crate) mod sound_extent;
