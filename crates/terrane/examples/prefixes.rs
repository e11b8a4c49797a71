//! Prefix extractors: scans within one prefix skip extents without keys of that prefix.

use std::sync::Arc;

use terrane::{Db, Options, PrefixExtractor, PrefixExtractors, Result, TableOptions, read_counters};

/// The tenant and the table of keys such as `tenant:table:row`.
#[derive(Debug)]
struct TenantAndTable;

impl PrefixExtractor for TenantAndTable {
    fn name(&self) -> &str {
        "example.tenant-and-table"
    }

    fn prefix_len(&self, key: &[u8]) -> Option<usize> {
        let mut colons = key.iter().enumerate().filter(|(_, byte)| **byte == b':').map(|(at, _)| at + 1);
        colons.nth(1)
    }
}

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let extractors = PrefixExtractors::new().with(Arc::new(TenantAndTable))?;
    let db = Db::open_with_functions(dir.path().join("data"), &Options::default(), extractors)?;
    let options = TableOptions::new().prefix_extractor("example.tenant-and-table");
    let rows = db.create_table("rows", &options)?;
    for tenant in (0..100).step_by(2) {
        for row in 0..20 {
            rows.put(format!("{tenant:03}:orders:{row}").as_bytes(), "..")?;
        }
    }
    db.flush()?;

    // A tenant that is there, and one that is not: its filter says so, and no block is looked at.
    assert_eq!(rows.prefix("042:orders:").count(), 20);
    let before = read_counters();
    assert_eq!(rows.prefix("043:orders:").count(), 0);
    let read = read_counters() - before;
    println!("{} filters asked, {} blocks searched", read.prefix_probes, read.data_blocks_searched);

    // Another extractor for rows that are written from now on; older filters are not asked any more.
    rows.set_option("prefix_extractor", "until::")?;
    assert_eq!(rows.prefix("042:").count(), 20);
    db.close()
}
