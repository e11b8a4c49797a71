//! `compact`: merge a range down.

use std::io::Write;

use super::store::{Access, bounds, end, open_table, start};
use crate::arguments::{Compact, Engine};
use crate::exit::Failure;
use crate::text::size;

pub(super) fn run(engine: &Engine, command: &Compact, out: &mut dyn Write) -> Result<(), Failure> {
    let (from, to) = bounds(&command.range)?;
    let (db, table) = open_table(engine, &command.place, Access::Write)?;
    db.compact_range(&table, (start(from.as_deref()), end(to.as_deref())))?;
    let stats = db.stats();
    writeln!(
        out,
        "compacted {} in table {:?}: read {}, wrote {}, took over {} as they were",
        command.place.database.display(),
        table.name(),
        size(stats.compaction_bytes_read),
        size(stats.compaction_bytes_written),
        size(stats.bytes_reused),
    )?;
    Ok(db.close()?)
}
