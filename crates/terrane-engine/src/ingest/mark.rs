//! What the journal says of extents that came in: a record of no table ([`TableId::NONE`]). It changes nothing and gives them
//! their number; readers of changes are told by it which tables they came into.

use terrane_base::record::Record;
use terrane_base::{RecordKind, TableId};

const KEY: &[u8] = b"ingest";
const ID_BYTES: usize = size_of::<u32>();

/// The value of the mark: the ids of the tables, 32 bits each, least byte first.
pub(crate) fn value(tables: impl Iterator<Item = TableId>) -> Vec<u8> {
    tables.flat_map(|table| table.0.to_le_bytes()).collect()
}

/// The mark with this value.
pub(crate) fn record(value: &[u8]) -> Record<'_> {
    Record { kind: RecordKind::Put, table: TableId::NONE, key: KEY, value }
}

/// The tables that a record says extents came into; none for any other record.
pub(crate) fn tables_of<'r>(record: &Record<'r>) -> impl Iterator<Item = TableId> + use<'r> {
    let is_mark = record.table == TableId::NONE && record.key == KEY;
    let ids = if is_mark { record.value } else { &[] };
    ids.as_chunks::<ID_BYTES>().0.iter().map(|id| TableId(u32::from_le_bytes(*id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_tables_and_nothing_else_does() {
        let ids = [TableId(1), TableId(70_000)];
        let value = value(ids.into_iter());
        assert!(tables_of(&record(&value)).eq(ids));
        assert!(tables_of(&record(&value[..5])).eq([TableId(1)]));
        let put = Record { table: TableId(1), ..record(&value) };
        assert_eq!(tables_of(&put).count(), 0);
    }
}
