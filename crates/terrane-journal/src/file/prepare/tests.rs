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

/// Resident bytes of the segment that is ready, after a load of values of this length; with `trims` its file
/// was used before.
fn resident_behind(value_bytes: usize, trims: bool) -> u64 {
    let dir = tempfile::tempdir().expect("a directory");
    let bytes = 1 << 20;
    let settings =
        JournalSettings { segment_bytes: bytes, first_segment_bytes: bytes, ..JournalSettings::default() };
    let (disk, env, start) = (Arc::new(PosixDisk::new()), Env::real(), JournalStart::default());
    let journal = FileJournal::open(disk, dir.path(), &settings, &env, Arc::new(Unlisted), &start);
    let journal = journal.expect("a journal");
    let mut batch = Batch::new();
    batch.put(TableId::DEFAULT, b"key", &vec![7; value_bytes]).expect("within the limits");
    let commit = || journal.commit(&batch, false, &mut |_| {}).expect("there is room");
    while journal.segments().len() < 4 {
        commit();
    }
    let shared = &journal.0.medium().shared;
    if trims {
        let last = journal.segments().last().expect("the active one").id;
        let full = SegmentId(last.0 - 1);
        let files: Vec<u32> = journal.segments().iter().map(|segment| segment.file).collect();
        journal.trim(full).expect("nothing needs them");
        // The ready segment was made before the trim; the one after it takes a file that was used. The next
        // commit may use it up, so none follows before it was seen.
        let is_used = || loop {
            let state = shared.state.lock();
            if state.wanted.is_none() || state.ready.is_some() || state.refused.is_some() {
                break state.ready.as_ref().is_some_and(|ready| files.contains(&ready.info.file));
            }
            drop(state);
            std::thread::yield_now();
        };
        for _ in 0..1000 {
            if is_used() {
                break;
            }
            commit();
        }
        assert!(is_used(), "no segment takes a file that was used");
    }
    loop {
        let state = shared.state.lock();
        assert!(state.refused.is_none(), "a segment is refused: {:?}", state.refused);
        if let Some(ready) = &state.ready {
            return resident(&shared.path(ready.info.file));
        }
        drop(state);
        std::thread::yield_now();
    }
}

#[test]
fn bulk_writes_need_no_pages_that_are_allocated_beforehand() {
    assert_eq!(resident_behind(8000, false), 1024, "stores find all pages");
    assert_eq!(resident_behind(100_000, false), 0, "a page of a new file that no writer asks for");
    assert_eq!(resident_behind(100_000, true), 1024, "old blocks that cannot be read are found beforehand");
}
