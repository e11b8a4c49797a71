//! The operations of the writers: each follows from its writer and number, so that the rows of a database
//! follow from the number of operations of each writer.

use std::collections::BTreeMap;

use terrane::{Batch, Db, Options, Result, Table, TableOptions};
use terrane_base::Rng;

/// The tables that every operation writes to.
pub(crate) const TABLES: [&str; 3] = ["default", "left", "right"];
/// Keys of one writer in one table.
const KEYS: u64 = 2000;
/// The counters of the other writers that one writer sees before it writes, in the default table.
const SAW: &str = "saw/";
/// How far a writer came, in every table.
const COUNTER: &str = "counter/";

/// The smallest limits, so that a fraction of a second freezes, flushes, compacts, trims and rolls.
pub(crate) fn tiny_options() -> Options {
    Options {
        memory_bytes: 16 << 20,
        write_memory_bytes: 4 << 20,
        segment_bytes: 64 << 10,
        memtable_bytes: 64 << 10,
        global_index_bytes: 96 << 10,
        level_base_bytes: 128 << 10,
        block_bytes: 1 << 10,
        level_fanout: 2,
        background_threads: 2,
        ..Options::default()
    }
}

/// One change of a batch.
pub(crate) struct Change {
    pub(crate) table: usize,
    pub(crate) key: Vec<u8>,
    pub(crate) value: Option<Vec<u8>>,
}

/// Rows of the three tables, without what the writers saw.
pub(crate) type Rows = [BTreeMap<Vec<u8>, Vec<u8>>; 3];

/// The batch of one operation: how far the writer is, in every table, and some rows.
pub(crate) fn changes(writer: u64, op: u64) -> Vec<Change> {
    let mut numbers = Rng::new(writer << 40 | op);
    let counter = |table| Change {
        table,
        key: format!("{COUNTER}{writer}").into_bytes(),
        value: Some(op.to_string().into_bytes()),
    };
    let mut all: Vec<Change> = (0..TABLES.len()).map(counter).collect();
    for _ in 0..1 + numbers.below(6) {
        let table = numbers.below(TABLES.len() as u64) as usize;
        let key = format!("row/{writer}/{:05}", numbers.below(KEYS)).into_bytes();
        let is_delete = numbers.below(5) == 0;
        let len = if numbers.below(300) == 0 { 20_000 } else { numbers.below(300) };
        let value = (!is_delete).then(|| (0..len).map(|_| numbers.next_u64() as u8).collect());
        all.push(Change { table, key, value });
    }
    all
}

/// Opens the tables; makes those that are missing.
pub(crate) fn tables(db: &Db) -> Result<Vec<Table>> {
    let open = |name: &&str| match db.table(name) {
        Ok(table) => Ok(table),
        Err(_) => db.create_table(name, &TableOptions::new()),
    };
    TABLES.iter().map(open).collect()
}

/// How far each writer came, as each table says.
pub(crate) fn counter(table: &Table, writer: u64) -> Result<u64> {
    let value = table.get(format!("{COUNTER}{writer}").as_bytes())?;
    Ok(value.map_or(0, |value| number(&value)))
}

pub(crate) fn number(text: &[u8]) -> u64 {
    std::str::from_utf8(text).unwrap().parse().unwrap()
}

/// Encodes operation `op` of `writer`; `saw` is how far it saw every writer.
pub(crate) fn batch(tables: &[Table], writer: u64, op: u64, saw: &[u64]) -> Result<Batch> {
    let mut batch = Batch::new();
    for change in changes(writer, op) {
        match &change.value {
            Some(value) => batch.put(&tables[change.table], &change.key, value)?,
            None => batch.delete(&tables[change.table], &change.key)?,
        }
    }
    let saw: Vec<String> = saw.iter().map(u64::to_string).collect();
    batch.put(&tables[0], format!("{SAW}{writer}").as_bytes(), saw.join(" ").as_bytes())?;
    Ok(batch)
}

/// Returns true if a row says what a writer saw of the others.
pub(crate) fn is_view(key: &[u8]) -> bool {
    key.starts_with(SAW.as_bytes())
}

/// Splits off what the writers saw of each other.
pub(crate) fn take_saw(rows: &mut BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<(u64, Vec<u64>)> {
    let keys: Vec<Vec<u8>> = rows.keys().filter(|key| key.starts_with(SAW.as_bytes())).cloned().collect();
    let mut all = Vec::new();
    for key in keys {
        let value = rows.remove(&key).unwrap();
        let saw = value.split(|byte| *byte == b' ').map(number).collect();
        all.push((number(&key[SAW.len()..]), saw));
    }
    all
}
