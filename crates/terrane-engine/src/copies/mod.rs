//! Whole copies of a database: `checkpoint/` beside it, `backup/` in a place of backups, `repair/` of what is
//! readable of a damaged one.

pub mod backup;
pub(crate) mod checkpoint;
pub(crate) mod repair;
mod sound_extent;
