//! An ingest beside a merge of the extents around it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use terrane::{CompactionFilter, Db, ExtentFileWriter, FilterDecision, IngestOptions, Options};

use super::orders::{WhichOrder, functions};

/// Keeps a merge at its first row until the test has met it twice.
#[derive(Debug)]
struct AtFirstRow {
    meets: Barrier,
    was_shown: AtomicBool,
}

impl CompactionFilter for AtFirstRow {
    fn name(&self) -> &str {
        "at first row"
    }

    fn filter(&self, _key: &[u8], _value: &[u8]) -> FilterDecision {
        if !self.was_shown.swap(true, Ordering::Relaxed) {
            self.meets.wait();
            self.meets.wait();
        }
        FilterDecision::Keep
    }

    fn sees_all(&self) -> bool {
        true
    }
}

fn bring_in(db: &Db, path: &Path, options: &Options, keys: [&[u8]; 2]) -> terrane::Result<()> {
    let mut file = ExtentFileWriter::create_with_orders(path, options, &functions().orders)?;
    keys.iter().try_for_each(|key| file.put(key, b"in"))?;
    file.finish()?;
    db.ingest(&[(db.default_table(), path)], IngestOptions::default()).map(drop)
}

/// Nothing lies where it comes in, but the merge around it will: it must not come into the level that this
/// goes to.
#[test]
fn a_file_in_a_gap_of_a_merge_keeps_off_its_level() -> terrane::Result<()> {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut options = Options::default();
    options.set("key_order", WhichOrder::Backward.name())?;
    let db = Db::open_with_functions(dir.path().join("db"), &options, functions())?;
    let table = db.default_table();
    let at_first_row = Arc::new(AtFirstRow { meets: Barrier::new(2), was_shown: AtomicBool::new(false) });
    table.set_compaction_filter(Some(at_first_row.clone()));
    // Two extents in the only level, with a gap. Whichever merge comes first takes both.
    bring_in(&db, &dir.path().join("first"), &options, [b"z", b"q"])?;
    bring_in(&db, &dir.path().join("last"), &options, [b"l", b"c"])?;
    let came_in = std::thread::scope(|scope| {
        let merge = scope.spawn(|| db.compact_range(table, ..));
        at_first_row.meets.wait();
        let came_in = bring_in(&db, &dir.path().join("between"), &options, [b"p", b"m"]);
        at_first_row.meets.wait();
        merge.join().expect("the merge ends").and(came_in)
    });
    came_in?;
    let keys = table.iter().map(|row| row.map(|row| row.0.to_vec())).collect::<terrane::Result<Vec<_>>>()?;
    assert_eq!(keys, [b"z", b"q", b"p", b"m", b"l", b"c"]);
    assert_eq!(db.stats().background_errors, 0, "the merge met it in its level");
    assert!(db.check(&mut |_, _| ())?.findings.is_empty());
    db.close()
}
