//! Which pages of a prepared segment are allocated.

use std::path::Path;

use terrane_base::env::Env;
use terrane_base::{Batch, TableId};
use terrane_device::PosixDisk;

use crate::{FileJournal, Journal, JournalStart, SegmentRegistrar};

use super::*;

struct Unlisted;

impl SegmentRegistrar for Unlisted {
    fn register(&self, _segment: &SegmentSpec) -> Result<()> {
        Ok(())
    }
}

/// Bytes of a file of this process that are mapped and allocated, in KiB.
fn resident(path: &Path) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("Linux has it");
    let name = path.display().to_string();
    let of_file = maps.lines().skip_while(|line| !line.ends_with(&name));
    let rss = of_file.filter_map(|line| line.strip_prefix("Rss:")).next().expect("the file is mapped");
    rss.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// What is resident of the segment that is ready, behind a load of values of this length.
fn resident_behind(value_bytes: usize) -> u64 {
    let dir = tempfile::tempdir().expect("a directory");
    let bytes = 1 << 20;
    let settings =
        JournalSettings { segment_bytes: bytes, first_segment_bytes: bytes, ..JournalSettings::default() };
    let (disk, env, start) = (Arc::new(PosixDisk::new()), Env::real(), JournalStart::default());
    let journal = FileJournal::open(disk, dir.path(), &settings, &env, Arc::new(Unlisted), &start);
    let journal = journal.expect("a journal");
    let mut batch = Batch::new();
    batch.put(TableId::DEFAULT, b"key", &vec![7; value_bytes]).expect("within the limits");
    while journal.segments().len() < 4 {
        journal.commit(&batch, false, &mut |_| {}).expect("there is room");
    }
    let shared = &journal.0.medium().shared;
    loop {
        let state = shared.state.lock();
        if let Some(ready) = &state.ready {
            return resident(&shared.path(ready.info.file));
        }
        drop(state);
        std::thread::yield_now();
    }
}

#[test]
fn bulk_writes_need_no_pages_that_are_allocated_beforehand() {
    assert_eq!(resident_behind(8000), 1024, "stores find all pages");
    assert_eq!(resident_behind(100_000), 0, "a page of a new file that no writer asks for");
}
