//! `checkpoint`: a second database.

use std::io::Write;

use super::store::{Access, open};
use crate::arguments::{Engine, backup};
use crate::exit::Failure;
use crate::text::{count, size};

pub(super) fn checkpoint(
    engine: &Engine,
    command: &backup::Checkpoint,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let db = open(engine, &command.database, Access::Write)?;
    let made = db.checkpoint(&command.target)?;
    writeln!(
        out,
        "{} has every commit up to {}: {} data files linked, {} of extents copied, {} of journal written",
        made.path.display(),
        made.last_seq,
        count(made.files_linked),
        size(made.bytes_copied),
        size(made.journal_bytes),
    )?;
    Ok(db.close()?)
}
